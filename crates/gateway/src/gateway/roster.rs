//! Who is connected, and from where clusters have come.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bailey_tunnel::control::Report;
use bailey_tunnel::directory::Seconds;
use bailey_tunnel::names::ClusterUid;
use tokio::time::Instant;

/// An address that proved itself is known for this long.
const LEARNED: Duration = Duration::from_secs(24 * 3600);
/// Addresses that are remembered; more than one for each cluster of the largest installation.
const ADDRESSES_MAX: usize = 16_384;

/// The sessions of all clusters.
#[derive(Debug, Default)]
pub struct Roster(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    clusters: HashMap<ClusterUid, Seen>,
    learned: HashMap<IpAddr, (ClusterUid, Instant)>,
}

/// What is known of a cluster's agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Sessions now.
    pub sessions: usize,
    /// Where the last one came from.
    pub from: Option<SocketAddr>,
    /// When its certificate is over.
    pub not_after: Seconds,
    /// What the agent said last, and when that was by our clock.
    pub report: Option<(Report, Seconds)>,
    /// Why a session was refused last.
    pub refused: Option<&'static str>,
}

impl Roster {
    /// Says whether a cluster has proven itself from an address lately.
    pub fn learned(&self, from: IpAddr) -> bool {
        self.lock().learned.get(&from).is_some_and(|(_, since)| since.elapsed() < LEARNED)
    }

    /// Says whether a certain cluster has.
    pub fn learned_of(&self, cluster: &ClusterUid, from: IpAddr) -> bool {
        let state = self.lock();
        state.learned.get(&from).is_some_and(|(of, since)| of == cluster && since.elapsed() < LEARNED)
    }

    /// Gives what is known of each cluster.
    pub fn seen(&self) -> Vec<(ClusterUid, Seen)> {
        let mut seen: Vec<_> =
            self.lock().clusters.iter().map(|(uid, seen)| (uid.clone(), seen.clone())).collect();
        seen.sort_by(|(a, _), (b, _)| a.cmp(b));
        seen
    }

    /// Enters a session.
    pub(super) fn enter(&self, cluster: &ClusterUid, from: SocketAddr, not_after: Seconds) {
        let mut state = self.lock();
        let seen = state.clusters.entry(cluster.clone()).or_default();
        seen.sessions += 1;
        seen.from = Some(from);
        seen.not_after = seen.not_after.max(not_after);
        if state.learned.len() >= ADDRESSES_MAX {
            state.learned.retain(|_, (_, since)| since.elapsed() < LEARNED);
        }
        if state.learned.len() < ADDRESSES_MAX {
            state.learned.insert(from.ip(), (cluster.clone(), Instant::now()));
        }
    }

    /// Takes a session out.
    pub(super) fn leave(&self, cluster: &ClusterUid) {
        if let Some(seen) = self.lock().clusters.get_mut(cluster) {
            seen.sessions = seen.sessions.saturating_sub(1);
        }
    }

    /// Keeps what an agent said.
    pub(super) fn report(&self, cluster: &ClusterUid, report: Report, now: Seconds) {
        self.lock().clusters.entry(cluster.clone()).or_default().report = Some((report, now));
    }

    /// Keeps why a cluster that exists was refused.
    pub(super) fn refuse(&self, cluster: &ClusterUid, reason: &'static str) {
        self.lock().clusters.entry(cluster.clone()).or_default().refused = Some(reason);
    }

    /// Forgets clusters that do not exist any more, with their addresses.
    pub(super) fn keep(&self, exists: impl Fn(&ClusterUid) -> bool) {
        let mut state = self.lock();
        state.clusters.retain(|uid, seen| seen.sessions > 0 || exists(uid));
        state.learned.retain(|_, (uid, _)| exists(uid));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
