//! Ends about Secrets by numbers that two states share.

use std::fmt;
use std::rc::Rc;

use indexmap::IndexSet;
use roaring::RoaringBitmap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::{
    Fact, Scope,
    access::Access,
    graph::{Node, NodeId},
};

/// Reading a Secret, all of a namespace, or all of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End<'a> {
    /// The cluster's name.
    pub cluster: &'a str,
    /// The namespace, none for all.
    pub namespace: Option<&'a str>,
    /// The Secret, none for all.
    pub name: Option<&'a str>,
}

impl fmt::Display for End<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace.unwrap_or("*"), self.name.unwrap_or("*"))
    }
}

impl<'a> End<'a> {
    /// The end that a node is, if it is one.
    fn new(access: &'a Access, cluster: u16, node: &Node) -> Option<Self> {
        let Node::Fact(fact) = node else { return None };
        let cluster = access.snapshot.clusters.get(usize::from(cluster))?.name.as_str();
        let name = |symbol| access.snapshot.symbols.name(symbol);
        let (namespace, name) = match fact {
            Fact::Secrets(Scope::Cluster) => (None, None),
            Fact::Secrets(Scope::Namespace(namespace)) => (Some(name(*namespace)), None),
            Fact::Secret { namespace, name: own } => (Some(name(*namespace)), Some(name(*own))),
            _ => return None,
        };
        Some(Self { cluster, namespace, name })
    }

    /// The ends that are wider.
    fn wider(self) -> impl Iterator<Item = Self> {
        let namespace = self.name.map(|_| Self { name: None, ..self });
        let cluster = self.namespace.map(|_| Self { name: None, namespace: None, ..self });
        namespace.into_iter().chain(cluster)
    }
}

/// The numbers of ends.
#[derive(Default)]
pub struct Numbers<'a> {
    ends: IndexSet<End<'a>, FxBuildHasher>,
}

impl<'a> Numbers<'a> {
    /// The end of a number.
    pub fn end(&self, number: u32) -> Option<End<'a>> {
        self.ends.get_index(number as usize).copied()
    }

    /// Whether a set holds an end that is wider.
    pub fn is_covered(&self, number: u32, set: &RoaringBitmap) -> bool {
        let mut wider = self.end(number).into_iter().flat_map(End::wider);
        wider.any(|wider| self.number(&wider).is_some_and(|number| set.contains(number)))
    }

    fn number(&self, end: &End<'a>) -> Option<u32> {
        self.ends.get_index_of(end).and_then(|index| u32::try_from(index).ok())
    }

    fn insert(&mut self, end: End<'a>) -> Option<u32> {
        u32::try_from(self.ends.insert_full(end).0).ok()
    }
}

/// The ends that nodes of one state reach. Equal sets are numbered once.
pub struct Sets<'a> {
    access: &'a Access,
    ends: RoaringBitmap,
    numbers: FxHashMap<NodeId, u32>,
    nodes: FxHashMap<u32, NodeId>,
    by_set: FxHashMap<*const RoaringBitmap, Rc<RoaringBitmap>>,
    empty: Rc<RoaringBitmap>,
}

impl<'a> Sets<'a> {
    /// Numbers the ends of a state.
    pub fn new(access: &'a Access, numbers: &mut Numbers<'a>) -> Self {
        let mut sets = Self {
            access,
            ends: RoaringBitmap::new(),
            numbers: FxHashMap::default(),
            nodes: FxHashMap::default(),
            by_set: FxHashMap::default(),
            empty: Rc::default(),
        };
        for (id, cluster, node) in access.graph.nodes() {
            if let Some(number) = End::new(access, cluster, node).and_then(|end| numbers.insert(end)) {
                sets.ends.insert(id);
                sets.numbers.insert(id, number);
                sets.nodes.insert(number, id);
            }
        }
        sets
    }

    /// The node of an end.
    pub fn node(&self, number: u32) -> Option<NodeId> {
        self.nodes.get(&number).copied()
    }

    /// The numbers of the ends that a node reaches.
    pub fn of(&mut self, node: NodeId) -> Rc<RoaringBitmap> {
        let Some(set) = self.access.all.set(node) else { return Rc::clone(&self.empty) };
        let (ends, numbers) = (&self.ends, &self.numbers);
        let numbered = self.by_set.entry(Rc::as_ptr(set)).or_insert_with(|| {
            Rc::new((set.as_ref() & ends).iter().filter_map(|end| numbers.get(&end).copied()).collect())
        });
        Rc::clone(numbered)
    }
}
