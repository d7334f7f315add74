//! What is held for readers that do not read, of all streams of the process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bailey_tunnel::memory::{Held, Memory};
use bailey_tunnel::names::ClusterUid;
use tokio::sync::Notify;
use tokio::time::sleep;

/// How often the bounds are looked at.
const EVERY: Duration = Duration::from_millis(250);

/// All streams and what they hold.
#[derive(Debug)]
pub struct Ledger {
    memory: Memory,
    /// Never held across an await.
    streams: Mutex<Streams>,
}

#[derive(Debug, Default)]
struct Streams {
    slots: HashMap<u64, Arc<Slot>>,
    next: u64,
}

#[derive(Debug)]
struct Slot {
    cluster: ClusterUid,
    held: AtomicUsize,
    moved: AtomicBool,
    ended: Notify,
}

impl Ledger {
    /// Starts empty.
    pub fn new(memory: Memory) -> Arc<Self> {
        Arc::new(Self { memory, streams: Mutex::default() })
    }

    /// Enters a stream.
    pub fn open(self: &Arc<Self>, cluster: &ClusterUid) -> Entry {
        let slot = Arc::new(Slot {
            cluster: cluster.clone(),
            held: AtomicUsize::new(0),
            moved: AtomicBool::new(true),
            ended: Notify::new(),
        });
        let mut streams = self.lock();
        let key = streams.next;
        streams.next += 1;
        streams.slots.insert(key, Arc::clone(&slot));
        Entry { ledger: Arc::clone(self), key, slot }
    }

    /// Tells how many streams there are and how many bytes they hold.
    pub fn load(&self) -> (usize, usize) {
        let streams = self.lock();
        let held = streams.slots.values().map(|slot| slot.held.load(Ordering::Relaxed)).sum();
        (streams.slots.len(), held)
    }

    /// Keeps the bounds; runs as long as the process.
    pub async fn run(&self) {
        loop {
            sleep(EVERY).await;
            let slots: Vec<_> = self.lock().slots.values().cloned().collect();
            let held: Vec<_> = slots
                .iter()
                .enumerate()
                .map(|(at, slot)| Held {
                    cluster: &slot.cluster,
                    stream: at,
                    bytes: slot.held.load(Ordering::Relaxed),
                    moved: slot.moved.swap(false, Ordering::Relaxed),
                })
                .collect();
            for slot in self.memory.shed(&held).into_iter().filter_map(|at| slots.get(at)) {
                let bytes = slot.held.load(Ordering::Relaxed);
                tracing::warn!(cluster = %slot.cluster, bytes, "a stream whose reader stands still is ended for its memory");
                slot.ended.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream in the ledger, until it is dropped.
#[derive(Debug)]
pub struct Entry {
    ledger: Arc<Ledger>,
    key: u64,
    slot: Arc<Slot>,
}

impl Entry {
    /// Says how much is held now.
    pub fn hold(&self, bytes: usize) {
        self.slot.held.store(bytes, Ordering::Relaxed);
    }

    /// Says that something was passed on.
    pub fn moved(&self) {
        self.slot.moved.store(true, Ordering::Relaxed);
    }

    /// Waits until the stream has to end for its memory.
    pub async fn ended(&self) {
        self.slot.ended.notified().await;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ledger.lock().slots.remove(&self.key);
    }
}
