//! Who reaches every right in a cluster over edges that need nothing else.
//!
//! Each has a next node on the way. While that edge stays, a change elsewhere takes nothing from it, and can add nothing:
//! so it needs not be closed again, although it leads to whatever has changed.

use rustc_hash::FxHashSet;

use crate::{
    Certainty,
    graph::{Edge, Made, NodeId, Via},
};

/// The next node on the way of each, itself for the goal, `NodeId::MAX` for who does not get there.
#[derive(Debug, Clone)]
pub struct Plain {
    next: Vec<NodeId>,
    least: Certainty,
}

impl Plain {
    /// Finds all who get to a goal over edges that are at least this sure.
    pub fn new(made: &Made, goal: Option<NodeId>, least: Certainty) -> Self {
        let mut plain = Self { next: vec![NodeId::MAX; made.nodes.len()], least };
        if let Some(goal) = goal {
            plain.set(goal, goal);
            plain.spread(made, vec![goal]);
        }
        plain
    }

    /// Whether a node gets there.
    pub fn has(&self, node: NodeId) -> bool {
        self.next.get(node as usize).is_some_and(|next| *next != NodeId::MAX)
    }

    /// After these are gone.
    pub fn leave(&mut self, gone: &[NodeId]) {
        for node in gone {
            self.set(*node, NodeId::MAX);
        }
    }

    fn set(&mut self, node: NodeId, next: NodeId) {
        if let Some(slot) = self.next.get_mut(node as usize) {
            *slot = next;
        }
    }

    fn leads(&self, edge: &Edge) -> bool {
        edge.certainty <= self.least && !matches!(edge.via, Via::Joint(_))
    }

    /// Whether a way over plain edges leads from one node to another that comes by none of these.
    pub fn leads_to(&self, made: &Made, from: NodeId, to: NodeId, avoiding: &[NodeId]) -> bool {
        let mut seen: FxHashSet<NodeId> = avoiding.iter().copied().collect();
        let mut open = std::collections::VecDeque::from([to]);
        while let Some(node) = open.pop_front() {
            if node == from {
                return true;
            }
            for &before in made.incoming_of(node) {
                let leads = || made.edges_of(before).iter().any(|edge| edge.to == node && self.leads(edge));
                if !seen.contains(&before) && leads() {
                    seen.insert(before);
                    open.push_back(before);
                }
            }
        }
        false
    }

    /// Finds who comes to these over plain edges.
    fn spread(&mut self, made: &Made, mut open: Vec<NodeId>) {
        while let Some(node) = open.pop() {
            for &from in made.incoming_of(node) {
                let leads = || made.edges_of(from).iter().any(|edge| edge.to == node && self.leads(edge));
                if !self.has(from) && leads() {
                    self.set(from, node);
                    open.push(from);
                }
            }
        }
    }

    /// After the edges of these nodes were made anew: those of all nodes that do not get there any more.
    pub fn lose(&mut self, made: &Made, changed: &[NodeId]) -> Vec<NodeId> {
        self.next.resize(made.nodes.len(), NodeId::MAX);
        let mut lost: Vec<NodeId> = Vec::new();
        for &node in changed {
            let Some(next) = self.next.get(node as usize).copied().filter(|next| *next != NodeId::MAX) else {
                continue;
            };
            let stays =
                next == node || made.edges_of(node).iter().any(|edge| edge.to == next && self.leads(edge));
            if !stays {
                self.set(node, NodeId::MAX);
                lost.push(node);
            }
        }
        // Whoever went by one of these.
        let mut at = 0;
        while let Some(node) = lost.get(at).copied() {
            at += 1;
            for &from in made.incoming_of(node) {
                if from != node && self.next.get(from as usize) == Some(&node) {
                    self.set(from, NodeId::MAX);
                    lost.push(from);
                }
            }
        }
        self.gain(made, &lost);
        lost.retain(|node| !self.has(*node));
        lost
    }

    /// Finds which of these nodes get there, and who comes to them.
    pub fn gain(&mut self, made: &Made, nodes: &[NodeId]) {
        self.next.resize(made.nodes.len(), NodeId::MAX);
        let mut found = Vec::new();
        for &node in nodes {
            if self.has(node) {
                continue;
            }
            let edge = made.edges_of(node).iter().find(|edge| self.leads(edge) && self.has(edge.to));
            if let Some(to) = edge.map(|edge| edge.to) {
                self.set(node, to);
                found.push(node);
            }
        }
        self.spread(made, found);
    }
}
