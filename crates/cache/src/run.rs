//! Starts a cache: opens the store, takes its addresses, runs its tasks, and stops them in order.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bailey_process::admin::{self, AdminError};
use bailey_process::drain::{Interrupts, Signal};
use bailey_process::metrics::registry;
use bailey_process::readiness::Readiness;
use bailey_process::tasks::{TaskError, Tasks};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::cache::{Cache, Parts};
use crate::config::{Config, ConfigError};
use crate::control;
use crate::fairness::Shares;
use crate::metrics::Metrics;
use crate::page;
use crate::serve::tls::{Tls, TlsError};
use crate::serve::{self, Front, ListenError};
use crate::store::{Opened, Scrubbed, Store, StoreError};
use crate::upstream::connect::{CaError, roots};
use crate::upstream::credentials::Source;
use crate::upstream::{Settings, Upstream};

/// How often gauges are set, and how often access times are written: what a crash may forget.
const GAUGES: Duration = Duration::from_secs(1);
const ACCESSES_TICKS: u32 = 10;
/// How often pinned images that are not complete are tried again.
const PINS: Duration = Duration::from_secs(30);
/// The pause between two blobs of a scrub, so that it is the last to use the disk.
const SCRUB_PAUSE: Duration = Duration::from_millis(50);

/// A cache that runs.
#[derive(Debug)]
pub struct Bound {
    pub listen: SocketAddr,
    pub admin: SocketAddr,
    pub opened: Opened,
    stop: Option<mpsc::Sender<&'static str>>,
    ended: JoinHandle<Result<(), TaskError>>,
}

/// Why a cache cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Certificates(#[from] CaError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("a step of the start broke off")]
    Broken(#[source] tokio::task::JoinError),
}

/// Starts a cache that runs until [`Bound::stop`].
pub async fn start(config: Config) -> Result<Bound, StartError> {
    let (stop, interrupts) = Interrupts::channel();
    let bound = start_with(config, interrupts).await?;
    Ok(Bound { stop: Some(stop), ..bound })
}

/// Starts a cache that runs until an interrupt.
pub async fn start_with(config: Config, interrupts: Interrupts) -> Result<Bound, StartError> {
    bailey_process::crypto::install();
    let upstreams = config.registries()?;
    let (grace, folder) = (config.grace, config.store.clone());
    let networks = config.networks.clone();
    let mut metered = registry(env!("CARGO_PKG_VERSION"));
    let metrics = Metrics::register(&mut metered);
    let front_address = serve::bind(config.listen).await?;
    let (listen, admin_address, scrub) = (front_address.address, config.admin, config.scrub);
    let (cache, tls, opened) =
        spawn_blocking(move || open(config, metrics)).await.map_err(StartError::Broken)??;

    let shown = cache.clone();
    let bound = admin::bind(admin_address, Readiness::new(), Arc::new(metered))
        .await?
        .with_front_page(move || page::render(&shown));
    let admin = bound.address();
    let mut tasks = Tasks::new();
    tasks.spawn_last("admin", |last| bound.run(last));
    let front = Arc::new(Front { cache: cache.clone(), upstreams, networks, tls });
    let kept = front.clone();
    tasks.spawn("front", |signal| front_address.run(front, signal));
    tasks.spawn("housekeeping", |signal| keep_house(kept, signal));
    let (socket, controlled) = (control::bind(&folder), cache.clone());
    tasks.spawn("control", |signal| control::serve(socket, controlled, signal));
    let pinning = cache.clone();
    tasks.spawn("pins", |signal| keep_pins(pinning, signal));
    if let Some(every) = scrub {
        let scrubbed = cache.clone();
        tasks.spawn("scrub", move |signal| scrub_all(scrubbed, every, signal));
    }
    tracing::info!(%listen, %admin, blobs = opened.blobs, swept = opened.fills_swept, "the cache serves");
    let ended = tokio::spawn(async move {
        let result = tasks.run(interrupts, grace).await;
        cache.close().await;
        let closed = spawn_blocking(move || {
            cache.store().persist_accesses();
            cache.store().index().flush();
        });
        if closed.await.is_err() {
            tracing::error!("the index could not be closed in order");
        }
        result
    });
    Ok(Bound { listen, admin, opened, stop: None, ended })
}

impl Bound {
    /// Asks the cache to stop, and waits until it has.
    pub async fn stop(mut self) -> Result<(), TaskError> {
        if let Some(stop) = self.stop.take() {
            // One that has ended already has the reason.
            let _asked = stop.send("stop").await;
        }
        self.join().await
    }

