//! Copies between a socket and a stream of HTTP/2, each direction with its own end.
//!
//! Towards the stream: wait until the socket has something, until the window has room, for a turn, and only then read;
//! so a stream that cannot send holds neither a buffer nor a turn. Towards the socket: a window's worth may wait at
//! most, and the [`Ledger`](super::ledger::Ledger) knows how much.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bailey_tunnel::names::ClusterUid;
use bytes::{Buf as _, Bytes, BytesMut};
use h2::{Reason, RecvStream, SendStream};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::sleep;

use super::ledger::Entry;
use super::meter::Meter;
use super::scheduler::{Scheduler, Turn};
use super::socket;

/// How often what is held is told while a reader stands still.
const TELL: Duration = Duration::from_millis(100);

/// What a stream shares with others.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Whose stream it is.
    pub cluster: ClusterUid,
    /// Who gives turns; nobody where there is only one cluster.
    pub scheduler: Option<Arc<Scheduler>>,
    /// The chunks of the connection.
    pub meter: Meter,
    /// What is read at once.
    pub chunk: usize,
}

impl Pace {
    async fn turn(&self, bytes: usize) -> Option<Turn> {
        match &self.scheduler {
            Some(scheduler) => Some(scheduler.turn(&self.cluster, bytes).await),
            None => None,
        }
    }
}

/// Bytes that were copied, told while they are.
#[derive(Debug, Default)]
pub struct Copied {
    /// From the socket to the stream.
    pub sent: AtomicU64,
    /// From the stream to the socket.
    pub received: AtomicU64,
}

/// Why copying ended before both directions did.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The socket broke.
    #[error("the connection broke")]
    Socket(#[source] io::Error),
    /// The tunnel broke, or the other side ended the stream.
    #[error("the stream broke")]
    Stream(#[source] h2::Error),
    /// The other side wants no more.
    #[error("the other side ended the stream: {0}")]
    Reset(Reason),
    /// Its memory was needed.
    #[error("the reader stood still while memory was short")]
    Memory,
}

impl CopyError {
    /// Names the kind of error for metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Socket(_) => "ConnectionBroke",
            Self::Stream(_) => "StreamBroke",
            Self::Reset(_) => "StreamEnded",
            Self::Memory => "MemoryLimit",
        }
    }
}

/// Copies until both directions have ended, or one has failed: then the socket ends with a RST and the stream with a reset.
pub async fn copy(
    mut stream: TcpStream,
    mut send: SendStream<Bytes>,
    mut receive: RecvStream,
    pace: &Pace,
    entry: &Entry,
    copied: &Copied,
) -> Result<(), CopyError> {
    let id = send.stream_id().as_u32();
    let result = {
        let (mut read, mut write) = stream.split();
        let out = outbound(&mut read, &mut send, pace, copied);
        let back = inbound(&mut receive, &mut write, pace, entry, copied);
        tokio::select! {
            result = async { tokio::try_join!(out, back) } => result.map(|_| ()),
            () = entry.ended() => Err(CopyError::Memory),
        }
    };
    pace.meter.forget(id);
    if let Err(error) = &result {
        socket::abort(&stream);
        let reason =
            if matches!(error, CopyError::Memory) { Reason::ENHANCE_YOUR_CALM } else { Reason::CANCEL };
        send.send_reset(reason);
    }
    result
}

async fn outbound(
    read: &mut ReadHalf<'_>,
    send: &mut SendStream<Bytes>,
    pace: &Pace,
    copied: &Copied,
) -> Result<(), CopyError> {
    let id = send.stream_id().as_u32();
    loop {
        tokio::select! {
            biased;
            reason = poll_fn(|cx| send.poll_reset(cx)) => {
                return Err(reason.map_or_else(CopyError::Stream, CopyError::Reset));
            }
            ready = read.readable() => ready.map_err(CopyError::Socket)?,
        }
        let room = room(send, pace.chunk).await?;
        let waiting = socket::readable(read.as_ref()).max(1);
        let bytes = waiting.min(room).min(pace.chunk);
        let turn = pace.turn(bytes).await;
        let mut buffer = BytesMut::with_capacity(bytes);
        match read.try_read_buf(&mut buffer) {
            Ok(0) => {
                send.send_data(Bytes::new(), true).map_err(CopyError::Stream)?;
                return Ok(());
            }
            Ok(read) => {
                if let Some(turn) = turn {
                    pace.meter.expect(id, read, turn);
                }
                send.send_data(buffer.freeze(), false).map_err(CopyError::Stream)?;
                copied.sent.fetch_add(read as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(CopyError::Socket(error)),
        }
    }
}

/// Waits until the window has room for something.
async fn room(send: &mut SendStream<Bytes>, chunk: usize) -> Result<usize, CopyError> {
    send.reserve_capacity(chunk);
    loop {
        // A wake-up may come with nothing, when the other side has shrunk its windows meanwhile.
        if send.capacity() > 0 {
            return Ok(send.capacity());
        }
        match poll_fn(|cx| send.poll_capacity(cx)).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(CopyError::Stream(error)),
            None => return Err(CopyError::Reset(Reason::CANCEL)),
        }
    }
}

async fn inbound(
    receive: &mut RecvStream,
    write: &mut WriteHalf<'_>,
    pace: &Pace,
    entry: &Entry,
    copied: &Copied,
) -> Result<(), CopyError> {
    while let Some(data) = receive.data().await {
        let mut data = data.map_err(|error| match error.reason() {
            Some(reason) if error.is_reset() => CopyError::Reset(reason),
            _ => CopyError::Stream(error),
        })?;
        while !data.is_empty() {
            writable(write, receive, data.len(), entry).await?;
            let turn = pace.turn(data.len().min(pace.chunk)).await;
            match write.try_write(data.chunk()) {
                Ok(written) => {
                    drop(turn);
                    data.advance(written);
                    receive.flow_control().release_capacity(written).map_err(CopyError::Stream)?;
                    copied.received.fetch_add(written as u64, Ordering::Relaxed);
                    entry.moved();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(CopyError::Socket(error)),
            }
        }
        entry.hold(0);
    }
    tokio::io::AsyncWriteExt::shutdown(write).await.map_err(CopyError::Socket)
}

/// Waits until the socket takes something, and tells what is held meanwhile.
async fn writable(
    write: &WriteHalf<'_>,
    receive: &mut RecvStream,
    left: usize,
    entry: &Entry,
) -> Result<(), CopyError> {
    loop {
        tokio::select! {
            biased;
            ready = write.writable() => return ready.map_err(CopyError::Socket),
            () = sleep(TELL) => entry.hold(receive.flow_control().used_capacity().max(left)),
        }
    }
}
