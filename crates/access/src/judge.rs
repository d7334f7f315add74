//! From what everybody reaches to the audience of each Secret, and a verdict.

use std::collections::BTreeSet;

use roaring::RoaringBitmap;
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
    /// Those that are listed, by rank.
    starts_by_end: FxHashMap<NodeId, RoaringBitmap>,
}

/// The starts that are listed for Secrets, in the order of their names.
#[derive(Debug, Default)]
pub struct Listed {
    /// The place of each start among them.
    ranks: Vec<Option<u32>>,
    /// Their indices and names.
    names: Vec<(u32, String)>,
}

impl Listed {
    /// Sorts those of some starts that have a name.
    pub fn new(starts: &[Start], name: impl Fn(&Start) -> Option<String>) -> Self {
        let named = (0..).zip(starts).filter_map(|(index, start)| Some((index, name(start)?)));
        let mut names: Vec<(u32, String)> = named.collect();
        names.sort_unstable_by(|one, other| (&one.1, one.0).cmp(&(&other.1, other.0)));
        let mut ranks = vec![None; starts.len()];
        for (rank, (index, _)) in (0..).zip(&names) {
            if let Some(place) = ranks.get_mut(*index as usize) {
                *place = Some(rank);
            }
        }
        Self { ranks, names }
    }

    /// The index of a start and its name, by its place.
    pub fn get(&self, rank: u32) -> Option<(usize, &str)> {
        self.names.get(rank as usize).map(|(index, name)| (*index as usize, name.as_str()))
    }
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
    pub fn new(closure: &Closure, graph: &Graph, starts: &[Start], listed: &Listed) -> Self {
        let mut audiences = Self::default();
        let ends: RoaringBitmap =
            graph.nodes().filter(|(_, _, node)| is_secret_end(node)).map(|(id, ..)| id).collect();
        let mut by_component: FxHashMap<u32, (BTreeSet<Whose>, RoaringBitmap, NodeId)> = FxHashMap::default();
        for (index, start) in starts.iter().enumerate() {
            if let Some(component) = closure.component_of(start.node) {
                let (whose, members, _) = by_component
                    .entry(component)
                    .or_insert_with(|| (BTreeSet::new(), RoaringBitmap::new(), start.node));
                whose.insert(start.whose);
                members.extend(listed.ranks.get(index).copied().flatten());
            }
        }
        // Equal sets are shared, so that each is turned around once.
        let mut by_set: FxHashMap<*const RoaringBitmap, (NodeId, BTreeSet<Whose>, RoaringBitmap)> =
            FxHashMap::default();
        for (whose, members, node) in by_component.into_values() {
            let Some(set) = closure.set(node) else { continue };
            let entry = by_set
                .entry(std::rc::Rc::as_ptr(set))
                .or_insert_with(|| (node, BTreeSet::new(), RoaringBitmap::new()));
            entry.1.extend(whose);
            entry.2 |= members;
        }
        for (node, whose, members) in by_set.into_values() {
            let Some(set) = closure.set(node) else { continue };
            for end in set.as_ref() & &ends {
                audiences.by_end.entry(end).or_default().extend(whose.iter().copied());
                if !members.is_empty() {
                    *audiences.starts_by_end.entry(end).or_default() |= &members;
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

    /// The places of the listed starts that reach a Secret.
    pub fn starts_of(&self, graph: &Graph, cluster: u16, secret: &SecretFact) -> RoaringBitmap {
        let ends = ends_of(graph, cluster, secret.namespace, secret.name);
        ends.filter_map(|end| self.starts_by_end.get(&end)).fold(RoaringBitmap::new(), |all, some| all | some)
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
