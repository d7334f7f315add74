//! Blobs for clients: from the store, from a fill under way, or past the store where there is no room.

use std::sync::Arc;

use bailey_oci::range::{ContentRange, Span};
use bailey_oci::status::Cause;
use bailey_oci::visibility::{Access, Client, Place};
use bailey_oci::{Algorithm, Digest, Hasher};
use bytes::Bytes;
use http::{Method, StatusCode, header};
use tokio::time::{Instant, timeout_at};

use super::Cache;
use crate::store::Blob;
use crate::store::fill::{Failure, Fill};
use crate::upstream::{Ask, Body, Problem, text};

/// Under which path a digest is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Blob,
    Manifest,
}

/// Where the bytes of a blob come from.
#[derive(Debug)]
pub enum Source {
    Stored(Blob),
    /// A fill that has started, and the length of the blob.
    Filling(Fill, u64),
    /// There is no room for it; its length. See [`Cache::pass`].
    Past(u64),
}

impl Source {
    /// The length of the whole blob.
    pub fn size(&self) -> u64 {
        match self {
            Self::Stored(blob) => blob.size,
            Self::Filling(_, size) | Self::Past(size) => *size,
        }
    }
}

impl Cache {
    /// Gives a blob to a client that asks for it in `place`.
    pub async fn blob(
        self: &Arc<Self>,
        client: &Client,
        place: &Place,
        digest: Digest,
        deadline: Instant,
    ) -> Result<Source, Problem> {
        self.may_read(client, place)?;
        let (mut fill, through) = loop {
            if let Some(blob) = self.store.read(&digest) {
                self.prove(client, place, digest, Kind::Blob, None, deadline).await?;
                self.metrics.hit(&place.upstream, blob.size);
                return Ok(Source::Stored(blob));
            }
            if !self.is_filling(&digest) {
                self.miss(client, deadline).await?;
            }
            // None when it has come in since; and what is in but cannot be read is not in any more.
            if let Some(fill) = self.fill(place, digest, client.party()) {
                break fill;
            }
        };
        if through != *place {
            self.prove(client, place, digest, Kind::Blob, Some(&through), deadline).await?;
        }
        self.metrics.miss(&place.upstream);
        let started = timeout_at(deadline, fill.started()).await;
        let progress = started.map_err(|_| Problem::unreachable("no answer yet; the fetch goes on"))?;
        match (progress.end, progress.total) {
            (None | Some(Ok(())), Some(total)) => Ok(Source::Filling(fill, total)),
            (Some(Ok(())), None) => Err(Problem::nonsense("a blob without a length")),
            // It broke off after it had started: what is there already is served, and the rest is missed by the client.
            (Some(Err(Failure::NoRoom | Failure::Disk(_))), total) => {
                let size = match total.or_else(|| self.noted_size(place, &digest)) {
                    Some(size) => size,
                    None => self.probe(place, digest, deadline).await?,
                };
                Ok(Source::Past(size))
            }
            (Some(Err(Failure::Upstream(problem))), _) => Err(problem),
            (Some(Err(Failure::Abandoned)) | None, _) => Err(Problem::unreachable("the fetch was given up")),
        }
    }

    /// Says how large a blob is, without fetching it.
    pub async fn blob_size(
        self: &Arc<Self>,
        client: &Client,
        place: &Place,
        digest: Digest,
        deadline: Instant,
    ) -> Result<u64, Problem> {
        self.may_read(client, place)?;
        if let Some(size) = self.store.size(&digest) {
            self.prove(client, place, digest, Kind::Blob, None, deadline).await?;
            self.store.touch(&digest);
            return Ok(size);
        }
        match self.noted_size(place, &digest) {
            Some(size) => Ok(size),
            None => self.probe(place, digest, deadline).await,
        }
    }

    /// Opens a stream of a part of a blob from the upstream that touches no disk.
    pub async fn pass(
        &self,
        place: &Place,
        digest: Digest,
        span: Span,
        size: u64,
    ) -> Result<Passing, Problem> {
        let whole = span.len() == size;
        let ask = Ask {
            method: Method::GET,
            repository: place.repository.clone(),
            rest: format!("blobs/{digest}"),
            accept: None,
            range: (!whole).then(|| format!("bytes={span}")),
        };
        let answer = self.remote(place)?.upstream.ask(&ask, super::answer_by()).await?;
        let skip = match answer.status {
            StatusCode::PARTIAL_CONTENT => {
                let range = text(&answer.headers, header::CONTENT_RANGE).and_then(ContentRange::parse);
                match range {
                    Some(range) if range.span.first == span.first => 0,
                    _ => return Err(Problem::nonsense("another range than was asked for")),
                }
            }
            _ => span.first,
        };
        let hasher = whole.then(|| Hasher::new(digest.algorithm()));
        Ok(Passing { body: answer.body, skip, left: span.len(), digest, hasher })
    }

