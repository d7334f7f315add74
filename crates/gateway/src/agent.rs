//! The agent: offers services of the management cluster in a workload cluster, over sessions that it dials itself.
//!
//! It keeps several connections for streams and one for what gateway and agent tell each other, and dials for ever.
//! What it offers is what the gateway told last, also while no gateway can be reached: a service that cannot be
//! reached refuses connections, it does not vanish.

mod connection;
mod control;
mod dial;
mod listeners;
mod metrics;
mod pool;
mod probes;
mod stream;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bailey_process::drain::Signal;
use bailey_process::readiness::Guard;
use bailey_tunnel::control::{Answer, Told};
use bailey_tunnel::directory::Seconds;
use bailey_tunnel::memory::Memory;
use bailey_tunnel::names::{ClusterUid, ServiceName, SniLabel};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

pub use self::dial::{DialError, HttpProxy, ProxyError, dial};
pub use self::metrics::Metrics;
use self::pool::Pool;
use crate::wire::ledger::Ledger;
use crate::wire::settings::Settings;
use bailey_identity::credentials::Current;

/// How an agent runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster that it speaks for.
    pub cluster: ClusterUid,
    /// What it sends as SNI.
    pub sni_label: SniLabel,
    /// Gateways as HOST:PORT; resolved again for each dial.
    pub gateways: Vec<String>,
    /// A proxy to try where gateways cannot be reached directly.
    pub proxy: Option<HttpProxy>,
    /// Where it listens for services.
    pub listen: IpAddr,
    /// Connections for streams.
    pub connections: usize,
    /// Limits of memory.
    pub memory: Memory,
    /// Settings of HTTP/2.
    pub settings: Settings,
}

/// What all parts of an agent share.
#[derive(Debug)]
pub struct Shared {
    options: Options,
    credentials: Current,
    pool: Pool,
    ledger: Arc<Ledger>,
    metrics: Metrics,
    told: watch::Sender<Option<Told>>,
    answers: watch::Sender<Vec<Answer>>,
    bound: watch::Sender<BTreeMap<ServiceName, SocketAddr>>,
    refused: Arc<Notify>,
}

impl Shared {
    /// Makes what an agent needs.
    ///
    /// `refused` is notified when a gateway ends a session before it began: the certificate may be revoked.
    pub fn new(options: Options, credentials: Current, metrics: Metrics, refused: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            pool: Pool::new(options.connections),
            ledger: Ledger::new(options.memory),
            credentials,
            metrics,
            told: watch::Sender::new(None),
            answers: watch::Sender::new(Vec::new()),
            bound: watch::Sender::default(),
            refused,
            options,
        })
    }

    /// Tells what the gateway told last.
    pub fn told(&self) -> watch::Receiver<Option<Told>> {
        self.told.subscribe()
    }

    /// Tells how many streams copy and how many bytes are held for readers that stand still.
    pub fn load(&self) -> (usize, usize) {
        self.ledger.load()
    }

    /// Tells how many dials had a result, such as `Connected` or `Unreachable`.
    pub fn dials(&self, result: &'static str) -> u64 {
        self.metrics.dials.get_or_create(&metrics::ResultLabel { result }).get()
    }

    /// Tells where each service is listened for.
    pub fn bound(&self) -> watch::Receiver<BTreeMap<ServiceName, SocketAddr>> {
        self.bound.subscribe()
    }

    /// Tells how each service answered last, through the whole path.
    pub fn answers(&self) -> watch::Receiver<Vec<Answer>> {
        self.answers.subscribe()
    }
}

/// Serves until the drain has ended every stream, or the task is dropped. The guard is held until a gateway has told
/// what there is.
pub async fn serve(shared: Arc<Shared>, ready: Guard, signal: Signal) {
    let mut sessions = JoinSet::new();
    for slot in 0..shared.options.connections {
        let (shared, signal) = (Arc::clone(&shared), signal.clone());
        sessions.spawn(async move { pool::keep(slot, &shared, signal).await });
    }
    sessions.spawn({
        let (shared, signal) = (Arc::clone(&shared), signal.clone());
        async move { control::keep(&shared, signal).await }
    });
    sessions.spawn({
        let (shared, signal) = (Arc::clone(&shared), signal.clone());
        async move { probes::run(&shared, signal).await }
    });
    sessions.spawn({
        let (shared, signal) = (Arc::clone(&shared), signal.clone());
        async move {
            let mut told = shared.told.subscribe();
            tokio::select! {
                _ = told.wait_for(Option::is_some) => ready.ready(),
                () = signal.started() => {}
            }
        }
    });
    tokio::select! {
        () = listeners::run(&shared, signal) => {}
        () = shared.ledger.run() => {}
        () = metrics::gauges(&shared) => {}
    }
    sessions.shutdown().await;
}

/// How far the management cluster's clock is ahead of ours.
fn skew(told: Seconds, now: Seconds) -> i64 {
    i64::try_from(told).unwrap_or(i64::MAX).saturating_sub(i64::try_from(now).unwrap_or(i64::MAX))
}
