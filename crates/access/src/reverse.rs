//! The graph backwards: who comes to a node, and by which hop each goes on.

use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    Certainty,
    close::Closure,
    graph::{Edge, Graph, NodeId},
};

/// The edges by where they lead.
#[derive(Debug)]
pub struct Reverse {
    starts: Vec<u32>,
    from: Vec<(NodeId, Edge)>,
}

/// How a node goes on towards a goal.
#[derive(Debug, Clone, Copy)]
pub enum Next {
    /// Over an edge.
    Edge(Edge),
    /// By a conjunction that it meets.
    Met(u32, NodeId),
}

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
        let mut from: Vec<(NodeId, Edge)> = edges().collect();
        from.sort_by_key(|(_, edge)| edge.to);
        Self { starts, from }
    }

    fn edges_to(&self, node: NodeId) -> &[(NodeId, Edge)] {
        let at = |index: usize| self.starts.get(index).copied().unwrap_or(0) as usize;
        self.from.get(at(node as usize)..at(node as usize + 1)).unwrap_or(&[])
    }

    /// Every node from which a goal is reached, with the hop that leads nearer, over proven edges where there are.
    pub fn towards(
        &self,
        proven: &Closure,
        all: &Closure,
        goals: &[NodeId],
    ) -> FxHashMap<NodeId, (Next, Certainty)> {
        let mut next: FxHashMap<NodeId, (Next, Certainty)> = FxHashMap::default();
        let mut known: FxHashSet<NodeId> = goals.iter().copied().collect();
        let mut order: Vec<NodeId> = goals.to_vec();
        for (least, closure) in [(Certainty::Proven, proven), (Certainty::Assumed, all)] {
            let met = met_by_gift(closure);
            let mut at = 0;
            while let Some(node) = order.get(at).copied() {
                at += 1;
                for (from, edge) in self.edges_to(node) {
                    if edge.certainty <= least && known.insert(*from) {
                        next.insert(*from, (Next::Edge(*edge), least));
                        order.push(*from);
                    }
                }
                for (start, and) in met.get(&node).into_iter().flatten() {
                    if known.insert(*start) {
                        next.insert(*start, (Next::Met(*and, node), least));
                        order.push(*start);
                    }
                }
            }
        }
        next
    }

    /// Every node from which a node is reached.
    pub fn upstream(&self, graph: &Graph, closure: &Closure, goal: NodeId) -> RoaringBitmap {
        let met = met_by_gift(closure);
        let mut found = RoaringBitmap::from_iter([goal]);
        let mut open = vec![goal];
        while let Some(node) = open.pop() {
            debug_assert!((node as usize) < graph.len());
            let met = met.get(&node).into_iter().flatten().map(|(start, _)| *start);
            for from in self.edges_to(node).iter().map(|(from, _)| *from).chain(met) {
                if found.insert(from) {
                    open.push(from);
                }
            }
        }
        found
    }
}

fn met_by_gift(closure: &Closure) -> FxHashMap<NodeId, Vec<(NodeId, u32)>> {
    let mut met: FxHashMap<NodeId, Vec<(NodeId, u32)>> = FxHashMap::default();
    for entry in &closure.met {
        met.entry(entry.gives).or_default().push((entry.start, entry.and));
    }
    met
}
