//! What the policies of a cluster are read with.

use rustc_hash::FxHashMap;

use super::cel::Expressions;
use crate::{ClusterFacts, Symbols};

/// A cluster, with what its policies share.
pub(super) struct Loading<'a> {
    pub(super) cluster: &'a ClusterFacts,
    pub(super) symbols: &'a Symbols,
    pub(super) expressions: Expressions,
    /// Plurals by kind, with the group of each.
    plurals: FxHashMap<&'a str, Vec<(&'a str, &'a str)>>,
}

impl<'a> Loading<'a> {
    pub(super) fn new(cluster: &'a ClusterFacts, symbols: &'a Symbols) -> Self {
        let mut plurals: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for crd in cluster.objects_of("apiextensions.k8s.io", "CustomResourceDefinition") {
            let (group, kind) = (crd.text("/spec/group"), crd.text("/spec/names/kind"));
            if let (Some(group), Some(kind), Some(plural)) = (group, kind, crd.text("/spec/names/plural")) {
                plurals.entry(kind).or_default().push((group, plural));
            }
        }
        Self { cluster, symbols, expressions: Expressions::default(), plurals }
    }

    /// The plural of a kind, as its CRD says, else as it usually is. Any group will do where none is given.
    pub(super) fn plural(&self, group: Option<&str>, kind: &str) -> String {
        let mut known = self.plurals.get(kind).into_iter().flatten();
        let found = known.find(|(of, _)| group.is_none_or(|group| group == *of));
        found.map_or_else(|| usual_plural(kind), |(_, plural)| (*plural).to_owned())
    }
}

/// The plural that a kind usually has (`UnsafeGuessKindToResource` of k8s.io/apimachinery
/// `pkg/api/meta/restmapper.go`, with the endings that it gets wrong).
pub(super) fn usual_plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    let before_y = kind.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match (before_y, kind.as_str()) {
        (_, "endpoints") => kind,
        (Some(stem), _) => format!("{stem}ies"),
        (None, _) if kind.ends_with(['s', 'x']) || kind.ends_with("ch") || kind.ends_with("sh") => {
            format!("{kind}es")
        }
        (None, _) => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_usual_plurals() {
        for (kind, plural) in [
            ("Pod", "pods"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Endpoints", "endpoints"),
            ("HelmRelease", "helmreleases"),
            ("AWSCluster", "awsclusters"),
            ("Batch", "batches"),
        ] {
            assert_eq!(usual_plural(kind), plural);
        }
    }
}
