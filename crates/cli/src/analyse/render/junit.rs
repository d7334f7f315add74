//! JUnit, for test dashboards: what fails there is what the exit code follows from.
//!
//! An audit has one test case per Secret (its audience is what it should be), which fails if a finding about it counts
//! and names the first of them, and one per finding that counts, with its way. Other answers have one test case per way
//! or finding. What could not be read is an error.

use std::collections::HashSet;

use bailey_access::answer::{Finding, GapEntry, Severity, Verdict};

use super::text::evidence;
use super::told::told;
use crate::analyse::cover::Cover;
use crate::analyse::document::{Document, Report};
use crate::analyse::words::{severity, some, verdict};

/// How many findings the test case of a Secret names.
const FINDINGS: usize = 3;

/// How a test case ended.
enum Outcome {
    Passed,
    Failed { message: String, detail: String },
    Error(String),
    Skipped(&'static str),
}

struct Case {
    class: String,
    name: String,
    outcome: Outcome,
}

/// The one test suite of an answer.
pub fn junit(document: &Document, fail_on: Severity) -> String {
    let of_findings = |clean| of_findings(document, fail_on, clean);
    let (suite, mut cases) = match document {
        Document::Audit(report) => ("audit", of_audit(report)),
        Document::WhoCanRead(_) => ("who-can-read", of_findings("nobody foreign reads it")),
        Document::Reach(_) => ("reach", of_findings("nothing foreign is reached")),
        Document::Why(_) => ("why", of_findings("there is no way")),
        Document::WhatIf(_) => ("what-if", of_findings("no new finding")),
        Document::Diff(_) => ("diff", of_findings("no new finding")),
        Document::Explanation(_) => ("explain", of_findings("no finding")),
    };
    cases.extend(document.gaps().iter().map(of_gap));
    let of = |wanted: fn(&Outcome) -> bool| cases.iter().filter(|case| wanted(&case.outcome)).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"bailey {suite}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
        cases.len(),
        of(|outcome| matches!(outcome, Outcome::Failed { .. })),
        of(|outcome| matches!(outcome, Outcome::Error(_))),
        of(|outcome| matches!(outcome, Outcome::Skipped(_))),
    );
    for case in &cases {
        text.push_str(&written(case));
    }
    text + "</testsuite>\n"
}

fn written(case: &Case) -> String {
    let open = format!("  <testcase classname=\"{}\" name=\"{}\"", xml(&case.class), xml(&case.name));
    match &case.outcome {
        Outcome::Passed => format!("{open}/>\n"),
        Outcome::Failed { message, detail } => format!(
            "{open}>\n    <failure message=\"{}\">{}</failure>\n  </testcase>\n",
            xml(message),
            xml(detail)
        ),
        Outcome::Error(message) => {
            format!("{open}>\n    <error message=\"{}\"/>\n  </testcase>\n", xml(message))
        }
        Outcome::Skipped(message) => {
            format!("{open}>\n    <skipped message=\"{}\"/>\n  </testcase>\n", xml(message))
        }
    }
}

fn of_audit(report: &Report) -> Vec<Case> {
    let counted: HashSet<&str> = report.gate.findings.iter().map(String::as_str).collect();
    let counts = |finding: &&Finding| counted.contains(finding.id.as_str());
    let cover = Cover::new(&report.audit, report.audit.findings.iter().filter(counts));
    let mut cases = Vec::new();
    for secret in &report.audit.secrets {
        let about = cover.of(secret);
        let outcome = match about.as_slice() {
            [] if secret.verdict == Verdict::Unowned => Outcome::Skipped("nobody knows whose it is"),
            [] => Outcome::Passed,
            findings => {
                let message =
                    format!("{}, reached by {}", verdict(secret.verdict), secret.audience.join(", "));
                let ids: Vec<_> = findings.iter().map(|finding| finding.id.clone()).collect();
                Outcome::Failed { message, detail: format!("see {}", some(&ids, FINDINGS)) }
            }
        };
        let class = format!("{}.{}", secret.cluster, secret.namespace);
        cases.push(Case { class, name: secret.name.clone(), outcome });
    }
    cases.extend(report.audit.findings.iter().filter(counts).map(failed));
    cases
}

/// One failed test case per finding, or one that passes.
fn of_findings(document: &Document, fail_on: Severity, clean: &str) -> Vec<Case> {
    let told = told(document, fail_on);
    let failing: Vec<_> = told.iter().filter(|told| told.counts).map(|told| failed(&told.finding)).collect();
    if !failing.is_empty() || !document.complete() {
        return failing;
    }
    vec![Case { class: "bailey".to_owned(), name: clean.to_owned(), outcome: Outcome::Passed }]
}

fn failed(finding: &Finding) -> Case {
    let message = format!("{}: {}", severity(finding.severity), finding.message);
    let outcome = Outcome::Failed { message, detail: detail(finding) };
    Case { class: finding.rule.clone(), name: finding.id.clone(), outcome }
}

fn of_gap(gap: &GapEntry) -> Case {
    let class = gap.cluster.clone().unwrap_or_else(|| "bailey".to_owned());
    let outcome = Outcome::Error(format!("could not be read: {}", gap.why));
    Case { class, name: gap.what.clone(), outcome }
}

/// The way, a step a line, and what to do.
fn detail(finding: &Finding) -> String {
    let mut lines = vec![format!("{} {}", severity(finding.severity), finding.id)];
    lines.extend(finding.path.first().map(|step| step.from.clone()).filter(|from| !from.is_empty()));
    lines.extend(finding.path.iter().map(|step| {
        let guard = step.guard.as_ref().map(|guard| format!("; guard: {guard}")).unwrap_or_default();
        format!("  {}: {}, by {}{guard}", step.edge, step.to, evidence(step))
    }));
    if !finding.remedy.is_empty() {
        lines.push(format!("-> {}", finding.remedy));
    }
    lines.join("\n")
}

/// Text of XML 1.0, which has no way to write most control characters.
fn xml(text: &str) -> String {
    let allowed = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    let text: String = text.chars().map(allowed).filter(|c| !matches!(c, '\u{fffe}' | '\u{ffff}')).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
