//! Serves requests for certificates over TLS, with a certificate that the issuer gives itself.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bailey_identity::credentials::Credentials;
use bailey_identity::enrol::{Application, PATH, Refused};
use bailey_process::drain::Signal;
use bailey_process::telemetry::report;
use bailey_tunnel::control::{ALPN_ENROL, SNI_SUFFIX};
use bailey_tunnel::lifetime::{LIFETIME, renew_after};
use bailey_tunnel::names::{Identity, Party};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::authority::{Authority, AuthorityError};
use crate::desk::Desk;

/// Connections at a time; gateways already keep strangers away.
const CONNECTIONS_MAX: usize = 256;
const HANDSHAKE: Duration = Duration::from_secs(5);
/// One request, and the keys that may have to be fetched for it.
const CONNECTION: Duration = Duration::from_secs(20);
/// A token has about 1 KiB, a request 400 bytes.
const BODY_MAX: usize = 64 << 10;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why the issuer cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// Its own certificate.
    #[error("the issuer cannot give itself a certificate")]
    Sign(#[from] AuthorityError),
    /// TLS with it.
    #[error("the issuer's own certificate cannot be used")]
    Credentials(#[from] bailey_identity::credentials::CredentialsError),
    /// TLS.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}

/// Serves until the drain, then waits for what is under way.
pub async fn serve(
    listener: TcpListener,
    desk: Arc<Desk>,
    authority: watch::Receiver<Arc<Authority>>,
    signal: Signal,
) -> Result<(), OwnError> {
    let first = own(&desk.authority())?;
    let (sender, config) = watch::channel(first);
    tokio::select! {
        () = accept(listener, &desk, config, signal) => Ok(()),
        error = renew(sender, authority) => Err(error),
        () = desk.run() => Ok(()),
    }
}

/// Gives the issuer its next certificate at half the life of the last, and at once for another authority.
async fn renew(
    sender: watch::Sender<Arc<ServerConfig>>,
    mut authority: watch::Receiver<Arc<Authority>>,
) -> OwnError {
    loop {
        tokio::select! {
            () = sleep(renew_after(LIFETIME, 0.5)) => {}
            changed = authority.changed() => if changed.is_err() {
                std::future::pending::<()>().await;
            }
        }
        let current = Arc::clone(&authority.borrow_and_update());
        match own(&current) {
            Ok(config) => drop(sender.send_replace(config)),
            Err(error) => return error,
        }
    }
}

fn own(authority: &Authority) -> Result<Arc<ServerConfig>, OwnError> {
    let identity = Identity { installation: authority.installation().clone(), party: Party::Issuer };
    let (chain, key) = authority.own(&identity, SystemTime::now(), LIFETIME)?;
    let credentials = Credentials::from_pem(chain.as_bytes(), key.as_bytes(), authority.bundle().as_bytes())?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(credentials.key)));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![ALPN_ENROL.to_vec()];
    Ok(Arc::new(config))
}

async fn accept(
    listener: TcpListener,
    desk: &Arc<Desk>,
    config: watch::Receiver<Arc<ServerConfig>>,
    signal: Signal,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = signal.started() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    let (desk, config) = (Arc::clone(desk), Arc::clone(&config.borrow()));
                    connections.spawn(async move {
                        desk.metrics().connections.inc();
                        if timeout(CONNECTION, connection(stream, &desk, config)).await.is_err() {
                            tracing::debug!("a request took too long");
                        }
                        desk.metrics().connections.dec();
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, desk: &Arc<Desk>, config: Arc<ServerConfig>) {
    let tls = match timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(tls)) => tls,
        Ok(Err(error)) => return tracing::debug!(%error, "a handshake failed"),
        Err(_) => return tracing::debug!("a handshake took too long"),
    };
    let name = tls.get_ref().1.server_name().unwrap_or_default();
    let label = name.strip_suffix(SNI_SUFFIX).unwrap_or_default().to_owned();
    let service = service_fn(|request| {
        let (desk, label) = (Arc::clone(desk), label.clone());
        async move { Ok::<_, Infallible>(answer(request, &label, &desk).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE)
        .keep_alive(false)
        .serve_connection(TokioIo::new(tls), service);
    if let Err(error) = served.await {
        tracing::debug!(error = report(&error), "a request broke off");
    }
}

async fn answer(request: Request<Incoming>, label: &str, desk: &Desk) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH || request.method() != Method::POST {
        return refuse(StatusCode::NOT_FOUND, "NotFound", format!("only POST {PATH} is answered"));
    }
    let Ok(body) = Limited::new(request.into_body(), BODY_MAX).collect().await else {
        return refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestTooLarge",
            format!("more than {BODY_MAX} bytes"),
        );
    };
    // The error of the parser could show what it stumbled over, which may be the token.
    let Ok(application) = serde_json::from_slice::<Application>(&body.to_bytes()) else {
        let message = "the request must be JSON with `csr`, `token` and `bundle`".to_owned();
        return refuse(StatusCode::BAD_REQUEST, "RequestInvalid", message);
    };
    match desk.apply(label, &application).await {
        Ok(issued) => json(StatusCode::OK, &issued),
        Err(refusal) => json(StatusCode::FORBIDDEN, &refusal.told()),
    }
}

fn refuse(status: StatusCode, reason: &str, message: String) -> Response<Full<Bytes>> {
    let now = bailey_identity::clock::now();
    json(status, &Refused { reason: reason.to_owned(), message, retry_after_seconds: None, now })
}

fn json(status: StatusCode, body: &impl serde::Serialize) -> Response<Full<Bytes>> {
    let (status, body) = match serde_json::to_vec(body) {
        Ok(body) => (status, body),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, Vec::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
