//! The admin server: `/livez`, `/readyz` and `/metrics`, on an address of its own, and a page if the role has one.
//!
//! It has no authentication and shows nothing that needs any. It runs until the work has drained, so
//! that a drain can be watched and is seen by load balancers: `/readyz` answers 503 from its start.
//!
//! Bounds: 64 connections of one request and ten seconds each. The next one waits for a place.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::drain::Last;
use crate::metrics::{OPENMETRICS, openmetrics};
use crate::readiness::Readiness;

/// Enough for probes and some scrapers; a stuck client holds its place for [`CONNECTION`] at most.
const CONNECTIONS_MAX: usize = 64;
const CONNECTION: Duration = Duration::from_secs(10);
const HEADERS: Duration = Duration::from_secs(5);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds the admin server; port 0 takes a free port, which [`Bound::address`] tells.
pub async fn bind(
    address: SocketAddr,
    readiness: Readiness,
    registry: Arc<Registry>,
) -> Result<Bound, AdminError> {
    let error = |source| AdminError { address, source };
    let listener = TcpListener::bind(address).await.map_err(error)?;
    let address = listener.local_addr().map_err(error)?;
    Ok(Bound { listener, address, pages: Pages { readiness, registry, front: None } })
}

/// An admin server that has its address and does not answer yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    pages: Pages,
}

impl Bound {
    /// Tells the address the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows a page of HTML at `/`. It is written anew for each request, on the threads of the role.
    pub fn with_front_page(mut self, page: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.pages.front = Some(FrontPage(Arc::new(page)));
        self
    }

    /// Answers until the work is over.
    pub async fn run(self, last: Last) -> Result<(), Infallible> {
        tracing::info!(address = %self.address, "admin server");
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = last.ended() => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(answer(stream, self.pages.clone(), last.clone()));
                    }
                    Err(error) => {
                        // Out of file descriptors, or a client that is gone: neither ends the server.
                        tracing::warn!(%error, "cannot accept an admin connection");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        // One request each: those in flight get a moment to be answered.
        let answered = async { while connections.join_next().await.is_some() {} };
        if timeout(Duration::from_secs(1), answered).await.is_err() {
            connections.shutdown().await;
        }
        Ok(())
    }
}

/// The admin server cannot have its address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for the admin server; choose a free address with `--admin`")]
pub struct AdminError {
    /// The address that was asked for.
    pub address: SocketAddr,
    source: io::Error,
}

impl AdminError {
    /// Names the kind of error for metric labels and logs.
    pub fn reason(&self) -> &'static str {
        "AdminAddressUnavailable"
    }
}

async fn answer(stream: TcpStream, pages: Pages, last: Last) {
    let service = service_fn(|request: Request<Incoming>| {
        let page = pages.page(request.method(), request.uri().path(), last.is_draining());
        async move { Ok::<_, Infallible>(page) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(CONNECTION, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "an admin connection broke off"),
        Err(_) => tracing::debug!("an admin connection took too long"),
    }
}

#[derive(Clone, Debug)]
struct Pages {
    readiness: Readiness,
    registry: Arc<Registry>,
    front: Option<FrontPage>,
}

#[derive(Clone)]
struct FrontPage(Arc<dyn Fn() -> String + Send + Sync>);

impl std::fmt::Debug for FrontPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FrontPage")
    }
}

impl Pages {
    fn page(&self, method: &Method, path: &str, draining: bool) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
        }
        match (path, &self.front) {
            ("/", Some(FrontPage(page))) => typed(StatusCode::OK, "text/html; charset=utf-8", page()),
            (path, _) => self.probe(path, draining),
        }
    }

    fn probe(&self, path: &str, draining: bool) -> Response<Full<Bytes>> {
        match path {
            "/livez" => text(StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => self.readyz(draining),
            "/metrics" => self.metrics(),
            _ => text(StatusCode::NOT_FOUND, "not found; see /livez, /readyz and /metrics\n".to_owned()),
        }
    }

    fn readyz(&self, draining: bool) -> Response<Full<Bytes>> {
        let pending = self.readiness.pending();
        match (draining, pending.is_empty()) {
            (true, _) => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned()),
            (false, true) => text(StatusCode::OK, "ok\n".to_owned()),
            (false, false) => {
                text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", pending.join(", ")))
            }
        }
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        match openmetrics(&self.registry) {
            Ok(body) => typed(StatusCode::OK, OPENMETRICS, body),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "a metric cannot be written\n".to_owned()),
        }
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", body)
}

fn typed(status: StatusCode, media_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
