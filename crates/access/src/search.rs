//! What one start reaches, with the way to each: breadth first, over proven edges before assumed ones.
//!
//! Conjunctions count their inputs down (Dowling and Gallier), so halves that are found on the way count like those
//! held from the start.

use rustc_hash::FxHashMap;

use crate::{
    Certainty,
    graph::{Edge, Graph, NodeId, Via},
};

/// How a node was reached.
#[derive(Debug, Clone, Copy)]
enum Parent {
    Start,
    Edge(NodeId, Edge),
    And(u32),
}

/// One hop of a way.
#[derive(Debug, Clone, Copy)]
pub enum Hop {
    /// Over an edge.
    Edge {
        /// Where it starts.
        from: NodeId,
        /// The edge.
        edge: Edge,
    },
    /// By a conjunction, whose inputs are reached by the hops before.
    And(u32),
}

/// Where a search may not go.
pub trait Limits {
    /// Whether an edge may be used.
    fn edge(&self, _from: NodeId, _edge: &Edge) -> bool {
        true
    }
    /// Whether what a node leads to is looked at.
    fn expand(&self, _node: NodeId) -> bool {
        true
    }
}

/// No limits.
#[derive(Debug, Clone, Copy)]
pub struct Anywhere;

impl Limits for Anywhere {}

/// What one start reaches.
#[derive(Debug)]
pub struct Search {
    start: NodeId,
    parents: FxHashMap<NodeId, (Parent, Certainty)>,
    order: Vec<NodeId>,
}

impl Search {
    /// Searches from a start.
    pub fn new(graph: &Graph, start: NodeId, limits: &impl Limits) -> Self {
        let mut search = Self { start, parents: FxHashMap::default(), order: vec![start] };
        search.parents.insert(start, (Parent::Start, Certainty::Proven));
        let mut missing: FxHashMap<u32, usize> = FxHashMap::default();
        for least in [Certainty::Proven, Certainty::Assumed] {
            search.run(graph, limits, least, &mut missing);
        }
        search
    }

    /// One phase: every node found so far is looked at again, with the edges of this certainty.
    fn run(
        &mut self,
        graph: &Graph,
        limits: &impl Limits,
        least: Certainty,
        missing: &mut FxHashMap<u32, usize>,
    ) {
        let mut next = 0;
        let known = self.order.len();
        while let Some(node) = self.order.get(next).copied() {
            let is_new = next >= known || least == Certainty::Proven;
            next += 1;
            for index in graph.ands_of(node) {
                let Some(and) = graph.ands.get(*index as usize) else { continue };
                let left = missing.entry(*index).or_insert(and.inputs.len());
                if is_new {
                    *left = left.saturating_sub(1);
                }
                if *left == 0 && and.certainty <= least {
                    self.reach(and.gives, Parent::And(*index), least);
                }
            }
            if node != self.start && !limits.expand(node) {
                continue;
            }
            for edge in graph.edges_of(node) {
                if edge.certainty <= least && limits.edge(node, edge) {
                    self.reach(edge.to, Parent::Edge(node, *edge), least);
                }
            }
        }
    }

    fn reach(&mut self, node: NodeId, parent: Parent, certainty: Certainty) {
        if let std::collections::hash_map::Entry::Vacant(entry) = self.parents.entry(node) {
            entry.insert((parent, certainty));
            self.order.push(node);
        }
    }

    /// The nodes reached, the nearest first, those over assumed edges last.
    pub fn reached(&self) -> &[NodeId] {
        &self.order
    }

    /// How sure it is that a node is reached; none if it is not.
    pub fn certainty(&self, node: NodeId) -> Option<Certainty> {
        self.parents.get(&node).map(|(_, certainty)| *certainty)
    }

    /// Whether a node was reached by a rule of a role.
    pub fn is_right(&self, node: NodeId) -> bool {
        matches!(
            self.parents.get(&node),
            Some((Parent::Edge(_, Edge { via: Via::Rule { .. } | Via::Admitted { .. }, .. }), _))
        )
    }

    /// The way to a node, empty for the start and for what is not reached.
    pub fn path(&self, graph: &Graph, node: NodeId) -> Vec<Hop> {
        let mut hops = Vec::new();
        let mut done = rustc_hash::FxHashSet::default();
        self.trace(graph, node, &mut hops, &mut done);
        hops
    }

    fn trace(
        &self,
        graph: &Graph,
        node: NodeId,
        hops: &mut Vec<Hop>,
        done: &mut rustc_hash::FxHashSet<NodeId>,
    ) {
        // A chain is walked back by a loop; only the inputs of a conjunction need a call of their own.
        let mut chain = Vec::new();
        let mut at = node;
        while done.insert(at) {
            match self.parents.get(&at) {
                Some((Parent::Edge(from, edge), _)) => {
                    chain.push(Hop::Edge { from: *from, edge: *edge });
                    at = *from;
                }
                Some((Parent::And(index), _)) => {
                    let inputs = graph.ands.get(*index as usize).map_or(&[][..], |and| &and.inputs);
                    // Bare rights come last, so that the rules which grant them stand next to what they are for.
                    let (rights, rest): (Vec<NodeId>, Vec<NodeId>) =
                        inputs.iter().partition(|input| self.is_right(**input));
                    for input in rest.into_iter().chain(rights) {
                        self.trace(graph, input, hops, done);
                    }
                    chain.push(Hop::And(*index));
                    break;
                }
                Some((Parent::Start, _)) | None => break,
            }
        }
        hops.extend(chain.into_iter().rev());
    }
}
