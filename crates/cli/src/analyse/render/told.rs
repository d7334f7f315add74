//! Every answer as findings: what code scanning and test dashboards are told.
//!
//! An answer that is no list of findings becomes one: each foreign way is a finding of the edge that it ends with.

use std::borrow::Cow;
use std::collections::HashSet;

use bailey_access::Certainty;
use bailey_access::answer::{Finding, Severity, Step};

use crate::analyse::document::{Document, Report, Waived};
use crate::analyse::words::{is_foreign, reached_names, weight};

/// A finding, and what is made of it.
pub struct Told<'a> {
    /// The finding.
    pub finding: Cow<'a, Finding>,
    /// Against a baseline: `new`, `updated` (worse), `unchanged`, `absent` (gone).
    pub state: Option<&'static str>,
    /// Who answers for it.
    pub waived: Option<&'a Waived>,
    /// Whether the exit code follows from it.
    pub counts: bool,
}

impl<'a> Told<'a> {
    fn new(finding: Cow<'a, Finding>, state: Option<&'static str>, counts: bool) -> Self {
        Self { finding, state, waived: None, counts }
    }
}

/// The findings of an answer, of which those of at least a severity count. An audit says itself which do.
pub fn told(document: &Document, fail_on: Severity) -> Vec<Told<'_>> {
    let told = |finding: Cow<'static, Finding>| {
        let counts = finding.severity >= fail_on;
        Told::new(finding, None, counts)
    };
    match document {
        Document::Audit(report) => of_report(report),
        Document::WhoCanRead(answer) => {
            let secret = format!("{}/{}", answer.secret.namespace, answer.secret.name);
            let foreign = answer.subjects.iter().filter(|r| is_foreign(&r.customer, &answer.secret.customer));
            foreign
                .map(|reader| {
                    let from = (reader.subject.as_str(), reader.customer.as_str());
                    let to = (secret.as_str(), answer.secret.customer.as_str());
                    told(way(from, to, reader.certainty, &reader.path))
                })
                .collect()
        }
        Document::Reach(answer) => {
            let named = answer.secrets.iter().zip(reached_names(answer)).filter(|(secret, _)| secret.foreign);
            named
                .map(|(secret, name)| {
                    let from = (answer.subject.as_str(), answer.customer.as_str());
                    let to = (name.as_str(), secret.customer.as_str());
                    told(way(from, to, secret.certainty, &secret.path))
                })
                .collect()
        }
        Document::Why(answer) => {
            let from = (answer.subject.as_str(), answer.customer.as_str());
            let to = (answer.secret.as_str(), "");
            let ways = answer.paths.iter().map(|path| way(from, to, path.certainty, &path.steps));
            ways.map(told).collect()
        }
        Document::WhatIf(answer) => listed(&answer.findings, Some("new"), fail_on),
        Document::Diff(diff) => {
            let mut all = listed(&diff.findings, Some("new"), fail_on);
            all.extend(listed(&diff.worse, Some("updated"), fail_on));
            let gone = diff.gone.iter().map(|f| Told::new(Cow::Borrowed(f), Some("absent"), false));
            all.extend(gone);
            all
        }
        Document::Explanation(explanation) => listed(explanation.finding.as_slice(), None, fail_on),
    }
}

fn listed<'a>(findings: &'a [Finding], state: Option<&'static str>, fail_on: Severity) -> Vec<Told<'a>> {
    let told = |f: &'a Finding| Told::new(Cow::Borrowed(f), state, f.severity >= fail_on);
    findings.iter().map(told).collect()
}

fn of_report(report: &Report) -> Vec<Told<'_>> {
    let counted: HashSet<&str> = report.gate.findings.iter().map(String::as_str).collect();
    let baseline = report.baseline.as_ref();
    let ids = |list: &'_ [String]| list.iter().cloned().collect::<HashSet<String>>();
    let (new, worse) = baseline.map(|b| (ids(&b.new), ids(&b.worse))).unwrap_or_default();
    let state = |finding: &Finding| match baseline {
        None => None,
        Some(_) if new.contains(&finding.id) => Some("new"),
        Some(_) if worse.contains(&finding.id) => Some("updated"),
        Some(_) => Some("unchanged"),
    };
    let mut all: Vec<_> = report
        .audit
        .findings
        .iter()
        .map(|f| Told::new(Cow::Borrowed(f), state(f), counted.contains(f.id.as_str())))
        .collect();
    all.extend(report.waived.iter().map(|waived| Told {
        waived: Some(waived),
        ..Told::new(Cow::Borrowed(&waived.finding), baseline.map(|_| "unchanged"), false)
    }));
    let gone = baseline.into_iter().flat_map(|b| &b.gone);
    all.extend(gone.map(|finding| Told::new(Cow::Borrowed(finding), Some("absent"), false)));
    all
}

/// A way as a finding: from somebody, to a Secret, each with whose it is.
fn way(from: (&str, &str), to: (&str, &str), certainty: Certainty, path: &[Step]) -> Cow<'static, Finding> {
    let rule = path.last().map_or("way", |step| step.edge.as_str());
    let first = path.first().map(|step| step.object.as_str()).unwrap_or_default();
    let of = if to.1.is_empty() { String::new() } else { format!(" of {}", to.1) };
    Cow::Owned(Finding {
        id: format!("{rule}:{}:{first}:{}", from.0, to.0),
        rule: rule.to_owned(),
        severity: weight(certainty),
        message: format!("{} ({}) reads the Secret {}{of}", from.0, from.1, to.0),
        subject: from.0.to_owned(),
        customer: from.1.to_owned(),
        also: Vec::new(),
        reaches: Some(to.1.to_owned()).filter(|name| !name.is_empty()).into_iter().collect(),
        secrets: vec![to.0.to_owned()],
        secret_count: 1,
        certainty,
        path: path.to_vec(),
        remedy: bailey_access::catalogue::edge(rule).map(|edge| edge.remedy.clone()).unwrap_or_default(),
    })
}
