//! A client's connection, plain or with TLS: bytes in, bytes and stretches of files out.
//!
//! On a plain socket the kernel copies from the file to the socket itself (`sendfile`); with TLS the bytes go through a
//! buffer. Every wait for the client has a deadline: one that takes nothing for [`STALL`] is gone.
//!
//! Reading a file that is not in the page cache makes the calling thread wait for the disk. The kernel is told ahead what
//! comes next, so that this is the exception.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::Advice;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

/// For how long a client may take nothing.
pub const STALL: Duration = Duration::from_secs(60);
/// How much one call hands to the kernel: enough to cost little, little enough to let other tasks in.
const SEND_STEP: u64 = 1 << 20;
/// The buffer of a TLS connection: a few records.
const COPY_STEP: usize = 128 << 10;
/// How far ahead the kernel is told to read.
const AHEAD: u64 = 4 << 20;

/// A client's connection.
#[derive(Debug)]
pub enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Transport {
    /// Reads what has arrived into the buffer; 0 when the client sends no more. The caller sets the deadline.
    pub async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_buf(buffer).await,
            Self::Tls(stream) => stream.read_buf(buffer).await,
        }
    }

    /// Writes bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = async {
            match self {
                Self::Plain(stream) => stream.write_all(bytes).await,
                Self::Tls(stream) => {
                    stream.write_all(bytes).await?;
                    stream.flush().await
                }
            }
        };
        in_time(written).await
    }

    /// Writes `length` bytes of a file from `offset` on, which the file must have.
    pub async fn send(&mut self, file: &Arc<File>, offset: u64, length: u64) -> io::Result<()> {
        match self {
            Self::Plain(stream) => send(stream, file, offset, length).await,
            Self::Tls(stream) => copy(stream, file, offset, length).await,
        }
    }

    /// Says that nothing more comes, and waits a moment for the client to hang up.
    ///
    /// A socket that is closed with unread input is reset, and the client may lose the answer (RFC 9112, section 9.6).
    pub async fn close(mut self) {
        let lingered = async {
            match &mut self {
                Self::Plain(stream) => stream.shutdown().await?,
                Self::Tls(stream) => stream.shutdown().await?,
            }
            let (mut rest, mut taken) = (vec![0; 8 << 10], 0);
            while taken < 256 << 10 {
                let count = match &mut self {
                    Self::Plain(stream) => stream.read(&mut rest).await?,
                    Self::Tls(stream) => stream.read(&mut rest).await?,
                };
                if count == 0 {
                    break;
                }
                taken += count;
            }
            io::Result::Ok(())
        };
        // However it ends, the connection is over.
        let _lingered = timeout(Duration::from_secs(2), lingered).await;
    }
}

async fn send(stream: &mut TcpStream, file: &Arc<File>, mut offset: u64, length: u64) -> io::Result<()> {
    let end = offset.saturating_add(length);
    let mut told = offset;
    while offset < end {
        if told < end && told <= offset {
            told = ahead(file, offset, end);
        }
        let step = usize::try_from((end - offset).min(SEND_STEP)).unwrap_or(usize::MAX);
        let sent = stream.try_io(Interest::WRITABLE, || {
            rustix::fs::sendfile(&*stream, &**file, Some(&mut offset), step).map_err(io::Error::from)
        });
        match sent {
            Ok(0) => return Err(shrunk()),
            Ok(_) => tokio::task::consume_budget().await,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => in_time(stream.writable()).await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn copy(
    stream: &mut TlsStream<TcpStream>,
    file: &Arc<File>,
    mut offset: u64,
    length: u64,
) -> io::Result<()> {
    let end = offset.saturating_add(length);
    let mut told = offset;
    let mut buffer = vec![0; COPY_STEP.min(usize::try_from(length).unwrap_or(COPY_STEP))];
    while offset < end {
        if told < end && told <= offset {
            told = ahead(file, offset, end);
        }
        let step = usize::try_from(end - offset).unwrap_or(usize::MAX).min(buffer.len());
        let part = buffer.get_mut(..step).unwrap_or_default();
        let count = file.read_at(part, offset)?;
        if count == 0 {
            return Err(shrunk());
        }
        in_time(stream.write_all(buffer.get(..count).unwrap_or_default())).await?;
        offset += count as u64;
    }
    in_time(stream.flush()).await
}

/// Tells the kernel what is read next, and says up to where.
fn ahead(file: &File, offset: u64, end: u64) -> u64 {
    let length = (end - offset).min(AHEAD);
    // Only advice.
    let _advised = rustix::fs::fadvise(file, offset, std::num::NonZeroU64::new(length), Advice::WillNeed);
    offset + length
}

async fn in_time<T>(step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(STALL, step).await {
        Ok(result) => result,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")),
    }
}

fn shrunk() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it was")
}
