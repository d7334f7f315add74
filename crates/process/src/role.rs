//! How a role that works on a cluster starts and ends: signals, admin port, leader election, drain.
//!
//! Each replica serves its admin port; the work runs in the one that leads, or at once where none is elected.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use kube::Client;
use prometheus_client::registry::Registry;

use crate::{
    admin::{self, AdminError},
    drain::{InterruptError, Interrupts, Signal},
    leader::{Candidate, Identity, Timings, lead},
    metrics::registry,
    readiness::Readiness,
    tasks::{BoxError, TaskError, Tasks},
};

/// How long the work may take to end.
const GRACE: Duration = Duration::from_secs(20);

/// Which role runs.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    /// Its name, such as `operator`.
    pub name: &'static str,
    /// The version of the binary.
    pub version: &'static str,
    /// The namespace of its Lease.
    pub namespace: &'static str,
    /// The name of its Lease.
    pub lease: &'static str,
}

/// How a role runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where `/livez`, `/readyz` and `/metrics` are served.
    pub admin: SocketAddr,
    /// Whether several replicas choose one to work.
    pub leader_elect: bool,
    /// The name of this replica; made up if absent.
    pub identity: Option<String>,
}

/// Says why a role ended other than by a signal.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// The process cannot listen for signals.
    #[error("cannot listen for SIGTERM and SIGINT")]
    Signals(#[source] InterruptError),
    /// The admin port.
    #[error("cannot serve the admin port")]
    Admin(#[source] AdminError),
    /// A task of the process ended.
    #[error("the process ended early")]
    Tasks(#[source] TaskError),
}

/// Runs until a signal, or until something that the role cannot do without ends.
pub async fn run<M, F, E>(
    role: Role,
    options: Options,
    client: Client,
    register: impl FnOnce(&mut Registry) -> M,
    work: impl FnOnce(Client, M, Signal) -> F + Send + 'static,
) -> Result<(), RoleError>
where
    M: Send + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<BoxError> + Send + 'static,
{
    let interrupts = Interrupts::install().map_err(RoleError::Signals)?;
    let mut registry = registry(role.version);
    let metrics = register(&mut registry);
    let bound = admin::bind(options.admin, Readiness::new(), Arc::new(registry));
    let bound = bound.await.map_err(RoleError::Admin)?;
    tracing::info!(admin = %bound.address(), "{} starts", role.name);

    let mut tasks = Tasks::new();
    tasks.spawn_last("admin", |last| bound.run(last));
    tasks.spawn(role.name, move |signal| async move {
        if !options.leader_elect {
            return work(client, metrics, signal).await.map_err(Into::into);
        }
        let candidate = Candidate {
            namespace: role.namespace.to_owned(),
            lease: role.lease.to_owned(),
            identity: options.identity.map_or_else(|| Identity::unique(role.name), Identity::exact),
            timings: Timings::default(),
        };
        let leading = client.clone();
        let outcome = lead(client, candidate, &signal.clone(), |_| work(leading, metrics, signal)).await?;
        outcome.unwrap_or(Ok(())).map_err(Into::into)
    });
    tasks.run(interrupts, GRACE).await.map_err(RoleError::Tasks)
}
