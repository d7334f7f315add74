//! The documents that answer: what the verbs print as JSON, and what every other format is made of.
//!
//! Shapes are versioned by `schema`; lists have a stable order. No document ever holds a value of a Secret.

use serde::{Deserialize, Serialize};

use crate::Certainty;

/// Schema of [`Audit`].
pub const AUDIT_SCHEMA: &str = "bailey.audit/v1";
/// Schema of [`WhoCanRead`].
pub const WHO_CAN_READ_SCHEMA: &str = "bailey.who-can-read/v1";
/// Schema of [`Reach`].
pub const REACH_SCHEMA: &str = "bailey.reach/v1";
/// Schema of [`Why`].
pub const WHY_SCHEMA: &str = "bailey.why/v1";
/// Schema of [`WhatIf`].
pub const WHAT_IF_SCHEMA: &str = "bailey.what-if/v1";

/// Customer shown for what is the platform's.
pub const PLATFORM: &str = "platform";
/// Customer shown for subjects that everybody is, such as `group:system:authenticated`.
pub const EVERYONE: &str = "everyone";
/// Customer shown where it is not known.
pub const UNKNOWN: &str = "unknown";

/// Who reaches which Secret, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// [`AUDIT_SCHEMA`].
    pub schema: String,
    /// Whether everything needed could be read.
    pub complete: bool,
    /// What could not.
    pub gaps: Vec<GapEntry>,
    /// The clusters looked at.
    pub clusters: Vec<ClusterEntry>,
    /// Numbers for the first screen.
    pub summary: Summary,
    /// Each Secret, by cluster, namespace, name.
    pub secrets: Vec<SecretEntry>,
    /// What should be looked at, worst first.
    pub findings: Vec<Finding>,
    /// Ways on, for people: who owns what is unknown, which flag would say more.
    pub hints: Vec<String>,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GapEntry {
    /// The cluster, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cluster: Option<String>,
    /// What is missing.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A cluster that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterEntry {
    /// Its name.
    pub name: String,
    /// `1.36`, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// Whose it is.
    pub customer: String,
    /// How many of each.
    pub namespaces: usize,
    /// ServiceAccounts, and users and groups that are named anywhere.
    pub subjects: usize,
    /// Roles and ClusterRoles.
    pub roles: usize,
    /// RoleBindings and ClusterRoleBindings.
    pub bindings: usize,
    /// Pods.
    pub pods: usize,
    /// Secrets.
    pub secrets: usize,
}

/// Secrets by verdict, findings by severity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Reached by the platform only.
    pub platform_only: usize,
    /// Reached by exactly the customer whose it is.
    pub exactly_one: usize,
    /// A customer's, reached by another customer too.
    pub shared: usize,
    /// The platform's, reached by a customer.
    pub exposed: usize,
    /// Nobody knows whose it is.
    pub unowned: usize,
    /// Findings.
    pub critical: usize,
    /// Findings.
    pub high: usize,
    /// Findings.
    pub medium: usize,
    /// Findings.
    pub low: usize,
}

/// Whether the audience of a Secret is what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Only the platform reaches it.
    PlatformOnly,
    /// Exactly the customer whose it is reaches it, besides the platform.
    ExactlyOne,
    /// It is a customer's, and another customer reaches it.
    Shared,
    /// It is the platform's, and a customer reaches it.
    Exposed,
    /// Nobody knows whose it is.
    Unowned,
}

