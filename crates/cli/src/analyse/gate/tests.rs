use super::*;
use crate::analyse::baseline::compare;
use crate::analyse::samples::{
    IDS, audit, before, incomplete, reach as reached, what_if as changed, who_can_read as readers,
    why as ways,
};

#[test]
fn findings_at_or_above_the_threshold_count() {
    let counted = |fail_on| gate(&audit(), None, fail_on).findings;
    assert_eq!(counted(Severity::Critical), [""; 0]);
    assert_eq!(counted(Severity::High), IDS[..2]);
    assert_eq!(counted(Severity::Medium), IDS[..3]);
    assert_eq!(counted(Severity::Low), IDS);
    let exit = |fail_on| gate(&audit(), None, fail_on).exit(true);
    assert_eq!((exit(Severity::Critical), exit(Severity::High)), (Exit::Clean, Exit::Findings));
}

#[test]
fn an_incomplete_audit_ends_so_whether_something_was_found_or_not() {
    let exit = |fail_on| gate(&incomplete(), None, fail_on).exit(false);
    assert_eq!((exit(Severity::Critical), exit(Severity::Low)), (Exit::Incomplete, Exit::Incomplete));
}

#[test]
fn only_what_the_baseline_has_not_counts() {
    let new = gate(&audit(), Some(&compare(&audit(), &[], &before())), Severity::Low);
    assert_eq!(new.findings, IDS[..1]);
    let same = gate(&audit(), Some(&compare(&audit(), &[], &audit())), Severity::Low);
    assert_eq!((same.findings.len(), same.exit(true)), (0, Exit::Clean));
}

#[test]
fn questions_end_as_foreign_ways_count() {
    assert_eq!(who_can_read(&readers(), Severity::High), Exit::Findings);
    assert_eq!(who_can_read(&readers(), Severity::Critical), Exit::Clean);
    let mut own = readers();
    own.secret.verdict = Verdict::ExactlyOne;
    assert_eq!(who_can_read(&own, Severity::Low), Exit::Clean);

    assert_eq!(reach(&reached(), Severity::High), Exit::Findings);
    assert_eq!(reach(&reached(), Severity::Critical), Exit::Clean);
    let mut control = Reach { full_control: true, ..reached() };
    assert_eq!(reach(&control, Severity::Critical), Exit::Findings);
    control.customer = "platform".to_owned();
    assert_eq!(reach(&control, Severity::Low), Exit::Clean, "the platform may have full control");

    assert_eq!(why(&ways()), Exit::Findings);
    assert_eq!(why(&Why { reached: false, paths: Vec::new(), ..ways() }), Exit::Clean);
    assert_eq!(why(&Why { reached: false, complete: false, ..ways() }), Exit::Incomplete);
}

#[test]
fn a_change_ends_as_its_new_findings_count() {
    assert_eq!(what_if(&changed(), Severity::High), Exit::Findings);
    assert_eq!(what_if(&changed(), Severity::Critical), Exit::Clean);
    let untold = WhatIf { findings: Vec::new(), ..changed() };
    assert_eq!(what_if(&untold, Severity::High), Exit::Findings, "a verdict got worse");
    let harmless = WhatIf { verdicts: Vec::new(), ..untold };
    assert_eq!(what_if(&harmless, Severity::Low), Exit::Clean);
}
