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
mod image_caches;
mod metrics;
mod reconcile;
mod status;

use bailey_process::role::{self, Options, Role, RoleError};
use kube::Client;

pub use discover::discover;
pub use error::OperatorError;

use crate::metrics::Metrics;

/// The field manager of everything that the operator applies.
pub const FIELD_MANAGER: &str = "bailey-operator";

const ROLE: Role = Role {
    name: "operator",
    version: env!("CARGO_PKG_VERSION"),
    namespace: bailey_api::OPERATOR_NAMESPACE,
    lease: "bailey-operator",
};

/// Runs until a signal, or until something that it cannot do without ends.
pub async fn run(options: Options, client: Client) -> Result<(), RoleError> {
    role::run(ROLE, options, client, Metrics::register, |client, metrics, signal| async move {
        let caches = image_caches::run(client.clone(), metrics.clone(), signal.clone());
        // What ends with an error ends both.
        tokio::try_join!(reconcile::run(client, metrics, signal), caches).map(drop)
    })
    .await
}
