//! Conditions as kstatus reads them: `Ready` always, `Reconciling` and `Stalled` only while true.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The condition that says whether an object is in effect.
pub const READY: &str = "Ready";
/// The condition that says work is under way; absent otherwise.
pub const RECONCILING: &str = "Reconciling";
/// The condition that says the object needs a person; absent otherwise.
pub const STALLED: &str = "Stalled";
/// The condition of a Tenant that says nobody of it holds more than Bailey grants.
pub const BOUNDED: &str = "Bounded";
/// The condition of a Tenant that says each of its Secrets is reached by nobody else, and none of others by it. Written
/// by the auditor; unknown where not everything could be read.
pub const ISOLATED: &str = "Isolated";

/// The finite list of reasons that conditions and Events carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// All wanted objects are applied.
    Applied,
    /// Work is under way.
    Applying,
    /// A write to the API server failed and is retried.
    ApplyFailed,
    /// The spec contradicts itself, the installation or another tenant.
    Invalid,
    /// The one Installation does not exist, so nothing is enforced.
    NoInstallation,
    /// The object is being removed but something of it is still in use.
    InUse,
    /// Somebody of the tenant holds rights that Bailey did not grant.
    ForeignGrant,
    /// Nobody of the tenant holds rights beyond the boundary.
    WithinBoundary,
    /// All requested rules are granted.
    Granted,
    /// Some requested rules are refused; the status says which and why.
    PartlyRefused,
    /// The requested role does not exist or cannot be read.
    RoleNotFound,
    /// Each Secret of the tenant is reached by it and the platform alone, and it reaches none of others.
    ExactlyOneCustomer,
    /// Others reach a Secret of the tenant.
    SharedSecrets,
    /// The tenant reaches Secrets of others or of the platform.
    ReachesOthers,
    /// Not everything could be read that the answer needs.
    Incomplete,
    /// Every service of the workload cluster answers.
    Connected,
    /// No agent of the workload cluster has a session.
    NotConnected,
    /// A service of the workload cluster does not answer.
    ServiceNotReady,
    /// The workload cluster's API server could not be used.
    Unreachable,
}

impl Reason {
    /// The reason as the API shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "Applied",
            Self::Applying => "Applying",
            Self::ApplyFailed => "ApplyFailed",
            Self::Invalid => "Invalid",
            Self::NoInstallation => "NoInstallation",
            Self::InUse => "InUse",
            Self::ForeignGrant => "ForeignGrant",
            Self::WithinBoundary => "WithinBoundary",
            Self::Granted => "Granted",
            Self::PartlyRefused => "PartlyRefused",
            Self::RoleNotFound => "RoleNotFound",
            Self::ExactlyOneCustomer => "ExactlyOneCustomer",
            Self::SharedSecrets => "SharedSecrets",
            Self::ReachesOthers => "ReachesOthers",
            Self::Incomplete => "Incomplete",
            Self::Connected => "Connected",
            Self::NotConnected => "NotConnected",
            Self::ServiceNotReady => "ServiceNotReady",
            Self::Unreachable => "Unreachable",
        }
    }
}

/// A condition without its time, which [`merge_conditions`] keeps or sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionState {
    /// The type, such as [`READY`].
    pub kind: &'static str,
    /// Whether it holds; none if nobody can know.
    pub holds: Option<bool>,
    /// Why.
    pub reason: Reason,
    /// Text for people, with the way out where there is one.
    pub message: String,
}

/// Gives `wanted` as API conditions, keeping the transition time of those whose status did not change.
///
/// So a reconciliation that changes nothing writes the same bytes again.
pub fn merge_conditions(
    old: &[Condition],
    wanted: &[ConditionState],
    generation: Option<i64>,
    now: Time,
) -> Vec<Condition> {
    wanted
        .iter()
        .map(|state| {
            let status = match state.holds {
                Some(true) => "True",
                Some(false) => "False",
                None => "Unknown",
            };
            let since = old.iter().find(|c| c.type_ == state.kind && c.status == status);
            Condition {
                type_: state.kind.to_owned(),
                status: status.to_owned(),
                reason: state.reason.as_str().to_owned(),
                message: state.message.clone(),
                observed_generation: generation,
                last_transition_time: since.map_or_else(|| now.clone(), |c| c.last_transition_time.clone()),
            }
        })
        .collect()
}
