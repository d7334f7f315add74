//! What the API server serves: which resources exist, where, and with which verbs.

use serde::{Deserialize, Serialize};

/// Where objects of a resource live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ResourceScope {
    /// In a namespace.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// One resource or subresource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural, with `/SUBRESOURCE` for a subresource.
    pub name: String,
    /// Where its objects live.
    pub scope: ResourceScope,
    /// The verbs it supports.
    pub verbs: Vec<String>,
}

/// Everything that the API server serves, one entry per group and resource whatever the version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Discovery {
    resources: Vec<Resource>,
}

/// Says why an answer of the discovery endpoints cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// Another kind of answer, as from a server that does not aggregate.
    #[error("discovery answered kind `{0}` instead of `{AGGREGATED}`; Kubernetes 1.30 or newer is needed")]
    Kind(String),
    /// The right kind in an unknown shape.
    #[error("cannot read the answer of discovery")]
    Shape(#[source] serde_json::Error),
}

const AGGREGATED: &str = "APIGroupDiscoveryList";

#[derive(Deserialize)]
struct Groups {
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: GroupName,
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize, Default)]
struct GroupName {
    /// Absent for the core group.
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct GroupVersion {
    /// Absent while an aggregated API does not answer.
    #[serde(default)]
    resources: Vec<Served>,
}

#[derive(Deserialize)]
struct Served {
    resource: String,
    scope: ResourceScope,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<ServedPart>,
}

#[derive(Deserialize)]
struct ServedPart {
    subresource: String,
    #[serde(default)]
    verbs: Vec<String>,
}

impl Discovery {
    /// Reads the answers of `/api` and `/apis` in aggregated form, `APIGroupDiscoveryList` v2.
    pub fn from_aggregated(answers: &[serde_json::Value]) -> Result<Self, DiscoveryError> {
        let mut resources = Vec::new();
        for answer in answers {
            let kind = answer.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default();
            if kind != AGGREGATED {
                return Err(DiscoveryError::Kind(kind.to_owned()));
            }
            let groups = Groups::deserialize(answer).map_err(DiscoveryError::Shape)?;
            for group in groups.items {
                let served = group.versions.into_iter().flat_map(|version| version.resources);
                resources.extend(served.flat_map(|served| with_parts(&group.metadata.name, served)));
            }
        }
        Ok(Self::new(resources))
    }

    /// Merges entries of several versions of a group into one, with the verbs of all.
    pub fn new(resources: impl IntoIterator<Item = Resource>) -> Self {
        let mut merged = std::collections::BTreeMap::<(String, String), Resource>::new();
        for resource in resources {
            let key = (resource.group.clone(), resource.name.clone());
            match merged.get_mut(&key) {
                Some(known) => known.verbs.extend(resource.verbs),
                None => {
                    merged.insert(key, resource);
                }
            }
        }
        let mut resources: Vec<_> = merged.into_values().collect();
        for resource in &mut resources {
            resource.verbs.sort();
            resource.verbs.dedup();
        }
        Self { resources }
    }

    /// All resources, sorted by group and name.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The resource of that group and name.
    pub fn find(&self, group: &str, name: &str) -> Option<&Resource> {
        self.resources
            .binary_search_by(|r| (r.group.as_str(), r.name.as_str()).cmp(&(group, name)))
            .ok()
            .and_then(|i| self.resources.get(i))
    }
}

/// A resource and its subresources; a parent without verbs is not served itself.
fn with_parts(group: &str, served: Served) -> Vec<Resource> {
    let entry = |name: String, verbs: Vec<String>| Resource {
        group: group.to_owned(),
        name,
        scope: served.scope,
        verbs,
    };
    let mut all: Vec<_> = served
        .subresources
        .iter()
        .map(|part| entry(format!("{}/{}", served.resource, part.subresource), part.verbs.clone()))
        .collect();
    if !served.verbs.is_empty() {
        all.push(entry(served.resource.clone(), served.verbs.clone()));
    }
    all
}

#[cfg(test)]
mod tests;
