//! Who is next where many want the same: turns by cluster, not by who asks most, and rates that are kept over time.
//!
//! Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996): each wish gets a tag in virtual time, which goes on with
//! what is served; a party that has had much has late tags. Whoever is alone gets everything.
//!
//! INVARIANT: of two parties that both wait all the time, neither gets more than the other by more than one wish each.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

/// A queue of wishes of several parties.
#[derive(Debug)]
pub struct Fair<K> {
    /// The start of what was served last.
    now: u64,
    /// Where the next wish of a party starts, at the earliest.
    after: HashMap<K, u64>,
    waiting: BTreeMap<Ticket, K>,
    count: u64,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    start: u64,
    /// Of two that start at once, the one that came first.
    count: u64,
}

impl<K> Default for Fair<K> {
    fn default() -> Self {
        Self { now: 0, after: HashMap::new(), waiting: BTreeMap::new(), count: 0 }
    }
}

impl<K: Clone + Eq + Hash> Fair<K> {
    /// Queues a wish that costs so much.
    pub fn enter(&mut self, party: K, cost: u64) -> Ticket {
        let start = self.after.get(&party).copied().unwrap_or(0).max(self.now);
        self.after.insert(party.clone(), start.saturating_add(cost));
        self.count += 1;
        let ticket = Ticket { start, count: self.count };
        self.waiting.insert(ticket, party);
        ticket
    }

    /// Whose turn it is.
    pub fn first(&self) -> Option<Ticket> {
        self.waiting.keys().next().copied()
    }

    /// Takes a wish out that is served now.
    pub fn served(&mut self, ticket: Ticket) {
        if self.waiting.remove(&ticket).is_some() {
            self.now = self.now.max(ticket.start);
            // Parties of the past count as new ones.
            let now = self.now;
            self.after.retain(|_, after| *after > now);
        }
    }

    /// Takes a wish out that nobody has any more. What it would have cost stays said of its party.
    pub fn left(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// So much in a time, and not much of it at once.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    per_second: f64,
    burst: f64,
    left: f64,
    /// When `left` was right, since any moment that all calls count from.
    at: Duration,
}

impl Rate {
    /// So many in a second, and as many as `burst` at once. Both have to be more than zero.
    pub fn new(per_second: f64, burst: f64) -> Self {
        Self { per_second, burst, left: burst, at: Duration::ZERO }
    }

    /// Takes `count`, or says how long to wait for that. More than the burst may be taken when it is full; it is owed
    /// then.
    pub fn take(&mut self, now: Duration, count: f64) -> Result<(), Duration> {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.left = (self.left + passed * self.per_second).min(self.burst);
        self.at = self.at.max(now);
        let wanted = count.min(self.burst);
        // A rounding error must not make anybody wait for nothing.
        if self.left + 1e-6 >= wanted {
            self.left -= count;
            return Ok(());
        }
        Err(Duration::from_secs_f64(((wanted - self.left) / self.per_second).clamp(0.001, 3600.0)))
    }
}

#[cfg(test)]
mod tests;
