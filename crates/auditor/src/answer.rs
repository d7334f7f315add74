//! The answer of one moment: numbers for metrics, and what is said of each Tenant. Pure.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bailey_access::{
    Access, Certainty, Customers, Isolation, Preset, Snapshot, Subjects,
    answer::{Audit, Severity, Verdict},
};
use bailey_api::{ConditionState, ISOLATED, Reason, TenantSecrets};

/// What is known at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// How many Secrets have each verdict, and how sure it is.
    pub secrets: BTreeMap<(&'static str, &'static str), usize>,
    /// How many findings are how bad.
    pub findings: BTreeMap<&'static str, usize>,
    /// What could not be read, or was not followed, and why.
    pub gaps: Vec<(String, String)>,
    /// Each Tenant's.
    pub tenants: BTreeMap<String, Said>,
}

/// What is said of one Tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub secrets: TenantSecrets,
    pub isolated: ConditionState,
}

/// The answer about a snapshot. Customers are those of its Tenants, else those that labels of a known platform name.
pub(crate) fn answer(snapshot: Snapshot) -> Answer {
    let customers = match Customers::from_objects(&snapshot) {
        Some(mut customers) => {
            customers.add_clusters(&snapshot);
            customers
        }
        None => Preset::detect(&snapshot).map_or_else(Customers::default, |p| p.customers(&snapshot)),
    };
    let access = Access::new(snapshot, customers);
    let audit = access.audit(Subjects::None);
    let gaps: Vec<(String, String)> =
        audit.gaps.iter().map(|gap| (gap.what.clone(), gap.why.clone())).collect();
    let tenants = access.isolation();
    let tenants = tenants.iter().map(|(name, isolation)| (name.clone(), said(isolation, &gaps)));
    Answer { secrets: secrets(&audit), findings: findings(&audit), tenants: tenants.collect(), gaps }
}

fn secrets(audit: &Audit) -> BTreeMap<(&'static str, &'static str), usize> {
    let mut secrets = BTreeMap::new();
    for verdict in ["platform-only", "exactly-one", "shared", "exposed", "unowned"] {
        for certainty in ["proven", "assumed"] {
            secrets.insert((verdict, certainty), 0);
        }
    }
    for secret in &audit.secrets {
        let verdict = match secret.verdict {
            Verdict::PlatformOnly => "platform-only",
            Verdict::ExactlyOne => "exactly-one",
            Verdict::Shared => "shared",
            Verdict::Exposed => "exposed",
            Verdict::Unowned => "unowned",
        };
        let certainty = match secret.certainty {
            Certainty::Proven => "proven",
            Certainty::Assumed => "assumed",
        };
        *secrets.entry((verdict, certainty)).or_default() += 1;
    }
    secrets
}

fn findings(audit: &Audit) -> BTreeMap<&'static str, usize> {
    let mut findings: BTreeMap<&'static str, usize> =
        ["low", "medium", "high", "critical"].into_iter().map(|severity| (severity, 0)).collect();
    for finding in &audit.findings {
        let severity = match finding.severity {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        };
        *findings.entry(severity).or_default() += 1;
    }
    findings
}

/// A proven leak is one although something could not be read; without one, what could not be read counts.
fn said(isolation: &Isolation, gaps: &[(String, String)]) -> Said {
    let (holds, reason, message) = if isolation.shared > 0 || isolation.others > 0 {
        let reason = if isolation.shared > 0 { Reason::SharedSecrets } else { Reason::ReachesOthers };
        (Some(false), reason, leaks(isolation))
    } else if isolation.unknown > 0 || isolation.others_unknown > 0 || !gaps.is_empty() {
        (None, Reason::Incomplete, doubts(isolation, gaps))
    } else {
        let message = format!(
            "each of its {} Secrets is reached by nobody but it and the platform, and it reaches none of others",
            isolation.total
        );
        (Some(true), Reason::ExactlyOneCustomer, message)
    };
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    Said {
        secrets: TenantSecrets {
            total: count(isolation.total),
            exactly_one: count(isolation.exactly_one),
            shared: count(isolation.shared),
            unknown: count(isolation.unknown),
            others: count(isolation.others),
        },
        isolated: ConditionState { kind: ISOLATED, holds, reason, message },
    }
}

const WAY_OUT: &str = "; see: bailey audit";

fn leaks(isolation: &Isolation) -> String {
    let mut parts = Vec::new();
    if isolation.shared > 0 {
        let shown = named(&isolation.shared_with, isolation.shared, "by");
        parts.push(format!("others reach {} of its {} Secrets: {shown}", isolation.shared, isolation.total));
    }
    if isolation.others > 0 {
        let shown = named(&isolation.reaches, isolation.others, "of");
        parts.push(format!("it reaches {} Secrets of others: {shown}", isolation.others));
    }
    parts.join("; ") + WAY_OUT
}

fn doubts(isolation: &Isolation, gaps: &[(String, String)]) -> String {
    let mut parts = Vec::new();
    if isolation.unknown > 0 {
        let shown = named(&isolation.unknown_with, isolation.unknown, "by");
        parts.push(format!(
            "others may reach {} of its {} Secrets: {shown}",
            isolation.unknown, isolation.total
        ));
    }
    if isolation.others_unknown > 0 {
        parts.push(format!("it may reach {} Secrets of others", isolation.others_unknown));
    }
    if let Some((what, why)) = gaps.first() {
        let more = gaps.len() - 1;
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        parts.push(format!("not everything is known: {what}: {why}{more}"));
    }
    parts.join("; ") + WAY_OUT
}

fn named(named: &[(String, String)], count: usize, by: &str) -> String {
    let shown: Vec<String> = named.iter().map(|(secret, who)| format!("{secret} {by} {who}")).collect();
    let more = count.saturating_sub(named.len());
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    shown.join(", ") + &more
}
