//! What foreign things somebody reaches: how wide the widest is, and how many Secrets lie under them.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use super::NAMES_MAX;
use crate::{
    Certainty, Fact, Scope, Symbol,
    access::Access,
    close::Closure,
    graph::{Node, NodeId},
    judge::Start,
    owners::{Owners, Whose},
};

pub fn namespace_of(fact: &Fact) -> Option<Symbol> {
    match fact {
        Fact::Identity(identity) if identity.namespace != Symbol::EMPTY => Some(identity.namespace),
        _ => None,
    }
}

/// The widest foreign end of each node: how sure, how wide, which.
#[derive(Default)]
pub struct Widest(FxHashMap<(NodeId, Whose, Option<Symbol>), Option<Ranked>>);

/// How sure an end is reached, how wide it is, and which it is.
type Ranked = (Certainty, u8, NodeId);

impl Widest {
    pub fn of(&mut self, access: &Access, start: &Start, node: NodeId) -> Option<(Certainty, u8, NodeId)> {
        let place = namespace_of(&start.fact).filter(|_| start.whose == Whose::UNKNOWN);
        *self.0.entry((node, start.whose, place)).or_insert_with(|| {
            let sure = |closure, certainty| {
                widest_of(access, start, closure, node).map(|(rank, end)| (certainty, rank, end))
            };
            let proven = sure(&access.proven, Certainty::Proven);
            proven.or_else(|| sure(&access.all, Certainty::Assumed))
        })
    }
}

fn widest_of(access: &Access, start: &Start, closure: &Closure, node: NodeId) -> Option<(u8, NodeId)> {
    let set = closure.set(node)?;
    let ranked = |end: NodeId| foreign_rank(access, start, end).map(|rank| (rank, end));
    let whole = [Fact::Everything(Scope::Cluster), Fact::Secrets(Scope::Cluster)];
    let whole = whole.into_iter().filter_map(|fact| access.graph.find(start.cluster, fact));
    let whole = whole.filter(|end| set.contains(*end)).find_map(ranked);
    whole.or_else(|| set.iter().filter_map(ranked).min())
}

/// How wide a foreign end is, the widest first; none for what is the start's own or no end.
pub fn foreign_rank(access: &Access, start: &Start, end: NodeId) -> Option<u8> {
    let (cluster, Node::Fact(fact)) = access.graph.node(end)? else { return None };
    let own = |namespace: Symbol| {
        let whose = access.owners.of_namespace(*cluster, namespace);
        match start.whose {
            Whose::UNKNOWN => namespace_of(&start.fact) == Some(namespace) && start.cluster == *cluster,
            Whose::EVERYONE => false,
            owner => whose == owner,
        }
    };
    let own_cluster = access.owners.of_cluster(*cluster) == Some(start.whose);
    match fact {
        _ if own_cluster => None,
        Fact::Everything(Scope::Cluster) => Some(0),
        Fact::Secrets(Scope::Cluster) => Some(1),
        Fact::OtherCluster(other) => {
            let name = access.snapshot.symbols.name(*other);
            let namespace = name.split_once('/').and_then(|(ns, _)| access.snapshot.symbols.find(ns));
            (!namespace.is_some_and(own)).then_some(4)
        }
        Fact::Secrets(Scope::Namespace(namespace)) => (!own(*namespace)).then_some(2),
        Fact::Everything(Scope::Namespace(namespace)) => (!own(*namespace)).then_some(3),
        Fact::Secret { namespace, .. } => (!own(*namespace)).then_some(5),
        _ => None,
    }
}

/// How many Secrets each namespace holds, and which Secrets there are.
#[derive(Debug, Clone)]
pub struct Counts {
    by_namespace: FxHashMap<(u16, Symbol), usize>,
    by_owner: FxHashMap<u16, BTreeMap<Whose, usize>>,
    all: FxHashSet<(u16, Symbol, Symbol)>,
}

impl Counts {
    /// Counts what was loaded.
    pub fn new(snapshot: &crate::Snapshot, owners: &Owners) -> Self {
        let mut counts = Self {
            by_namespace: FxHashMap::default(),
            by_owner: FxHashMap::default(),
            all: FxHashSet::default(),
        };
        for (cluster, facts) in (0u16..).zip(&snapshot.clusters) {
            for secret in &facts.secrets {
                *counts.by_namespace.entry((cluster, secret.namespace)).or_default() += 1;
                let whose = owners.of_namespace(cluster, secret.namespace);
                *counts.by_owner.entry(cluster).or_default().entry(whose).or_default() += 1;
                counts.all.insert((cluster, secret.namespace, secret.name));
            }
        }
        counts
    }
}

