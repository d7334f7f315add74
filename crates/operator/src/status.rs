//! Update status: says what was applied, and writes only what changed.

use std::collections::BTreeMap;

use bailey_api::{
    AccessRequest, AccessRequestStatus, BOUNDED, ConditionState, GrantedRule, ISOLATED, Installation,
    InstallationStatus, READY, RECONCILING, Reason, RefusedRule, STALLED, Tenant, TenantStatus,
    merge_conditions,
};
use bailey_guardrails::{ForeignGrant, Model, Problem, Projection, RequestedBinding};
use k8s_openapi::{
    api::rbac::v1::Subject,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};

/// How the last application went.
#[derive(Debug, Clone)]
pub(crate) enum Applied {
    /// Everything is as wanted.
    All,
    /// More follows shortly.
    Partly(String),
    /// A write failed and is tried again.
    Failed(String),
}

impl Applied {
    fn conditions(&self, ready: impl FnOnce() -> String) -> Vec<ConditionState> {
        let state = |kind, holds, reason, message: &str| ConditionState {
            kind,
            holds: Some(holds),
            reason,
            message: message.to_owned(),
        };
        match self {
            Self::All => vec![state(READY, true, Reason::Applied, &ready())],
            Self::Partly(what) => vec![
                state(READY, false, Reason::Applying, what),
                state(RECONCILING, true, Reason::Applying, what),
            ],
            Self::Failed(why) => vec![
                state(READY, false, Reason::ApplyFailed, why),
                state(RECONCILING, true, Reason::ApplyFailed, why),
            ],
        }
    }
}

fn stalled(reason: Reason, message: &str) -> Vec<ConditionState> {
    let state =
        |kind, holds| ConditionState { kind, holds: Some(holds), reason, message: message.to_owned() };
    vec![state(READY, false), state(STALLED, true)]
}

fn now() -> Time {
    Time(jiff_now())
}

fn jiff_now() -> k8s_openapi::jiff::Timestamp {
    let now = k8s_openapi::jiff::Timestamp::now();
    // The API keeps whole seconds; anything finer would differ on each read.
    k8s_openapi::jiff::Timestamp::from_second(now.as_second()).unwrap_or(now)
}

pub(crate) fn conditions(
    old: &[Condition],
    wanted: &[ConditionState],
    generation: Option<i64>,
) -> Vec<Condition> {
    merge_conditions(old, wanted, generation, now())
}

/// The status of the Installation.
pub(crate) fn of_installation(
    installation: &Installation,
    model: &Model,
    rails: Vec<bailey_api::RailStatus>,
    applied: &Applied,
) -> InstallationStatus {
    let old = installation.status.as_ref().map(|s| s.conditions.as_slice()).unwrap_or_default();
    let generation = installation.metadata.generation;
    let mode = installation.spec.enforcement.as_str();
    let wanted = applied.conditions(|| match installation.spec.enforcement {
        bailey_api::Enforcement::Audit => format!("{mode}: what a rail would refuse is in the audit log"),
        bailey_api::Enforcement::Warn => format!("{mode}: what a rail would refuse is shown to its author"),
        bailey_api::Enforcement::Enforce => format!("{mode}: the rails hold"),
    });
    InstallationStatus {
        observed_generation: generation,
        conditions: conditions(old, &wanted, generation),
        tenants: i64::try_from(model.tenants.len()).unwrap_or(i64::MAX),
        rails,
    }
}

/// The status of an Installation that waits for its tenants to go.
pub(crate) fn of_leaving_installation(installation: &Installation, message: &str) -> InstallationStatus {
    let status = installation.status.clone().unwrap_or_default();
    let wanted = stalled(Reason::InUse, message);
    InstallationStatus {
        observed_generation: installation.metadata.generation,
        conditions: conditions(&status.conditions, &wanted, installation.metadata.generation),
        ..status
    }
}

/// What is said of one tenant.
pub(crate) struct TenantFacts<'a> {
    pub model: &'a Model,
    pub problem: Option<&'a Problem>,
    pub foreign: Vec<&'a ForeignGrant>,
    pub requests: usize,
    /// What keeps a tenant that is being deleted.
    pub in_use: Option<String>,
    pub applied: &'a Applied,
}

