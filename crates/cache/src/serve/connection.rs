//! One connection: requests and answers by turns, until either side ends it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bailey_oci::range::Span;
use bailey_oci::visibility::Client;
use bailey_process::drain::Signal;
use tokio::time::timeout;

use super::Front;
use super::answer::{Answer, BlobBody, Body};
use super::head::{self, HEAD_LEN_MAX, Head, Read};
use super::respond::respond;
use super::transport::Transport;
use crate::cache::{Passing, Source};
use crate::fairness::Party;
use crate::store::fill::{Failure, Fill};
use crate::upstream::Problem;

/// For how long a connection may be idle between requests, and how long a head may take once it has begun.
const IDLE: Duration = Duration::from_secs(90);
const HEAD: Duration = Duration::from_secs(10);

/// Why a body was not finished.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the client is gone")]
    Client(#[from] io::Error),
    #[error(transparent)]
    Upstream(#[from] Problem),
    #[error(transparent)]
    Fill(#[from] Failure),
}

/// Serves a connection to its end.
pub async fn serve(front: &Arc<Front>, mut transport: Transport, client: &Client, signal: &Signal) {
    let mut buffer = Vec::with_capacity(4096);
    let party = client.party();
    loop {
        let head = match next(&mut transport, &mut buffer, signal).await {
            Next::Head(head) => head,
            Next::Wrong(wrong) => {
                let answer = Answer::error(wrong.status(), bailey_oci::Code::Unsupported, &wrong.to_string());
                // Whoever sends this may not read either.
                let _written = write(front, &mut transport, &party, answer, false).await;
                break;
            }
            Next::End => break,
        };
        let answer = respond(front, client, &head).await;
        let keep_alive = head.keep_alive && !answer.close && !signal.is_started();
        match write(front, &mut transport, &party, answer, keep_alive).await {
            Ok(()) if keep_alive => {}
            Ok(()) => break,
            Err(Broken::Client(error)) => {
                tracing::debug!(path = head.path, %error, "a client left before its answer was complete");
                return;
            }
            Err(error) => {
                tracing::warn!(path = head.path, %error, "an answer is cut short");
                break;
            }
        }
    }
    transport.close().await;
}

enum Next {
    Head(Head),
    Wrong(head::Wrong),
    End,
}

/// Reads the next head.
async fn next(transport: &mut Transport, buffer: &mut Vec<u8>, signal: &Signal) -> Next {
    loop {
        match head::read(buffer) {
            Read::Whole(head, length) => {
                buffer.drain(..length);
                return Next::Head(head);
            }
            Read::Wrong(wrong) => return Next::Wrong(wrong),
            Read::Partial => {}
        }
        let limit = if buffer.is_empty() { IDLE } else { HEAD };
        buffer.reserve(HEAD_LEN_MAX.saturating_sub(buffer.len()).min(4096));
        let read = tokio::select! {
            read = timeout(limit, transport.read(buffer)) => read,
            // Between requests nobody waits for an answer.
            () = signal.started(), if buffer.is_empty() => return Next::End,
        };
        match read {
            Ok(Ok(count)) if count > 0 => {}
            _ => return Next::End,
        }
    }
}

async fn write(
    front: &Arc<Front>,
    transport: &mut Transport,
    party: &Party,
    answer: Answer,
    keep_alive: bool,
) -> Result<(), Broken> {
    let mut head = answer.head(keep_alive);
    match answer.body {
        Body::Empty => transport.write(&head).await?,
        Body::Bytes(bytes) => {
            head.extend_from_slice(&bytes);
            transport.write(&head).await?;
        }
        Body::Blob(body) => {
            transport.write(&head).await?;
            blob(front, transport, party, *body).await?;
        }
    }
    Ok(())
}

async fn blob(
    front: &Arc<Front>,
    transport: &mut Transport,
    party: &Party,
    mut body: BlobBody,
) -> Result<(), Broken> {
    let parts = std::mem::replace(
        &mut body.parts,
        super::multipart::Parts { pieces: Vec::new(), end: String::new() },
    );
    for (text, span) in parts.pieces {
        if !text.is_empty() {
            transport.write(text.as_bytes()).await?;
        }
        match &mut body.source {
            Source::Stored(blob) => {
                if let Err(error) = send(front, transport, party, &blob.file, span).await {
                    if error.kind() == io::ErrorKind::UnexpectedEof {
                        // Somebody truncated the file; the next request fetches it again.
                        front.cache.store().discard(&body.digest);
                    }
                    return Err(error.into());
                }
            }
            Source::Filling(fill, size) => {
                let size = *size;
                if let Some(rest) = follow(front, transport, party, fill, span).await? {
                    pass(front, transport, party, &body, rest, size).await?;
                }
            }
            Source::Past(size) => match body.passing.take() {
                Some(passing) => relay(front, transport, party, passing).await?,
                None => {
                    let size = *size;
                    pass(front, transport, party, &body, span, size).await?;
                }
            },
        }
    }
    if !parts.end.is_empty() {
        transport.write(parts.end.as_bytes()).await?;
    }
    Ok(())
}

/// Sends a part of a file, by turns with other clusters where something limits that.
async fn send(
    front: &Arc<Front>,
    transport: &mut Transport,
    party: &Party,
    file: &Arc<std::fs::File>,
    span: Span,
) -> io::Result<()> {
    let shares = front.cache.shares();
    let Some(piece) = shares.piece(party) else {
        return transport.send(file, span.first, span.len()).await;
    };
    let mut at = span.first;
    while at <= span.last {
        let length = piece.min(span.last - at + 1);
        shares.send(party, length).await;
        transport.send(file, at, length).await?;
        at += length;
    }
    Ok(())
}

/// Sends a part of a blob as it comes in. Gives what is left where the fill found no room any more.
async fn follow(
    front: &Arc<Front>,
    transport: &mut Transport,
    party: &Party,
    fill: &mut Fill,
    span: Span,
) -> Result<Option<Span>, Broken> {
    let mut at = span.first;
    loop {
        let progress = fill.now();
        let until = progress.readable.min(span.last + 1);
        if let Some(file) = progress.file.as_ref().filter(|_| at < until) {
            send(front, transport, party, file, Span { first: at, last: until - 1 }).await?;
            at = until;
        }
        if at > span.last {
            return Ok(None);
        }
        match progress.end {
            None => fill.changed().await,
            Some(Ok(())) => return Err(Problem::wrong("the blob is shorter than was said").into()),
            Some(Err(Failure::NoRoom | Failure::Disk(_))) => {
                return Ok(Some(Span { first: at, last: span.last }));
            }
            Some(Err(failure)) => return Err(failure.into()),
        }
    }
}

/// Sends a part of a blob that goes past the store.
async fn pass(
    front: &Arc<Front>,
    transport: &mut Transport,
    party: &Party,
    body: &BlobBody,
    span: Span,
    size: u64,
) -> Result<(), Broken> {
    relay(front, transport, party, front.cache.pass(&body.place, body.digest, span, size).await?).await
}

async fn relay(
    front: &Arc<Front>,
    transport: &mut Transport,
    party: &Party,
    mut passing: Passing,
) -> Result<(), Broken> {
    while let Some(bytes) = passing.next().await? {
        front.cache.shares().send(party, bytes.len() as u64).await;
        transport.write(&bytes).await?;
    }
    Ok(())
}
