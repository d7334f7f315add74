//! Leader election: one process of a role works, the others wait, over a `Lease` of the cluster.
//!
//! The rules are those of client-go: a candidate waits until it has *itself* seen the lease unchanged
//! for the lease's duration, so clocks need not agree; a leader stops when it could not renew for
//! shorter than that. Writes carry the resourceVersion that was read, so of two candidates one wins.
//! What to do with a lease is decided in `decision`; here are the calls and the waiting.
//!
//! INVARIANT: the work is dropped, and `lost` is told, before another process may take the lease.

mod decision;

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use self::decision::{Decision, Loss, Observation, Seen, Standing, decide, next_spec, released_spec};
pub use self::decision::{Identity, Timings};
use crate::drain::Signal;
use crate::telemetry::report;

/// Names the lease and who wants it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease, one for each role.
    pub lease: String,
    /// Who wants it; no two processes may share an identity.
    pub identity: Identity,
    /// How long a lease holds and how often it is renewed.
    pub timings: Timings,
}

/// Waits for the lease, then does the work while it is held; gives the lease back when the work ends.
///
/// None when the drain starts before the lease is held. The work watches the drain itself. When the
/// lease is lost the work is dropped where it stands. Dropping this future leaves the lease to expire.
pub async fn lead<W, F, T>(
    client: Client,
    candidate: Candidate,
    signal: &Signal,
    work: W,
) -> Result<Option<T>, LeaderError>
where
    W: FnOnce(Leadership) -> F,
    F: Future<Output = T>,
{
    let identity = candidate.identity.clone();
    let mut elector = Elector::new(client, candidate);
    if !elector.acquire(signal).await {
        return Ok(None);
    }
    let (lost_sender, lost) = watch::channel(false);
    let (stop, stopped) = oneshot::channel();
    // A task of its own, so that work that is slow to yield does not delay a renewal.
    let mut renewal = JoinSet::new();
    renewal.spawn(elector.renew(stopped, lost_sender));
    tokio::select! {
        biased;
        ended = renewal.join_next() => Err(match ended {
            Some(Ok(Err(error))) => error,
            Some(Ok(Ok(()))) | Some(Err(_)) | None => LeaderError::Broken,
        }),
        done = work(Leadership { identity, lost }) => {
            if stop.send(()).is_ok() {
                // Bounded: the release has a deadline.
                renewal.join_next().await;
            }
            Ok(Some(done))
        }
    }
}

/// Says that this process leads, until it does not.
#[derive(Clone, Debug)]
pub struct Leadership {
    identity: Identity,
    lost: watch::Receiver<bool>,
}

impl Leadership {
    /// Tells under which identity the process leads.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Waits until the process leads no more.
    pub async fn lost(&self) {
        if self.lost.clone().wait_for(|lost| *lost).await.is_err() {
            tracing::trace!("the renewal ended");
        }
    }

    /// Says whether the process leads no more.
    pub fn is_lost(&self) -> bool {
        *self.lost.borrow() || self.lost.has_changed().is_err()
    }
}

/// Why a process does not lead any more, or cannot try.
#[derive(Debug, thiserror::Error)]
pub enum LeaderError {
    /// The durations cannot work together.
    #[error(
        "leader election needs lease > renew > retry > 0 and a lease of 1 s or more, not {lease:?}, {renew:?} and {retry:?}"
    )]
    Timings {
        /// How long a lease holds.
        lease: Duration,
        /// How long a leader tries to renew.
        renew: Duration,
        /// The time between two tries.
        retry: Duration,
    },
    /// Another process holds the lease.
    #[error("lease {lease} was taken by `{holder}`; this process stops so that only one works")]
    Taken {
        /// The lease as namespace/name.
        lease: String,
        /// Who holds it now.
        holder: String,
    },
    /// The lease is gone or has no holder.
    #[error(
        "lease {lease} was deleted or cleared by someone else; this process stops and may be elected again"
    )]
    Cleared {
        /// The lease as namespace/name.
        lease: String,
    },
    /// The API server could not be reached for too long.
    #[error(
        "lease {lease} could not be renewed for {unrenewed_seconds} s; this process stops before another may lead; check that the API server answers"
    )]
    Overdue {
        /// The lease as namespace/name.
        lease: String,
        /// How long ago the last renewal was.
        unrenewed_seconds: u64,
    },
    /// The renewal ended by itself.
    #[error("the renewal of the lease broke off; the lines before in the log say where")]
    Broken,
}

