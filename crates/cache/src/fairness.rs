//! What a cluster may take of a cache: fetches at a time, bytes, cold misses; and how what is scarce is shared.
//!
//! Clients of no cluster are one party together. Who is never short waits for nobody: without limits nothing here costs
//! anything, and with them a cluster that is alone gets all there is.
//!
//! INVARIANT: whoever waits and gives up takes nothing with it and wakes who is next.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bailey_oci::fair::{Fair, Rate, Ticket};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// Whose share it is; None for clients of no cluster.
pub type Party = Option<Arc<str>>;

/// As many fetches of one upstream run at a time, of all clusters together.
const FILLS_MAX: usize = 64;
/// As many of them are of one cluster unless the configuration says otherwise: so there is always room for another.
pub const FILLS_DEFAULT: usize = 32;
/// How much one piece is that shares are counted in, and how much of a second may be taken at once.
const PIECE: u64 = 256 << 10;
const BURST_SECONDS: f64 = 0.1;

/// What one cluster may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Fetches of one upstream at a time.
    pub fills: usize,
    /// Bytes of blobs that are sent to its nodes, in a second.
    pub bytes_per_second: Option<f64>,
    /// Requests that the store cannot answer, in a minute.
    pub misses_per_minute: Option<f64>,
}

/// All limits of a cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// For each cluster that `clusters` does not name.
    pub each: Limits,
    pub clusters: BTreeMap<Arc<str>, Limits>,
    /// What all clusters share: bytes that are sent to nodes, and that are fetched, in a second.
    pub egress: Option<f64>,
    pub ingress: Option<f64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fills: FILLS_DEFAULT, bytes_per_second: None, misses_per_minute: None }
    }
}

impl Rules {
    fn of(&self, party: &Party) -> Limits {
        let own = party.as_ref().and_then(|cluster| self.clusters.get(cluster));
        own.copied().unwrap_or(self.each)
    }
}

/// Keeps the limits of a cache.
#[derive(Debug)]
pub struct Shares {
    rules: Rules,
    egress: Option<Link>,
    ingress: Option<Link>,
    since: Instant,
    /// Of clusters that have a limit: bytes, then misses.
    rates: Mutex<HashMap<(Party, &'static str), Rate>>,
}

impl Shares {
    pub fn new(rules: Rules) -> Self {
        let link = |rate: Option<f64>| rate.map(Link::new);
        Self {
            egress: link(rules.egress),
            ingress: link(rules.ingress),
            rules,
            since: Instant::now(),
            rates: Mutex::default(),
        }
    }

    /// How much may be sent to a client at once; None where nothing limits that.
    pub fn piece(&self, party: &Party) -> Option<u64> {
        let limited = self.egress.is_some() || self.rules.of(party).bytes_per_second.is_some();
        limited.then_some(PIECE)
    }

    /// Waits until so many bytes may be sent to a client.
    pub async fn send(&self, party: &Party, bytes: u64) {
        if let Some(rate) = self.rules.of(party).bytes_per_second {
            let burst = (rate * BURST_SECONDS).max(PIECE as f64);
            while let Err(wait) = self.take((party.clone(), "bytes"), rate, burst, bytes as f64) {
                sleep(wait).await;
            }
        }
        if let Some(link) = &self.egress {
            link.take(party, bytes).await;
        }
    }

    /// Waits until so many bytes may be fetched for a cluster.
    pub async fn fetch(&self, party: &Party, bytes: u64) {
        if let Some(link) = &self.ingress {
            link.take(party, bytes).await;
        }
    }

    /// Waits until a request may go past the store. Err with how long that would take when it is not by `deadline`.
    pub async fn miss(&self, party: &Party, deadline: Instant) -> Result<(), Duration> {
        let Some(rate) = self.rules.of(party).misses_per_minute else { return Ok(()) };
        // A pod of many images starts at once.
        let burst = (rate / 6.0).max(1.0);
        while let Err(wait) = self.take((party.clone(), "misses"), rate / 60.0, burst, 1.0) {
            if Instant::now() + wait > deadline {
                return Err(wait);
            }
            sleep(wait).await;
        }
        Ok(())
    }

