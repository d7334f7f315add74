//! Reaches a gateway over TCP: all its addresses, both families, and a proxy where nothing else works.
//!
//! Names are resolved for each dial, since addresses of load balancers change. Attempts start 250 ms after each other
//! and the first that connects wins (RFC 8305, 5), so a family that leads nowhere costs that much and no more.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bailey_tunnel::control::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Between two attempts (RFC 8305, 8: 250 ms recommended).
const STAGGER: Duration = Duration::from_millis(250);
const RESOLVE: Duration = Duration::from_secs(5);
/// All addresses together.
const CONNECT: Duration = Duration::from_secs(10);
/// A proxy's answer.
const PROXY: Duration = Duration::from_secs(10);
const PROXY_ANSWER_MAX: usize = 8 << 10;

/// A proxy that takes CONNECT (RFC 9110, 9.3.6).
#[derive(Clone, PartialEq, Eq)]
pub struct HttpProxy {
    address: String,
    authorization: Option<String>,
}

/// The password is not shown.
impl std::fmt::Debug for HttpProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpProxy").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A URL that is no proxy's.
#[derive(Debug, thiserror::Error)]
#[error("a proxy is written as http://[USER:PASSWORD@]HOST:PORT; TLS to the proxy itself is not spoken")]
pub struct ProxyError;

impl HttpProxy {
    /// Reads what `HTTPS_PROXY` says.
    pub fn new(url: &str) -> Result<Self, ProxyError> {
        let url = url::Url::parse(url).map_err(|_| ProxyError)?;
        let (true, Some(host)) = (url.scheme() == "http", url.host_str()) else { return Err(ProxyError) };
        let address = format!("{host}:{}", url.port_or_known_default().ok_or(ProxyError)?);
        let authorization = (!url.username().is_empty()).then(|| {
            use base64::Engine as _;
            let decode =
                |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
            let pair = format!("{}:{}", decode(url.username()), decode(url.password().unwrap_or_default()));
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
        });
        Ok(Self { address, authorization })
    }
}

/// Why no gateway was reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// There is none to reach.
    #[error("no gateway is configured")]
    Nowhere,
    /// The name has no address.
    #[error("`{name}` cannot be resolved")]
    Resolve {
        /// Which name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// No address connects.
    #[error("`{name}` cannot be reached")]
    Connect {
        /// Which name.
        name: String,
        /// What the last address said.
        source: io::Error,
    },
    /// The proxy does not let us through.
    #[error("the proxy {proxy} does not connect to `{name}`: {answer}")]
    Proxy {
        /// The proxy.
        proxy: String,
        /// Where it should have gone.
        name: String,
        /// What it answered.
        answer: String,
    },
}

impl DialError {
    /// Names the kind of error for metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Nowhere => "NoGateway",
            Self::Resolve { .. } => "NameNotResolved",
            Self::Connect { .. } => "Unreachable",
            Self::Proxy { .. } => "ProxyRefused",
        }
    }
}

/// Reaches one of the gateways, beginning with that of a number; directly if it works, else through the proxy.
pub async fn dial(
    gateways: &[String],
    first: usize,
    proxy: Option<&HttpProxy>,
) -> Result<(TcpStream, Path), DialError> {
    let count = gateways.len().max(1);
    let mut last = DialError::Nowhere;
    for name in gateways.iter().cycle().skip(first % count).take(gateways.len()) {
        match direct(name).await {
            Ok(stream) => return Ok((stream, Path::Direct)),
            Err(error) => last = error,
        }
        if let Some(proxy) = proxy {
            match through(proxy, name).await {
                Ok(stream) => return Ok((stream, Path::Proxy)),
                Err(error) => last = error,
            }
        }
    }
    Err(last)
}

async fn direct(name: &str) -> Result<TcpStream, DialError> {
    let resolve = |source| DialError::Resolve { name: name.to_owned(), source };
    let found =
        timeout(RESOLVE, lookup_host(name)).await.map_err(|_| resolve(io::ErrorKind::TimedOut.into()))?;
    let addresses = interleave(found.map_err(resolve)?.collect());
    let connect = |source| DialError::Connect { name: name.to_owned(), source };
    let reached = timeout(CONNECT, race(addresses)).await;
    reached.map_err(|_| connect(io::ErrorKind::TimedOut.into()))?.map_err(connect)
}

/// Takes turns between the families, the one first that the resolver put first.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut mixed = Vec::new();
    loop {
        let pair = (first.next(), second.next());
        if pair == (None, None) {
            return mixed;
        }
        mixed.extend([pair.0, pair.1].into_iter().flatten());
    }
}

async fn race(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut waiting = addresses.into_iter();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut more = true;
    loop {
        if more {
            match waiting.next() {
                Some(address) => {
                    attempts.spawn(TcpStream::connect(address));
                }
                None if attempts.is_empty() => return Err(last),
                None => {}
            }
        }
        tokio::select! {
            Some(ended) = attempts.join_next() => match ended {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => {
                    last = error;
                    more = true;
                }
                Err(_) => more = true,
            },
            () = sleep(STAGGER), if waiting.len() > 0 => more = true,
            else => return Err(last),
        }
    }
}

async fn through(proxy: &HttpProxy, name: &str) -> Result<TcpStream, DialError> {
    let mut stream = direct(&proxy.address).await?;
    let refused =
        |answer: String| DialError::Proxy { proxy: proxy.address.clone(), name: name.to_owned(), answer };
    match timeout(PROXY, ask(&mut stream, proxy, name)).await {
        Ok(Ok(200..=299)) => Ok(stream),
        Ok(Ok(407)) => Err(refused("407, it wants a user and a password".to_owned())),
        Ok(Ok(status)) => Err(refused(status.to_string())),
        Ok(Err(error)) => Err(refused(error.to_string())),
        Err(_) => Err(refused(format!("no answer within {} s", PROXY.as_secs()))),
    }
}

/// Asks for a connection and gives the status. Not a byte behind the answer is read.
async fn ask(stream: &mut TcpStream, proxy: &HttpProxy, name: &str) -> io::Result<u16> {
    let authorization = proxy
        .authorization
        .as_ref()
        .map(|value| format!("Proxy-Authorization: {value}\r\n"))
        .unwrap_or_default();
    let request = format!("CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // Byte by byte, since what follows belongs to TLS; it is one answer for each connection.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() > PROXY_ANSWER_MAX {
            return Err(io::Error::other("an answer without an end"));
        }
        answer.push(stream.read_u8().await?);
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(&answer).map_err(io::Error::other)?;
    response.code.ok_or_else(|| io::Error::other("an answer without a status"))
}

#[cfg(test)]
mod tests;
