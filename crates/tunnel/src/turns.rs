//! Whose turn it is to send: each cluster the same, however many streams and connections it has.
//!
//! A chunk asks, is granted, and is done when it is on the socket. Two things can be scarce, and each needs its own
//! rule. Where the processor is, what is in flight is what is served, so a cluster that is not alone has at most
//! [`Limits::contended`] in flight. Where a rate is known, chunks go by deficit round robin (Shreedhar and Varghese,
//! 1995). A cluster that is alone has everything.
//!
//! INVARIANT: what is in flight and not stuck never exceeds [`Limits::process`], one chunk more aside.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// What may be in flight, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in flight of all clusters.
    pub process: usize,
    /// Bytes in flight of one cluster while another has something to send.
    pub contended: usize,
    /// Bytes that a round adds to what a cluster may send.
    pub quantum: usize,
    /// Bytes a second of all clusters, if what is behind the gateway is slower than the gateway.
    pub rate: Option<u64>,
}

impl Default for Limits {
    /// As measured: 128 KiB leave nine others 0.95 of their share beside one with 64 streams; a quantum of 16 KiB 0.97.
    fn default() -> Self {
        Self { process: 2 << 20, contended: 128 << 10, quantum: 16 << 10, rate: None }
    }
}

/// How long a cluster counts as one that sends, after it last did.
const RECENT: Duration = Duration::from_millis(20);
/// What is in flight for longer waits for the network and not for the processor, so it no longer counts: a dead
/// connection must not keep the others of its cluster.
const STUCK: Duration = Duration::from_millis(100);
/// Tokens are kept for this long, so that a pause does not cost a rate.
const BURST: Duration = Duration::from_millis(10);

/// A chunk that asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(u64);

/// The queues of all clusters.
#[derive(Debug)]
pub struct Turns<K> {
    limits: Limits,
    clusters: HashMap<K, Share>,
    /// Clusters with a chunk that waits; the front has the turn.
    order: VecDeque<K>,
    in_flight: usize,
    tokens: f64,
    refilled: Duration,
    next: u64,
}

#[derive(Debug, Default)]
struct Share {
    waiting: VecDeque<(Ticket, usize)>,
    deficit: usize,
    granted: VecDeque<Granted>,
    in_flight: usize,
    asked: Duration,
}

#[derive(Debug)]
struct Granted {
    ticket: Ticket,
    bytes: usize,
    since: Duration,
}

impl Share {
    /// Stops counting what is stuck.
    fn give_up(&mut self, now: Duration) -> usize {
        let mut freed = 0;
        while let Some(oldest) =
            self.granted.front().filter(|oldest| now.saturating_sub(oldest.since) >= STUCK)
        {
            freed += oldest.bytes;
            self.granted.pop_front();
        }
        self.in_flight -= freed;
        freed
    }

    fn is_idle(&self, now: Duration) -> bool {
        self.waiting.is_empty() && self.in_flight == 0 && now.saturating_sub(self.asked) > RECENT
    }
}

