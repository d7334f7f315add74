//! What an id means: a rule of the catalogue by itself, or a finding with its whole way and other ways to the same.

use bailey_access::answer::{Finding, Severity, WhyPath};
use bailey_access::catalogue::{self, Edge};

use super::document::{EXPLANATION_SCHEMA, Explanation, RuleEntry};
use super::unexplained::UNEXPLAINED;
use super::waivers::{EXPIRED, UNUSED};

/// A rule: an edge of the catalogue, or one of the command line's own.
pub fn rule(id: &str) -> Option<RuleEntry> {
    catalogue::edge(id).map(of_edge).or_else(|| own().into_iter().find(|rule| rule.id == id))
}

/// All rules, in the order of the catalogue.
pub fn rules() -> Vec<RuleEntry> {
    catalogue::edges().iter().map(of_edge).chain(own()).collect()
}

/// Whether an id can be one of a finding: `RULE-1f2e3d4c`, or `RULE:…` for those of the command line's own rules.
pub fn may_be_finding(id: &str) -> bool {
    let hashed = id
        .rsplit_once('-')
        .is_some_and(|(_, hash)| hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hashed || id.split_once(':').is_some_and(|(name, _)| rule(name).is_some())
}

/// What a rule is, or all of them.
pub fn of_rules(rules: Vec<RuleEntry>) -> Explanation {
    Explanation { schema: EXPLANATION_SCHEMA.to_owned(), finding: None, alternates: Vec::new(), rules }
}

/// What a finding is, with the rules of all its steps in their order.
pub fn of_finding(finding: Finding, alternates: Vec<WhyPath>) -> Explanation {
    let mut ids = vec![finding.rule.as_str()];
    for step in &finding.path {
        if !ids.contains(&step.edge.as_str()) {
            ids.push(&step.edge);
        }
    }
    let rules = ids.into_iter().filter_map(rule).collect();
    Explanation { schema: EXPLANATION_SCHEMA.to_owned(), finding: Some(finding), alternates, rules }
}

fn of_edge(edge: &Edge) -> RuleEntry {
    RuleEntry {
        id: edge.id.clone(),
        title: edge.title.clone(),
        severity: edge.severity,
        soft: edge.soft,
        explanation: edge.explanation.trim().to_owned(),
        remedy: edge.remedy.trim().to_owned(),
        references: edge.references.clone(),
    }
}

/// Rules about what the user gives, and about what the catalogue does not explain.
fn own() -> [RuleEntry; 3] {
    let rule = |id: &str, severity: Severity, title: &str, explanation: &str, remedy: &str| RuleEntry {
        id: id.to_owned(),
        title: title.to_owned(),
        severity,
        soft: false,
        explanation: explanation.to_owned(),
        remedy: remedy.to_owned(),
        references: Vec::new(),
    };
    [
        rule(
            EXPIRED,
            Severity::Low,
            "A waiver is over",
            "Its last day has passed. It waives nothing any more: what it waived counts again.",
            "Remove what was waived, or have the owner decide anew and set another `expires`.",
        ),
        rule(
            UNUSED,
            Severity::Low,
            "A waiver waives nothing",
            "No finding has its id, or its rule and subject. Left in place, it would hide the finding should it come back.",
            "Remove the waiver. Where the audit is incomplete, read first what could not be read.",
        ),
        rule(
            UNEXPLAINED,
            Severity::High,
            "A Secret is shared or exposed, and no finding tells the way",
            "Findings tell a limited number of ways for each subject. The verdict of a Secret counts all of them, so it may be the worse of the two.",
            "Ask who reads the Secret, with the ways: bailey who-can-read NAMESPACE/NAME",
        ),
    ]
}

#[cfg(test)]
mod tests;
