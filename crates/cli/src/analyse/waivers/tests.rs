use super::*;
use crate::analyse::samples::{BACKUP, IDS, audit, incomplete};

fn today() -> Date {
    jiff::civil::date(2026, 12, 1)
}

fn waivers(text: &str) -> Waivers {
    parse("waivers.yaml", text).unwrap()
}

fn wrong(text: &str) -> String {
    let (object, message) = parse("waivers.yaml", text).unwrap_err();
    format!("{object}: {message}")
}

fn one(what: &str, expires: &str) -> Waivers {
    waivers(&format!(
        "waivers:\n- {{{what}, owner: team-harbour, reason: moving to another cluster, expires: {expires}}}\n"
    ))
}

fn ids(audit: &Audit) -> Vec<&str> {
    audit.findings.iter().map(|finding| finding.id.as_str()).collect()
}

#[test]
fn a_finding_is_waived_by_its_id_until_the_end_of_the_last_day() {
    let mut found = audit();
    let waived = one(&format!("id: {}", IDS[0]), "2026-12-01").apply(&mut found, today());
    assert_eq!(ids(&found), IDS[1..]);
    assert_eq!(waived[0].finding.id, IDS[0]);
    assert_eq!((waived[0].owner.as_str(), waived[0].expires.as_str()), ("team-harbour", "2026-12-01"));
}

#[test]
fn a_waiver_that_is_over_waives_nothing_and_is_a_finding() {
    let mut found = audit();
    let waived = one(&format!("id: {}", IDS[0]), "2026-11-30").apply(&mut found, today());
    assert_eq!(waived, []);
    assert_eq!(ids(&found), [&IDS[..], &["expired-waiver:read-secret-7c1f09ab"]].concat());
    let finding = found.findings.last().unwrap();
    assert_eq!((finding.severity, finding.path[0].at.as_deref()), (Severity::Low, Some("waivers.yaml:2")));
    assert!(finding.message.contains("ended on 2026-11-30, so what it waived counts again"), "{finding:?}");
}

#[test]
fn a_waiver_for_nothing_is_a_finding_and_only_assumed_where_something_was_not_read() {
    let unused = one("id: gone-1", "2027-12-31");
    let mut found = audit();
    assert_eq!(unused.apply(&mut found, today()), []);
    let finding = found.findings.last().unwrap();
    assert_eq!((finding.id.as_str(), finding.certainty), ("unused-waiver:gone-1", Certainty::Proven));
    let mut found = incomplete();
    unused.apply(&mut found, today());
    assert_eq!(found.findings.last().unwrap().certainty, Certainty::Assumed);
}

#[test]
fn rule_and_subject_waive_together_and_a_secret_bounds_them() {
    let rule = format!("rule: read-secret, subject: \"{BACKUP}\"");
    let waives = |what: &str| one(what, "2027-12-31").apply(&mut audit(), today()).len();
    assert_eq!(waives(&rule), 1);
    assert_eq!(waives("rule: exec, subject: \"sa:org-acme/backup\""), 0);
    assert_eq!(waives(&format!("{rule}, secret: org-beta/db")), 1);
    assert_eq!(waives(&format!("{rule}, secret: org-beta/*")), 1);
    assert_eq!(waives(&format!("{rule}, secret: org-acme/*")), 0);

    let mut wider = audit();
    wider.findings[0].secrets.push("org-gamma/db".to_owned());
    wider.findings[0].secret_count = 2;
    let bounded = one(&format!("{rule}, secret: org-beta/*"), "2027-12-31");
    assert_eq!(bounded.apply(&mut wider, today()), [], "it reaches more than what is waived");
    let mut shortened = audit();
    shortened.findings[0].secret_count = 900;
    assert_eq!(bounded.apply(&mut shortened, today()), [], "who knows what it reaches");
}

#[test]
fn a_waiver_says_what_who_why_and_until_when() {
    let rest = "owner: a, reason: b, expires: 2027-01-31";
    for (waiver, expected) in [
        (format!("{{{rest}}}"), "waiver 1: says not what it waives; give `id`, or `rule` and `subject`"),
        (format!("{{id: x, rule: y, {rest}}}"), "waiver 1: says not what it waives"),
        (format!("{{rule: y, {rest}}}"), "waiver 1: says not what it waives"),
        (format!("{{rule: y, subject: z, secret: db, {rest}}}"), "waiver 1: `secret: db` is no Secret"),
        ("{id: x, owner: ' ', reason: b, expires: 2027-01-31}".to_owned(), "waiver 1: `owner` is empty"),
        ("{id: x, owner: a, reason: b, expires: soon}".to_owned(), "waiver 1: `expires: soon` is no day"),
        ("{id: x, owner: a, reason: b}".to_owned(), "the list of waivers: cannot be read: "),
        (format!("{{id: x, until: y, {rest}}}"), "the list of waivers: cannot be read: "),
        (format!("{{id: x, {rest}}}\n- {{id: x, {rest}}}"), "waiver 2: waives the same as waiver 1"),
    ] {
        let error = wrong(&format!("waivers:\n- {waiver}\n"));
        assert!(error.starts_with(expected), "{waiver}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn with_two_waivers_for_one_finding_the_one_that_holds_is_told() {
    let text = format!(
        "waivers:\n- {{id: {0}, owner: a, reason: r, expires: 2026-01-01}}\n- {{rule: read-secret, subject: \"{BACKUP}\", owner: b, reason: r, expires: 2027-01-01}}\n",
        IDS[0]
    );
    let mut found = audit();
    let waived = waivers(&text).apply(&mut found, today());
    assert_eq!(waived[0].owner, "b");
    assert_eq!(ids(&found).last(), Some(&"expired-waiver:read-secret-7c1f09ab"));
}
