//! What to do with a lease that was read: take it, renew it, wait, or stop.
//!
//! Pure: the time that passed comes as an argument, and nothing here calls anything.
//!
//! INVARIANT: a leader stops (`renew`) before a candidate may take the lease (`lease`).

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::LeaderError;

/// Says what a process does next with the lease it read.
pub(super) fn decide(
    seen: &Seen<'_>,
    standing: Standing,
    identity: &Identity,
    timings: &Timings,
) -> Decision {
    let holder = seen.spec.and_then(holder);
    match (standing, holder) {
        (Standing::Leader { unrenewed_for }, _) if unrenewed_for >= timings.renew => {
            Decision::Lost(Loss::Overdue)
        }
        (Standing::Leader { .. }, Some(holder)) if identity.is(holder) => Decision::Renew,
        (Standing::Leader { .. }, Some(holder)) => Decision::Lost(Loss::Taken { holder: holder.to_owned() }),
        (Standing::Leader { .. }, None) => Decision::Lost(Loss::Cleared),
        (Standing::Candidate, None) => Decision::Acquire,
        // Only this process has this identity, so an earlier write of it arrived though the answer did not.
        (Standing::Candidate, Some(holder)) if identity.is(holder) => Decision::Acquire,
        (Standing::Candidate, Some(_)) if seen.unchanged_for >= seen.lease(timings) => Decision::Acquire,
        (Standing::Candidate, Some(_)) => Decision::Wait,
    }
}

/// A lease as read, and for how long this process has seen it so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub spec: Option<&'a LeaseSpec>,
    pub unchanged_for: Duration,
}

impl Seen<'_> {
    /// How long the holder's lease holds: what it wrote, or else what this process would write.
    fn lease(&self, timings: &Timings) -> Duration {
        let written = self.spec.and_then(|spec| spec.lease_duration_seconds);
        let seconds = written.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
        seconds.map_or(timings.lease, Duration::from_secs)
    }
}

/// Whether the process leads already.
#[derive(Clone, Copy, Debug)]
pub(super) enum Standing {
    Candidate,
    Leader { unrenewed_for: Duration },
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Acquire,
    Renew,
    Wait,
    Lost(Loss),
}

/// Why a leader leads no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Taken { holder: String },
    Cleared,
    Overdue,
}

/// Writes the lease as held by this process from or since `now`.
pub(super) fn next_spec(
    spec: Option<&LeaseSpec>,
    identity: &Identity,
    timings: &Timings,
    now: Timestamp,
) -> LeaseSpec {
    let before = spec.cloned().unwrap_or_default();
    let held = holder(&before).is_some_and(|holder| identity.is(holder));
    // A release clears the holder but leaves the count, so a first holder is one without a count.
    let transitions = match before.lease_transitions {
        Some(count) if !held => count.saturating_add(1),
        Some(count) => count,
        None => i32::from(holder(&before).is_some() && !held),
    };
    LeaseSpec {
        acquire_time: before.acquire_time.clone().filter(|_| held).or(Some(MicroTime(now))),
        holder_identity: Some(identity.0.clone()),
        lease_duration_seconds: Some(timings.lease_seconds()),
        lease_transitions: Some(transitions),
        renew_time: Some(MicroTime(now)),
        ..before
    }
}

/// Writes the lease as free; None when this process does not hold it.
pub(super) fn released_spec(
    spec: Option<&LeaseSpec>,
    identity: &Identity,
    now: Timestamp,
) -> Option<LeaseSpec> {
    let spec = spec?;
    holder(spec).filter(|holder| identity.is(holder))?;
    Some(LeaseSpec { holder_identity: None, renew_time: Some(MicroTime(now)), ..spec.clone() })
}

fn holder(spec: &LeaseSpec) -> Option<&str> {
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// Remembers the lease and since when this process has seen it so.
#[derive(Debug)]
pub(super) struct Observation {
    spec: Option<LeaseSpec>,
    since: Instant,
}

impl Default for Observation {
    fn default() -> Self {
        Self { spec: None, since: Instant::now() }
    }
}

impl Observation {
    /// Takes a lease that was read and tells for how long it has been the same.
    pub fn read(&mut self, spec: Option<&LeaseSpec>, now: Instant) -> Duration {
        if self.spec.as_ref() != spec {
            *self = Self { spec: spec.cloned(), since: now };
        }
        now.saturating_duration_since(self.since)
    }

    /// Takes a lease that this process wrote in a request that started at `started`.
    pub fn written(&mut self, spec: Option<LeaseSpec>, started: Instant) {
        *self = Self { spec, since: started };
    }

    /// Tells when the request started that wrote the lease.
    pub fn written_at(&self) -> Instant {
        self.since
    }
}

/// Who holds a lease; no two processes share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(String);

impl Identity {
    /// Takes a name, such as the pod's, and makes it unique to this process.
    pub fn unique(name: &str) -> Self {
        // The standard library's hasher is seeded from the operating system's random numbers.
        let random = RandomState::new().build_hasher().finish();
        let name = if name.is_empty() { "bailey" } else { name };
        Self(format!("{name}_{random:016x}"))
    }

    /// Takes a name that the caller knows to be unique.
    pub fn exact(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    fn is(&self, holder: &str) -> bool {
        self.0 == holder
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// How long a lease holds, how long a leader tries to renew it, and the time between two tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    lease: Duration,
    renew: Duration,
    retry: Duration,
}

impl Timings {
    /// Takes durations of which each is longer than the next; the lease is 1 s or more.
    pub fn new(lease: Duration, renew: Duration, retry: Duration) -> Result<Self, LeaderError> {
        let ordered = lease > renew && renew > retry && !retry.is_zero() && lease >= Duration::from_secs(1);
        if ordered {
            Ok(Self { lease, renew, retry })
        } else {
            Err(LeaderError::Timings { lease, renew, retry })
        }
    }

    pub(super) fn renew(&self) -> Duration {
        self.renew
    }

    pub(super) fn retry(&self) -> Duration {
        self.retry
    }

    /// The deadline of one call: half the time to renew, so that one lost answer leaves time for another.
    pub(super) fn call(&self) -> Duration {
        self.renew / 2
    }

    /// Rounded up: a candidate that waits longer is safe, one that waits shorter is not.
    fn lease_seconds(&self) -> i32 {
        let seconds = self.lease.as_secs() + u64::from(self.lease.subsec_nanos() > 0);
        i32::try_from(seconds).unwrap_or(i32::MAX)
    }
}

impl Default for Timings {
    /// 15, 10 and 2 seconds, as Kubernetes' own components have.
    fn default() -> Self {
        Self { lease: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

#[cfg(test)]
mod tests;
