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

impl Discovery {
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
