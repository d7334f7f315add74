use bailey_access::answer::Verdict;

use super::*;
use crate::analyse::samples::{IDS, audit, before, incomplete};

#[test]
fn two_audits_differ_by_findings_and_verdicts() {
    let difference = diff(before(), audit());
    let ids = |list: &[bailey_access::answer::Finding]| list.iter().map(|f| f.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&difference.findings), IDS[..1]);
    assert_eq!(ids(&difference.gone), ["token-request-44aa01fe"]);
    assert_eq!((difference.worse.len(), difference.unchanged, difference.verdicts.len()), (0, 3, 1));
    assert_eq!(exit(&difference, Severity::High), Exit::Findings);
    assert_eq!(exit(&difference, Severity::Critical), Exit::Clean);
}

#[test]
fn what_is_only_gone_is_a_clean_difference() {
    let mut after = audit();
    after.findings.retain(|finding| finding.id != IDS[2]);
    let gone = diff(audit(), after);
    assert_eq!((gone.gone.len(), exit(&gone, Severity::Low)), (1, Exit::Clean));
}

#[test]
fn a_secret_that_got_worse_without_a_finding_counts() {
    let mut now = before();
    for secret in now.secrets.iter_mut().filter(|secret| secret.name == "tls") {
        secret.verdict = Verdict::Shared;
        secret.audience.push("acme".to_owned());
    }
    let difference = diff(before(), now);
    assert_eq!(difference.findings[0].rule, "unexplained-verdict");
    assert_eq!(exit(&difference, Severity::Medium), Exit::Findings);
}

#[test]
fn a_difference_is_incomplete_if_either_side_is_and_names_it() {
    let difference = diff(incomplete(), audit());
    assert_eq!(exit(&difference, Severity::Low), Exit::Incomplete);
    assert_eq!(difference.gaps[0].what, "old: pods");
}
