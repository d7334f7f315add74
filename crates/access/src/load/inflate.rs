//! Inflates gzip, but not without end.

#[cfg(test)]
mod tests;

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

/// More than this is inflated only if it was compressed by less than [`RATIO_MAX`]. Less in tests, to be quick.
const FREE_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// Dumps of 50,000 equal pods come to about 1:100; gzip can do 1:1032.
const RATIO_MAX: u64 = 400;
/// The largest installations have dumps of some GB.
const BYTES_MAX: u64 = 64 << 30;

/// What gzip inflates to. Ends with an error of the kind [`io::ErrorKind::InvalidData`] where it inflates to more than
/// any dump would: beyond 64 GiB, or beyond 64 MiB by more than 1:400.
pub struct Inflate<R> {
    decoder: MultiGzDecoder<Counted<R>>,
    inflated: u64,
}

impl<R: Read> Inflate<R> {
    /// Inflates what the reader gives.
    pub fn new(reader: R) -> Self {
        Self { decoder: MultiGzDecoder::new(Counted { reader, bytes: 0 }), inflated: 0 }
    }
}

impl<R: Read> Read for Inflate<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(buffer)?;
        self.inflated = self.inflated.saturating_add(count as u64);
        let packed = self.decoder.get_ref().bytes.max(1);
        if self.inflated > BYTES_MAX || self.inflated > FREE_BYTES && self.inflated / packed > RATIO_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it inflates to far more than a dump would; inflate it yourself if you trust it",
            ));
        }
        Ok(count)
    }
}

struct Counted<R> {
    reader: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.bytes = self.bytes.saturating_add(count as u64);
        Ok(count)
    }
}