    fn take(
        &self,
        of: (Party, &'static str),
        per_second: f64,
        burst: f64,
        count: f64,
    ) -> Result<(), Duration> {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = rates.entry(of).or_insert_with(|| Rate::new(per_second, burst));
        rate.take(self.since.elapsed(), count)
    }
}

/// Turns at one upstream.
#[derive(Debug)]
pub struct Turns {
    free: Arc<Mutex<usize>>,
    queue: Arc<Queue>,
    own: Mutex<HashMap<Party, Arc<Semaphore>>>,
}

/// A turn that lasts as long as this lives.
#[derive(Debug)]
pub struct Turn {
    free: Arc<Mutex<usize>>,
    queue: Arc<Queue>,
    _own: OwnedSemaphorePermit,
}

impl Default for Turns {
    fn default() -> Self {
        Self { free: Arc::new(Mutex::new(FILLS_MAX)), queue: Arc::default(), own: Mutex::default() }
    }
}

impl Turns {
    /// Waits for a turn: first for one of the cluster's own, then for one of all, by turns with other clusters.
    pub async fn take(&self, shares: &Shares, party: &Party) -> Option<Turn> {
        let own = {
            let mut all = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            // A party without turns under way starts with all of them again.
            all.retain(|_, own| Arc::strong_count(own) > 1);
            let limit = shares.rules.of(party).fills.clamp(1, FILLS_MAX);
            all.entry(party.clone()).or_insert_with(|| Arc::new(Semaphore::new(limit))).clone()
        };
        // It is never closed.
        let own = own.acquire_owned().await.ok()?;
        let free = || {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = *free > 0;
            *free -= usize::from(taken);
            if taken { Ok(()) } else { Err(None) }
        };
        self.queue.take(party, 1, free).await;
        Some(Turn { free: self.free.clone(), queue: self.queue.clone(), _own: own })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.queue.wake();
    }
}

/// Something that carries so many bytes in a second.
#[derive(Debug)]
struct Link {
    rate: Mutex<Rate>,
    since: Instant,
    queue: Queue,
}

impl Link {
    fn new(per_second: f64) -> Self {
        let burst = (per_second * BURST_SECONDS).max(PIECE as f64);
        Self {
            rate: Mutex::new(Rate::new(per_second, burst)),
            since: Instant::now(),
            queue: Queue::default(),
        }
    }

    async fn take(&self, party: &Party, bytes: u64) {
        let rate = || {
            let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
            rate.take(self.since.elapsed(), bytes as f64).map_err(Some)
        };
        self.queue.take(party, bytes, rate).await;
    }
}

/// Who waits for something, in a fair order.
#[derive(Debug, Default)]
struct Queue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    order: Fair<Party>,
    bells: HashMap<Ticket, Arc<Notify>>,
}

impl Queue {
    /// Waits for this party's turn and until `grant` grants; it says how long to wait, or None to wait for a bell.
    async fn take(&self, party: &Party, cost: u64, grant: impl Fn() -> Result<(), Option<Duration>>) {
        let bell = Arc::new(Notify::new());
        let ticket = {
            let mut waiting = self.lock();
            let ticket = waiting.order.enter(party.clone(), cost);
            waiting.bells.insert(ticket, bell.clone());
            ticket
        };
        let place = InQueue { queue: self, ticket };
        loop {
            let mut wait = None;
            {
                let mut waiting = self.lock();
                if waiting.order.first() == Some(ticket) {
                    match grant() {
                        Ok(()) => {
                            waiting.order.served(ticket);
                            break;
                        }
                        Err(told) => wait = told,
                    }
                }
            }
            match wait {
                Some(wait) => sleep(wait).await,
                None => bell.notified().await,
            }
        }
        drop(place);
    }

    /// Has who is first look again.
    fn wake(&self) {
        let waiting = self.lock();
        if let Some(bell) = waiting.order.first().and_then(|first| waiting.bells.get(&first)) {
            bell.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Each change is a call that either happens or not.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a queue; dropped, it is given up, and who is next looks.
struct InQueue<'a> {
    queue: &'a Queue,
    ticket: Ticket,
}

impl Drop for InQueue<'_> {
    fn drop(&mut self) {
        {
            let mut waiting = self.queue.lock();
            waiting.order.left(self.ticket);
            waiting.bells.remove(&self.ticket);
        }
        self.queue.wake();
    }
}

#[cfg(test)]
mod tests;
