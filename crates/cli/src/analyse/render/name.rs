//! One name per line, for scripts: what an answer is a list of.

use crate::analyse::document::Document;
use crate::analyse::words::reached_names;

/// Ids of findings, subjects, Secrets or rules.
pub fn name(document: &Document) -> String {
    let names: Vec<String> = match document {
        Document::Audit(report) => report.audit.findings.iter().map(|f| f.id.clone()).collect(),
        Document::WhoCanRead(answer) => answer.subjects.iter().map(|r| r.subject.clone()).collect(),
        Document::Reach(answer) => reached_names(answer),
        Document::Why(answer) => {
            answer.paths.iter().filter_map(|path| path.steps.first()).map(|s| s.object.clone()).collect()
        }
        Document::WhatIf(answer) => answer.findings.iter().map(|f| f.id.clone()).collect(),
        Document::Diff(diff) => diff.findings.iter().chain(&diff.worse).map(|f| f.id.clone()).collect(),
        Document::Explanation(explanation) => match &explanation.finding {
            Some(finding) => vec![finding.id.clone()],
            None => explanation.rules.iter().map(|rule| rule.id.clone()).collect(),
        },
    };
    names.into_iter().map(|name| name + "\n").collect()
}
