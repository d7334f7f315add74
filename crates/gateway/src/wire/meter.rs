//! Sees the frames of a connection go by, so that a chunk's turn ends when it is on the socket.
//!
//! It stands between HTTP/2 and TLS and reads the headers of what is written (RFC 9113, 4.1). HTTP/2 itself tells only
//! that a stream may send more, which a reader that stands still never lets it say.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::scheduler::Turn;

const HEADER: usize = 9;
const DATA: u8 = 0;

/// The chunks of a connection that are not on the socket yet.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Mutex<Chunks>>);

/// For each stream, how much of each chunk is to come, in order.
type Chunks = HashMap<u32, VecDeque<(usize, Option<Turn>)>>;

impl Meter {
    /// Keeps a turn until so many bytes more of its stream are written.
    pub fn expect(&self, stream: u32, bytes: usize, turn: Turn) {
        self.change(|streams| streams.entry(stream).or_default().push_back((bytes, Some(turn))));
    }

    /// Ends the turns of a stream that sends no more.
    pub fn forget(&self, stream: u32) {
        // Turns wake others when they are dropped, which is done without the lock.
        drop(self.change(|streams| streams.remove(&stream)));
    }

    fn written(&self, stream: u32, mut bytes: usize) {
        let mut over = Vec::new();
        self.change(|streams| {
            let Some(chunks) = streams.get_mut(&stream) else { return };
            while bytes > 0 {
                let Some((left, turn)) = chunks.front_mut() else { break };
                let now = bytes.min(*left);
                *left -= now;
                bytes -= now;
                if *left == 0 {
                    over.extend(turn.take());
                    chunks.pop_front();
                }
            }
        });
        drop(over);
    }

    fn change<T>(&self, change: impl FnOnce(&mut Chunks) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A connection whose frames are seen.
#[derive(Debug)]
pub struct Metered<S> {
    stream: S,
    meter: Meter,
    frames: Frames,
}

impl<S> Metered<S> {
    /// Stands in front of a connection.
    pub fn new(stream: S, meter: Meter) -> Self {
        Self { stream, meter, frames: Frames { preface: 0, ..Frames::default() } }
    }

    /// Lets the preface of a client pass, which is no frame.
    pub fn of_client(stream: S, meter: Meter) -> Self {
        Self { stream, meter, frames: Frames { preface: PREFACE, ..Frames::default() } }
    }
}

/// The length of what a client sends first (RFC 9113, 3.4).
const PREFACE: usize = 24;

/// Where in the frames the writer is.
#[derive(Debug, Default)]
struct Frames {
    preface: usize,
    header: [u8; HEADER],
    /// How much of the header is there.
    filled: usize,
    /// How much of the payload is to come.
    left: usize,
}

impl Frames {
    /// Takes bytes that were written, and tells of data by stream.
    fn take(&mut self, mut bytes: &[u8], mut data: impl FnMut(u32, usize)) {
        let skipped = self.preface.min(bytes.len());
        self.preface -= skipped;
        bytes = bytes.get(skipped..).unwrap_or_default();
        while !bytes.is_empty() {
            if self.left > 0 {
                let now = self.left.min(bytes.len());
                self.left -= now;
                if self.kind() == DATA {
                    data(self.stream(), now);
                }
                bytes = bytes.get(now..).unwrap_or_default();
                continue;
            }
            let now = (HEADER - self.filled).min(bytes.len());
            let (head, rest) = bytes.split_at(now);
            if let Some(place) = self.header.get_mut(self.filled..self.filled + now) {
                place.copy_from_slice(head);
            }
            self.filled += now;
            bytes = rest;
            if self.filled == HEADER {
                self.filled = 0;
                let [a, b, c, ..] = self.header;
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
            }
        }
    }

    fn kind(&self) -> u8 {
        let [_, _, _, kind, ..] = self.header;
        kind
    }

    fn stream(&self) -> u32 {
        let [.., a, b, c, d] = self.header;
        u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, meter, frames } = self.get_mut();
        let written = std::task::ready!(Pin::new(stream).poll_write(cx, bytes))?;
        frames.take(bytes.get(..written).unwrap_or_default(), |stream, bytes| meter.written(stream, bytes));
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, meter, frames } = self.get_mut();
        let written = std::task::ready!(Pin::new(stream).poll_write_vectored(cx, slices))?;
        let mut left = written;
        for slice in slices {
            let now = left.min(slice.len());
            frames.take(slice.get(..now).unwrap_or_default(), |stream, bytes| meter.written(stream, bytes));
            left -= now;
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, stream: u32, payload: usize) -> Vec<u8> {
        let mut bytes = (payload as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, 0]);
        bytes.extend(stream.to_be_bytes());
        bytes.resize(HEADER + payload, 7);
        bytes
    }

    #[test]
    fn data_is_told_by_stream_however_the_bytes_are_cut() {
        let bytes =
            [frame(4, 0, 6), frame(DATA, 1, 100), frame(1, 3, 20), frame(DATA, 3, 0), frame(DATA, 3, 70_000)]
                .concat();
        for cut in [1, 2, 8, 9, 10, 100, 1 << 20] {
            let mut frames = Frames { preface: PREFACE, ..Frames::default() };
            let mut told = HashMap::<u32, usize>::new();
            for part in [vec![b'P'; PREFACE], bytes.clone()].concat().chunks(cut) {
                frames.take(part, |stream, bytes| *told.entry(stream).or_default() += bytes);
            }
            assert_eq!(told, HashMap::from([(1, 100), (3, 70_000)]), "{cut}");
        }
    }
}
