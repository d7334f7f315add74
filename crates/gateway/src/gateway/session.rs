//! One connection of an agent that has proven who it is.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bailey_process::drain::Signal;
use bailey_tunnel::directory::{Certificate, Cluster};
use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_rustls::server::TlsStream;

use super::metrics::ClusterLabel;
use super::{Shared, stream};
use crate::wire::hello::Again;
use crate::wire::keepalive::keepalive;
use crate::wire::meter::{Meter, Metered};
use crate::wire::socket;
use bailey_identity::clock::{now, random};

/// After this a session is asked to come again, so that load spreads over gateways that came later.
const AGE: Duration = Duration::from_secs(8 * 3600);
/// The one end that is in order.
const CLOSED: &str = "Closed";

type Io = Metered<TlsStream<Again<TcpStream>>>;

/// A session that starts.
pub(super) struct Established {
    pub http: h2::server::Connection<Io, Bytes>,
    /// The same socket, to say how it ends.
    pub end: OwnedFd,
    pub meter: Meter,
    pub cluster: Cluster,
    pub certificate: Certificate,
    pub from: SocketAddr,
}

/// What the streams of a session share.
#[derive(Debug)]
pub(super) struct Session {
    pub shared: Arc<Shared>,
    pub cluster: Cluster,
    pub meter: Meter,
    /// True once the agent was asked to go elsewhere: what would never end by itself ends then.
    pub leaving: watch::Sender<bool>,
}

/// Runs a session to its end: in order if it is over, and with a RST, streams and all, if it may not go on.
pub(super) async fn run(established: Established, shared: Arc<Shared>, signal: Signal) {
    let Established { http, end, meter, cluster, certificate, from } = established;
    let label = ClusterLabel { cluster: cluster.name.clone() };
    tracing::info!(cluster = cluster.name, %from, "session");
    shared.roster.enter(&cluster.uid, from, certificate.not_after);
    shared.metrics.sessions.get_or_create(&label).inc();
    let leaving = watch::Sender::new(false);
    let session = Arc::new(Session { shared: Arc::clone(&shared), cluster, meter, leaving });
    let (http, reason) = serve(http, &session, &certificate, signal).await;
    if reason != CLOSED {
        socket::abort(&end);
    }
    drop((http, end));
    shared.metrics.sessions.get_or_create(&label).dec();
    shared.roster.leave(&session.cluster.uid);
    tracing::info!(cluster = session.cluster.name, %from, reason, "session ended");
}

/// Serves until something ends the session, and says what did.
async fn serve(
    mut http: h2::server::Connection<Io, Bytes>,
    session: &Arc<Session>,
    certificate: &Certificate,
    signal: Signal,
) -> (h2::server::Connection<Io, Bytes>, &'static str) {
    let shared = &session.shared;
    let mut known = shared.known.clone();
    let mut streams = JoinSet::new();
    let mut alive = std::pin::pin!(keepalive(http.ping_pong()));
    let left = Duration::from_secs(certificate.not_after.saturating_sub(now()));
    let expiry = Instant::now() + left;
    let mut leave = std::pin::pin!(sleep(AGE.mul_f64(1.0 + 2.0 * random())));
    let mut drain = std::pin::pin!(async {
        signal.started().await;
        sleep(shared.options.spread.mul_f64(random())).await;
    });
    let (mut leaving, mut draining) = (false, false);
    loop {
        tokio::select! {
            accepted = http.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    let session = Arc::clone(session);
                    streams.spawn(async move { stream::run(request, respond, session).await });
                }
                Some(Err(error)) => {
                    tracing::debug!(cluster = session.cluster.name, %error, "a session broke");
                    return (http, "Broke");
                }
                None => return (http, CLOSED),
            },
            Some(_) = streams.join_next() => {}
            Ok(()) = known.changed() => {
                let index = known.borrow_and_update().clone();
                if let Err(refusal) = index.admit(&session.cluster.uid, certificate, now()) {
                    return (http, refusal.reason());
                }
            }
            () = sleep_until(expiry) => return (http, "CertificateExpired"),
            () = &mut alive => return (http, "NoAnswer"),
            () = &mut drain, if !draining => {
                draining = true;
                session.leaving.send_replace(true);
                http.graceful_shutdown();
            }
            () = &mut leave, if !leaving => {
                leaving = true;
                session.leaving.send_replace(true);
                http.graceful_shutdown();
            }
        }
    }
}