impl LeaderError {
    /// Names the kind of error for metric labels and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Timings { .. } => "LeaseTimingsInvalid",
            Self::Taken { .. } => "LeaseTaken",
            Self::Cleared { .. } => "LeaseCleared",
            Self::Overdue { .. } => "LeaseOverdue",
            Self::Broken => "LeaseRenewalBroken",
        }
    }
}

struct Elector {
    api: Api<Lease>,
    candidate: Candidate,
    observation: Observation,
}

impl Elector {
    fn new(client: Client, candidate: Candidate) -> Self {
        let api = Api::namespaced(client, &candidate.namespace);
        Self { api, candidate, observation: Observation::default() }
    }

    /// Tries until the lease is held, or the drain starts.
    async fn acquire(&mut self, signal: &Signal) -> bool {
        tracing::info!(lease = self.lease(), identity = %self.candidate.identity, "waiting to lead");
        while !signal.is_started() {
            match self.try_acquire().await {
                Ok(true) => {
                    tracing::info!(lease = self.lease(), identity = %self.candidate.identity, "leading");
                    return true;
                }
                Ok(false) => {}
                Err(error) => {
                    let error = report(&error);
                    tracing::warn!(lease = self.lease(), error, "cannot try to lead");
                }
            }
            tokio::select! {
                () = signal.started() => {}
                () = sleep(self.candidate.timings.retry()) => {}
            }
        }
        false
    }

    async fn try_acquire(&mut self) -> Result<bool, CallError> {
        let deadline = self.candidate.timings.call();
        let lease = call(deadline, self.api.get_opt(&self.candidate.lease)).await?;
        match self.decide(lease.as_ref(), Standing::Candidate) {
            Decision::Acquire => self.write(lease, deadline).await,
            Decision::Wait | Decision::Renew | Decision::Lost(_) => Ok(false),
        }
    }

    /// Renews until told to stop, and then gives the lease back; an error says that it is lost.
    async fn renew(
        mut self,
        mut stopped: oneshot::Receiver<()>,
        lost: watch::Sender<bool>,
    ) -> Result<(), LeaderError> {
        // The acquisition is over and took up to two calls; counting from before it is the safe side.
        let mut renewed_at = self.observation.written_at();
        loop {
            let tried_at = Instant::now();
            match self.try_renew(renewed_at).await {
                Ok(Ok(true)) => renewed_at = tried_at,
                Ok(Ok(false)) => tracing::debug!(lease = self.lease(), "the lease changed meanwhile"),
                Ok(Err(error)) => {
                    let error = report(&error);
                    tracing::warn!(lease = self.lease(), error, "cannot renew the lease");
                }
                Err(loss) => {
                    lost.send_replace(true);
                    return Err(self.lost(loss, renewed_at.elapsed()));
                }
            }
            // A sleep past the point where the lease is lost would tell of it too late.
            let pause = self.candidate.timings.retry().min(self.left(renewed_at));
            tokio::select! {
                _ = &mut stopped => break,
                () = sleep(pause) => {}
            }
        }
        lost.send_replace(true);
        self.release().await;
        Ok(())
    }

    async fn try_renew(&mut self, renewed_at: Instant) -> Result<Result<bool, CallError>, Loss> {
        let read = call(self.limit(renewed_at), self.api.get_opt(&self.candidate.lease)).await;
        let standing = Standing::Leader { unrenewed_for: renewed_at.elapsed() };
        let lease = match read {
            Ok(lease) => lease,
            Err(_) if self.left(renewed_at).is_zero() => return Err(Loss::Overdue),
            Err(error) => return Ok(Err(error)),
        };
        match self.decide(lease.as_ref(), standing) {
            Decision::Lost(loss) => Err(loss),
            Decision::Renew => Ok(self.write(lease, self.limit(renewed_at)).await),
            Decision::Acquire | Decision::Wait => Ok(Ok(false)),
        }
    }

