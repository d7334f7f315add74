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

use bailey_process::role::{self, Options, Role, RoleError};
use kube::Client;

use crate::metrics::Metrics;

/// The field manager of what the auditor writes.
pub const FIELD_MANAGER: &str = "bailey-auditor";

const ROLE: Role = Role {
    name: "auditor",
    version: env!("CARGO_PKG_VERSION"),
    namespace: bailey_api::OPERATOR_NAMESPACE,
    lease: "bailey-auditor",
};

/// Runs until a signal, or until something that it cannot do without ends.
pub async fn run(options: Options, client: Client) -> Result<(), RoleError> {
    role::run(ROLE, options, client, Metrics::register, work::run).await
}
