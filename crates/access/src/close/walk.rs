//! The state of Tarjan's algorithm, without recursion.

use crate::graph::NodeId;

/// The state of Tarjan's algorithm.
pub(super) struct Walk {
    index: Vec<u32>,
    low: Vec<u32>,
    stack: Vec<NodeId>,
    count: u32,
}

impl Walk {
    pub(super) fn new(nodes: usize) -> Self {
        Self { index: vec![u32::MAX; nodes], low: vec![0; nodes], stack: Vec::new(), count: 0 }
    }

    pub(super) fn grow(&mut self, nodes: usize) {
        self.index.resize(nodes, u32::MAX);
        self.low.resize(nodes, 0);
    }

    pub(super) fn is_new(&self, node: NodeId) -> bool {
        self.index(node) == u32::MAX
    }

    pub(super) fn index(&self, node: NodeId) -> u32 {
        self.index.get(node as usize).copied().unwrap_or(0)
    }

    pub(super) fn low(&self, node: NodeId) -> u32 {
        self.low.get(node as usize).copied().unwrap_or(0)
    }

    pub(super) fn enter(&mut self, node: NodeId) {
        for list in [&mut self.index, &mut self.low] {
            if let Some(slot) = list.get_mut(node as usize) {
                *slot = self.count;
            }
        }
        self.count += 1;
        self.stack.push(node);
    }

    pub(super) fn lower(&mut self, node: NodeId, to: u32) {
        if let Some(slot) = self.low.get_mut(node as usize) {
            *slot = (*slot).min(to);
        }
    }

    pub(super) fn leave(&mut self, node: NodeId) -> Vec<NodeId> {
        let at = self.stack.iter().rposition(|member| *member == node).unwrap_or(0);
        self.stack.split_off(at)
    }
}
