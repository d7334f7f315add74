//! Findings that somebody answers for, until a day.
//!
//! A waiver names a finding by its id, or by rule and subject and perhaps Secret. With a Secret, it is for findings
//! that reach nothing besides: one waiver must not hide more than it says. INVARIANT: a waiver that is over waives
//! nothing, and one that is over or for nothing is a finding itself, so that the file never rots unseen.

use std::path::Path;

use bailey_access::Certainty;
use bailey_access::answer::{Audit, Finding, PLATFORM, Severity, Step};
use jiff::civil::Date;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::cover::{is_shortened, within};
use super::document::Waived;
use crate::CliError;

/// Rule of a finding about a waiver that is over.
pub const EXPIRED: &str = "expired-waiver";
/// Rule of a finding about a waiver for nothing.
pub const UNUSED: &str = "unused-waiver";

/// A file of waivers.
#[derive(Debug, Clone)]
pub struct Waivers {
    /// Its name, as it was given.
    file: String,
    waivers: Vec<Spanned<Waiver>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    waivers: Vec<Spanned<Waiver>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waiver {
    id: Option<String>,
    rule: Option<String>,
    subject: Option<String>,
    secret: Option<String>,
    owner: String,
    reason: String,
    expires: String,
}

/// Reads a file of waivers.
pub fn read(path: &Path) -> Result<Waivers, CliError> {
    let text = std::fs::read_to_string(path).map_err(|source| CliError::File {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    parse(&path.display().to_string(), &text).map_err(|(object, message)| CliError::Manifest {
        path: path.to_owned(),
        object,
        message,
    })
}

/// The waivers of a text, or which one is wrong and why.
fn parse(file: &str, text: &str) -> Result<Waivers, (String, String)> {
    let File { waivers } = serde_saphyr::from_str(text).map_err(|error| {
        // Only the first line: the others quote the file.
        let error = error.to_string();
        let error = error.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        ("the list of waivers".to_owned(), format!("cannot be read: {error}"))
    })?;
    for (number, waiver) in waivers.iter().enumerate() {
        let wrong = |message| (format!("waiver {}", number + 1), message);
        waiver.value.check().map_err(wrong)?;
        let before =
            waivers.iter().take(number).position(|other| other.value.parts() == waiver.value.parts());
        if let Some(other) = before {
            return Err(wrong(format!("waives the same as waiver {}; keep one of them", other + 1)));
        }
    }
    Ok(Waivers { file: file.to_owned(), waivers })
}

impl Waivers {
    /// Takes waived findings out of an audit, and adds findings about waivers that are over or for nothing.
    pub fn apply(&self, audit: &mut Audit, today: Date) -> Vec<Waived> {
        let mut used = vec![false; self.waivers.len()];
        let mut waived = Vec::new();
        audit.findings.retain(|finding| {
            let mut by = None;
            for (waiver, used) in self.waivers.iter().zip(&mut used) {
                if waiver.value.is_for(finding) {
                    *used = true;
                    by = by.or((!waiver.value.is_over(today)).then_some(&waiver.value));
                }
            }
            if let Some(waiver) = by {
                waived.push(waiver.waive(finding.clone()));
            }
            by.is_none()
        });
        for (number, (waiver, used)) in self.waivers.iter().zip(used).enumerate() {
            let over = waiver.value.is_over(today);
            if over || !used {
                audit.findings.push(self.finding(number, waiver, over, used, audit.complete));
            }
        }
        audit.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        waived
    }

    fn finding(
        &self,
        number: usize,
        waiver: &Spanned<Waiver>,
        over: bool,
        used: bool,
        complete: bool,
    ) -> Finding {
        let Waiver { owner, expires, .. } = &waiver.value;
        let name = waiver.value.parts().join(" ");
        let (rule, message, remedy) = match (over, used) {
            (true, true) => (
                EXPIRED,
                format!(
                    "the waiver of {owner} for {name} ended on {expires}, so what it waived counts again"
                ),
                "Remove what was waived, or have its owner decide anew and set another `expires`.",
            ),
            (true, false) => (
                EXPIRED,
                format!("the waiver of {owner} for {name} ended on {expires}, and there is no such finding"),
                "Remove the waiver.",
            ),
            (false, _) => (
                UNUSED,
                format!("the waiver of {owner} for {name} waives nothing: there is no such finding"),
                "Remove the waiver: it would hide the finding should it come back.",
            ),
        };
        let line = waiver.defined.line();
        let step = Step {
            edge: rule.to_owned(),
            from: String::new(),
            to: "waives".to_owned(),
            object: format!("waiver {}", number + 1),
            rule: String::new(),
            at: Some(format!("{}:{line}", self.file)),
            guard: None,
            certainty: Certainty::Proven,
        };
        Finding {
            id: format!("{rule}:{}", waiver.value.parts().join(":")),
            rule: rule.to_owned(),
            severity: Severity::Low,
            message,
            subject: format!("waiver {}", number + 1),
            customer: PLATFORM.to_owned(),
            also: Vec::new(),
            reaches: Vec::new(),
            secrets: Vec::new(),
            secret_count: 0,
            // What was not read may hold what is waived.
            certainty: if complete || used { Certainty::Proven } else { Certainty::Assumed },
            path: vec![step],
            remedy: remedy.to_owned(),
        }
    }
}

impl Waiver {
    fn check(&self) -> Result<(), String> {
        match (&self.id, &self.rule, &self.subject, &self.secret) {
            (Some(_), None, None, None) | (None, Some(_), Some(_), _) => {}
            _ => {
                return Err(
                    "says not what it waives; give `id`, or `rule` and `subject` and perhaps `secret`"
                        .to_owned(),
                );
            }
        }
        if let Some(secret) = self.secret.as_ref().filter(|secret| !secret.contains('/')) {
            return Err(format!("`secret: {secret}` is no Secret; write NAMESPACE/NAME or NAMESPACE/*"));
        }
        for (field, value) in [("owner", &self.owner), ("reason", &self.reason)] {
            if value.trim().is_empty() {
                return Err(format!(
                    "`{field}` is empty; whoever reads the finding must see who decided and why"
                ));
            }
        }
        match self.expires.parse::<Date>() {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("`expires: {}` is no day; write the last one as 2027-01-31", self.expires)),
        }
    }

    /// Whether its last day has passed.
    fn is_over(&self, today: Date) -> bool {
        // What is no day was refused when the file was read.
        self.expires.parse::<Date>().is_ok_and(|last| last < today)
    }

    fn is_for(&self, finding: &Finding) -> bool {
        if let Some(id) = &self.id {
            return *id == finding.id;
        }
        let same =
            self.rule.as_ref() == Some(&finding.rule) && self.subject.as_ref() == Some(&finding.subject);
        let inside = |secret: &String| {
            // A list that was shortened may hold anything.
            !finding.secrets.is_empty()
                && !is_shortened(finding)
                && finding.secrets.iter().all(|reached| within(reached, secret))
        };
        same && self.secret.as_ref().is_none_or(inside)
    }

    /// What it waives.
    fn parts(&self) -> Vec<&str> {
        let parts = [&self.id, &self.rule, &self.subject, &self.secret];
        parts.into_iter().flatten().map(String::as_str).collect()
    }

    fn waive(&self, finding: Finding) -> Waived {
        let Self { owner, reason, expires, .. } = self.clone();
        Waived { finding, owner, reason, expires }
    }
}

#[cfg(test)]
mod tests;
