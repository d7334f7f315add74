use bailey_access::answer::Severity;

use super::*;
use crate::analyse::samples::{IDS, audit};

fn ids(audit: &Audit) -> Vec<&str> {
    audit.findings.iter().map(|finding| finding.id.as_str()).collect()
}

#[test]
fn what_findings_explain_adds_nothing() {
    let mut explained = audit();
    add(&mut explained);
    assert_eq!(ids(&explained), IDS);
}

#[test]
fn a_bad_verdict_without_a_finding_becomes_one() {
    let mut untold = audit();
    untold.findings.retain(|finding| finding.id == IDS[3]);
    add(&mut untold);
    assert_eq!(
        ids(&untold),
        ["unexplained-verdict:exposed:monitoring", "unexplained-verdict:shared:org-beta", IDS[3]]
    );
    let shared = &untold.findings[1];
    assert_eq!(
        shared.message,
        "1 Secret in org-beta is shared, reached by acme, and no finding tells the way"
    );
    assert_eq!((shared.severity, shared.customer.as_str()), (Severity::High, "acme"));
    assert_eq!(
        (shared.reaches.as_slice(), shared.secrets.as_slice()),
        (&["beta".to_owned()][..], &["org-beta/db".to_owned()][..])
    );
    let before = untold.clone();
    add(&mut untold);
    assert_eq!(untold, before, "now it is explained");
}

#[test]
fn what_is_assumed_counts_less_and_a_long_list_is_cut() {
    let mut untold = audit();
    untold.findings.clear();
    let template = untold.secrets.iter().find(|secret| secret.name == "db").unwrap().clone();
    let entry = |n: usize| SecretEntry {
        name: format!("s{n:02}"),
        certainty: Certainty::Assumed,
        ..template.clone()
    };
    untold.secrets = (0..60).map(entry).collect();
    add(&mut untold);
    let finding = &untold.findings[0];
    assert_eq!((finding.severity, finding.secret_count, finding.secrets.len()), (Severity::Medium, 60, 51));
    assert_eq!(finding.secrets[50], "… and 10 more");
    let cover = Cover::new(&untold, &untold.findings);
    assert!(untold.secrets.iter().all(|secret| cover.of(secret).len() == 1));
}