impl Counts {
    /// How many Secrets lie under an end, by owner.
    pub fn under(&self, access: &Access, end: NodeId) -> Vec<(Whose, usize)> {
        let Some((cluster, Node::Fact(fact))) = access.graph.node(end) else { return Vec::new() };
        let of_namespace = |namespace: Symbol| access.owners.of_namespace(*cluster, namespace);
        match fact {
            Fact::Everything(Scope::Cluster) | Fact::Secrets(Scope::Cluster) => self
                .by_owner
                .get(cluster)
                .into_iter()
                .flatten()
                .map(|(whose, count)| (*whose, *count))
                .collect(),
            Fact::Everything(Scope::Namespace(namespace)) | Fact::Secrets(Scope::Namespace(namespace)) => {
                let count = self.by_namespace.get(&(*cluster, *namespace));
                count.map(|count| (of_namespace(*namespace), *count)).into_iter().collect()
            }
            Fact::Secret { namespace, name } if self.all.contains(&(*cluster, *namespace, *name)) => {
                vec![(of_namespace(*namespace), 1)]
            }
            _ => Vec::new(),
        }
    }
}

/// The foreign Secrets under some ends: as texts, how many, and whose.
pub fn reached(access: &Access, start: &Start, ends: &[(u8, NodeId)]) -> (Vec<String>, usize, Vec<String>) {
    let counts = access.counts();
    let is_own = |whose: Whose| whose == start.whose && start.whose != Whose::UNKNOWN;
    let mut everywhere: BTreeSet<u16> = BTreeSet::new();
    let mut whole: BTreeSet<(u16, Symbol)> = BTreeSet::new();
    let mut single: BTreeSet<(u16, Symbol, Symbol)> = BTreeSet::new();
    for (_, end) in ends {
        let Some((cluster, Node::Fact(fact))) = access.graph.node(*end) else { continue };
        match fact {
            Fact::Everything(Scope::Cluster) | Fact::Secrets(Scope::Cluster) => {
                everywhere.insert(*cluster);
            }
            Fact::Everything(Scope::Namespace(ns)) | Fact::Secrets(Scope::Namespace(ns)) => {
                whole.insert((*cluster, *ns));
            }
            Fact::Secret { namespace, name: own } => {
                single.insert((*cluster, *namespace, *own));
            }
            _ => {}
        }
    }
    whole.retain(|(cluster, _)| !everywhere.contains(cluster));
    single.retain(|(cluster, namespace, _)| {
        !everywhere.contains(cluster) && !whole.contains(&(*cluster, *namespace))
    });
    let name = |symbol: Symbol| access.snapshot.symbols.name(symbol);
    let text = |cluster: u16, namespace: &str, own: &str| {
        format!("{}{namespace}/{own}", access.explainer().prefix(cluster))
    };
    let texts = everywhere.iter().map(|cluster| text(*cluster, "*", "*"));
    let texts = texts.chain(whole.iter().map(|(cluster, namespace)| text(*cluster, name(*namespace), "*")));
    let texts = texts
        .chain(single.iter().map(|(cluster, namespace, own)| text(*cluster, name(*namespace), name(*own))));
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    let owner = |cluster: u16, namespace: Symbol| access.owners.of_namespace(cluster, namespace);
    whole.retain(|(cluster, namespace)| !is_own(owner(*cluster, *namespace)));
    single.retain(|(cluster, namespace, _)| !is_own(owner(*cluster, *namespace)));
    let in_all = everywhere.iter().filter_map(|cluster| counts.by_owner.get(cluster)).flatten();
    let in_all: Vec<(Whose, usize)> =
        in_all.filter(|(whose, _)| !is_own(**whose)).map(|(whose, count)| (*whose, *count)).collect();
    let count = in_all.iter().map(|(_, count)| count).sum::<usize>()
        + whole.iter().filter_map(|key| counts.by_namespace.get(key)).sum::<usize>()
        // A name in a rule may be of nothing that exists.
        + single.iter().filter(|secret| counts.all.contains(secret)).count();
    let with_secrets = whole.iter().filter(|key| counts.by_namespace.contains_key(key)).copied();
    let places = with_secrets.chain(single.iter().map(|(cluster, namespace, _)| (*cluster, *namespace)));
    let whose: BTreeSet<Whose> = places
        .map(|(cluster, namespace)| owner(cluster, namespace))
        .chain(in_all.iter().map(|(whose, _)| *whose))
        .collect();
    if texts.len() > NAMES_MAX {
        let more = texts.len() - NAMES_MAX;
        texts.truncate(NAMES_MAX);
        texts.push(format!("… and {more} more"));
    }
    (texts, count, whose.into_iter().map(|whose| access.owners.name(whose).to_owned()).collect())
}
