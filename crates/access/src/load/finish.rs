//! What can be said only when everything was read: which of two equal objects counts, which tokens are mounted, which
//! kinds are complete, how the cluster is called.
//!
//! What the snapshot held before is replaced by what was read, without a word: that is how a change is tried out. Two
//! different objects of one name in what was read are a gap.

#[cfg(test)]
mod tests;

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::intake::{Intake, ObjectName};
use super::kinds::{group_of, resource_name};
use crate::{
    BindingFact, ClusterFacts, Gap, NamespaceFact, ObjectFact, Origin, RoleFact, SecretFact, Symbol, Symbols,
};

/// Merges what was taken into its snapshot.
pub(super) fn finish(mut intake: Intake<'_>) {
    intake.end_source();
    decide_tokens(&mut intake);
    let listed = listed(&mut intake);
    let name = intake.cluster.clone().unwrap_or_else(|| own_name(&intake.facts));
    if let Some(values) = intake.values.as_deref_mut().filter(|_| intake.cluster.is_none()) {
        values.named(&name);
    }
    let Intake { snapshot, facts, origins, mut gaps, .. } = intake;
    let snapshot_symbols = &snapshot.symbols;
    let position = snapshot.clusters.iter().position(|cluster| cluster.name == name);
    let mut cluster = position.map(|at| snapshot.clusters.remove(at)).unwrap_or_default();
    let mut merge = Merge { symbols: snapshot_symbols, sources: &snapshot.sources, gaps: &mut gaps };
    merge.all(&mut cluster, facts, &origins);
    let known: FxHashSet<_> = cluster.listed.iter().cloned().collect();
    cluster.listed.extend(listed.into_iter().filter(|kind| !known.contains(kind)));
    cluster.name.clone_from(&name);
    snapshot.clusters.insert(position.unwrap_or(snapshot.clusters.len()), cluster);
    for gap in &mut gaps {
        gap.cluster = Some(name.clone());
    }
    snapshot.gaps.extend(gaps);
}

/// A pod that the API server has not seen gets a token unless its account says no.
fn decide_tokens(intake: &mut Intake<'_>) {
    for index in &intake.undecided {
        if let Some(pod) = intake.facts.pods.get_mut(*index) {
            pod.token = !intake.unmounted.contains(&(pod.namespace, pod.service_account));
        }
    }
}

/// What the platform says of its own cluster, in its Installation.
fn own_name(facts: &ClusterFacts) -> String {
    let installation = facts.objects_of("bailey.dev", "Installation").next();
    let name = installation.and_then(|object| object.text("/spec/managementCluster/name"));
    name.unwrap_or("cluster").to_owned()
}

/// Names of kinds that were listed whole, as far as was asked for. Plurals are those of the cluster's own definitions.
fn listed(intake: &mut Intake<'_>) -> Vec<String> {
    let definitions = intake.facts.objects_of("apiextensions.k8s.io", "CustomResourceDefinition");
    let plurals: FxHashMap<_, _> = definitions
        .filter_map(|definition| {
            let text = |pointer| definition.text(pointer).map(str::to_owned);
            Some(((text("/spec/group")?, text("/spec/names/kind")?), text("/spec/names/plural")?))
        })
        .collect();
    let mut listed = Vec::new();
    for met in intake.kinds.all().filter(|met| !met.kind.is_empty()) {
        let group = group_of(&met.api_version).to_owned();
        let plural = plurals.get(&(group.clone(), met.kind.clone()));
        let name =
            plural.map_or_else(|| resource_name(&group, &met.kind), |plural| format!("{plural}.{group}"));
        match &met.broken_off {
            Some(source) if !met.is_listed => intake.gaps.push(Gap {
                cluster: None,
                what: name,
                why: format!(
                    "their list in `{source}` says that it goes on; ask for all of it, without `limit`"
                ),
            }),
            _ if met.is_listed && !met.is_spoilt && !listed.contains(&name) => listed.push(name),
            _ => {}
        }
    }
    listed
}

/// Merges facts of one kind after the other.
struct Merge<'m> {
    symbols: &'m Symbols,
    sources: &'m [String],
    gaps: &'m mut Vec<Gap>,
}

/// What makes a fact the same object as another one, and whether it also says the same.
struct Rule<'r, F, K> {
    kind: &'r dyn Fn(&F) -> &str,
    key: &'r dyn Fn(&F) -> K,
    name: &'r dyn Fn(&F) -> (Symbol, Symbol),
    origin: &'r dyn Fn(usize, &F) -> Origin,
    same: &'r dyn Fn(&F, &F) -> bool,
}

