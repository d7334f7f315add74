//! The operator: keeps native objects as `Installation` and `Tenant`s say.
//!
//! One loop for the whole installation, because the rails share one index: `cluster` watches and gives a
//! snapshot (dereference), `bailey_guardrails` validates and builds, `apply` writes what differs, and
//! `status` says what was applied. While the operator is down, what it wrote holds.
//!
//! INVARIANT: nothing is removed unless every cache is complete and there is an Installation.

mod apply;
mod cluster;
mod discover;
mod error;
mod events;
mod metrics;
mod reconcile;
mod status;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bailey_process::{
    admin,
    drain::{Interrupts, Signal},
    leader::{Candidate, Identity, Timings, lead},
    metrics::registry,
    readiness::Readiness,
    tasks::Tasks,
};
use kube::Client;

pub use discover::discover;
pub use error::OperatorError;

use crate::metrics::Metrics;

/// How the operator runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where `/livez`, `/readyz` and `/metrics` are served.
    pub admin: SocketAddr,
    /// Whether several replicas choose one to work.
    pub leader_elect: bool,
    /// The name of this replica; by default made from the host's name.
    pub identity: Option<String>,
}

/// The field manager of everything that the operator applies.
pub const FIELD_MANAGER: &str = "bailey-operator";

const LEASE: &str = "bailey-operator";
const GRACE: Duration = Duration::from_secs(20);

/// Runs until a signal, or until something that it cannot do without ends.
pub async fn run(options: Options, client: Client) -> Result<(), OperatorError> {
    let interrupts = Interrupts::install().map_err(|source| OperatorError::Signals { source })?;
    let readiness = Readiness::new();
    let mut registry = registry(env!("CARGO_PKG_VERSION"));
    let metrics = Metrics::register(&mut registry);
    let bound = admin::bind(options.admin, readiness.clone(), Arc::new(registry))
        .await
        .map_err(|source| OperatorError::Admin { source })?;
    tracing::info!(admin = %bound.address(), "operator starts");

    let mut tasks = Tasks::new();
    tasks.spawn_last("admin", |last| bound.run(last));
    tasks.spawn("operator", move |signal| work(options, client, metrics, signal));
    tasks.run(interrupts, GRACE).await.map_err(|source| OperatorError::Tasks { source: Box::new(source) })
}

async fn work(
    options: Options,
    client: Client,
    metrics: Metrics,
    signal: Signal,
) -> Result<(), OperatorError> {
    if !options.leader_elect {
        return reconcile::run(client, metrics, signal).await;
    }
    let identity = match &options.identity {
        Some(name) => Identity::exact(name.clone()),
        None => Identity::unique(&std::env::var("POD_NAME").unwrap_or_else(|_| "operator".to_owned())),
    };
    let candidate = Candidate {
        namespace: bailey_api::OPERATOR_NAMESPACE.to_owned(),
        lease: LEASE.to_owned(),
        identity,
        timings: Timings::default(),
    };
    let leading = client.clone();
    let outcome = lead(client, candidate, &signal.clone(), |_| reconcile::run(leading, metrics, signal))
        .await
        .map_err(|source| OperatorError::Leader { source: Box::new(source) })?;
    outcome.unwrap_or(Ok(()))
}
