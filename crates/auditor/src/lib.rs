//! The auditor: keeps the answer who reaches which Secret, as metrics and in the status of each Tenant.
//!
//! `bailey_collect` watches the cluster; when something that matters has changed, `answer` makes the answer anew and
//! `status` writes what differs. It is a role of its own because it must watch Secrets, which the operator may not.
//!
//! INVARIANT: an answer to which something is missing is said to be unknown, never good.

mod answer;
mod error;
mod metrics;
mod status;
mod work;

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

pub use error::AuditorError;

use crate::{metrics::Metrics, work::Auditor};

/// How the auditor runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where `/livez`, `/readyz` and `/metrics` are served.
    pub admin: SocketAddr,
    /// Whether several replicas choose one to work.
    pub leader_elect: bool,
    /// The name of this replica; by default made from the host's name.
    pub identity: Option<String>,
}

/// The field manager of what the auditor writes.
pub const FIELD_MANAGER: &str = "bailey-auditor";

const LEASE: &str = "bailey-auditor";
const GRACE: Duration = Duration::from_secs(20);

/// Runs until a signal, or until something that it cannot do without ends.
pub async fn run(options: Options, client: Client) -> Result<(), AuditorError> {
    let interrupts = Interrupts::install().map_err(|source| AuditorError::Signals { source })?;
    let readiness = Readiness::new();
    let mut registry = registry(env!("CARGO_PKG_VERSION"));
    let metrics = Metrics::register(&mut registry);
    let bound = admin::bind(options.admin, readiness, Arc::new(registry))
        .await
        .map_err(|source| AuditorError::Admin { source })?;
    tracing::info!(admin = %bound.address(), "auditor starts");

    let mut tasks = Tasks::new();
    tasks.spawn_last("admin", |last| bound.run(last));
    tasks.spawn("auditor", move |signal| elected(options, client, metrics, signal));
    tasks.run(interrupts, GRACE).await.map_err(|source| AuditorError::Tasks { source: Box::new(source) })
}

async fn elected(
    options: Options,
    client: Client,
    metrics: Metrics,
    signal: Signal,
) -> Result<(), AuditorError> {
    if !options.leader_elect {
        Auditor::new(client, metrics).run(signal).await;
        return Ok(());
    }
    let identity = match &options.identity {
        Some(name) => Identity::exact(name.clone()),
        None => Identity::unique(&std::env::var("POD_NAME").unwrap_or_else(|_| "auditor".to_owned())),
    };
    let candidate = Candidate {
        namespace: bailey_api::OPERATOR_NAMESPACE.to_owned(),
        lease: LEASE.to_owned(),
        identity,
        timings: Timings::default(),
    };
    let auditor = Auditor::new(client.clone(), metrics);
    lead(client, candidate, &signal.clone(), |_| auditor.run(signal))
        .await
        .map_err(|source| AuditorError::Leader { source: Box::new(source) })?;
    Ok(())
}