/// One Secret and its audience.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SecretEntry {
    /// Its cluster.
    pub cluster: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its `type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whose it is: a customer's name, `platform` or `unknown`.
    pub customer: String,
    /// The verdict.
    pub verdict: Verdict,
    /// `assumed` if the verdict rests on an edge that is only assumed, or on an incomplete input.
    pub certainty: Certainty,
    /// The customers that reach it, sorted.
    pub audience: Vec<String>,
    /// Who reaches it; left out by `--subjects none`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub subjects: Vec<SubjectEntry>,
}

/// Somebody who reaches a Secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubjectEntry {
    /// `sa:NS/NAME`, `user:NAME`, `group:NAME`, `source:URL`; with `CLUSTER:` before it where that is another cluster.
    pub subject: String,
    /// Whose it is: a customer's name, `platform`, `everyone` or `unknown`.
    pub customer: String,
    /// Whether a path of proven edges exists.
    pub certainty: Certainty,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Low,
    /// A detour, or an assumption, leads out of the scope.
    Medium,
    /// Another customer's, or one secret of the platform.
    High,
    /// The whole cluster, or the secrets of several customers.
    Critical,
}

/// Something that should be looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Stable: the same subject, rule and objects give the same id in each run.
    pub id: String,
    /// Id of the rule: an edge of the catalogue, `shared-credential`, `weak-credential`, `unused-waiver`, …
    pub rule: String,
    /// How bad.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// Where it starts.
    pub subject: String,
    /// Whose the subject is.
    pub customer: String,
    /// Others of the same customer that get there through the subject.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub also: Vec<String>,
    /// Whose secrets are reached: customers, `platform`.
    pub reaches: Vec<String>,
    /// The Secrets reached that are not the subject's own, as `NS/NAME`; `NS/*` and `*/*` for whole scopes.
    pub secrets: Vec<String>,
    /// How many Secrets that are.
    pub secret_count: usize,
    /// Whether the path is proven.
    pub certainty: Certainty,
    /// The steps.
    pub path: Vec<Step>,
    /// What to do.
    pub remedy: String,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Id of the edge in the catalogue.
    pub edge: String,
    /// What is held before, for people: `sa:org-acme/backup-agent`.
    pub from: String,
    /// What is held after: `reads all Secrets of org-beta`.
    pub to: String,
    /// The object that gives it, as `Kind NS/NAME`.
    pub object: String,
    /// The rule of the object: `rules[0]: get,list secrets`; empty where there is none.
    pub rule: String,
    /// `file:line` of the object for a dump, else absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<String>,
    /// What stands in the way and does not hold, or why the step is only assumed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub guard: Option<String>,
    /// How sure.
    pub certainty: Certainty,
}

/// Who reaches one Secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhoCanRead {
    /// [`WHO_CAN_READ_SCHEMA`].
    pub schema: String,
    /// Whether everything needed could be read.
    pub complete: bool,
    /// What could not.
    pub gaps: Vec<GapEntry>,
    /// The Secret, with its verdict and no subjects.
    pub secret: SecretEntry,
    /// Whether such a Secret was loaded; if not, the answer is for one of that name.
    pub exists: bool,
    /// Who reaches it and how, foreign ones first.
    pub subjects: Vec<Reader>,
}

/// Somebody who reaches a Secret, and the shortest path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Reader {
    /// See [`SubjectEntry::subject`].
    pub subject: String,
    /// See [`SubjectEntry::customer`].
    pub customer: String,
    /// Whether the path is proven.
    pub certainty: Certainty,
    /// The steps.
    pub path: Vec<Step>,
}

/// Everything that one subject reaches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Reach {
    /// [`REACH_SCHEMA`].
    pub schema: String,
    /// Whether everything needed could be read.
    pub complete: bool,
    /// What could not.
    pub gaps: Vec<GapEntry>,
    /// The subject.
    pub subject: String,
    /// Whose it is.
    pub customer: String,
    /// Whether it has full control of a cluster.
    pub full_control: bool,
    /// Identities it can act as.
    pub identities: Vec<Reached>,
    /// Nodes, workload clusters, cloud identities and other powers, for people.
    pub powers: Vec<Reached>,
    /// Secrets, with whose each is.
    pub secrets: Vec<ReachedSecret>,
}

/// Something reached, with the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Reached {
    /// What: a subject, `node:NAME`, `cluster:NAME`, `everything in NS`.
    pub what: String,
    /// Whose it is.
    pub customer: String,
    /// How sure.
    pub certainty: Certainty,
    /// The steps.
    pub path: Vec<Step>,
}

/// A Secret reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReachedSecret {
    /// Its cluster.
    pub cluster: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub customer: String,
    /// Whether it is outside of what is the subject's customer's own.
    pub foreign: bool,
    /// How sure.
    pub certainty: Certainty,
    /// The edge of the last step.
    pub edge: String,
    /// The steps of the shortest path.
    pub path: Vec<Step>,
}

/// Ways from a subject to a Secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// [`WHY_SCHEMA`].
    pub schema: String,
    /// Whether everything needed could be read.
    pub complete: bool,
    /// What could not.
    pub gaps: Vec<GapEntry>,
    /// The subject.
    pub subject: String,
    /// Whose it is.
    pub customer: String,
    /// The Secret, `NS/NAME`.
    pub secret: String,
    /// Whether it is reached.
    pub reached: bool,
    /// The ways, the shortest first, each starting by another binding; empty if it is not reached.
    pub paths: Vec<WhyPath>,
}

/// One way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhyPath {
    /// How sure.
    pub certainty: Certainty,
    /// The steps.
    pub steps: Vec<Step>,
}

/// What would change if objects were added or removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhatIf {
    /// [`WHAT_IF_SCHEMA`].
    pub schema: String,
    /// Whether everything needed could be read.
    pub complete: bool,
    /// What could not.
    pub gaps: Vec<GapEntry>,
    /// Objects that would be added, changed or removed, as `Kind NS/NAME`.
    pub objects: Vec<String>,
    /// Secrets that somebody would newly reach.
    pub gained: Vec<Change>,
    /// Secrets that somebody would no longer reach.
    pub lost: Vec<Change>,
    /// Secrets whose verdict would change.
    pub verdicts: Vec<VerdictChange>,
    /// Findings that would be new.
    pub findings: Vec<Finding>,
    /// Ids of findings that would be gone.
    pub resolved: Vec<String>,
}

/// A subject that gains or loses Secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The subject.
    pub subject: String,
    /// Whose it is.
    pub customer: String,
    /// How many Secrets.
    pub secret_count: usize,
    /// How many of them are not its customer's own.
    pub foreign_count: usize,
    /// The Secrets, `NS/NAME`; whole scopes as `NS/*` and `*/*`.
    pub secrets: Vec<String>,
    /// The way to the first foreign one, else to the first.
    pub path: Vec<Step>,
}

/// A verdict that would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerdictChange {
    /// The Secret, `NS/NAME`.
    pub secret: String,
    /// Now; none for a new one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<Verdict>,
    /// Then; none for one that goes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<Verdict>,
}
