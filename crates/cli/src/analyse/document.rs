//! The answers of the analyser's verbs, as all formats are made from them.
//!
//! Most are the documents of `bailey-access` as they are. What needs a file of the user (a baseline, waivers), a flag,
//! or two runs is added here. No document holds a value of a Secret, a time, or a path of this machine.

use bailey_access::answer::{
    Audit, Finding, GapEntry, Reach, Severity, Verdict, VerdictChange, WhatIf, WhoCanRead, Why, WhyPath,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema of [`Diff`].
pub const DIFF_SCHEMA: &str = "bailey.diff/v1";
/// Schema of [`Explanation`].
pub const EXPLANATION_SCHEMA: &str = "bailey.explanation/v1";

/// An answer of one of the analyser's verbs.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// `bailey audit`.
    Audit(Box<Report>),
    /// `bailey who-can-read`.
    WhoCanRead(Box<WhoCanRead>),
    /// `bailey reach`.
    Reach(Box<Reach>),
    /// `bailey why`.
    Why(Box<Why>),
    /// `bailey what-if`.
    WhatIf(Box<WhatIf>),
    /// `bailey diff`.
    Diff(Box<Diff>),
    /// `bailey explain`.
    Explanation(Box<Explanation>),
}

/// An audit after waivers, baseline and selection.
///
/// It has all fields of the audit itself, so that it can be the baseline of a later one. Findings that are waived are
/// not among `findings`; those that the baseline knows are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The audit: its summary counts what is selected.
    #[serde(flatten)]
    pub audit: Audit,
    /// What the exit code follows from.
    pub gate: Gate,
    /// What was selected, if not everything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selection: Option<Selection>,
    /// What is new and what is gone since the baseline, if one was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub baseline: Option<Comparison>,
    /// Findings that somebody answers for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub waived: Vec<Waived>,
}

/// What decides the exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// The lowest severity that counts.
    pub fail_on: Severity,
    /// Ids of the findings that count: at or above that severity, and not in the baseline.
    pub findings: Vec<String>,
}

/// What an answer was narrowed to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// Findings of at least this severity.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub severity: Option<Severity>,
    /// Namespaces.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub namespaces: Vec<String>,
    /// Customers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub customers: Vec<String>,
    /// Verdicts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub verdicts: Vec<Verdict>,
    /// How many Secrets there are without it.
    pub secrets_of: usize,
    /// How many findings there are without it.
    pub findings_of: usize,
}

/// How an audit differs from a former one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Whether the former audit had read everything.
    pub complete: bool,
    /// Ids of findings that the former one has not.
    pub new: Vec<String>,
    /// Ids of findings that it has, with a lower severity or with fewer customers reached. They count as new.
    pub worse: Vec<String>,
    /// Ids of findings that it has.
    pub known: Vec<String>,
    /// Findings that it has and that are there no more.
    pub gone: Vec<Finding>,
    /// Secrets whose verdict is another one now.
    pub verdicts: Vec<VerdictChange>,
}

/// A finding, and who answers for it until when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waived {
    /// The finding.
    pub finding: Finding,
    /// Who answers for it.
    pub owner: String,
    /// Why it may be.
    pub reason: String,
    /// The last day, as `2027-01-31`.
    pub expires: String,
}

/// How two states differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// [`DIFF_SCHEMA`].
    pub schema: String,
    /// Whether everything needed could be read, on both sides.
    pub complete: bool,
    /// What could not, with the side before it.
    pub gaps: Vec<GapEntry>,
    /// How many Secrets and findings there were.
    pub old: Side,
    /// How many there are.
    pub new: Side,
    /// Secrets whose verdict changed, that came or that went.
    pub verdicts: Vec<VerdictChange>,
    /// Findings that are new.
    pub findings: Vec<Finding>,
    /// Findings that have got worse: a higher severity, or more customers reached.
    pub worse: Vec<Finding>,
    /// Findings that are gone.
    pub gone: Vec<Finding>,
    /// How many findings are in both.
    pub unchanged: usize,
}

/// One side of a [`Diff`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// How many Secrets.
    pub secrets: usize,
    /// How many findings.
    pub findings: usize,
}

/// What an id means: an edge or a rule of the catalogue, or a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// [`EXPLANATION_SCHEMA`].
    pub schema: String,
    /// The finding, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub finding: Option<Finding>,
    /// Other ways to the same, each starting by another binding.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub alternates: Vec<WhyPath>,
    /// The rule, or the rules of the finding's steps. All rules where no id was given.
    pub rules: Vec<RuleEntry>,
}

/// An edge or a rule of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleEntry {
    /// Its id.
    pub id: String,
    /// What it is, in a line.
    pub title: String,
    /// How bad a finding of it is by itself.
    pub severity: Severity,
    /// Whether what is gained depends on what others do, so that verdicts do not count it.
    pub soft: bool,
    /// How an API server, a kubelet or a controller behaves.
    pub explanation: String,
    /// What to do.
    pub remedy: String,
    /// Where it is known from.
    pub references: Vec<String>,
}

impl Document {
    /// Whether everything needed could be read. What a catalogue says is always complete.
    pub fn complete(&self) -> bool {
        match self {
            Self::Audit(report) => report.audit.complete,
            Self::WhoCanRead(answer) => answer.complete,
            Self::Reach(answer) => answer.complete,
            Self::Why(answer) => answer.complete,
            Self::WhatIf(answer) => answer.complete,
            Self::Diff(diff) => diff.complete,
            Self::Explanation(_) => true,
        }
    }

    /// What could not be read.
    pub fn gaps(&self) -> &[GapEntry] {
        match self {
            Self::Audit(report) => &report.audit.gaps,
            Self::WhoCanRead(answer) => &answer.gaps,
            Self::Reach(answer) => &answer.gaps,
            Self::Why(answer) => &answer.gaps,
            Self::WhatIf(answer) => &answer.gaps,
            Self::Diff(diff) => &diff.gaps,
            Self::Explanation(_) => &[],
        }
    }
}

impl Serialize for Document {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Audit(report) => report.serialize(serializer),
            Self::WhoCanRead(answer) => answer.serialize(serializer),
            Self::Reach(answer) => answer.serialize(serializer),
            Self::Why(answer) => answer.serialize(serializer),
            Self::WhatIf(answer) => answer.serialize(serializer),
            Self::Diff(diff) => diff.serialize(serializer),
            Self::Explanation(explanation) => explanation.serialize(serializer),
        }
    }
}
