//! What is new since a former audit, and what is gone.
//!
//! Findings are the same if their ids are. One that reaches more customers than before, or that is more severe, is worse
//! and counts as new. Secrets are the same if cluster, namespace and name are; where both audits saw one cluster, its
//! name does not matter, since a file may be called otherwise than a context.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use bailey_access::answer::{AUDIT_SCHEMA, Audit, Finding, Verdict, VerdictChange};

use super::document::{Comparison, Waived};
use super::select::Filter;
use super::words::secret_name;
use crate::CliError;

/// Reads an audit that was written with `-o json`.
pub fn read(path: &Path) -> Result<Audit, CliError> {
    let text = std::fs::read(path).map_err(|source| CliError::File {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|message| CliError::Manifest {
        path: path.to_owned(),
        object: "the audit".to_owned(),
        message,
    })
}

/// What tells an audit from a dump.
#[derive(serde::Deserialize)]
struct Head {
    schema: Option<String>,
}

impl Head {
    fn names_audit(self) -> bool {
        self.schema.is_some_and(|schema| schema.starts_with("bailey.audit/"))
    }
}

/// Whether a text is an audit and not a dump.
fn is_audit(text: &[u8]) -> bool {
    serde_json::from_slice::<Head>(text).is_ok_and(Head::names_audit)
}

/// Whether a file holds an audit. It may be as large as a dump, so it is read once and not kept.
pub fn is_audit_file(path: &Path) -> bool {
    let file = std::fs::File::open(path).map(std::io::BufReader::new);
    file.is_ok_and(|file| serde_json::from_reader::<_, Head>(file).is_ok_and(Head::names_audit))
}

/// An audit of a JSON document.
pub fn parse(text: &[u8]) -> Result<Audit, String> {
    if !is_audit(text) {
        return Err(
            "is no JSON document of an audit; write one with: bailey audit -o json > audit.json".to_owned()
        );
    }
    let audit: Audit = serde_json::from_slice(text)
        .map_err(|error| format!("cannot be read at line {}: {error}", error.line()))?;
    if audit.schema != AUDIT_SCHEMA {
        let schema = &audit.schema;
        return Err(format!("has schema `{schema}`, and this bailey reads `{AUDIT_SCHEMA}`; write it anew"));
    }
    Ok(audit)
}

/// What is new, known, worse and gone. What is waived now is not gone.
pub fn compare(now: &Audit, waived: &[Waived], before: &Audit) -> Comparison {
    let former: HashMap<&str, &Finding> = before.findings.iter().map(|f| (f.id.as_str(), f)).collect();
    let mut comparison = Comparison { complete: before.complete, ..Comparison::default() };
    for finding in &now.findings {
        let list = match former.get(finding.id.as_str()) {
            None => &mut comparison.new,
            Some(before) if is_worse(before, finding) => &mut comparison.worse,
            Some(_) => &mut comparison.known,
        };
        list.push(finding.id.clone());
    }
    let waived = waived.iter().map(|waived| &waived.finding);
    let present: HashSet<&str> = now.findings.iter().chain(waived).map(|f| f.id.as_str()).collect();
    let gone = before.findings.iter().filter(|finding| !present.contains(finding.id.as_str()));
    comparison.gone = gone.cloned().collect();
    comparison.verdicts = verdicts(before, now);
    comparison
}

impl Comparison {
    /// Leaves what is about an audit that was narrowed.
    pub fn narrow(&mut self, audit: &Audit, filter: &Filter) {
        let ids: HashSet<&str> = audit.findings.iter().map(|finding| finding.id.as_str()).collect();
        for list in [&mut self.new, &mut self.worse, &mut self.known] {
            list.retain(|id| ids.contains(id.as_str()));
        }
        self.gone.retain(|finding| filter.keeps(finding));
        let names: HashSet<String> = audit.secrets.iter().map(|s| secret_name(s, audit)).collect();
        self.verdicts.retain(|change| names.contains(&change.secret));
    }
}

/// Whether a finding got worse.
pub fn is_worse(before: &Finding, now: &Finding) -> bool {
    now.severity > before.severity || now.reaches.iter().any(|customer| !before.reaches.contains(customer))
}

/// Secrets whose verdict changed, that came or that went, sorted.
pub fn verdicts(before: &Audit, now: &Audit) -> Vec<VerdictChange> {
    let one_each = before.clusters.len() <= 1 && now.clusters.len() <= 1;
    let first = now.clusters.first().map_or("", |cluster| cluster.name.as_str());
    type Sides = (Option<Verdict>, Option<Verdict>);
    let mut both: BTreeMap<(&str, &str, &str), Sides> = BTreeMap::new();
    for (audit, is_now) in [(before, false), (now, true)] {
        for secret in &audit.secrets {
            let cluster = if one_each { "" } else { secret.cluster.as_str() };
            let sides = both.entry((cluster, &secret.namespace, &secret.name)).or_default();
            if is_now { sides.1 = Some(secret.verdict) } else { sides.0 = Some(secret.verdict) }
        }
    }
    let changed = both.into_iter().filter(|(_, (before, after))| before != after);
    changed
        .map(|((cluster, namespace, name), (before, after))| {
            let is_first = one_each || cluster == first;
            let place = if is_first { String::new() } else { format!("{cluster}:") };
            VerdictChange { secret: format!("{place}{namespace}/{name}"), before, after }
        })
        .collect()
}

#[cfg(test)]
mod tests;
