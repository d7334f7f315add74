//! The graph backwards: who comes to a node, and by which hop each goes on.

use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    Certainty,
    graph::{Edge, Graph, NodeId},
};

/// The edges by where they lead.
#[derive(Debug, Clone)]
pub struct Reverse {
    starts: Vec<u32>,
    from: Vec<(NodeId, Edge)>,
}

/// For each node from which a goal is reached, the edge that leads nearer, and how sure the way is.
pub type Towards = FxHashMap<NodeId, (Edge, Certainty)>;

impl Reverse {
    /// Turns a graph around.
    pub fn new(graph: &Graph) -> Self {
        let mut starts = vec![0u32; graph.len() + 1];
        let edges =
            || graph.nodes().flat_map(|(id, ..)| graph.edges_of(id).iter().map(move |edge| (id, *edge)));
        for (_, edge) in edges() {
            if let Some(count) = starts.get_mut(edge.to as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let Some(first) = edges().next() else { return Self { starts, from: Vec::new() } };
        let mut from = vec![first; sum as usize];
        let mut next = starts.clone();
        for (node, edge) in edges() {
            if let Some(at) = next.get_mut(edge.to as usize)
                && let Some(place) = from.get_mut(*at as usize)
            {
                *place = (node, edge);
                *at += 1;
            }
        }
        Self { starts, from }
    }

    /// All nodes that lead to some of these, and these; what leads to them by way of an end is left out.
    pub fn cone(&self, of: &[NodeId], is_end: impl Fn(NodeId) -> bool) -> RoaringBitmap {
        let mut seen = vec![false; self.starts.len()];
        let mut open: Vec<NodeId> = Vec::new();
        let mut look = |node: NodeId, open: &mut Vec<NodeId>| {
            if let Some(seen) = seen.get_mut(node as usize).filter(|seen| !**seen) {
                *seen = true;
                open.push(node);
            }
        };
        for node in of {
            look(*node, &mut open);
        }
        let first = open.len();
        let mut at = 0;
        while let Some(node) = open.get(at).copied() {
            at += 1;
            if at > first && is_end(node) {
                continue;
            }
            for (from, _) in self.edges_to(node) {
                look(*from, &mut open);
            }
        }
        (0..).zip(seen).filter(|(_, seen)| *seen).map(|(node, _)| node).collect()
    }

    fn edges_to(&self, node: NodeId) -> &[(NodeId, Edge)] {
        let at = |index: usize| self.starts.get(index).copied().unwrap_or(0) as usize;
        self.from.get(at(node as usize)..at(node as usize + 1)).unwrap_or(&[])
    }

    /// Every node from which a goal is reached, with the edge that leads nearer, over proven edges where there are.
    pub fn towards(&self, goals: &[NodeId]) -> Towards {
        let mut next = Towards::default();
        let mut known: FxHashSet<NodeId> = goals.iter().copied().collect();
        let mut order: Vec<NodeId> = goals.to_vec();
        for least in [Certainty::Proven, Certainty::Assumed] {
            let mut at = 0;
            while let Some(node) = order.get(at).copied() {
                at += 1;
                for (from, edge) in self.edges_to(node) {
                    if edge.certainty <= least && known.insert(*from) {
                        next.insert(*from, (*edge, least));
                        order.push(*from);
                    }
                }
            }
        }
        next
    }
}
