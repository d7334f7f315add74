//! A client of plain HTTP/1.1 that shows what came over the wire: headers as sent, and how a body ended.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bailey_oci::{Algorithm, Digest};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::upstream::lock;

/// Nothing that a test waits for takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of one server, with connections that are used again.
#[derive(Clone, Debug)]
pub struct Http {
    address: SocketAddr,
    /// The own address that the server sees; any if absent.
    from: Option<IpAddr>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    buffer: BytesMut,
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// How long it took from sending the request to the end of the head.
    pub head_after: Duration,
    framing: Framing,
    connection: Option<Connection>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// So many bytes are still to come.
    Length(u64),
    Chunked,
    UntilClose,
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// With as many bytes as were announced.
    Complete,
    /// With FIN before that.
    Cut,
    /// With RST.
    Reset,
}

impl Http {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, from: None, idle: Arc::default() }
    }

    /// Has connections come from this address of the machine.
    pub fn coming_from(self, from: IpAddr) -> Self {
        Self { from: Some(from), ..self }
    }

    pub async fn get(&self, target: &str) -> anyhow::Result<Answer> {
        self.send("GET", target, &[]).await
    }

    pub async fn head(&self, target: &str) -> anyhow::Result<Answer> {
        self.send("HEAD", target, &[]).await
    }

    /// Sends a request and reads the head of its answer.
    pub async fn send(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> anyhow::Result<Answer> {
        let what = || format!("{method} {target}");
        tokio::time::timeout(PATIENCE, self.exchange(method, target, headers))
            .await
            .with_context(what)?
            .with_context(what)
    }

    async fn exchange(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> anyhow::Result<Answer> {
        let mut request = format!("{method} {target} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        let started = Instant::now();
        let pooled = lock(&self.idle).pop();
        let is_pooled = pooled.is_some();
        let connection = match pooled {
            Some(connection) => connection,
            None => Connection::open(self.address, self.from).await?,
        };
        match self.on(connection, method, &request, started).await {
            // A server may close a connection that idles just as it is used again.
            Err(_) if is_pooled => {
                let connection = Connection::open(self.address, self.from).await?;
                self.on(connection, method, &request, started).await
            }
            answered => answered,
        }
    }

    async fn on(
        &self,
        mut connection: Connection,
        method: &str,
        request: &str,
        started: Instant,
    ) -> anyhow::Result<Answer> {
        connection.stream.write_all(request.as_bytes()).await?;
        let head = connection.head().await?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|text| text.parse().ok());
        let status: u16 = status.with_context(|| format!("the answer begins with {head:?}"))?;
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let of = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let framing = if method == "HEAD" || matches!(status, 204 | 304) {
            Framing::Length(0)
        } else if of("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            Framing::Chunked
        } else {
            match of("content-length") {
                Some(length) => Framing::Length(length.parse().context("content-length")?),
                None => Framing::UntilClose,
            }
        };
        let closes = of("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let head_after = started.elapsed();
        let mut answer = Answer {
            status,
            headers,
            head_after,
            framing,
            connection: Some(connection),
            idle: Arc::clone(&self.idle),
        };
        if framing == Framing::Length(0) && !closes {
            answer.give_back();
        }
        Ok(answer)
    }
}

impl Connection {
    async fn open(address: SocketAddr, from: Option<IpAddr>) -> anyhow::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if let Some(from) = from {
            socket.bind((from, 0).into())?;
        }
        let stream = socket.connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: BytesMut::with_capacity(64 * 1024) })
    }

    async fn head(&mut self) -> anyhow::Result<String> {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = self.buffer.split_to(at + 4);
                return Ok(String::from_utf8_lossy(&head).into_owned());
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the connection was closed before an answer");
            }
        }
    }

    /// Reads one line without its end, for chunks.
    async fn line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line = self.buffer.split_to(at);
                let _end = self.buffer.split_to(2);
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads up to `max` bytes; None at FIN.
    async fn some(&mut self, max: u64) -> io::Result<Option<Bytes>> {
        if self.buffer.is_empty() && self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Ok(None);
        }
        let length = usize::try_from(max).unwrap_or(usize::MAX).min(self.buffer.len());
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}

impl Answer {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The next piece of the body, or how it ended.
    pub async fn piece(&mut self) -> Result<Bytes, BodyEnd> {
        let Some(connection) = &mut self.connection else { return Err(BodyEnd::Complete) };
        let read = match self.framing {
            Framing::Length(0) => {
                self.give_back();
                return Err(BodyEnd::Complete);
            }
            Framing::Length(left) => connection.some(left).await,
            Framing::UntilClose => connection.some(u64::MAX).await,
            Framing::Chunked => Self::chunk(connection).await,
        };
        match (read, &mut self.framing) {
            (Ok(Some(piece)), Framing::Length(left)) => {
                *left -= piece.len() as u64;
                Ok(piece)
            }
            (Ok(Some(piece)), Framing::Chunked) if piece.is_empty() => {
                self.give_back();
                Err(BodyEnd::Complete)
            }
            (Ok(Some(piece)), _) => Ok(piece),
            (Ok(None), Framing::UntilClose) => Err(BodyEnd::Complete),
            (Ok(None), _) => Err(BodyEnd::Cut),
            (Err(_), _) => Err(BodyEnd::Reset),
        }
    }

    /// Reads one whole chunk; an empty one is the last.
    async fn chunk(connection: &mut Connection) -> io::Result<Option<Bytes>> {
        let Some(line) = connection.line().await? else { return Ok(None) };
        let size = line.split(';').next().and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        let mut left = size.ok_or_else(|| io::Error::other(format!("`{line}` is no size of a chunk")))?;
        let mut chunk = BytesMut::new();
        while left > 0 {
            let Some(piece) = connection.some(left).await? else { return Ok(None) };
            left -= piece.len() as u64;
            chunk.extend_from_slice(&piece);
        }
        Ok(connection.line().await?.map(|_end| chunk.freeze()))
    }

    /// Reads the body to its end, whatever that is.
    pub async fn body(mut self) -> (Bytes, BodyEnd) {
        let mut body = BytesMut::new();
        loop {
            match tokio::time::timeout(PATIENCE, self.piece()).await {
                Ok(Ok(piece)) => body.extend_from_slice(&piece),
                Ok(Err(end)) => return (body.freeze(), end),
                Err(_) => return (body.freeze(), BodyEnd::Cut),
            }
        }
    }

    /// Reads the body, which has to be complete.
    pub async fn bytes(self) -> anyhow::Result<Bytes> {
        let announced = self.header("content-length").map(str::to_owned);
        match self.body().await {
            (body, BodyEnd::Complete) => Ok(body),
            (body, end) => bail!("the body ended ({end:?}) after {} of {announced:?} bytes", body.len()),
        }
    }

    /// Reads the body, hashing and dropping it: its digest, its length and how it ended.
    pub async fn hashed(mut self, algorithm: Algorithm) -> (Digest, u64, BodyEnd) {
        let mut hasher = bailey_oci::Hasher::new(algorithm);
        let mut length = 0;
        loop {
            match tokio::time::timeout(PATIENCE, self.piece()).await {
                Ok(Ok(piece)) => {
                    hasher.update(&piece);
                    length += piece.len() as u64;
                }
                Ok(Err(end)) => return (hasher.finish(), length, end),
                Err(_) => return (hasher.finish(), length, BodyEnd::Cut),
            }
        }
    }

    /// Lets the connection be used again.
    fn give_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            lock(&self.idle).push(connection);
        }
    }
}
