//! How two states differ: two audits, whatever they were made from.

use std::collections::HashSet;

use bailey_access::answer::{Audit, GapEntry, Severity};

use super::baseline::compare;
use super::document::{DIFF_SCHEMA, Diff, Side};
use super::unexplained;
use crate::Exit;

/// The difference of two audits.
pub fn diff(mut old: Audit, mut new: Audit) -> Diff {
    unexplained::add(&mut old);
    unexplained::add(&mut new);
    let comparison = compare(&new, &[], &old);
    let of = |ids: &[String]| {
        let ids: HashSet<_> = ids.iter().collect();
        new.findings.iter().filter(|finding| ids.contains(&finding.id)).cloned().collect::<Vec<_>>()
    };
    let gaps = |audit: &Audit, side: &str| {
        let gap = |gap: &GapEntry| GapEntry { what: format!("{side}: {}", gap.what), ..gap.clone() };
        audit.gaps.iter().map(gap).collect::<Vec<_>>()
    };
    let side = |audit: &Audit| Side { secrets: audit.secrets.len(), findings: audit.findings.len() };
    Diff {
        schema: DIFF_SCHEMA.to_owned(),
        complete: old.complete && new.complete,
        gaps: [gaps(&old, "old"), gaps(&new, "new")].concat(),
        old: side(&old),
        new: side(&new),
        findings: of(&comparison.new),
        worse: of(&comparison.worse),
        gone: comparison.gone,
        unchanged: comparison.known.len(),
        verdicts: comparison.verdicts,
    }
}

/// How `diff` ends: as what is new or worse counts. What is gone is a difference that nobody must look at.
pub fn exit(diff: &Diff, fail_on: Severity) -> Exit {
    let found = diff.findings.iter().chain(&diff.worse).any(|finding| finding.severity >= fail_on);
    Exit::of(found, diff.complete)
}

#[cfg(test)]
mod tests;
