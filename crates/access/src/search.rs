//! What one start reaches, with the way to each: breadth first, over proven edges before assumed ones.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    Certainty,
    graph::{Edge, Graph, Input, NodeId, Via},
};

/// One hop of a way. The inputs of an edge that needs several things are reached by the hops before.
#[derive(Debug, Clone, Copy)]
pub struct Hop {
    /// Where it starts.
    pub from: NodeId,
    /// The edge.
    pub edge: Edge,
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
    /// Whether an edge counts whose inputs are reached only where the search may not go.
    fn inputs_beyond(&self) -> bool {
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
    parents: FxHashMap<NodeId, (Option<Hop>, Certainty)>,
    order: Vec<NodeId>,
    /// Goals that are not reached yet.
    missing: FxHashSet<NodeId>,
    /// Whether there are no goals.
    all: bool,
}

impl Search {
    /// Searches from a start for all that it reaches.
    pub fn new(graph: &Graph, start: NodeId, limits: &impl Limits) -> Self {
        Self::find(graph, start, limits, &[])
    }

    /// Searches from a start until these are reached, proven if they can be; without any, for all that it reaches.
    pub fn find(graph: &Graph, start: NodeId, limits: &impl Limits, goals: &[NodeId]) -> Self {
        let missing = goals.iter().copied().filter(|goal| *goal != start).collect();
        let all = goals.is_empty();
        let mut search = Self { start, parents: FxHashMap::default(), order: vec![start], missing, all };
        search.parents.insert(start, (None, Certainty::Proven));
        // Edges that wait for their inputs.
        let mut waiting: Vec<Hop> = Vec::new();
        for least in [Certainty::Proven, Certainty::Assumed] {
            let mut next = 0;
            loop {
                search.run(graph, limits, least, &mut next, &mut waiting);
                if !search.wake(graph, limits, least, &mut waiting) {
                    break;
                }
            }
        }
        search
    }

    /// Looks at every node found so far that was not yet looked at with the edges of this certainty.
    fn run(
        &mut self,
        graph: &Graph,
        limits: &impl Limits,
        least: Certainty,
        next: &mut usize,
        waiting: &mut Vec<Hop>,
    ) {
        while let Some(node) = self.order.get(*next).copied().filter(|_| !self.is_done()) {
            *next += 1;
            if node != self.start && !limits.expand(node) {
                continue;
            }
            for edge in graph.edges_of(node) {
                if edge.certainty > least || self.parents.contains_key(&edge.to) || !limits.edge(node, edge) {
                    continue;
                }
                let hop = Hop { from: node, edge: *edge };
                if self.has(graph.inputs_of(edge)) {
                    self.reach(hop, least);
                } else {
                    waiting.push(hop);
                }
            }
        }
    }

    /// Goes over edges whose inputs came by since; where there are none, over those whose inputs never will. Whether
    /// there was any.
    fn wake(
        &mut self,
        graph: &Graph,
        limits: &impl Limits,
        least: Certainty,
        waiting: &mut Vec<Hop>,
    ) -> bool {
        if self.is_done() {
            return false;
        }
        waiting.retain(|hop| !self.parents.contains_key(&hop.edge.to));
        let ready = waiting.iter().find(|hop| self.has(graph.inputs_of(&hop.edge)));
        let hop = ready.or_else(|| waiting.first().filter(|_| limits.inputs_beyond())).copied();
        hop.is_some_and(|hop| {
            self.reach(hop, least);
            true
        })
    }

    fn is_done(&self) -> bool {
        !self.all && self.missing.is_empty()
    }

    fn has(&self, inputs: &[Input]) -> bool {
        inputs.iter().all(|input| self.parents.contains_key(&input.node))
    }

    fn reach(&mut self, hop: Hop, certainty: Certainty) {
        if let std::collections::hash_map::Entry::Vacant(entry) = self.parents.entry(hop.edge.to) {
            entry.insert((Some(hop), certainty));
            self.order.push(hop.edge.to);
            self.missing.remove(&hop.edge.to);
        }
    }

    /// The nodes reached, the nearest first, those over assumed edges last.
    pub fn reached(&self) -> &[NodeId] {
        &self.order
    }

    /// The node from which a node was reached first; none for the start.
    pub fn before(&self, node: NodeId) -> Option<NodeId> {
        self.parents.get(&node).and_then(|(hop, _)| hop.as_ref()).map(|hop| hop.from)
    }

    /// How sure it is that a node is reached; none if it is not.
    pub fn certainty(&self, node: NodeId) -> Option<Certainty> {
        self.parents.get(&node).map(|(_, certainty)| *certainty)
    }

    /// The way to a node, empty for the start and for what is not reached.
    pub fn path(&self, graph: &Graph, node: NodeId) -> Vec<Hop> {
        let mut hops = Vec::new();
        let mut done = FxHashSet::default();
        self.trace(graph, node, &mut hops, &mut done);
        hops
    }

    fn trace(&self, graph: &Graph, node: NodeId, hops: &mut Vec<Hop>, done: &mut FxHashSet<NodeId>) {
        // A chain is walked back by a loop; only the inputs of an edge need a call of their own.
        let mut chain = Vec::new();
        let mut at = node;
        while done.insert(at) {
            let Some((Some(hop), _)) = self.parents.get(&at) else { break };
            chain.push(*hop);
            let inputs = graph.inputs_of(&hop.edge);
            if inputs.is_empty() {
                at = hop.from;
                continue;
            }
            self.trace_inputs(graph, *hop, inputs, hops, done);
            break;
        }
        hops.extend(chain.into_iter().rev());
    }

    /// Bare rights come last, so that the rules which grant them stand next to what they are for.
    fn trace_inputs(
        &self,
        graph: &Graph,
        hop: Hop,
        inputs: &[Input],
        hops: &mut Vec<Hop>,
        done: &mut FxHashSet<NodeId>,
    ) {
        let (rights, rest): (Vec<&Input>, Vec<&Input>) = inputs.iter().partition(|input| input.via.is_some());
        let mut beyond: Option<Self> = None;
        for input in rest.into_iter().chain(rights) {
            if self.parents.contains_key(&input.node) {
                self.trace(graph, input.node, hops, done);
            } else {
                self.trace(graph, hop.from, hops, done);
                let beyond = beyond.get_or_insert_with(|| {
                    let goals: Vec<NodeId> = inputs.iter().map(|input| input.node).collect();
                    Self::find(graph, hop.from, &Anywhere, &goals)
                });
                beyond.trace(graph, input.node, hops, done);
            }
        }
    }
}

/// Whether an edge is a choice that another could stand in for: a binding.
pub fn is_choice(edge: &Edge) -> bool {
    matches!(edge.via, Via::Binding(_) | Via::Admitted { .. })
}
