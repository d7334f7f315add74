//! What `--json` writes: outcomes of attacks, what became of the apps, and how long each phase took.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use bailey_attacks::Outcome;
use serde::Serialize;
use serde_json::{Map, Value};

/// The whole document.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub attacks: Vec<AttackReport>,
    pub apps: Vec<AppReport>,
    /// By phase, in the order of the story.
    pub seconds: Map<String, Value>,
}

/// One attack, without Bailey and with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttackReport {
    pub id: String,
    /// Without Bailey.
    pub stock: &'static str,
    /// With Bailey.
    pub bailey: &'static str,
}

/// One app, with rules counted over its AccessRequests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppReport {
    pub name: String,
    pub version: String,
    pub installed: bool,
    pub requested: i64,
    pub granted: i64,
    pub refused: i64,
}

impl Report {
    /// Notes how long a phase took, to the millisecond.
    pub fn took(&mut self, phase: &str, seconds: f64) {
        self.seconds.insert(phase.to_owned(), ((seconds * 1000.0).round() / 1000.0).into());
    }

    /// Writes the document.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("write `{}`", path.display()))
    }
}

/// Returns an outcome as the document has it; one that decides nothing has no word in it.
pub fn word(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Succeeded => Some("succeeded"),
        Outcome::Blocked => Some("blocked"),
        Outcome::NotApplicable => Some("not-applicable"),
        Outcome::Inconclusive => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_exactly_the_promised_shape() {
        let mut report = Report {
            attacks: vec![AttackReport {
                id: "secret-read-get".to_owned(),
                stock: "succeeded",
                bailey: "blocked",
            }],
            apps: vec![AppReport {
                name: "argo-cd".to_owned(),
                version: "v3".to_owned(),
                installed: true,
                requested: 3,
                granted: 2,
                refused: 1,
            }],
            ..Report::default()
        };
        report.took("start", 4.000_49);
        report.took("attacks", 1.5);
        let wanted = r#"{"attacks":[{"id":"secret-read-get","stock":"succeeded","bailey":"blocked"}],"apps":[{"name":"argo-cd","version":"v3","installed":true,"requested":3,"granted":2,"refused":1}],"seconds":{"start":4.0,"attacks":1.5}}"#;
        assert_eq!(serde_json::to_string(&report).unwrap(), wanted);
    }

    #[test]
    fn an_outcome_that_decides_nothing_is_never_written() {
        assert_eq!(word(Outcome::Inconclusive), None);
        assert_eq!(word(Outcome::NotApplicable), Some("not-applicable"));
    }
}