/// The status of a Tenant.
pub(crate) fn of_tenant(tenant: &Tenant, facts: &TenantFacts<'_>) -> TenantStatus {
    let name = tenant.metadata.name.as_deref().unwrap_or_default();
    let generation = tenant.metadata.generation;
    let old = tenant.status.as_ref().map(|s| s.conditions.as_slice()).unwrap_or_default();
    let namespaces: Vec<_> =
        facts.model.tenants.get(name).map(|t| t.namespaces.iter().cloned().collect()).unwrap_or_default();
    let mut wanted = match (facts.problem, &facts.in_use) {
        (Some(problem), _) => stalled(Reason::Invalid, &format!("{}: {}", problem.field, problem.message)),
        (None, Some(in_use)) => stalled(Reason::InUse, in_use),
        (None, None) => facts.applied.conditions(|| format!("{} namespaces", namespaces.len())),
    };
    wanted.push(bounded(&facts.foreign));
    TenantStatus {
        observed_generation: generation,
        conditions: conditions(old, &wanted, generation),
        namespace_count: i64::try_from(namespaces.len()).unwrap_or(i64::MAX),
        namespaces,
        requests: i64::try_from(facts.requests).unwrap_or(i64::MAX),
        secrets: None,
    }
}

/// What the operator itself has written of a Tenant's status; the rest is the auditor's.
pub(crate) fn own_of(tenant: &Tenant) -> Option<TenantStatus> {
    let mut status = tenant.status.clone()?;
    status.conditions.retain(|condition| condition.type_ != ISOLATED);
    status.secrets = None;
    Some(status)
}

fn bounded(foreign: &[&ForeignGrant]) -> ConditionState {
    const SHOWN: usize = 5;
    if foreign.is_empty() {
        let message = "nobody of the tenant holds rights beyond the boundary".to_owned();
        return ConditionState { kind: BOUNDED, holds: Some(true), reason: Reason::WithinBoundary, message };
    }
    let shown: Vec<_> = foreign
        .iter()
        .take(SHOWN)
        .map(|g| format!("{} holds {} in {} through {}", g.subject, g.role, g.reaches, g.binding))
        .collect();
    let more = foreign.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    ConditionState {
        kind: BOUNDED,
        holds: Some(false),
        reason: Reason::ForeignGrant,
        message: format!("{}{more}. See: bailey plan --enforce", shown.join("; ")),
    }
}

/// The status of an AccessRequest.
pub(crate) fn of_request(
    old: Option<&AccessRequest>,
    binding: &RequestedBinding,
    projection: &Projection,
    applied: &Applied,
) -> AccessRequestStatus {
    let requested = binding.rules.clone().unwrap_or_default();
    let (granted, refused) = (&projection.scoped.granted, &projection.scoped.refused);
    let conditions_before =
        old.and_then(|r| r.status.as_ref()).map(|s| s.conditions.clone()).unwrap_or_default();
    let generation = old.and_then(|r| r.metadata.generation);
    let touched = touched(granted);
    let wanted = match (&binding.rules, applied) {
        (Err(why), _) => stalled(Reason::RoleNotFound, why),
        (Ok(_), Applied::All) => {
            let reason = if refused.is_empty() { Reason::Granted } else { Reason::PartlyRefused };
            let message = summary(requested.len(), touched, refused);
            vec![ConditionState { kind: READY, holds: Some(true), reason, message }]
        }
        (Ok(_), other) => other.conditions(String::new),
    };
    AccessRequestStatus {
        observed_generation: generation,
        conditions: conditions(&conditions_before, &wanted, generation),
        role: binding.role.clone(),
        subjects: projection.subjects.iter().map(|s| subject(s, binding)).collect(),
        requested_count: count(requested.len()),
        granted_count: count(touched),
        refused_count: count(refused.len()),
        requested,
        granted: granted.clone(),
        refused: refused.clone(),
    }
}

/// What came of a request, in a line.
pub(crate) fn summary(requested: usize, granted: usize, refused: &[RefusedRule]) -> String {
    if refused.is_empty() {
        return format!("{granted} of {requested} rules granted");
    }
    let mut reasons = BTreeMap::<&str, usize>::new();
    for part in refused {
        *reasons.entry(part.reason.as_str()).or_default() += 1;
    }
    let reasons: Vec<_> = reasons.into_iter().map(|(reason, n)| format!("{reason} {n}")).collect();
    format!("{granted} of {requested} rules granted, at least in part; refused: {}", reasons.join(", "))
}

fn touched(granted: &[GrantedRule]) -> usize {
    granted.iter().map(|g| g.request).collect::<std::collections::BTreeSet<_>>().len()
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A subject in the notation of the command line.
fn subject(subject: &Subject, binding: &RequestedBinding) -> String {
    let namespace = subject.namespace.as_deref().or(binding.namespace.as_ref().map(|n| n.as_str()));
    match subject.kind.as_str() {
        "ServiceAccount" => format!("sa:{}/{}", namespace.unwrap_or_default(), subject.name),
        "Group" => format!("group:{}", subject.name),
        _ => format!("user:{}", subject.name),
    }
}
