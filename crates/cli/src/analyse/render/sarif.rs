//! SARIF 2.1.0 (OASIS, errata 01), for code scanning.
//!
//! A result has the place of each step that has one: files of a dump or a manifest. What was read from an API server has
//! a logical location only. Ids of findings are the fingerprints, so that a service tells new from known by itself.

use bailey_access::answer::{Finding, Severity, Step};
use serde_json::{Map, Value, json};

use super::text::evidence;
use super::told::{Told, told};
use crate::analyse::document::Document;
use crate::analyse::explain;
use crate::analyse::words::{certainty, severity};

/// Under which name the ids of findings are fingerprints.
const FINGERPRINT: &str = "baileyFinding/v1";

/// The log of an answer: one run.
pub fn sarif(document: &Document, fail_on: Severity) -> Value {
    let told = told(document, fail_on);
    let mut ids: Vec<&str> = told.iter().map(|told| told.finding.rule.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let rules: Vec<_> = ids.iter().map(|id| rule(id)).collect();
    let results: Vec<_> = told.iter().map(|told| result(told, &ids)).collect();
    let notifications: Vec<_> = document
        .gaps()
        .iter()
        .map(|gap| {
            let cluster = gap.cluster.as_ref().map(|cluster| format!("{cluster}: ")).unwrap_or_default();
            let text = format!("{cluster}{} could not be read: {}", gap.what, gap.why);
            json!({"level": "error", "message": {"text": text}})
        })
        .collect();
    let complete = document.complete();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "bailey",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "automationDetails": {"id": format!("bailey/{}/", verb(document))},
            "invocations": [{
                "executionSuccessful": complete,
                "toolExecutionNotifications": notifications,
            }],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn verb(document: &Document) -> &'static str {
    match document {
        Document::Audit(_) => "audit",
        Document::WhoCanRead(_) => "who-can-read",
        Document::Reach(_) => "reach",
        Document::Why(_) => "why",
        Document::WhatIf(_) => "what-if",
        Document::Diff(_) => "diff",
        Document::Explanation(_) => "explain",
    }
}

fn rule(id: &str) -> Value {
    let Some(rule) = explain::rule(id) else {
        return json!({"id": id, "shortDescription": {"text": id}});
    };
    let sources: String = rule.references.iter().map(|reference| format!("\n{reference}")).collect();
    let mut entry = json!({
        "id": id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": if rule.explanation.is_empty() { &rule.title } else { &rule.explanation }},
        "help": {"text": format!("{}\n{sources}", rule.remedy).trim().to_owned()},
        "defaultConfiguration": {"level": level(rule.severity)},
        // What code scanning sorts by: the bounds are those of CVSS.
        "properties": {"security-severity": score(rule.severity), "tags": ["security", "kubernetes"]},
    });
    if let Some(address) = rule.references.iter().find(|reference| reference.starts_with("https://"))
        && let Some(entry) = entry.as_object_mut()
    {
        entry.insert("helpUri".to_owned(), json!(address));
    }
    entry
}

fn result(told: &Told<'_>, rules: &[&str]) -> Value {
    let finding = told.finding.as_ref();
    let mut result = json!({
        "ruleId": finding.rule,
        "ruleIndex": rules.iter().position(|id| *id == finding.rule),
        "level": level(finding.severity),
        "message": {"text": message(finding)},
        "locations": [location(finding)],
        "fingerprints": {FINGERPRINT: finding.id},
        "partialFingerprints": {FINGERPRINT: finding.id},
        "properties": {
            "severity": severity(finding.severity),
            "certainty": certainty(finding.certainty),
            "subject": finding.subject,
            "customer": finding.customer,
            "reaches": finding.reaches,
            "secrets": finding.secrets,
            "secretCount": finding.secret_count,
        },
    });
    let Some(fields) = result.as_object_mut() else { return result };
    if finding.path.iter().any(|step| !step.from.is_empty()) {
        let steps: Vec<_> = finding.path.iter().map(|step| json!({"location": of_step(step)})).collect();
        fields.insert("codeFlows".to_owned(), json!([{"threadFlows": [{"locations": steps}]}]));
    }
    if let Some(state) = told.state {
        fields.insert("baselineState".to_owned(), json!(state));
    }
    if let Some(waived) = told.waived {
        let why = format!("{} until {}: {}", waived.owner, waived.expires, waived.reason);
        let suppression = json!({"kind": "external", "status": "accepted", "justification": why});
        fields.insert("suppressions".to_owned(), json!([suppression]));
    }
    result
}

fn message(finding: &Finding) -> String {
    let remedy = if finding.remedy.is_empty() { String::new() } else { format!(" {}", finding.remedy) };
    format!("{}.{remedy}", finding.message.trim_end_matches('.'))
}

/// Where a finding is shown: at the first object of its way that has a place.
fn location(finding: &Finding) -> Value {
    let mut location = Map::new();
    if let Some(place) = finding.path.iter().find_map(|step| physical(step.at.as_deref()?)) {
        location.insert("physicalLocation".to_owned(), place);
    }
    let logical = json!([{"fullyQualifiedName": finding.subject, "kind": "resource"}]);
    location.insert("logicalLocations".to_owned(), logical);
    Value::Object(location)
}

fn of_step(step: &Step) -> Value {
    let mut location = Map::new();
    if let Some(place) = step.at.as_deref().and_then(physical) {
        location.insert("physicalLocation".to_owned(), place);
    }
    let logical = json!([{"fullyQualifiedName": step.object, "kind": "resource"}]);
    location.insert("logicalLocations".to_owned(), logical);
    let guard = step.guard.as_ref().map(|guard| format!("; guard: {guard}")).unwrap_or_default();
    let text = format!("{}: {} by {}{guard}", step.edge, step.to, evidence(step));
    location.insert("message".to_owned(), json!({"text": text}));
    Value::Object(location)
}

/// A place `FILE:LINE`.
fn physical(at: &str) -> Option<Value> {
    let (file, line) = at.rsplit_once(':')?;
    let line: u32 = line.parse().ok().filter(|line| *line > 0)?;
    Some(json!({
        "artifactLocation": {"uri": uri(file)},
        "region": {"startLine": line},
    }))
}

/// A path as a URI reference: relative ones stay so.
fn uri(path: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(byte);
    let trimmed = path.trim_start_matches("./");
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let bytes = trimmed.bytes();
    let escaped: String = bytes
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    format!("{scheme}{escaped}")
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    }
}

fn score(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "9.5",
        Severity::High => "8.0",
        Severity::Medium => "5.5",
        Severity::Low => "2.5",
    }
}

#[cfg(test)]
mod tests;