impl<K: Clone + Eq + Hash> Turns<K> {
    /// Starts with nobody.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            clusters: HashMap::new(),
            order: VecDeque::new(),
            in_flight: 0,
            tokens: 0.0,
            refilled: Duration::ZERO,
            next: 0,
        }
    }

    /// Queues a chunk of so many bytes; [`Turns::next`] tells when it may go. Times are since any fixed moment.
    pub fn ask(&mut self, cluster: &K, bytes: usize, now: Duration) -> Ticket {
        let ticket = Ticket(self.next);
        self.next = self.next.wrapping_add(1);
        let share = self.clusters.entry(cluster.clone()).or_default();
        share.asked = now;
        if share.waiting.is_empty() {
            self.order.push_back(cluster.clone());
        }
        share.waiting.push_back((ticket, bytes));
        ticket
    }

    /// Grants the next chunk, if one may go now. Call it until there is none.
    pub fn next(&mut self, now: Duration) -> Option<Ticket> {
        self.refill(now);
        let cap = self.cap(now);
        // How many in a row may not send more; once that is all of them, nobody has the turn.
        let mut blocked = 0;
        while blocked < self.order.len() {
            let key = self.order.front()?.clone();
            let share = self.clusters.get_mut(&key)?;
            let Some(&(ticket, bytes)) = share.waiting.front() else {
                self.order.pop_front();
                continue;
            };
            if self.in_flight > 0 && self.in_flight + bytes > self.limits.process {
                return None;
            }
            if share.in_flight > 0 && share.in_flight + bytes > cap {
                blocked += 1;
                self.order.rotate_left(1);
                continue;
            }
            if share.deficit < bytes {
                share.deficit += self.limits.quantum.max(1);
                blocked = 0;
                self.order.rotate_left(1);
                continue;
            }
            if self.limits.rate.is_some() {
                if self.tokens <= 0.0 {
                    return None;
                }
                self.tokens -= bytes as f64;
            }
            share.deficit -= bytes;
            share.waiting.pop_front();
            share.in_flight += bytes;
            share.granted.push_back(Granted { ticket, bytes, since: now });
            self.in_flight += bytes;
            match share.waiting.front() {
                None => {
                    share.deficit = 0;
                    self.order.pop_front();
                }
                // Its turn is over; staying in front, it would get two rounds' worth in one.
                Some((_, next)) if share.deficit < *next => self.order.rotate_left(1),
                Some(_) => {}
            }
            return Some(ticket);
        }
        None
    }

    /// Takes back what was granted: the chunk is on the socket, or will not be sent.
    pub fn done(&mut self, cluster: &K, ticket: Ticket) {
        let Some(share) = self.clusters.get_mut(cluster) else { return };
        // Near the front: chunks of one cluster are done about in order.
        let at = share.granted.iter().position(|granted| granted.ticket == ticket);
        if let Some(granted) = at.and_then(|at| share.granted.remove(at)) {
            share.in_flight -= granted.bytes;
            self.in_flight -= granted.bytes;
        }
    }

    /// Forgets a chunk that still waits; false if it does not.
    pub fn cancel(&mut self, cluster: &K, ticket: Ticket) -> bool {
        let Some(share) = self.clusters.get_mut(cluster) else { return false };
        let Some(at) = share.waiting.iter().position(|(waiting, _)| *waiting == ticket) else { return false };
        share.waiting.remove(at);
        if share.waiting.is_empty() {
            self.order.retain(|key| key != cluster);
        }
        true
    }

    /// Tells after which pause [`Turns::next`] should be asked again though nothing is done; None while nobody waits.
    pub fn pause(&self, now: Duration) -> Option<Duration> {
        if self.order.is_empty() {
            return None;
        }
        let oldest =
            self.clusters.values().filter_map(|share| share.granted.front()).map(|granted| granted.since);
        let stuck = oldest.min().map(|since| (since + STUCK).saturating_sub(now));
        let rate = self.limits.rate.filter(|_| self.tokens <= 0.0);
        let refill = rate.map(|rate| Duration::from_secs_f64((1.0 - self.tokens) / rate.max(1) as f64));
        stuck.into_iter().chain(refill).min()
    }

    /// Tells how many bytes are in flight, and how many chunks wait.
    pub fn load(&self) -> (usize, usize) {
        (self.in_flight, self.clusters.values().map(|share| share.waiting.len()).sum())
    }

    /// What one cluster may have in flight now.
    fn cap(&mut self, now: Duration) -> usize {
        let freed = &mut self.in_flight;
        self.clusters.retain(|_, share| {
            *freed -= share.give_up(now);
            !share.is_idle(now)
        });
        if self.clusters.len() > 1 { self.limits.contended } else { self.limits.process }
    }

    fn refill(&mut self, now: Duration) {
        if let Some(rate) = self.limits.rate {
            let gained = now.saturating_sub(self.refilled).as_secs_f64() * rate as f64;
            self.tokens = (self.tokens + gained).min(BURST.as_secs_f64() * rate as f64);
        }
        self.refilled = now.max(self.refilled);
    }
}

#[cfg(test)]
mod tests;
