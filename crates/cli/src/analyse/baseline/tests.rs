use bailey_access::answer::Severity;

use super::*;
use crate::analyse::samples::{IDS, audit, before, shared};

#[test]
fn what_is_new_known_and_gone_is_told_by_id() {
    let comparison = compare(&audit(), &[], &before());
    assert_eq!(comparison.new, [IDS[0]]);
    assert_eq!(comparison.known, IDS[1..]);
    assert_eq!(comparison.worse, [""; 0]);
    let gone: Vec<_> = comparison.gone.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(gone, ["token-request-44aa01fe"]);
    let change = VerdictChange {
        secret: "org-beta/db".to_owned(),
        before: Some(Verdict::ExactlyOne),
        after: Some(Verdict::Shared),
    };
    assert_eq!(comparison.verdicts, [change]);
}

#[test]
fn a_known_finding_that_reaches_one_more_customer_or_is_more_severe_is_worse() {
    let mut wider = audit();
    wider.findings[0].reaches.push("gamma".to_owned());
    wider.findings[1].severity = Severity::Critical;
    wider.findings[2].severity = Severity::Low;
    wider.findings[3].secret_count = 7;
    let comparison = compare(&wider, &[], &audit());
    assert_eq!(comparison.worse, IDS[..2]);
    assert_eq!(comparison.known, IDS[2..]);
}

#[test]
fn a_finding_that_is_waived_now_is_not_gone() {
    let mut now = audit();
    now.findings.remove(0);
    assert_eq!(compare(&now, &[], &audit()).gone.len(), 1);
    let waived = Waived {
        finding: shared(),
        owner: "pia".to_owned(),
        reason: "moving".to_owned(),
        expires: "2027-01-31".to_owned(),
    };
    assert_eq!(compare(&now, &[waived], &audit()).gone, []);
}

#[test]
fn the_name_of_the_only_cluster_does_not_matter_and_of_several_does() {
    let mut renamed = audit();
    renamed.clusters[0].name = "kind".to_owned();
    renamed.secrets.iter_mut().for_each(|secret| secret.cluster = "kind".to_owned());
    assert_eq!(verdicts(&audit(), &renamed), []);
    renamed.clusters.push(audit().clusters.remove(0));
    let changes = verdicts(&audit(), &renamed);
    assert_eq!(changes.len(), 12, "six came, six went");
    assert_eq!(changes[0].secret, "harbour:flux-system/deploy-key");
    assert_eq!((changes[0].before, changes[0].after), (Some(Verdict::PlatformOnly), None));
}

#[test]
fn only_an_audit_of_this_schema_is_a_baseline() {
    let text = serde_json::to_string(&audit()).unwrap();
    assert_eq!(parse(text.as_bytes()).unwrap(), audit());
    assert!(!is_audit(br#"{"kind": "List", "items": []}"#));
    let error = parse(b"kind: List").unwrap_err();
    assert!(error.contains("bailey audit -o json > audit.json"), "{error}");
    let error = parse(text.replace("audit/v1", "audit/v9").as_bytes()).unwrap_err();
    assert!(error.contains("`bailey.audit/v9`"), "{error}");
    let error = parse(br#"{"schema": "bailey.audit/v1", "complete": "hunter2"}"#).unwrap_err();
    assert!(error.starts_with("cannot be read at line 1"), "{error}");
}
