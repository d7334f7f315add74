//! What a node reaches while the graph is made: a walk over the edges as they are now.

use super::{Node, NodeId, build::Builder};
use crate::{Certainty, Fact, Scope, Symbol};

/// What was come by from one node.
#[derive(Debug, Default)]
pub struct Reached {
    /// Those that hold halves.
    pub carriers: Vec<NodeId>,
    /// Roles, by namespace, name and scope.
    pub roles: Vec<(Option<Symbol>, Symbol, Scope, NodeId)>,
    /// How many nodes may still be come by.
    pub left: usize,
}

impl Builder<'_> {
    /// Starts a walk.
    pub fn set_out(&mut self) {
        self.made.epoch += 1;
    }

    /// Goes on with the walk from a node, within the cluster, over edges that are at least this sure.
    pub fn walk(&mut self, from: NodeId, least: Certainty, reached: &mut Reached) {
        let mut open = vec![from];
        while let Some(node) = open.pop().filter(|_| reached.left > 0) {
            let epoch = self.made.epoch;
            match self.made.seen.get_mut(node as usize) {
                Some(seen) if *seen != epoch => *seen = epoch,
                _ => continue,
            }
            reached.left -= 1;
            match self.made.nodes.get_index(node as usize) {
                Some((cluster, what)) if *cluster == self.cluster => {
                    if let Node::Fact(Fact::Role { namespace, name, scope }) = what {
                        reached.roles.push((*namespace, *name, *scope, node));
                    }
                }
                _ => continue,
            }
            let holds = self.made.holds.get(node as usize);
            if holds.is_some_and(|holds| !holds.shared.is_empty() || !holds.own.is_empty() || holds.writer) {
                reached.carriers.push(node);
            }
            let edges = self.made.edges.get(node as usize).into_iter().flatten();
            let fresh = edges.filter(|edge| edge.certainty <= least).map(|edge| edge.to);
            let seen = &self.made.seen;
            open.extend(fresh.filter(|to| seen.get(*to as usize) != Some(&epoch)));
        }
    }

    /// Whether the walk came by a node.
    pub fn was_reached(&self, node: NodeId) -> bool {
        self.made.seen.get(node as usize) == Some(&self.made.epoch)
    }

    /// Whether the walk came by a fact.
    pub fn is_reached(&self, fact: Fact) -> bool {
        self.find(Node::Fact(fact)).is_some_and(|node| self.was_reached(node))
    }
}
