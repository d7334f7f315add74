//! How far the way of a finding goes: to where it leaves what is the start's own.

use super::ends::namespace_of;
use crate::{
    Fact, Scope,
    access::Access,
    close::Closure,
    graph::{Edge, Node, NodeId, Via},
    judge::Start,
    owners::Whose,
    search::Limits,
};

/// Stops at identities: those of the same owner have findings of their own, those of others are where a way leaves.
pub struct Own<'a> {
    pub access: &'a Access,
    pub start: &'a Start,
}

impl Own<'_> {
    /// The identity or source that a node is.
    pub fn somebody(&self, node: NodeId) -> Option<(u16, Fact)> {
        match self.access.graph.node(node)? {
            (cluster, Node::Fact(fact @ (Fact::Identity(_) | Fact::Source(_)))) => Some((*cluster, *fact)),
            (cluster, Node::Acting(identity) | Node::ActingFor { identity, .. }) => {
                Some((*cluster, Fact::Identity(*identity)))
            }
            _ => None,
        }
    }

    /// Whether a way that comes by is told of this one.
    pub fn is_told_there(&self, cluster: u16, fact: &Fact) -> bool {
        let whose = self.access.owners.of_fact(cluster, fact);
        let same = whose == self.start.whose && whose != Whose::UNKNOWN;
        let neighbour = whose == Whose::UNKNOWN
            && self.start.whose == Whose::UNKNOWN
            && namespace_of(fact).is_some()
            && namespace_of(fact) == namespace_of(&self.start.fact);
        same || whose == Whose::EVERYONE || neighbour
    }

    /// Whether a node is somebody else's identity, where a way leaves.
    pub fn is_exit(&self, node: NodeId) -> bool {
        self.somebody(node).is_some_and(|(cluster, fact)| !self.is_told_there(cluster, &fact))
    }
}

impl Limits for Own<'_> {
    fn edge(&self, _from: NodeId, edge: &Edge) -> bool {
        // What everybody may do is told once, of the group that everybody is in.
        !matches!(edge.via, Via::Plain("member-of")) || self.start.whose == Whose::PLATFORM
    }

    fn expand(&self, node: NodeId) -> bool {
        let of = self.access.graph.node(node);
        // Nothing is wider.
        let whole = matches!(
            of,
            Some((_, Node::Fact(Fact::Everything(Scope::Cluster) | Fact::Secrets(Scope::Cluster))))
        );
        !whole && self.somebody(node).is_none()
    }
}

/// Stays with what leads to an end.
pub struct Towards<'a>(pub &'a Closure, pub NodeId);

impl Limits for Towards<'_> {
    fn edge(&self, _from: NodeId, edge: &Edge) -> bool {
        edge.to == self.1 || self.0.reaches(edge.to, self.1)
    }
}

/// Stays with what a start's own bindings give it.
pub struct OwnRights<'a>(pub &'a Access);

impl Limits for OwnRights<'_> {
    fn edge(&self, _from: NodeId, edge: &Edge) -> bool {
        matches!(edge.via, Via::Binding(_) | Via::Rule { .. } | Via::Admitted { .. })
    }

    fn expand(&self, node: NodeId) -> bool {
        matches!(self.0.graph.node(node), Some((_, Node::Fact(Fact::Role { .. }))))
    }
}
