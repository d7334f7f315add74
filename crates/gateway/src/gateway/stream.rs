//! One stream of a session: to a service, a probe of one, or what agent and gateway tell each other.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bailey_tunnel::control::{PATH, PROBE, REASON};
use bailey_tunnel::directory::Service;
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::control;
use super::metrics::{ClusterLabel, StreamLabels};
use super::session::Session;
use crate::wire::copy::{Copied, Pace, copy};
use crate::wire::socket;

/// A backend in the same cluster answers in milliseconds, or not at all.
const DIAL: Duration = Duration::from_secs(5);
/// Stands for names that the client made up.
const NONE: &str = "";

/// Runs a stream to its end.
pub(super) async fn run(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    session: Arc<Session>,
) {
    let (head, body) = request.into_parts();
    let authority = head.uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    if head.method == Method::POST && head.uri.path() == PATH {
        return control::run(body, respond, &session).await;
    }
    if head.method != Method::CONNECT {
        return refuse(&mut respond, StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed");
    }
    let granted = {
        let index = session.shared.known.borrow().clone();
        index.grant(&session.cluster.uid, &authority).cloned()
    };
    let (service, result) = match granted {
        Err(refusal) => {
            tracing::info!(cluster = session.cluster.name, reason = refusal.reason(), "a stream is refused");
            refuse(&mut respond, StatusCode::FORBIDDEN, refusal.reason());
            (NONE.to_owned(), refusal.reason())
        }
        Ok(service) if head.headers.contains_key(PROBE) => {
            return match dial(&service).await {
                Ok(_) => accept(&mut respond, true).map_or((), drop),
                Err((status, reason)) => refuse(&mut respond, status, reason),
            };
        }
        Ok(service) => {
            let result = serve(&service, &mut respond, body, &session).await;
            (service.name.to_string(), result)
        }
    };
    let labels = StreamLabels { cluster: session.cluster.name.clone(), service, result };
    session.shared.metrics.streams.get_or_create(&labels).inc();
}

async fn serve(
    service: &Service,
    respond: &mut SendResponse<Bytes>,
    body: RecvStream,
    session: &Session,
) -> &'static str {
    let backend = match dial(service).await {
        Ok(backend) => backend,
        Err((status, reason)) => {
            tracing::warn!(service = %service.name, backend = service.backend, reason, "a service cannot be reached");
            refuse(respond, status, reason);
            return reason;
        }
    };
    let Ok(send) = accept(respond, false) else { return "StreamBroke" };
    let shared = &session.shared;
    let pace = Pace {
        cluster: session.cluster.uid.clone(),
        scheduler: Some(Arc::clone(&shared.scheduler)),
        meter: session.meter.clone(),
        chunk: shared.options.settings.chunk as usize,
    };
    let entry = shared.ledger.open(&session.cluster.uid);
    let copied = Copied::default();
    let id = send.stream_id().as_u32();
    let result = tokio::select! {
        result = copy(backend, send, body, &pace, &entry, &copied) => {
            result.map_or_else(|error| error.reason(), |()| "Done")
        }
        () = revoked(service, session) => "NotGranted",
    };
    pace.meter.forget(id);
    let label = ClusterLabel { cluster: session.cluster.name.clone() };
    shared.metrics.sent.get_or_create(&label).inc_by(copied.sent.load(Ordering::Relaxed));
    shared.metrics.received.get_or_create(&label).inc_by(copied.received.load(Ordering::Relaxed));
    result
}

/// Waits until the cluster may not reach the service any more.
async fn revoked(service: &Service, session: &Session) {
    let mut known = session.shared.known.clone();
    loop {
        {
            let index = known.borrow_and_update();
            if index.grant(&session.cluster.uid, service.name.as_str()).is_err() {
                return;
            }
        }
        if known.changed().await.is_err() {
            // The directory's owner is gone, and the process with it.
            return std::future::pending().await;
        }
    }
}

async fn dial(service: &Service) -> Result<TcpStream, (StatusCode, &'static str)> {
    match timeout(DIAL, TcpStream::connect(&service.backend)).await {
        Ok(Ok(backend)) => {
            if let Err(error) = socket::plain(&backend) {
                tracing::debug!(%error, "a socket keeps its defaults");
            }
            Ok(backend)
        }
        Ok(Err(error)) => {
            tracing::debug!(backend = service.backend, %error, "a backend refuses");
            Err((StatusCode::BAD_GATEWAY, "BackendRefused"))
        }
        Err(_) => Err((StatusCode::GATEWAY_TIMEOUT, "BackendTimeout")),
    }
}

fn accept(respond: &mut SendResponse<Bytes>, end: bool) -> Result<h2::SendStream<Bytes>, h2::Error> {
    respond.send_response(Response::new(()), end)
}

fn refuse(respond: &mut SendResponse<Bytes>, status: StatusCode, reason: &'static str) {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(REASON, HeaderValue::from_static(reason));
    if let Err(error) = respond.send_response(response, true) {
        tracing::debug!(%error, "nobody waits for the refusal");
    }
}
