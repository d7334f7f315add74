//! From what everybody reaches to the audience of each Secret, and a verdict.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::{
    Certainty, Fact, Scope, SecretFact,
    answer::Verdict,
    close::Closure,
    graph::{Graph, NodeId},
    owners::{Owners, Whose},
};

/// Somebody from whom ways start.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// Its node.
    pub node: NodeId,
    /// Its cluster.
    pub cluster: u16,
    /// Who it is.
    pub fact: Fact,
    /// Whose it is.
    pub whose: Whose,
}

/// Who reaches each end, by the end's node.
#[derive(Debug, Default)]
pub struct Audiences {
    by_end: FxHashMap<NodeId, BTreeSet<Whose>>,
    starts_by_end: FxHashMap<NodeId, Vec<u32>>,
}

/// The audience of one Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audience {
    /// The customers, sorted.
    pub customers: BTreeSet<Whose>,
    /// Whether somebody reaches it of whom nobody knows whose it is.
    pub unknown: bool,
}

impl Audiences {
    /// Turns the sets around: from what a start reaches to who reaches an end.
    pub fn new(closure: &Closure, graph: &Graph, starts: &[Start], with_starts: bool) -> Self {
        let mut audiences = Self::default();
        let ends: roaring::RoaringBitmap =
            graph.nodes().filter(|(_, _, node)| is_secret_end(node)).map(|(id, ..)| id).collect();
        let mut by_component: FxHashMap<u32, (BTreeSet<Whose>, Vec<u32>)> = FxHashMap::default();
        for (index, start) in (0u32..).zip(starts) {
            if let Some(component) = closure.component_of(start.node) {
                let (whose, members) = by_component.entry(component).or_default();
                whose.insert(start.whose);
                members.push(index);
            }
        }
        // Equal sets are shared, so that each is turned around once.
        let mut by_set: FxHashMap<*const roaring::RoaringBitmap, (NodeId, BTreeSet<Whose>, Vec<u32>)> =
            FxHashMap::default();
        for (whose, members) in by_component.into_values() {
            let Some(first) = members.first().and_then(|i| starts.get(*i as usize)) else { continue };
            let Some(set) = closure.set(first.node) else { continue };
            let entry =
                by_set.entry(std::rc::Rc::as_ptr(set)).or_insert((first.node, BTreeSet::new(), Vec::new()));
            entry.1.extend(whose);
            entry.2.extend(members);
        }
        for (node, whose, members) in by_set.into_values() {
            let Some(set) = closure.set(node) else { continue };
            for end in set.as_ref() & &ends {
                audiences.by_end.entry(end).or_default().extend(whose.iter().copied());
                if with_starts {
                    audiences.starts_by_end.entry(end).or_default().extend(members.iter().copied());
                }
            }
        }
        audiences
    }

    /// Who reaches a Secret.
    pub fn of(&self, graph: &Graph, owners: &Owners, cluster: u16, secret: &SecretFact) -> Audience {
        let mut audience = Audience::default();
        for end in ends_of(graph, cluster, secret.namespace, secret.name) {
            for whose in self.by_end.get(&end).into_iter().flatten() {
                match *whose {
                    Whose::PLATFORM => {}
                    Whose::UNKNOWN => audience.unknown = true,
                    Whose::EVERYONE => audience.customers.extend(owners.customers()),
                    customer => {
                        audience.customers.insert(customer);
                    }
                }
            }
        }
        audience
    }

    /// Indices of the starts that reach a Secret, sorted.
    pub fn starts_of(&self, graph: &Graph, cluster: u16, secret: &SecretFact) -> Vec<u32> {
        let ends = ends_of(graph, cluster, secret.namespace, secret.name);
        let mut starts: Vec<u32> =
            ends.filter_map(|end| self.starts_by_end.get(&end)).flatten().copied().collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }
}

fn is_secret_end(node: &crate::graph::Node) -> bool {
    matches!(node, crate::graph::Node::Fact(Fact::Secret { .. } | Fact::Secrets(_)))
}

/// The nodes that stand for reading a Secret: itself, all of its namespace, all of the cluster.
pub fn ends_of(
    graph: &Graph,
    cluster: u16,
    namespace: crate::Symbol,
    name: crate::Symbol,
) -> impl Iterator<Item = NodeId> {
    [
        Fact::Secret { namespace, name },
        Fact::Secrets(Scope::Namespace(namespace)),
        Fact::Secrets(Scope::Cluster),
    ]
    .into_iter()
    .filter_map(move |fact| graph.find(cluster, fact))
}

/// Whether an audience is what it should be for a Secret of this owner.
pub fn verdict(owner: Whose, audience: &Audience) -> Verdict {
    match owner {
        Whose::PLATFORM if audience.customers.is_empty() => Verdict::PlatformOnly,
        Whose::PLATFORM => Verdict::Exposed,
        owner if owner.is_customer() => {
            if audience.customers.is_empty() {
                Verdict::PlatformOnly
            } else if audience.customers.iter().all(|customer| *customer == owner) {
                Verdict::ExactlyOne
            } else {
                Verdict::Shared
            }
        }
        _ => Verdict::Unowned,
    }
}

/// How sure a verdict is: proven where proven edges alone give the same. Somebody of whom nobody knows whose it is makes
/// a good verdict assumed, and a bad one no better.
pub fn certainty(owner: Whose, all: &Audience, proven: &Audience) -> Certainty {
    let found = verdict(owner, all);
    let same = found == verdict(owner, proven) && all.customers == proven.customers;
    let is_bad = matches!(found, Verdict::Shared | Verdict::Exposed);
    if same && (is_bad || !all.unknown) { Certainty::Proven } else { Certainty::Assumed }
}

/// The starts of a graph, with whose each is.
pub fn starts(graph: &Graph, owners: &Owners) -> Vec<Start> {
    graph
        .nodes()
        .filter_map(|(node, cluster, what)| match what {
            crate::graph::Node::Fact(fact @ (Fact::Identity(_) | Fact::Source(_)))
                if graph.is_there(node) =>
            {
                Some(Start { node, cluster, fact: *fact, whose: owners.of_fact(cluster, fact) })
            }
            _ => None,
        })
        .collect()
}
