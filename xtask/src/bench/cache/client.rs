//! A client that reads answers and does nothing with them, so that it costs little.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const BUFFER: usize = 256 << 10;
const HEAD_MAX: usize = 16 << 10;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection that is used again.
pub struct Connection {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
}

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Until the first byte of the body, or the end of the head if there is none.
    pub first_byte: Duration,
    /// Until the last.
    pub whole: Duration,
    pub bytes: u64,
}

impl Connection {
    /// Connects, with TLS if there is a configuration for it.
    pub async fn open(address: SocketAddr, tls: Option<&Arc<ClientConfig>>) -> Result<Self> {
        let tcp = TcpStream::connect(address).await.with_context(|| format!("connect to {address}"))?;
        tcp.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match tls {
            None => Box::new(tcp),
            Some(config) => {
                let name = ServerName::try_from("localhost").context("name the server")?;
                Box::new(TlsConnector::from(Arc::clone(config)).connect(name, tcp).await?)
            }
        };
        Ok(Self { stream, buffer: vec![0; BUFFER] })
    }

    /// Asks for a path and reads the answer, which has to be 200 and to say its length.
    pub async fn get(&mut self, path: &str) -> Result<Answer> {
        let accept = "application/vnd.oci.image.manifest.v1+json, */*";
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\n\r\n");
        let started = Instant::now();
        self.stream.write_all(request.as_bytes()).await?;
        self.stream.flush().await?;
        let mut filled = 0;
        let (head_len, length) = loop {
            let count = self.stream.read(self.buffer.get_mut(filled..).unwrap_or_default()).await?;
            if count == 0 {
                bail!("GET {path}: the connection ended within the head");
            }
            filled += count;
            let read = self.buffer.get(..filled).unwrap_or_default();
            if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                break (end + 4, length(&String::from_utf8_lossy(read.get(..end).unwrap_or_default()))?);
            }
            if filled > HEAD_MAX {
                bail!("GET {path}: the head does not end");
            }
        };
        let mut read = (filled - head_len) as u64;
        let mut first_byte = started.elapsed();
        let mut is_first = read == 0;
        while read < length {
            let count = self.stream.read(&mut self.buffer).await?;
            if count == 0 {
                bail!("GET {path}: the body ended after {read} of {length} bytes");
            }
            if std::mem::take(&mut is_first) {
                first_byte = started.elapsed();
            }
            read += count as u64;
        }
        Ok(Answer { first_byte, whole: started.elapsed(), bytes: read })
    }
}

/// The length that a head announces.
fn length(head: &str) -> Result<u64> {
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.contains(" 200 ") {
        bail!("the answer is `{status}`");
    }
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    length.with_context(|| format!("no length in `{head}`"))
}

/// Asks once on a connection of its own.
pub async fn get(address: SocketAddr, tls: Option<&Arc<ClientConfig>>, path: &str) -> Result<Answer> {
    Connection::open(address, tls).await?.get(path).await
}