impl Merge<'_> {
    fn all(&mut self, into: &mut ClusterFacts, facts: ClusterFacts, origins: &super::intake::Origins) {
        into.minor = facts.minor.or(into.minor);
        let at = |origins: &[Origin], index: usize| origins.get(index).copied().unwrap_or_default();
        self.of(
            &mut into.namespaces,
            facts.namespaces,
            &Rule {
                kind: &|_| "Namespace",
                key: &|fact| fact.name,
                name: &|fact| (Symbol::EMPTY, fact.name),
                origin: &|_, fact| fact.origin,
                same: &|a, b| NamespaceFact { origin: b.origin, ..a.clone() } == *b,
            },
        );
        self.of(
            &mut into.service_accounts,
            facts.service_accounts,
            &Rule {
                kind: &|_| "ServiceAccount",
                key: &|fact| (fact.namespace, fact.name),
                name: &|fact| (fact.namespace, fact.name),
                origin: &|index, _| at(&origins.service_accounts, index),
                same: &|a, b| a == b,
            },
        );
        self.of(
            &mut into.roles,
            facts.roles,
            &Rule {
                kind: &|fact| if fact.namespace.is_some() { "Role" } else { "ClusterRole" },
                key: &|fact| (fact.namespace, fact.name),
                name: &|fact| (fact.namespace.unwrap_or(Symbol::EMPTY), fact.name),
                origin: &|_, fact| fact.origin,
                same: &|a, b| RoleFact { origin: b.origin, ..a.clone() } == *b,
            },
        );
        self.of(
            &mut into.bindings,
            facts.bindings,
            &Rule {
                kind: &|fact| if fact.namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" },
                key: &|fact| (fact.namespace, fact.name),
                name: &|fact| (fact.namespace.unwrap_or(Symbol::EMPTY), fact.name),
                origin: &|_, fact| fact.origin,
                same: &|a, b| BindingFact { origin: b.origin, ..a.clone() } == *b,
            },
        );
        self.of(
            &mut into.secrets,
            facts.secrets,
            &Rule {
                kind: &|_| "Secret",
                key: &|fact| (fact.namespace, fact.name),
                name: &|fact| (fact.namespace, fact.name),
                origin: &|_, fact| fact.origin,
                same: &|a, b| SecretFact { origin: b.origin, ..a.clone() } == *b,
            },
        );
        self.of(
            &mut into.pods,
            facts.pods,
            &Rule {
                kind: &|_| "Pod",
                key: &|fact| (fact.namespace, fact.name),
                name: &|fact| (fact.namespace, fact.name),
                origin: &|index, _| at(&origins.pods, index),
                same: &|a, b| a == b,
            },
        );
        self.of(
            &mut into.nodes,
            facts.nodes,
            &Rule {
                kind: &|_| "Node",
                key: &|fact| fact.name,
                name: &|fact| (Symbol::EMPTY, fact.name),
                origin: &|index, _| at(&origins.nodes, index),
                same: &|a, b| a == b,
            },
        );
        self.of(
            &mut into.objects,
            facts.objects,
            &Rule {
                kind: &|fact| &fact.kind,
                key: &|fact| (fact.group().to_owned(), fact.kind.clone(), fact.namespace, fact.name),
                name: &|fact| (fact.namespace, fact.name),
                origin: &|_, fact| fact.origin,
                same: &same_object,
            },
        );
    }

    /// The later of two equal objects counts.
    fn of<F, K: Hash + Eq>(&mut self, into: &mut Vec<F>, facts: Vec<F>, rule: &Rule<'_, F, K>) {
        if facts.is_empty() {
            return;
        }
        let mut last = FxHashMap::with_capacity_and_hasher(facts.len(), Default::default());
        let mut replaced = FxHashSet::default();
        for (index, fact) in facts.iter().enumerate() {
            let Some(earlier) = last.insert((rule.key)(fact), index) else { continue };
            replaced.insert(earlier);
            if let Some(other) = facts.get(earlier).filter(|other| !(rule.same)(other, fact)) {
                self.conflict(rule, (earlier, other), (index, fact));
            }
        }
        into.retain(|fact| !last.contains_key(&(rule.key)(fact)));
        if into.is_empty() && replaced.is_empty() {
            *into = facts;
        } else {
            let kept = facts.into_iter().enumerate().filter(|(index, _)| !replaced.contains(index));
            into.extend(kept.map(|(_, fact)| fact));
        }
    }

    fn conflict<F, K>(&mut self, rule: &Rule<'_, F, K>, first: (usize, &F), second: (usize, &F)) {
        let (namespace, name) = (rule.name)(second.1);
        let named = ObjectName {
            kind: (rule.kind)(second.1),
            namespace: self.symbols.name(namespace),
            name: self.symbols.name(name),
        };
        let place = |(index, fact): (usize, &F)| {
            let origin = (rule.origin)(index, fact);
            let source = self.sources.get(origin.source as usize).map_or("", String::as_str);
            match origin.line {
                0 => format!("`{source}`"),
                line => format!("`{source}`, line {line}"),
            }
        };
        let why = format!(
            "it was read twice and differs: in {} and in {}; the second counts. Leave the older file out, or give each \
             cluster a name of its own",
            place(first),
            place(second)
        );
        self.gaps.push(Gap { cluster: None, what: named.to_string(), why });
    }
}

/// Whether two objects say the same, whenever they were read.
fn same_object(a: &ObjectFact, b: &ObjectFact) -> bool {
    fn desired(object: &ObjectFact) -> Option<serde_json::Map<String, Value>> {
        let mut body = object.body.as_object()?.clone();
        body.shift_remove("status");
        if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
            for field in ["resourceVersion", "generation", "uid", "creationTimestamp"] {
                metadata.shift_remove(field);
            }
        }
        Some(body)
    }
    a.api_version == b.api_version && desired(a) == desired(b)
}
