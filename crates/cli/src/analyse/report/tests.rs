use bailey_access::answer::Verdict;

use super::*;
use crate::analyse::samples::{IDS, audit, before};
use crate::analyse::waivers;

fn wishes() -> Wishes {
    Wishes { waivers: None, baseline: None, filter: Filter::default(), fail_on: Severity::High }
}

fn waive(id: &str) -> Option<(Waivers, Date)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("waivers.yaml");
    let text = format!("waivers:\n- {{id: {id}, owner: a, reason: b, expires: 2027-01-31}}\n");
    std::fs::write(&file, text).unwrap();
    Some((waivers::read(&file).unwrap(), jiff::civil::date(2026, 12, 1)))
}

#[test]
fn a_report_is_the_baseline_of_the_next_one() {
    let first = report(audit(), &wishes(), &Names::default()).unwrap();
    assert_eq!(first.gate.findings, IDS[..2]);
    let text = serde_json::to_vec(&first).unwrap();
    let baseline = Some(crate::analyse::baseline::parse(&text).unwrap());
    let second = report(audit(), &Wishes { baseline, ..wishes() }, &Names::default()).unwrap();
    assert_eq!((second.gate.findings.len(), second.audit), (0, first.audit));
}

#[test]
fn what_was_waived_and_is_so_no_more_is_new() {
    let first = report(audit(), &Wishes { waivers: waive(IDS[0]), ..wishes() }, &Names::default()).unwrap();
    assert_eq!((first.gate.findings.as_slice(), first.waived.len()), (&[IDS[1].to_owned()][..], 1));
    let text = serde_json::to_vec(&first).unwrap();
    let baseline = Some(crate::analyse::baseline::parse(&text).unwrap());
    let second = report(audit(), &Wishes { baseline, ..wishes() }, &Names::default()).unwrap();
    assert_eq!(second.gate.findings, IDS[..1]);
}

#[test]
fn what_was_not_selected_is_neither_gone_nor_counted() {
    let filter = Filter { verdicts: vec![Verdict::Exposed], ..Filter::default() };
    let wishes = Wishes { baseline: Some(before()), filter, ..wishes() };
    let report = report(audit(), &wishes, &Names::default()).unwrap();
    let comparison = report.baseline.unwrap();
    assert_eq!((comparison.known, comparison.new.len()), (vec![IDS[1].to_owned()], 0));
    assert_eq!(comparison.verdicts, [], "the other Secret was not asked for");
    assert_eq!(report.gate.findings.len(), 0);
}

#[test]
fn an_unused_waiver_is_counted_in_the_summary_and_by_the_lowest_threshold() {
    let wishes = Wishes { waivers: waive("gone-1"), fail_on: Severity::Low, ..wishes() };
    let report = report(audit(), &wishes, &Names::default()).unwrap();
    assert_eq!(report.audit.summary.low, 2);
    assert_eq!(report.gate.findings.last().map(String::as_str), Some("unused-waiver:gone-1"));
}
