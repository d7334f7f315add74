//! What every node reaches, all at once: strongly connected components, then sets united from the sinks up.
//!
//! A set holds the nodes that answers are about: Secrets, whole scopes, clusters, and the ends of conjunctions. Sets
//! that are equal are shared. A conjunction is met by a start (an identity, a source) that reaches all its inputs; it
//! then gets an edge of its own, and the sets are made again, until no start gains one.

use std::rc::Rc;

use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    Certainty, Fact, Scope,
    graph::{Graph, Node, NodeId},
};

/// An edge that a start has because it meets a conjunction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Met {
    /// Who meets it.
    pub start: NodeId,
    /// Index into [`Graph::ands`].
    pub and: u32,
    /// What it gives.
    pub gives: NodeId,
}

/// What every node reaches.
#[derive(Debug)]
pub struct Closure {
    component: Vec<u32>,
    sets: Vec<Rc<RoaringBitmap>>,
    /// The conjunctions that starts meet.
    pub met: Vec<Met>,
    met_by: FxHashMap<NodeId, Vec<u32>>,
}

impl Closure {
    /// Closes a graph over the edges that are at least this sure: `Proven`, or with `Assumed` all of them.
    pub fn new(graph: &Graph, least: Certainty) -> Self {
        let ends = ends(graph);
        let starts: Vec<NodeId> = graph
            .nodes()
            .filter(|(_, _, node)| matches!(node, Node::Fact(Fact::Identity(_) | Fact::Source(_))))
            .map(|(id, ..)| id)
            .collect();
        let mut closure =
            Self { component: Vec::new(), sets: Vec::new(), met: Vec::new(), met_by: FxHashMap::default() };
        loop {
            closure.components(graph, &ends, least);
            if !closure.meet(graph, &starts, least) {
                return closure;
            }
        }
    }

    /// The ends that a node reaches.
    pub fn set(&self, node: NodeId) -> Option<&Rc<RoaringBitmap>> {
        let component = self.component.get(node as usize)?;
        self.sets.get(*component as usize)
    }

    /// Whether a node reaches an end.
    pub fn reaches(&self, node: NodeId, end: NodeId) -> bool {
        self.set(node).is_some_and(|set| set.contains(end))
    }

    /// The component of a node.
    pub fn component_of(&self, node: NodeId) -> Option<u32> {
        self.component.get(node as usize).copied()
    }

    /// Finds new conjunctions that starts meet; whether there were any.
    fn meet(&mut self, graph: &Graph, starts: &[NodeId], least: Certainty) -> bool {
        let mut inputs = RoaringBitmap::new();
        for and in graph.ands.iter().filter(|and| and.certainty <= least) {
            inputs.extend(and.inputs.iter().copied());
        }
        let full: FxHashMap<u16, NodeId> = (0u16..)
            .zip(&graph.clusters)
            .filter_map(|(cluster, _)| {
                graph.find(cluster, Fact::Everything(Scope::Cluster)).map(|node| (cluster, node))
            })
            .collect();
        let mut seen = FxHashSet::default();
        let mut found = Vec::new();
        for &start in starts {
            let Some(component) = self.component_of(start).filter(|c| seen.insert(*c)) else { continue };
            let Some(set) = self.sets.get(component as usize) else { continue };
            let mut asked = FxHashSet::default();
            for input in set.as_ref() & &inputs {
                for &index in graph.ands_of(input) {
                    let Some(and) = graph.ands.get(index as usize) else { continue };
                    let dominated = || {
                        let cluster = graph.node(and.gives).map(|(cluster, _)| *cluster);
                        let full = cluster.and_then(|cluster| full.get(&cluster));
                        full.is_some_and(|full| set.contains(*full))
                    };
                    if and.certainty <= least
                        && asked.insert(index)
                        && !set.contains(and.gives)
                        && !dominated()
                        && and.inputs.iter().all(|input| set.contains(*input))
                    {
                        found.push(Met { start, and: index, gives: and.gives });
                    }
                }
            }
        }
        for met in &found {
            let index = u32::try_from(self.met.len()).unwrap_or(u32::MAX);
            self.met_by.entry(met.start).or_default().push(index);
            self.met.push(*met);
        }
        !found.is_empty()
    }

    /// Tarjan's algorithm without recursion. Components come out sinks first, so each set is made when its component
    /// is complete.
    fn components(&mut self, graph: &Graph, ends: &RoaringBitmap, least: Certainty) {
        let mut walk = Walk::new(graph.len());
        self.sets.clear();
        self.component = vec![u32::MAX; graph.len()];
        for root in 0..u32::try_from(graph.len()).unwrap_or(u32::MAX) {
            if walk.is_new(root) {
                self.walk(&mut walk, root, graph, ends, least);
            }
        }
    }

