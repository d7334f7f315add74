//! The gateway: lets agents of workload clusters in, and takes their streams to services of the management cluster.
//!
//! INVARIANTS: before a peer has proven who it is, it costs a look at its first message and never a signature. Whatever
//! lives is held against each new [`Index`]: a session or stream that is not allowed any more ends at once. The gateway
//! holds no key that could issue a certificate.

mod accept;
mod control;
mod directory_file;
mod enrol;
mod kubernetes;
mod metrics;
mod roster;
mod session;
mod stream;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bailey_process::drain::Signal;
use bailey_tunnel::directory::Index;
use bailey_tunnel::gate::{Gate, Limits as GateLimits};
use bailey_tunnel::memory::Memory;
use bailey_tunnel::turns::Limits as TurnLimits;
use ipnet::IpNet;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;

pub use self::directory_file::{DirectoryError, FollowDirectory, follow as follow_directory};
pub use self::kubernetes::{FollowConfigMap, FollowError, follow as follow_kubernetes, write_statuses};
pub use self::metrics::Metrics;
pub use self::roster::{Roster, Seen};
use crate::wire::ledger::Ledger;
use crate::wire::scheduler::Scheduler;
use crate::wire::settings::Settings;
use bailey_identity::credentials::{Credentials, Current};
use bailey_identity::tls;

/// The index that holds now.
pub type Known = watch::Receiver<Arc<Index>>;

/// How a gateway runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Load balancers that say in a PROXY header whom they speak for; nobody else may.
    pub proxies: Vec<IpNet>,
    /// Where the issuer is, as HOST:PORT; without it nobody can enrol through this gateway.
    pub issuer: Option<String>,
    /// Limits of handshakes.
    pub gate: GateLimits,
    /// Limits of turns.
    pub turns: TurnLimits,
    /// Limits of memory.
    pub memory: Memory,
    /// Settings of HTTP/2.
    pub settings: Settings,
    /// Over how long sessions are told to go elsewhere when the gateway ends.
    pub spread: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            proxies: Vec::new(),
            issuer: None,
            gate: GateLimits::default(),
            turns: TurnLimits::default(),
            memory: Memory::GATEWAY,
            settings: Settings::DATA,
            spread: Duration::from_secs(5),
        }
    }
}

/// What all sessions of a gateway share.
#[derive(Debug)]
pub struct Shared {
    options: Options,
    known: Known,
    credentials: Current,
    server: Mutex<Option<(Arc<Credentials>, Arc<ServerConfig>)>>,
    gate: Mutex<Gate>,
    scheduler: Arc<Scheduler>,
    ledger: Arc<Ledger>,
    roster: Arc<Roster>,
    metrics: Metrics,
    start: Instant,
}

impl Shared {
    /// Makes what a gateway needs beside its socket.
    pub fn new(options: Options, known: Known, credentials: Current, metrics: Metrics) -> Arc<Self> {
        Arc::new(Self {
            known,
            credentials,
            server: Mutex::new(None),
            gate: Mutex::new(Gate::new(options.gate)),
            scheduler: Scheduler::new(options.turns),
            ledger: Ledger::new(options.memory),
            roster: Arc::default(),
            metrics,
            start: Instant::now(),
            options,
        })
    }

    /// Tells who is connected.
    pub fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    /// Gives what is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Tells what is under way: streams, bytes held, bytes in flight, chunks that wait, handshakes.
    pub fn load(&self) -> Load {
        let ((streams, held_bytes), (in_flight_bytes, waiting)) = (self.ledger.load(), self.scheduler.load());
        let handshakes = self.gate.lock().unwrap_or_else(PoisonError::into_inner).open();
        Load { streams, held_bytes, in_flight_bytes, waiting, handshakes }
    }

    /// Gives the TLS configuration of the credentials that hold now, made once for each.
    fn server(&self) -> Option<Arc<ServerConfig>> {
        let credentials = self.credentials.borrow().clone()?;
        let mut made = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, config)) = made.as_ref().filter(|(of, _)| Arc::ptr_eq(of, &credentials)) {
            let (_, config) = (of, Arc::clone(config));
            return Some(config);
        }
        match tls::server(&credentials) {
            Ok(config) => {
                *made = Some((credentials, Arc::clone(&config)));
                Some(config)
            }
            Err(error) => {
                tracing::error!(%error, "TLS cannot be set up with the certificate");
                None
            }
        }
    }

    /// Gives the time since the gateway started.
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// What a gateway has under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Streams that copy.
    pub streams: usize,
    /// Bytes held for readers that stand still.
    pub held_bytes: usize,
    /// Bytes that have their turn.
    pub in_flight_bytes: usize,
    /// Chunks that wait for their turn.
    pub waiting: usize,
    /// Handshakes under way.
    pub handshakes: usize,
}

/// Serves until the drain has ended every session, or the task is dropped.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, signal: Signal) {
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "gateway");
    }
    tokio::select! {
        () = accept::run(listener, &shared, signal) => {}
        () = shared.scheduler.run() => {}
        () = shared.ledger.run() => {}
        () = accept::gauges(&shared) => {}
    }
}

/// The address as others know it: an IPv4 address that came over IPv6 is one of IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
