//! A window on a stream of bytes: what is looked at is in memory, what is behind is gone.
//!
//! From a mark on, bytes are kept until they are released, up to a limit. Whoever goes on beyond it learns later that
//! nothing was kept, so a value of any size can be passed over. The buffer is overwritten with zeros when it is done
//! with, since dumps hold Secrets.

#[cfg(test)]
mod tests;

use std::io::{self, Read};

use zeroize::{Zeroize as _, Zeroizing};

/// How much is read at once.
const CHUNK: usize = 1 << 20;

/// A place in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The line, counted from 1; 0 where there are no lines.
    pub(super) line: u32,
    /// The byte, counted from 0.
    pub(super) byte: u64,
}

/// Reads forward through a stream.
pub(super) struct Cursor<R> {
    reader: R,
    buffer: Zeroizing<Vec<u8>>,
    /// End of what was read into the buffer.
    filled: usize,
    /// Where the cursor stands, up to `filled`.
    at: usize,
    /// Start of what is kept, up to `at`; none if nothing is.
    mark: Option<usize>,
    /// How much is kept at most.
    limit: usize,
    /// Bytes before the buffer.
    passed: u64,
    /// Up to where lines are counted, up to `at`.
    counted: usize,
    /// Line breaks up to there.
    breaks: u32,
}

impl<R: Read> Cursor<R> {
    /// A cursor that keeps at most `limit` bytes, rounded up to what is read at once.
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            buffer: Zeroizing::new(Vec::new()),
            filled: 0,
            at: 0,
            mark: None,
            limit,
            passed: 0,
            counted: 0,
            breaks: 0,
        }
    }

    /// What is in memory from here on.
    pub(super) fn rest(&self) -> &[u8] {
        self.buffer.get(self.at..self.filled).unwrap_or_default()
    }

    /// The next byte, if there is one.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.at == self.filled && !self.more()? {
            return Ok(None);
        }
        Ok(self.rest().first().copied())
    }

    /// Passes over the mark that some editors put before UTF-8.
    pub(super) fn skip_byte_order_mark(&mut self) -> io::Result<()> {
        while self.rest().len() < 3 && self.more()? {}
        if self.rest().starts_with(b"\xef\xbb\xbf") {
            self.advance(3);
        }
        Ok(())
    }

    /// Goes forward by so many bytes of [`Self::rest`].
    pub(super) fn advance(&mut self, count: usize) {
        self.at = (self.at + count).min(self.filled);
    }

    /// Reads on, keeping what is in [`Self::rest`]. False at the end of the stream.
    pub(super) fn more(&mut self) -> io::Result<bool> {
        if self.mark.is_some_and(|mark| self.at - mark >= self.limit) {
            self.mark = None;
        }
        self.drop_front(self.mark.unwrap_or(self.at));
        if self.filled == self.buffer.len() {
            self.grow();
        }
        loop {
            let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
            match self.reader.read(room) {
                Ok(count) => {
                    self.filled = (self.filled + count).min(self.buffer.len());
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps what comes from here on.
    pub(super) fn mark(&mut self) {
        self.mark = Some(self.at);
    }

    /// Whether a mark is set and holds.
    pub(super) fn is_keeping(&self) -> bool {
        self.mark.is_some()
    }

    /// What was kept since the mark; none if there is no mark, or it became too much.
    pub(super) fn kept(&self) -> Option<&[u8]> {
        self.mark.and_then(|mark| self.buffer.get(mark..self.at))
    }

    /// Ends keeping.
    pub(super) fn release(&mut self) {
        self.mark = None;
    }

    /// Where the cursor stands.
    pub(super) fn place(&mut self) -> Place {
        self.count_to(self.at);
        Place { line: self.breaks.saturating_add(1), byte: self.passed + self.at as u64 }
    }

    fn count_to(&mut self, end: usize) {
        let bytes = self.buffer.get(self.counted..end).unwrap_or_default();
        let breaks = memchr::memchr_iter(b'\n', bytes).count();
        self.breaks = self.breaks.saturating_add(u32::try_from(breaks).unwrap_or(u32::MAX));
        self.counted = self.counted.max(end);
    }

    fn drop_front(&mut self, from: usize) {
        if from == 0 {
            return;
        }
        self.count_to(from);
        self.buffer.copy_within(from..self.filled, 0);
        self.passed += from as u64;
        self.filled -= from;
        self.at -= from;
        self.counted -= from;
        self.mark = self.mark.map(|mark| mark - from);
    }

    /// Doubles the buffer by hand: a vector that grows leaves what it held behind.
    fn grow(&mut self) {
        let mut larger = vec![0; (2 * self.buffer.len()).max(CHUNK)];
        if let Some(front) = larger.get_mut(..self.filled) {
            front.copy_from_slice(self.buffer.get(..self.filled).unwrap_or_default());
        }
        std::mem::swap(&mut *self.buffer, &mut larger);
        larger.zeroize();
    }
}