    fn walk(&mut self, walk: &mut Walk, root: NodeId, graph: &Graph, ends: &RoaringBitmap, least: Certainty) {
        walk.enter(root);
        let mut frames = vec![(root, 0usize)];
        while let Some((node, next)) = frames.last_mut() {
            let node = *node;
            if let Some(to) = self.successor(graph, node, next, least) {
                if walk.is_new(to) {
                    walk.enter(to);
                    frames.push((to, 0));
                } else if self.component.get(to as usize) == Some(&u32::MAX) {
                    walk.lower(node, walk.index(to));
                }
                continue;
            }
            frames.pop();
            if let Some((parent, _)) = frames.last() {
                walk.lower(*parent, walk.low(node));
            }
            if walk.low(node) == walk.index(node) {
                let members = walk.leave(node);
                self.complete(graph, &members, ends, least);
            }
        }
    }

    /// The next successor of a node, over its edges and then the conjunctions that it meets.
    fn successor(&self, graph: &Graph, node: NodeId, next: &mut usize, least: Certainty) -> Option<NodeId> {
        let edges = graph.edges_of(node);
        while let Some(edge) = edges.get(*next) {
            *next += 1;
            if edge.certainty <= least {
                return Some(edge.to);
            }
        }
        let met = self.met_by.get(&node)?;
        let index = met.get(*next - edges.len())?;
        *next += 1;
        self.met.get(*index as usize).map(|met| met.gives)
    }

    fn complete(&mut self, graph: &Graph, members: &[NodeId], ends: &RoaringBitmap, least: Certainty) {
        let component = u32::try_from(self.sets.len()).unwrap_or(u32::MAX);
        for member in members {
            if let Some(slot) = self.component.get_mut(*member as usize) {
                *slot = component;
            }
        }
        let mut own = RoaringBitmap::new();
        let mut below: Vec<u32> = Vec::new();
        for &member in members {
            if ends.contains(member) {
                own.insert(member);
            }
            let mut next = 0;
            while let Some(to) = self.successor(graph, member, &mut next, least) {
                below.extend(self.component.get(to as usize).filter(|c| **c != component));
            }
        }
        below.sort_unstable();
        below.dedup();
        let mut sets: Vec<&Rc<RoaringBitmap>> =
            below.iter().filter_map(|c| self.sets.get(*c as usize)).filter(|set| !set.is_empty()).collect();
        sets.sort_by_key(|set| Rc::as_ptr(set));
        sets.dedup_by_key(|set| Rc::as_ptr(set));
        let set = match (own.is_empty(), sets.as_slice()) {
            (true, [only]) => Rc::clone(only),
            _ => {
                sets.iter().for_each(|set| own |= set.as_ref());
                Rc::new(own)
            }
        };
        self.sets.push(set);
    }
}

/// The nodes that sets hold.
fn ends(graph: &Graph) -> RoaringBitmap {
    let mut ends: RoaringBitmap = graph
        .nodes()
        .filter(|(_, _, node)| {
            matches!(
                node,
                Node::Fact(
                    Fact::Secret { .. }
                        | Fact::Secrets(_)
                        | Fact::Everything(_)
                        | Fact::OtherCluster(_)
                        | Fact::Cloud(_)
                )
            )
        })
        .map(|(id, ..)| id)
        .collect();
    for and in &graph.ands {
        ends.extend(and.inputs.iter().copied());
        ends.insert(and.gives);
    }
    ends
}

/// The state of Tarjan's algorithm.
struct Walk {
    index: Vec<u32>,
    low: Vec<u32>,
    stack: Vec<NodeId>,
    count: u32,
}

impl Walk {
    fn new(nodes: usize) -> Self {
        Self { index: vec![u32::MAX; nodes], low: vec![0; nodes], stack: Vec::new(), count: 0 }
    }

    fn is_new(&self, node: NodeId) -> bool {
        self.index(node) == u32::MAX
    }

    fn index(&self, node: NodeId) -> u32 {
        self.index.get(node as usize).copied().unwrap_or(0)
    }

    fn low(&self, node: NodeId) -> u32 {
        self.low.get(node as usize).copied().unwrap_or(0)
    }

    fn enter(&mut self, node: NodeId) {
        for list in [&mut self.index, &mut self.low] {
            if let Some(slot) = list.get_mut(node as usize) {
                *slot = self.count;
            }
        }
        self.count += 1;
        self.stack.push(node);
    }

    fn lower(&mut self, node: NodeId, to: u32) {
        if let Some(slot) = self.low.get_mut(node as usize) {
            *slot = (*slot).min(to);
        }
    }

    fn leave(&mut self, node: NodeId) -> Vec<NodeId> {
        let at = self.stack.iter().rposition(|member| *member == node).unwrap_or(0);
        self.stack.split_off(at)
    }
}
