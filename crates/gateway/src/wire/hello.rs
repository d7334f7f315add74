//! The first message of a TLS client, read before anything is signed or even allocated for it.
//!
//! The bytes are kept, since whoever goes on with the connection needs them again: the TLS server of the gateway, or
//! the issuer behind it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes, BytesMut};
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// A greeting of ours has about 400 bytes, with a hybrid key share about 1.6 KiB.
const HELLO_MAX: usize = 8 << 10;

/// What a client says first.
#[derive(Debug)]
pub struct Hello {
    /// The name that it wants to talk to.
    pub name: Option<String>,
    /// The protocols that it speaks.
    pub protocols: Vec<Vec<u8>>,
    /// The bytes that said so.
    pub bytes: Bytes,
}

impl Hello {
    /// Says whether the client speaks a protocol.
    pub fn speaks(&self, protocol: &[u8]) -> bool {
        self.protocols.iter().any(|spoken| spoken == protocol)
    }
}

/// Why there is no greeting.
#[derive(Debug, thiserror::Error)]
pub enum HelloError {
    /// It is not TLS, or not well made.
    #[error("not the greeting of a TLS client")]
    NotTls(#[source] rustls::Error),
    /// It is longer than any client of ours makes it.
    #[error("a greeting of more than {HELLO_MAX} bytes")]
    TooLong,
    /// The connection ended.
    #[error("the connection ended within the greeting")]
    Io(#[from] io::Error),
}

/// Reads a greeting. The caller sets the deadline.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Hello, HelloError> {
    let mut bytes = BytesMut::with_capacity(2 << 10);
    let mut acceptor = Acceptor::default();
    loop {
        let seen = bytes.len();
        if seen >= HELLO_MAX {
            return Err(HelloError::TooLong);
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(HelloError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        let mut fresh = bytes.get(seen..).unwrap_or_default();
        while !fresh.is_empty() {
            acceptor.read_tls(&mut fresh)?;
        }
        match acceptor.accept() {
            Ok(None) => {}
            Ok(Some(accepted)) => {
                let hello = accepted.client_hello();
                let name = hello.server_name().map(str::to_owned);
                let protocols = hello.alpn().into_iter().flatten().map(<[u8]>::to_vec).collect();
                return Ok(Hello { name, protocols, bytes: bytes.freeze() });
            }
            Err((error, _)) => return Err(HelloError::NotTls(error)),
        }
    }
}

/// A stream of which the first bytes were read already.
#[derive(Debug)]
pub struct Again<S> {
    first: Bytes,
    stream: S,
}

impl<S> Again<S> {
    /// Puts bytes back in front of a stream.
    pub fn new(first: Bytes, stream: S) -> Self {
        Self { first, stream }
    }

    /// Gives the stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Again<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let now = self.first.len().min(buffer.remaining());
        buffer.put_slice(self.first.get(..now).unwrap_or_default());
        self.first.advance(now);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Again<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