    /// Waits until this client may ask for something that is not here.
    pub(super) async fn miss(&self, client: &Client, deadline: Instant) -> Result<(), Problem> {
        self.shares
            .miss(&client.party(), deadline)
            .await
            .map_err(|wait| Problem { retry_after: Some(wait), ..Problem::of(Cause::OverLimit) })
    }

    pub(super) fn may_read(&self, client: &Client, place: &Place) -> Result<(), Problem> {
        if self.visibility.may_read(client, place) { Ok(()) } else { Err(Problem::of(Cause::Policy)) }
    }

    /// Makes sure that this client may know content that is here, asking the upstream once where that is unclear.
    pub(super) async fn prove(
        self: &Arc<Self>,
        client: &Client,
        place: &Place,
        digest: Digest,
        kind: Kind,
        also: Option<&Place>,
        deadline: Instant,
    ) -> Result<(), Problem> {
        if self.visibility.is_open() || self.index().is_linked(&digest, place) {
            return Ok(());
        }
        let links = self.index().links(&digest);
        match self.visibility.access(client, place, links.iter().map(Arc::as_ref).chain(also)) {
            Access::Serve => Ok(()),
            Access::Refuse => Err(Problem::of(Cause::Policy)),
            Access::AskUpstream => {
                match kind {
                    Kind::Blob => drop(self.probe(place, digest, deadline).await?),
                    Kind::Manifest => self.probe_manifest(place, digest, deadline).await?,
                }
                self.index().link(digest, place);
                Ok(())
            }
        }
    }

    /// Asks the upstream for the first byte of a blob: whether it gives it out here, and how large it is.
    async fn probe(
        self: &Arc<Self>,
        place: &Place,
        digest: Digest,
        deadline: Instant,
    ) -> Result<u64, Problem> {
        let (cache, at) = (self.clone(), place.clone());
        let ask = || async move {
            let ask = Ask {
                method: Method::GET,
                repository: at.repository.clone(),
                rest: format!("blobs/{digest}"),
                accept: None,
                // An empty blob has no first byte, and a server may say so.
                range: (!is_empty(&digest)).then(|| "bytes=0-0".to_owned()),
            };
            let answer = cache.remote(&at)?.upstream.ask(&ask, super::answer_by()).await?;
            let size = if answer.status == StatusCode::PARTIAL_CONTENT {
                text(&answer.headers, header::CONTENT_RANGE)
                    .and_then(ContentRange::parse)
                    .and_then(|range| range.length)
            } else {
                text(&answer.headers, header::CONTENT_LENGTH).and_then(|text| text.parse().ok())
            };
            let size = size.ok_or_else(|| Problem::nonsense("a blob without a length"))?;
            cache.note_sizes(&at, [(digest, size)]);
            Ok(size)
        };
        self.fly(&self.flights.probes, (place.clone(), digest), deadline, ask).await
    }
}

fn is_empty(digest: &Digest) -> bool {
    Algorithm::ALL.iter().any(|algorithm| Digest::of(*algorithm, b"") == *digest)
}

/// A part of a blob that goes from the upstream to one client.
#[derive(Debug)]
pub struct Passing {
    body: Body,
    skip: u64,
    left: u64,
    digest: Digest,
    /// Where the whole is passed, it is checked.
    hasher: Option<Hasher>,
}

impl Passing {
    /// Gives the next bytes; None when all were given. The last bytes of a whole that is wrong are never given.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        while self.left > 0 {
            let Some(mut bytes) = self.body.next().await? else {
                return Err(Problem::unreachable("its body ended early"));
            };
            let passed = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
            self.skip -= passed as u64;
            let mut bytes = bytes.split_off(passed);
            bytes.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            if bytes.is_empty() {
                continue;
            }
            self.left -= bytes.len() as u64;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&bytes);
            }
            if self.left == 0
                && let Some(hasher) = self.hasher.take()
                && hasher.finish() != self.digest
            {
                return Err(Problem::wrong("the bytes have another digest"));
            }
            return Ok(Some(bytes));
        }
        Ok(None)
    }
}
