//! What is wanted of what an API server serves.

use bailey_access::holds_values;

use crate::live::{self, Served};

/// One kind to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub kind: String,
    /// Metadata only, since the rest says nothing or too much.
    pub metadata: bool,
    /// Whether facts are kept; else only values are looked at.
    pub keeps: bool,
}

impl Kind {
    /// Secrets, as metadata.
    pub(crate) fn secrets() -> Self {
        Self {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "secrets".to_owned(),
            kind: "Secret".to_owned(),
            metadata: true,
            keeps: true,
        }
    }

    /// Whether it is Secrets.
    pub(crate) fn is_secrets(&self) -> bool {
        self.group.is_empty() && self.plural == "secrets"
    }

    /// As objects say it.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// As `plural.group`.
    pub(crate) fn name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Where all of them are listed.
    pub(crate) fn path(&self) -> String {
        live::path(&self.group, &self.version, &self.plural, None, None)
    }
}

/// Kinds that the analyser keeps facts of, in the version that the server prefers, and those that hold values if it
/// opens them. Else ConfigMaps by name only.
pub(crate) fn wanted(served: &Served, opens: bool) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for ((group, plural), version) in &served.versions {
        let Some(kind) = served.kinds.get(&(group.clone(), plural.clone())) else { continue };
        let lists = served.discovery.resources().iter().any(|resource| {
            resource.group == *group && resource.name == *plural && resource.verbs.iter().any(|v| v == "list")
        });
        let keeps = bailey_access::keeps(group, kind);
        let is_opened = opens && holds_values(group, kind);
        if !lists || (group.is_empty() && plural == "secrets") || !(keeps || is_opened) {
            continue;
        }
        kinds.push(Kind {
            group: group.clone(),
            version: version.clone(),
            plural: plural.clone(),
            kind: kind.clone(),
            metadata: group.is_empty() && ["configmaps", "nodes"].contains(&plural.as_str()) && !is_opened,
            keeps,
        });
    }
    kinds
}
