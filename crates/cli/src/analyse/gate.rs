//! What the exit code follows from.
//!
//! A finding counts at or above the threshold, unless the baseline knows it. Where an answer has no findings, a way to
//! what is somebody else's counts as `high`, or as `medium` if it is only assumed. [`Exit::of`] says what an incomplete
//! answer means.

use std::collections::HashSet;

use bailey_access::answer::{Audit, Finding, PLATFORM, Reach, Severity, Verdict, WhatIf, WhoCanRead, Why};

use super::cover::within;
use super::document::{Comparison, Gate};
use super::words::{is_bad, weight};
use crate::Exit;

/// What of an audit counts.
pub fn gate(audit: &Audit, baseline: Option<&Comparison>, fail_on: Severity) -> Gate {
    let known: HashSet<&str> =
        baseline.into_iter().flat_map(|baseline| &baseline.known).map(String::as_str).collect();
    let counts = |finding: &&Finding| finding.severity >= fail_on && !known.contains(finding.id.as_str());
    Gate { fail_on, findings: audit.findings.iter().filter(counts).map(|f| f.id.clone()).collect() }
}

impl Gate {
    /// How an audit ends.
    pub fn exit(&self, complete: bool) -> Exit {
        Exit::of(!self.findings.is_empty(), complete)
    }
}

/// How `who-can-read` ends: as its Secret's verdict counts.
pub fn who_can_read(answer: &WhoCanRead, fail_on: Severity) -> Exit {
    let counts = is_bad(answer.secret.verdict) && weight(answer.secret.certainty) >= fail_on;
    Exit::of(counts, answer.complete)
}

/// How `reach` ends: full control of a cluster counts as `critical`, a foreign Secret as any way to one. The platform
/// may reach everything.
pub fn reach(answer: &Reach, fail_on: Severity) -> Exit {
    let control = answer.full_control && answer.customer != PLATFORM;
    let mut foreign = answer.secrets.iter().filter(|secret| secret.foreign);
    let foreign = answer.customer != PLATFORM && foreign.any(|s| weight(s.certainty) >= fail_on);
    Exit::of(control || foreign, answer.complete)
}

/// How `why` ends: whether there is a way.
pub fn why(answer: &Why) -> Exit {
    Exit::of(answer.reached, answer.complete)
}

/// How `what-if` ends: as its new findings count, and verdicts that no finding explains.
pub fn what_if(answer: &WhatIf, fail_on: Severity) -> Exit {
    let found = answer.findings.iter().any(|finding| finding.severity >= fail_on);
    let told = |secret: &str| {
        let patterns = answer.findings.iter().flat_map(|finding| &finding.secrets);
        patterns.into_iter().any(|pattern| within(secret, pattern))
    };
    let untold =
        answer.verdicts.iter().any(|change| is_worse(change.before, change.after) && !told(&change.secret));
    Exit::of(found || (untold && Severity::High >= fail_on), answer.complete)
}

/// Whether a verdict got worse: from anything else to shared or exposed.
fn is_worse(before: Option<Verdict>, after: Option<Verdict>) -> bool {
    after.is_some_and(is_bad) && before != after
}

#[cfg(test)]
mod tests;
