use super::*;
use crate::analyse::document::Report;
use crate::analyse::report::{Wishes, report};
use crate::analyse::select::{Filter, Names};
use crate::analyse::{diff, explain, samples, waivers};

const SMALL: Screen = Screen { color: false, width: Some(80) };
const PIPE: Screen = Screen { color: false, width: None };

fn wishes() -> Wishes {
    Wishes { waivers: None, baseline: None, filter: Filter::default(), fail_on: Severity::High }
}

fn plain() -> Report {
    report(samples::audit(), &wishes(), &Names::default()).unwrap()
}

/// With everything that files and flags add.
fn full() -> Report {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("waivers.yaml");
    let text = format!(
        "waivers:\n- {{id: {}, owner: team-harbour, reason: on call needs it until the new console, expires: 2027-01-31}}\n",
        samples::IDS[1]
    );
    std::fs::write(&file, text).unwrap();
    let waivers = Some((waivers::read(&file).unwrap(), jiff::civil::date(2026, 12, 1)));
    let filter = Filter { severity: Some(Severity::Medium), ..Filter::default() };
    let wishes = Wishes { waivers, baseline: Some(samples::before()), filter, ..wishes() };
    report(samples::incomplete(), &wishes, &Names::default()).unwrap()
}

fn documents() -> Vec<(&'static str, Document)> {
    let difference = diff::diff(samples::before(), samples::audit());
    vec![
        ("audit", Document::Audit(Box::new(plain()))),
        ("audit_with_files", Document::Audit(Box::new(full()))),
        ("who_can_read", Document::WhoCanRead(Box::new(samples::who_can_read()))),
        ("reach", Document::Reach(Box::new(samples::reach()))),
        ("why", Document::Why(Box::new(samples::why()))),
        ("what_if", Document::WhatIf(Box::new(samples::what_if()))),
        ("diff", Document::Diff(Box::new(difference))),
        ("explain_finding", explained(samples::exposed())),
        ("explain_rule", Document::Explanation(Box::new(explain::of_rules(vec![rule()])))),
    ]
}

fn rule() -> crate::analyse::document::RuleEntry {
    crate::analyse::document::RuleEntry {
        id: "exec".to_owned(),
        title: "Runs commands in pods".to_owned(),
        severity: Severity::High,
        soft: true,
        explanation: "create on pods/exec opens a session through the kubelet.\n\nWhoever is inside reads what is mounted.".to_owned(),
        remedy: "Take create on pods/exec away.".to_owned(),
        references: vec!["https://kubernetes.io/docs/concepts/security/rbac-good-practices/".to_owned()],
    }
}

/// The catalogue may change its words without this.
fn explained(finding: bailey_access::answer::Finding) -> Document {
    let explanation =
        Explanation { rules: vec![rule()], ..explain::of_finding(finding, samples::why().paths) };
    Document::Explanation(Box::new(explanation))
}

fn shown(document: &Document, format: Format, screen: &Screen) -> String {
    render(document, format, Severity::High, screen).unwrap()
}

#[test]
fn every_answer_in_every_form_for_people() {
    for (name, document) in documents() {
        insta::assert_snapshot!(format!("{name}_table"), shown(&document, Format::Table, &SMALL));
        insta::assert_snapshot!(format!("{name}_wide"), shown(&document, Format::Wide, &PIPE));
        insta::assert_snapshot!(format!("{name}_markdown"), shown(&document, Format::Markdown, &PIPE));
    }
}

#[test]
fn every_answer_in_every_form_for_programs() {
    for (name, document) in documents() {
        insta::assert_snapshot!(format!("{name}_json"), shown(&document, Format::Json, &PIPE));
        insta::assert_snapshot!(format!("{name}_yaml"), shown(&document, Format::Yaml, &PIPE));
        insta::assert_snapshot!(format!("{name}_name"), shown(&document, Format::Name, &PIPE));
        insta::assert_snapshot!(format!("{name}_junit"), shown(&document, Format::Junit, &PIPE));
        insta::assert_snapshot!(format!("{name}_sarif"), sarif_without_the_catalogue(&document));
    }
}

