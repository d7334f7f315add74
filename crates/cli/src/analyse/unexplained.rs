//! Secrets that are shared or exposed and that no finding is about.
//!
//! INVARIANT: a verdict is never lost because nobody told the way. Such Secrets make a finding per namespace and verdict,
//! which counts, is known to a baseline and can be waived like any other.

use std::collections::{BTreeMap, BTreeSet};

use bailey_access::Certainty;
use bailey_access::answer::{Audit, Finding, SecretEntry, UNKNOWN};

use super::cover::Cover;
use super::words::{is_bad, is_foreign, secret_name, verdict, weight};
use crate::output::count;

/// Rule of these findings.
pub const UNEXPLAINED: &str = "unexplained-verdict";
/// How many Secrets a finding names.
const NAMES: usize = 50;

/// Adds findings for what is not explained, and puts all in order.
pub fn add(audit: &mut Audit) {
    let cover = Cover::new(audit, &audit.findings);
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&SecretEntry>> = BTreeMap::new();
    for secret in &audit.secrets {
        if is_bad(secret.verdict) && cover.of(secret).is_empty() {
            let group = (secret.cluster.as_str(), secret.namespace.as_str(), verdict(secret.verdict));
            groups.entry(group).or_default().push(secret);
        }
    }
    let findings: Vec<_> = groups.into_values().filter_map(|secrets| finding(audit, &secrets)).collect();
    audit.findings.extend(findings);
    audit.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
}

fn finding(audit: &Audit, secrets: &[&SecretEntry]) -> Option<Finding> {
    let first = secrets.first()?;
    let name = secret_name(first, audit);
    let place = name.rsplit_once('/').map_or(name.as_str(), |(place, _)| place);
    let foreign: BTreeSet<_> = secrets
        .iter()
        .flat_map(|secret| secret.audience.iter().filter(|customer| is_foreign(customer, &secret.customer)))
        .collect();
    let foreign: Vec<_> = foreign.into_iter().cloned().collect();
    let certainty = secrets.iter().map(|secret| secret.certainty).min().unwrap_or(Certainty::Assumed);
    let mut names: Vec<_> = secrets.iter().take(NAMES).map(|secret| secret_name(secret, audit)).collect();
    if let more @ 1.. = secrets.len().saturating_sub(NAMES) {
        names.push(format!("… and {more} more"));
    }
    let what = verdict(first.verdict);
    let is = if secrets.len() == 1 { "is" } else { "are" };
    Some(Finding {
        id: format!("{UNEXPLAINED}:{what}:{place}"),
        rule: UNEXPLAINED.to_owned(),
        severity: weight(certainty),
        message: format!(
            "{} in {place} {is} {what}, reached by {}, and no finding tells the way",
            count(secrets.len(), "Secret", "Secrets"),
            foreign.join(", ")
        ),
        subject: foreign.join(", "),
        customer: foreign.first().cloned().unwrap_or_else(|| UNKNOWN.to_owned()),
        also: Vec::new(),
        reaches: vec![first.customer.clone()],
        secrets: names,
        secret_count: secrets.len(),
        certainty,
        path: Vec::new(),
        remedy: format!("Ask for the ways: bailey who-can-read {name}"),
    })
}

#[cfg(test)]
mod tests;
