//! The cache itself: what to give a client, from the store or from an upstream.
//!
//! It knows no HTTP of clients; [`crate::serve`] does. What may be served, to whom, and for how long a tag holds is
//! decided in `bailey-oci`.
//!
//! INVARIANT: whatever is fetched is fetched once at a time, by a task of the cache; clients wait for it or leave.
//! INVARIANT: digests that are here are served without asking anybody, unless the client may not know them.

mod blobs;
mod fills;
mod flights;
mod lists;
mod manifests;
mod pins;

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bailey_oci::freshness::Policy;
use bailey_oci::status::Cause;
use bailey_oci::visibility::{Place, Visibility};
use bailey_oci::{Digest, Reference, Registry, Tag};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

pub use blobs::{Passing, Source};
pub use manifests::{Manifest, Served, Stale};
pub use pins::{Pinned, pinned};

use crate::fairness::{Shares, Turns};
use crate::index::{Index, ListRecord};
use crate::metrics::Metrics;
use crate::store::Store;
use crate::store::fill::Fill;
use crate::upstream::{Problem, Upstream};
use flights::Flights;

/// How long a client waits for the head of an answer at most; containerd gives up after 30 s and asks others then.
pub const ANSWER: Duration = Duration::from_millis(4500);
/// How long it may take to hear whether a tag that is here is still what it was.
const REVALIDATE: Duration = Duration::from_secs(2);
/// How long a blob whose bytes are all here may take to come to the disk when the cache ends.
const COMMIT: Duration = Duration::from_secs(5);
/// Sizes that manifests announced, for HEAD on blobs that are not here; some 200 bytes each.
const SIZES_MAX: usize = 20_000;

/// What the cache works with.
#[derive(Debug)]
pub struct Parts {
    pub store: Store,
    pub upstreams: Vec<Upstream>,
    pub freshness: Policy,
    pub visibility: Visibility,
    pub metrics: Metrics,
    pub shares: Shares,
}

/// A cache; always shared.
#[derive(Debug)]
pub struct Cache {
    store: Store,
    upstreams: BTreeMap<Registry, Remote>,
    freshness: Policy,
    visibility: Visibility,
    pub metrics: Metrics,
    /// Fills under way, with the repository that each came through.
    fills: Mutex<HashMap<Digest, (Fill, Place)>>,
    manifests: manifests::Memory,
    sizes: Mutex<HashMap<(Place, Digest), u64>>,
    flights: AllFlights,
    tasks: Mutex<Tasks>,
    pins_changed: Notify,
    shares: Shares,
}

#[derive(Debug)]
struct Remote {
    upstream: Upstream,
    turns: Turns,
}

#[derive(Debug, Default)]
struct AllFlights {
    manifests: Arc<Flights<(Place, Reference), Result<Manifest, Problem>>>,
    checks: Arc<Flights<(Place, Tag), Result<bool, Problem>>>,
    lists: Arc<Flights<(Place, String), Result<ListRecord, Problem>>>,
    probes: Arc<Flights<(Place, Digest), Result<u64, Problem>>>,
}

/// The cache's own tasks. They end before it does.
#[derive(Debug, Default)]
struct Tasks {
    running: JoinSet<()>,
    /// Nothing is started any more.
    closed: bool,
}

impl Cache {
    pub fn new(parts: Parts) -> Arc<Self> {
        let remote =
            |upstream: Upstream| (upstream.name().clone(), Remote { upstream, turns: Turns::default() });
        Arc::new(Self {
            store: parts.store,
            upstreams: parts.upstreams.into_iter().map(remote).collect(),
            freshness: parts.freshness,
            visibility: parts.visibility,
            metrics: parts.metrics,
            fills: Mutex::default(),
            manifests: manifests::Memory::default(),
            sizes: Mutex::default(),
            flights: AllFlights::default(),
            tasks: Mutex::default(),
            pins_changed: Notify::new(),
            shares: parts.shares,
        })
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What each cluster may take.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    pub fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        self.upstreams.values().map(|remote| &remote.upstream)
    }

    /// How many fills are under way.
    pub fn fills_running(&self) -> usize {
        self.fills().len()
    }

    fn is_filling(&self, digest: &Digest) -> bool {
        self.fills().contains_key(digest)
    }

    /// Stops all fills and waits for their tasks. What they had is removed, unless it is whole already.
    pub async fn close(&self) {
        let until = Instant::now() + COMMIT;
        while Instant::now() < until && self.fills().values_mut().any(|(fill, _)| fill.now().is_whole()) {
            sleep(Duration::from_millis(5)).await;
        }
        let mut running = {
            let mut tasks = self.tasks();
            tasks.closed = true;
            std::mem::take(&mut tasks.running)
        };
        running.shutdown().await;
    }

    fn index(&self) -> &Index {
        self.store.index()
    }

    fn remote(&self, place: &Place) -> Result<&Remote, Problem> {
        self.upstreams.get(&place.upstream).ok_or_else(|| Problem::of(Cause::Policy))
    }

    /// Starts a task that is the cache's own; false when the cache is closing.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut tasks = self.tasks();
        if tasks.closed {
            return false;
        }
        while tasks.running.try_join_next().is_some() {}
        tasks.running.spawn(task);
        true
    }

    /// Makes an ask as a task of the cache, unless it is under way already, and waits for what comes of it.
    async fn fly<K, V, F>(
        &self,
        flights: &Arc<Flights<K, Result<V, Problem>>>,
        key: K,
        deadline: Instant,
        ask: impl FnOnce() -> F,
    ) -> Result<V, Problem>
    where
        K: Clone + Eq + Hash + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
        F: Future<Output = Result<V, Problem>> + Send + 'static,
    {
        let (mut answer, landing) = flights.board(key);
        if let Some(landing) = landing {
            let asked = ask();
            if !self.spawn(async move { landing.land(asked.await) }) {
                return Err(Problem::unreachable("this cache is ending"));
            }
        }
        let waited = timeout_at(deadline, answer.wait_for(Option::is_some)).await;
        match waited {
            Err(_) => Err(Problem::unreachable("it takes too long; asking goes on")),
            Ok(Ok(answer)) => answer.clone().unwrap_or_else(|| Err(Problem::of(Cause::UpstreamError))),
            Ok(Err(_)) => Err(Problem::unreachable("the ask was given up")),
        }
    }

    /// Remembers what a manifest says about the sizes of its parts.
    fn note_sizes(&self, place: &Place, sizes: impl IntoIterator<Item = (Digest, u64)>) {
        let mut known = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        for (digest, size) in sizes {
            if known.len() >= SIZES_MAX {
                known.clear();
            }
            known.insert((place.clone(), digest), size);
        }
    }

    fn noted_size(&self, place: &Place, digest: &Digest) -> Option<u64> {
        let known = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(place.clone(), *digest)).copied()
    }

    fn fills(&self) -> MutexGuard<'_, HashMap<Digest, (Fill, Place)>> {
        self.fills.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the head of an answer to a request that came now must be ready.
pub fn answer_by() -> Instant {
    Instant::now() + ANSWER
}

#[cfg(test)]
mod tests;