/// SARIF quotes the catalogue, whose words may change without this; its ids and places stay.
fn sarif_without_the_catalogue(document: &Document) -> String {
    let mut log: Value = serde_json::from_str(&shown(document, Format::Sarif, &PIPE)).unwrap();
    for rule in log["runs"][0]["tool"]["driver"]["rules"].as_array_mut().unwrap() {
        *rule = rule["id"].take();
    }
    log["runs"][0]["tool"]["driver"]["version"] = "0".into();
    // Ways are findings of the edge that they end with, and have its remedy.
    for result in log["runs"][0]["results"].as_array_mut().unwrap() {
        if result["ruleId"]
            .as_str()
            .is_some_and(|rule| result["fingerprints"].to_string().contains(&format!("{rule}:")))
        {
            result["message"]["text"] = "…".into();
        }
    }
    serde_json::to_string_pretty(&log).unwrap()
}

#[test]
fn nothing_is_longer_than_the_terminal_but_names() {
    let names = ["https://", "sa:", "dump/", "group:", "bailey explain", "arn:", "monitoring/", "org-beta/"];
    for width in [80, 120] {
        let screen = Screen { color: false, width: Some(width) };
        for (name, document) in documents() {
            for line in shown(&document, Format::Table, &screen).lines() {
                let long = line.chars().count() > width && !names.iter().any(|name| line.contains(name));
                assert!(!long, "{name} at {width}: {line}");
            }
        }
    }
}

#[test]
fn a_long_list_is_cut_and_says_so_unless_all_is_asked_for() {
    let mut audit = samples::audit();
    let template = audit.findings[1].clone();
    for number in 0..330 {
        audit
            .findings
            .push(bailey_access::answer::Finding { id: format!("exec-{number}"), ..template.clone() });
    }
    let document = Document::Audit(Box::new(report(audit, &wishes(), &Names::default()).unwrap()));
    let text = shown(&document, Format::Table, &SMALL);
    assert!(text.contains("… and 314 more, -o wide shows all"), "{text}");
    assert!(!text.contains("exec-300"), "{text}");
    assert!(shown(&document, Format::Wide, &SMALL).contains("exec-300"));

    let comment = shown(&document, Format::Markdown, &PIPE);
    assert!(comment.chars().count() < 65_536, "{}", comment.chars().count());
    let last = comment.trim_end().lines().last().unwrap();
    assert!(last.contains("entries are left out, so that this fits a comment"), "{last}");
}

#[test]
fn names_neither_move_the_cursor_nor_make_markup() {
    let mut audit = samples::audit();
    audit.findings.truncate(1);
    let evil = "user:\u{1b}[2J\nFindings: none \u{202e}</details>`|@acme/admins";
    audit.findings[0].subject = evil.to_owned();
    audit.findings[0].message = evil.to_owned();
    audit.findings[0].path[0].from = evil.to_owned();
    audit.findings[0].path[0].to = format!("```\n{evil}");
    let document = Document::Audit(Box::new(report(audit, &wishes(), &Names::default()).unwrap()));
    for format in [
        Format::Table,
        Format::Wide,
        Format::Name,
        Format::Junit,
        Format::Markdown,
        Format::Yaml,
        Format::Json,
        Format::Sarif,
    ] {
        let text = shown(&document, format, &PIPE);
        assert!(!text.contains('\u{1b}'), "{format:?}: {text}");
        assert!(!text.contains("\nFindings: none"), "{format:?}: {text}");
    }
    let comment = shown(&document, Format::Markdown, &PIPE);
    let block = comment.split("### Findings").nth(1).unwrap();
    let outside: String = block.split("````").step_by(2).collect();
    let outside: String = outside.split('`').step_by(2).collect();
    assert_eq!(outside.matches("</details>").count(), 1, "{block}");
    assert!(!outside.contains('@'), "{block}");
}

#[test]
fn no_colour_leaks_into_what_is_no_terminal() {
    let colours = Screen { color: true, width: Some(80) };
    for (name, document) in documents() {
        for format in [Format::Markdown, Format::Junit, Format::Json, Format::Sarif, Format::Name] {
            assert!(!shown(&document, format, &colours).contains('\u{1b}'), "{name} {format:?}");
        }
        assert!(shown(&document, Format::Table, &colours).contains('\u{1b}'), "{name}");
    }
}
