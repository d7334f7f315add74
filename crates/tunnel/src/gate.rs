//! Whether an address may try to prove who it is: decided before anything costs more than a look.
//!
//! An address is never an identity. It only decides how many handshakes a source gets, so that strangers cannot spend
//! what enrolled clusters need. INVARIANT: the table of prefixes never exceeds [`PREFIXES_MAX`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

/// What an address that no cluster is known to have may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Policy {
    /// The same as any other, within the limits of its prefix.
    #[default]
    Off,
    /// Through the lane for strangers, which is narrow.
    Prefer,
    /// Through the lane, and only for a cluster whose addresses are not known yet.
    Strict,
}

/// Where the knowledge of an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Provenance {
    /// Read from the cluster's objects of Cluster API.
    Crd,
    /// Written down by the platform.
    Declared,
    /// Told by the provider's API.
    Provider,
    /// A session that proved its identity came from it.
    Learned,
}

/// Addresses of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The addresses.
    pub cidr: IpNet,
    /// How they are known.
    pub from: Provenance,
}

/// How many handshakes there may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Handshakes a second of one prefix.
    pub prefix_rate: f64,
    /// Handshakes under way of one prefix.
    pub prefix_open: usize,
    /// Handshakes a second of all strangers together.
    pub lane_rate: f64,
    /// Handshakes under way of all strangers together.
    pub lane_open: usize,
    /// Handshakes under way of everybody.
    pub open: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { prefix_rate: 200.0, prefix_open: 256, lane_rate: 20.0, lane_open: 64, open: 4096 }
    }
}

/// More prefixes than this are not told apart: the oldest is forgotten.
pub const PREFIXES_MAX: usize = 8192;

/// Why an address is refused before its first byte is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Its prefix has too many handshakes.
    Prefix,
    /// There are too many strangers.
    Lane,
    /// There are too many handshakes.
    Full,
}

impl Refusal {
    /// Names it for metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Prefix => "PrefixLimit",
            Self::Lane => "StrangersLimit",
            Self::Full => "HandshakesLimit",
        }
    }
}

/// A handshake that was let in; give it back with [`Gate::leave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    prefix: IpNet,
    lane: bool,
}

impl Pass {
    /// Says whether no cluster is known to have the address.
    pub fn is_stranger(self) -> bool {
        self.lane
    }
}

/// Counts handshakes by prefix.
#[derive(Debug)]
pub struct Gate {
    limits: Limits,
    prefixes: HashMap<IpNet, Entry>,
    lane: Entry,
    open: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    tokens: f64,
    refilled: Duration,
    open: usize,
}

impl Entry {
    /// Takes a token; a second's worth of them may be saved.
    fn take(&mut self, rate: f64, now: Duration) -> bool {
        let gained = now.saturating_sub(self.refilled).as_secs_f64() * rate;
        self.tokens = (self.tokens + gained).min(rate);
        self.refilled = now;
        let has = self.tokens >= 1.0;
        if has {
            self.tokens -= 1.0;
        }
        has
    }
}

impl Gate {
    /// Starts with nobody.
    pub fn new(limits: Limits) -> Self {
        let full = |rate| Entry { tokens: rate, ..Entry::default() };
        Self { limits, prefixes: HashMap::new(), lane: full(limits.lane_rate), open: 0 }
    }

    /// Lets an address in or not; `known` says that a cluster has it. Times are since any fixed moment.
    pub fn knock(
        &mut self,
        from: IpAddr,
        known: bool,
        policy: Policy,
        now: Duration,
    ) -> Result<Pass, Refusal> {
        if self.open >= self.limits.open {
            return Err(Refusal::Full);
        }
        let lane = !known && policy != Policy::Off;
        if lane && self.lane.open >= self.limits.lane_open {
            return Err(Refusal::Lane);
        }
        let prefix = prefix(from);
        self.make_room(&prefix);
        let Limits { prefix_rate, prefix_open, lane_rate, .. } = self.limits;
        let entry =
            self.prefixes.entry(prefix).or_insert(Entry { tokens: prefix_rate, refilled: now, open: 0 });
        if entry.open >= prefix_open || !entry.take(prefix_rate, now) {
            return Err(Refusal::Prefix);
        }
        if lane && !self.lane.take(lane_rate, now) {
            return Err(Refusal::Lane);
        }
        entry.open += 1;
        self.open += 1;
        self.lane.open += usize::from(lane);
        Ok(Pass { prefix, lane })
    }

    /// Gives a handshake back, whatever came of it.
    pub fn leave(&mut self, pass: Pass) {
        if let Some(entry) = self.prefixes.get_mut(&pass.prefix) {
            entry.open = entry.open.saturating_sub(1);
        }
        self.open = self.open.saturating_sub(1);
        self.lane.open = self.lane.open.saturating_sub(usize::from(pass.lane));
    }

    /// Tells how many handshakes are under way.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Forgets the prefix that was quiet longest, if one more would be too many.
    fn make_room(&mut self, wanted: &IpNet) {
        if self.prefixes.len() < PREFIXES_MAX || self.prefixes.contains_key(wanted) {
            return;
        }
        let quiet = self.prefixes.iter().filter(|(_, entry)| entry.open == 0);
        let oldest = quiet.min_by_key(|(_, entry)| entry.refilled).map(|(prefix, _)| *prefix);
        // One look at all of them frees many, so that a sweep of addresses pays for it once.
        let Some(edge) = oldest.and_then(|prefix| self.prefixes.get(&prefix)).map(|entry| entry.refilled)
        else {
            self.prefixes.clear();
            return;
        };
        let newest = self.prefixes.values().map(|entry| entry.refilled).max().unwrap_or(edge);
        let middle = edge + newest.saturating_sub(edge) / 2;
        self.prefixes.retain(|_, entry| entry.open > 0 || entry.refilled > middle);
        if self.prefixes.len() >= PREFIXES_MAX {
            self.prefixes.clear();
        }
    }
}

/// Whose neighbours an address belongs to: a /24, or a /48 as sites get them (RFC 6177).
pub fn prefix(from: IpAddr) -> IpNet {
    match from.to_canonical() {
        IpAddr::V4(address) => {
            Ipv4Net::new(address, 24).map(|net| IpNet::V4(net.trunc())).unwrap_or_default()
        }
        IpAddr::V6(address) => {
            Ipv6Net::new(address, 48).map(|net| IpNet::V6(net.trunc())).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests;
