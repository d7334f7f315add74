//! One connection of a client in the workload cluster, carried to the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bailey_tunnel::control::{PROBE, REASON};
use bailey_tunnel::names::ServiceName;
use bytes::Bytes;
use h2::{RecvStream, SendStream};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Shared;
use super::metrics::StreamLabels;
use super::pool::Live;
use crate::wire::copy::{Copied, Pace, copy};
use crate::wire::socket;

/// From a client's connection to the service's, with as many connections of the tunnel as it takes.
const OPEN: Duration = Duration::from_secs(10);

/// Why a stream did not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum OpenError {
    #[error("the gateway refuses: {0}")]
    Refused(String),
    #[error("no gateway is reached")]
    Timeout,
    #[error("the name of the service cannot be asked for")]
    Name,
}

impl OpenError {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Refused(reason) => reason,
            Self::Timeout => "NoGateway",
            Self::Name => "NameInvalid",
        }
    }
}

/// Carries a client's connection to its end. A service that cannot be reached ends it with a RST.
pub(super) async fn run(client: TcpStream, service: &ServiceName, shared: &Arc<Shared>) {
    if let Err(error) = socket::plain(&client) {
        tracing::debug!(%error, "a socket keeps its defaults");
    }
    let result = match open(service, shared, false).await {
        Err(error) => {
            socket::abort(&client);
            tracing::debug!(%service, %error, "a client is refused");
            error.reason().to_owned()
        }
        Ok(opened) => carry(client, opened, shared).await.to_owned(),
    };
    let labels = StreamLabels { service: service.to_string(), result };
    shared.metrics.streams.get_or_create(&labels).inc();
}

/// Asks whether a service answers, through the whole path.
pub(super) async fn probe(service: &ServiceName, shared: &Arc<Shared>) -> Result<(), OpenError> {
    open(service, shared, true).await.map(drop)
}

async fn carry(client: TcpStream, opened: Opened, shared: &Shared) -> &'static str {
    let Opened { send, receive, live, _counted } = opened;
    let pace = Pace {
        cluster: shared.options.cluster.clone(),
        scheduler: None,
        meter: live.meter,
        chunk: shared.options.settings.chunk as usize,
    };
    let entry = shared.ledger.open(&shared.options.cluster);
    match copy(client, send, receive, &pace, &entry, &Copied::default()).await {
        Ok(()) => "Done",
        Err(error) => error.reason(),
    }
}

struct Opened {
    send: SendStream<Bytes>,
    receive: RecvStream,
    live: Live,
    _counted: Counted,
}

/// Counts a stream on its connection while it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Opens a stream. Nothing of the client's was read yet, so a connection that fails is left for another.
async fn open(service: &ServiceName, shared: &Shared, probe: bool) -> Result<Opened, OpenError> {
    let request = request(service, probe)?;
    let tries = async {
        loop {
            let live = shared.pool.pick().await;
            let counted = Counted::new(&live.open);
            match ask(&live, request.clone(), probe).await {
                Ok((send, receive)) => return Ok(Opened { send, receive, live, _counted: counted }),
                Err(Asked::Refused(reason)) => return Err(OpenError::Refused(reason)),
                Err(Asked::Broke(error)) => {
                    tracing::debug!(%error, "a connection takes no stream");
                    shared.pool.retire(&live);
                }
            }
        }
    };
    timeout(OPEN, tries).await.unwrap_or(Err(OpenError::Timeout))
}

enum Asked {
    Refused(String),
    Broke(h2::Error),
}

async fn ask(
    live: &Live,
    request: Request<()>,
    probe: bool,
) -> Result<(SendStream<Bytes>, RecvStream), Asked> {
    let mut ready = live.send.clone().ready().await.map_err(Asked::Broke)?;
    let (response, send) = ready.send_request(request, probe).map_err(Asked::Broke)?;
    let response = response.await.map_err(Asked::Broke)?;
    if response.status() != StatusCode::OK {
        let reason = response.headers().get(REASON).and_then(|reason| reason.to_str().ok());
        return Err(Asked::Refused(reason.unwrap_or("Refused").chars().take(64).collect()));
    }
    Ok((send, response.into_body()))
}

fn request(service: &ServiceName, probe: bool) -> Result<Request<()>, OpenError> {
    let uri = Uri::builder().authority(service.as_str()).build().map_err(|_| OpenError::Name)?;
    let mut request = Request::new(());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = uri;
    if probe {
        request.headers_mut().insert(PROBE, HeaderValue::from_static("1"));
    }
    Ok(request)
}