    /// Waits until the cache has stopped.
    pub async fn join(self) -> Result<(), TaskError> {
        match self.ended.await {
            Ok(result) => result,
            Err(source) => Err(TaskError::Broken { task: "cache", source }),
        }
    }
}

/// Does what blocks: reads certificates and opens the store.
fn open(config: Config, metrics: Metrics) -> Result<(Arc<Cache>, Option<Tls>, Opened), StartError> {
    let tls = config.tls.clone().map(Tls::read).transpose()?;
    let upstreams = upstreams(&config)?;
    let (store, opened) = Store::open(config.store, config.bytes_max)?;
    for digest in config.pins {
        store.pin(digest);
    }
    control::configure(&store, &config.pinned_images, &config.pin_platforms);
    let parts = Parts {
        store,
        upstreams,
        freshness: config.freshness,
        visibility: config.visibility,
        metrics,
        shares: Shares::new(config.shares),
    };
    Ok((Cache::new(parts), tls, opened))
}

fn upstreams(config: &Config) -> Result<Vec<Upstream>, StartError> {
    let mut upstreams = Vec::new();
    for upstream in &config.upstreams {
        let settings = match &config.parent {
            // The tier above has the credentials, and follows redirects itself.
            Some(parent) => Settings {
                name: upstream.name.clone(),
                url: parent.clone(),
                prefix: Some(upstream.name.to_string()),
                credentials: Source::Anonymous,
                trust: Default::default(),
            },
            None => Settings {
                name: upstream.name.clone(),
                url: upstream.url.clone(),
                prefix: None,
                credentials: upstream.credentials.clone(),
                trust: upstream.trust.clone(),
            },
        };
        let ca_file = if config.parent.is_some() { &config.parent_ca } else { &upstream.ca_file };
        upstreams.push(Upstream::new(settings, roots(ca_file.as_deref())?));
    }
    Ok(upstreams)
}

async fn keep_house(front: Arc<Front>, signal: Signal) -> Result<(), Infallible> {
    let cache = &front.cache;
    let mut ticks = interval(GAUGES);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut count = 0;
    loop {
        tokio::select! {
            () = signal.started() => return Ok(()),
            _ = ticks.tick() => {}
        }
        cache.metrics.usage(cache.store().usage(), cache.fills_running());
        cache.upstreams().for_each(|upstream| cache.metrics.upstream(upstream));
        count += 1;
        if count == ACCESSES_TICKS {
            count = 0;
            let front = front.clone();
            let kept = spawn_blocking(move || {
                match front.tls.as_ref().map(Tls::refresh) {
                    Some(Ok(true)) => tracing::info!("serving with new certificates"),
                    Some(Err(error)) => {
                        let error = bailey_process::telemetry::report(&error);
                        tracing::error!(
                            error,
                            "changed certificates cannot be used; serving with those from before"
                        );
                    }
                    Some(Ok(false)) | None => {}
                }
                let store = front.cache.store();
                store.persist_accesses();
                store.trim()
            });
            match kept.await {
                Ok(0) => {}
                Ok(evicted) => tracing::info!(evicted, "removed what was cold"),
                Err(error) => tracing::error!(%error, "housekeeping broke off"),
            }
        }
    }
}

async fn keep_pins(cache: Arc<Cache>, signal: Signal) -> Result<(), Infallible> {
    loop {
        tokio::select! {
            () = signal.started() => return Ok(()),
            () = cache.fill_pins() => {}
        }
        tokio::select! {
            () = signal.started() => return Ok(()),
            () = cache.pins_changed() => {}
            () = sleep(PINS) => {}
        }
    }
}

async fn scrub_all(cache: Arc<Cache>, every: Duration, signal: Signal) -> Result<(), Infallible> {
    loop {
        tokio::select! {
            () = signal.started() => return Ok(()),
            () = sleep(every) => {}
        }
        let (mut sound, mut damaged) = (0, 0);
        for digest in cache.store().digests() {
            let store = cache.store().clone();
            match spawn_blocking(move || store.scrub(&digest)).await {
                Ok(Scrubbed::Sound) => sound += 1,
                Ok(Scrubbed::Damaged) => damaged += 1,
                Ok(Scrubbed::Absent) | Err(_) => {}
            }
            tokio::select! {
                () = signal.started() => return Ok(()),
                () = sleep(SCRUB_PAUSE) => {}
            }
        }
        tracing::info!(sound, damaged, "scrubbed");
    }
}