    async fn release(&mut self) {
        match self.try_release().await {
            Ok(()) => tracing::info!(lease = self.lease(), "gave the lease back"),
            Err(error) => {
                let error = report(&error);
                tracing::warn!(
                    lease = self.lease(),
                    error,
                    "cannot give the lease back; it expires by itself"
                );
            }
        }
    }

    async fn try_release(&self) -> Result<(), CallError> {
        let (Candidate { lease: name, identity, timings, .. }, params) =
            (&self.candidate, PostParams::default());
        let Some(mut lease) = call(timings.call(), self.api.get_opt(name)).await? else {
            return Ok(());
        };
        let Some(spec) = released_spec(lease.spec.as_ref(), identity, Timestamp::now()) else {
            return Ok(());
        };
        lease.spec = Some(spec);
        call(timings.call(), self.api.replace(name, &params, &lease)).await.map(drop)
    }

    /// Writes this process as holder; false when someone else wrote first.
    async fn write(&mut self, lease: Option<Lease>, limit: Duration) -> Result<bool, CallError> {
        let (Candidate { lease: name, namespace, identity, timings }, params) =
            (&self.candidate, PostParams::default());
        let spec = next_spec(
            lease.as_ref().and_then(|lease| lease.spec.as_ref()),
            identity,
            timings,
            Timestamp::now(),
        );
        let started = Instant::now();
        let written = match lease {
            Some(lease) => {
                let lease = Lease { spec: Some(spec), ..lease };
                call(limit, self.api.replace(name, &params, &lease)).await
            }
            None => {
                let metadata = ObjectMeta {
                    name: Some(name.clone()),
                    namespace: Some(namespace.clone()),
                    ..ObjectMeta::default()
                };
                call(limit, self.api.create(&params, &Lease { metadata, spec: Some(spec) })).await
            }
        };
        match written {
            Ok(lease) => {
                self.observation.written(lease.spec, started);
                Ok(true)
            }
            Err(CallError::Refused { source }) if is_conflict(&source) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn decide(&mut self, lease: Option<&Lease>, standing: Standing) -> Decision {
        let spec: Option<&LeaseSpec> = lease.and_then(|lease| lease.spec.as_ref());
        let unchanged_for = self.observation.read(spec, Instant::now());
        decide(&Seen { spec, unchanged_for }, standing, &self.candidate.identity, &self.candidate.timings)
    }

    /// How long the leader may still try before it must stop.
    fn left(&self, renewed_at: Instant) -> Duration {
        self.candidate.timings.renew().saturating_sub(renewed_at.elapsed())
    }

    fn limit(&self, renewed_at: Instant) -> Duration {
        self.candidate.timings.call().min(self.left(renewed_at))
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.candidate.namespace, self.candidate.lease)
    }

    fn lost(&self, loss: Loss, unrenewed_for: Duration) -> LeaderError {
        let lease = self.lease();
        match loss {
            Loss::Taken { holder } => LeaderError::Taken { lease, holder },
            Loss::Cleared => LeaderError::Cleared { lease },
            Loss::Overdue => LeaderError::Overdue { lease, unrenewed_seconds: unrenewed_for.as_secs() },
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("the API server refused the request or could not be reached")]
    Refused { source: kube::Error },
    #[error("the API server did not answer within {limit:?}")]
    Deadline { limit: Duration },
}

async fn call<T>(limit: Duration, request: impl Future<Output = kube::Result<T>>) -> Result<T, CallError> {
    match timeout(limit, request).await {
        Ok(answer) => answer.map_err(|source| CallError::Refused { source }),
        Err(_) => Err(CallError::Deadline { limit }),
    }
}

/// A lease that exists already, or was changed since it was read.
fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}
