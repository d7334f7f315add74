//! One connection to a gateway: dialled, proven on both sides, driven to its end.

use std::future::Future as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bailey_tunnel::control::{Path, SNI_SUFFIX};
use bytes::Bytes;
use h2::client::SendRequest;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Shared;
use super::dial::{DialError, dial};
use super::metrics::ResultLabel;
use crate::wire::keepalive::keepalive;
use crate::wire::meter::{Meter, Metered};
use crate::wire::socket;
use bailey_identity::clock::now;
use bailey_identity::credentials::Credentials;
use bailey_identity::tls;

/// TLS and the first frames.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No gateway was reached.
    #[error("no gateway is reached")]
    Dial(#[from] DialError),
    /// The certificate cannot be used.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The other side is not our gateway, or we are not its cluster.
    #[error("the handshake failed")]
    Handshake(#[source] io::Error),
    /// The other side does not answer.
    #[error("no handshake within {} s", HANDSHAKE.as_secs())]
    Timeout,
    /// It is no HTTP/2.
    #[error("the session did not begin")]
    Http(#[source] h2::Error),
}

impl ConnectError {
    /// Names the kind of error for metrics and reports.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Dial(error) => error.reason(),
            Self::Tls(_) => "CertificateUnusable",
            Self::Handshake(error) if is_certificate(error) => "OtherGateway",
            Self::Handshake(_) => "HandshakeFailed",
            Self::Timeout => "HandshakeTimeout",
            Self::Http(_) => "SessionRefused",
        }
    }
}

/// Says whether somebody else answered: another installation, or a proxy that opens TLS.
fn is_certificate(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

/// A connection that can carry streams.
pub(super) struct Connection {
    pub send: SendRequest<Bytes>,
    pub meter: Meter,
    pub path: Path,
    pub drive: Drive,
}

/// What makes a connection go; whoever has it runs it.
pub(super) struct Drive {
    http: h2::client::Connection<Metered<TlsStream<TcpStream>>, Bytes>,
    expiry: Instant,
}

/// Reaches a gateway with the credentials given.
pub(super) async fn connect(
    shared: &Shared,
    credentials: &Arc<Credentials>,
    first: usize,
) -> Result<Connection, ConnectError> {
    let connected = try_connect(shared, credentials, first).await;
    let result = connected.as_ref().map_or_else(ConnectError::reason, |_| "Connected");
    shared.metrics.dials.get_or_create(&ResultLabel { result }).inc();
    connected
}

async fn try_connect(
    shared: &Shared,
    credentials: &Arc<Credentials>,
    first: usize,
) -> Result<Connection, ConnectError> {
    let options = &shared.options;
    let config = tls::client(credentials).map_err(ConnectError::Tls)?;
    let (stream, path) = dial(&options.gateways, first, options.proxy.as_ref()).await?;
    if let Err(error) = socket::tunnel(&stream) {
        tracing::debug!(%error, "a socket keeps its defaults");
    }
    let name = format!("{}{SNI_SUFFIX}", options.sni_label.as_str());
    let name = ServerName::try_from(name)
        .map_err(|error| ConnectError::Tls(rustls::Error::General(error.to_string())))?;
    let meter = Meter::default();
    let greet = async {
        let tls = TlsConnector::from(config).connect(name, stream).await.map_err(ConnectError::Handshake)?;
        let io = Metered::of_client(tls, meter.clone());
        options.settings.client().handshake(io).await.map_err(ConnectError::Http)
    };
    let (send, http) = timeout(HANDSHAKE, greet).await.map_err(|_| ConnectError::Timeout)??;
    let left = Duration::from_secs(credentials.certificate.not_after.saturating_sub(now()));
    Ok(Connection { send, meter, path, drive: Drive { http, expiry: Instant::now() + left } })
}

impl Drive {
    /// Runs the connection until it is over: nobody uses it any more, it broke, or the gateway does not answer.
    pub(super) async fn run(mut self) {
        let mut alive = std::pin::pin!(keepalive(self.http.ping_pong()));
        tokio::select! {
            ended = std::future::poll_fn(|cx| std::pin::Pin::new(&mut self.http).poll(cx)) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
            }
            () = &mut alive => tracing::info!("the gateway does not answer any more"),
            () = sleep_until(self.expiry) => {}
        }
    }
}
