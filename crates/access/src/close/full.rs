//! The sets of those who reach every right in their cluster: every Secret and scope there, and what else they get at.
//!
//! In many clusters a third of all nodes is such. Their sets are made once and shared, not united one by one.

use std::rc::Rc;

use roaring::RoaringBitmap;

use crate::{
    Fact,
    graph::{Node, NodeId, Workshop},
};

/// The sets of those who reach every right in their cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct FullSets {
    /// How many nodes were looked at.
    looked_at: NodeId,
    /// All Secrets and scopes by cluster.
    all: Vec<RoaringBitmap>,
    groups: Vec<Group>,
    grown: bool,
}

#[derive(Debug, Clone)]
struct Group {
    cluster: u16,
    /// What is reached besides: other clusters, what is in them, the cloud.
    beyond: RoaringBitmap,
    set: Rc<RoaringBitmap>,
}

impl FullSets {
    /// Looks at nodes that are new. Says whether there is one that everybody here reaches.
    pub fn look(&mut self, workshop: &Workshop<'_>) -> bool {
        self.all.resize(workshop.builder_count(), RoaringBitmap::new());
        let nodes = &workshop.made.nodes;
        let mut grown = false;
        while let Some((cluster, node)) = nodes.get_index(self.looked_at as usize) {
            if let (true, Some(all)) = (is_within(node), self.all.get_mut(usize::from(*cluster))) {
                grown |= all.insert(self.looked_at);
            }
            self.looked_at += 1;
        }
        self.grown |= grown;
        grown
    }

    /// Whether sets are behind what was looked at.
    pub fn is_grown(&self) -> bool {
        self.grown
    }

    /// Makes all sets anew.
    pub fn settle(&mut self) {
        for group in &mut self.groups {
            if let Some(all) = self.all.get(usize::from(group.cluster)) {
                group.set = Rc::new(all | &group.beyond);
            }
        }
        self.grown = false;
    }

    /// What of a set is neither a Secret nor a scope of the cluster.
    pub fn beyond(&self, cluster: u16, set: &RoaringBitmap) -> RoaringBitmap {
        self.all.get(usize::from(cluster)).map_or_else(|| set.clone(), |all| set - all)
    }

    /// The group of those who reach so much besides, and what these groups do.
    pub fn find(&mut self, cluster: u16, mut beyond: RoaringBitmap, with: &[u32]) -> u32 {
        if let ([only], true) = (with, beyond.is_empty()) {
            return *only;
        }
        for group in with.iter().filter_map(|group| self.groups.get(*group as usize)) {
            beyond |= &group.beyond;
        }
        let same = |group: &Group| group.cluster == cluster && group.beyond == beyond;
        let at = self.groups.iter().position(same).unwrap_or_else(|| {
            let all = self.all.get(usize::from(cluster));
            let set = Rc::new(all.map_or_else(|| beyond.clone(), |all| all | &beyond));
            self.groups.push(Group { cluster, beyond, set });
            self.groups.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// The set of a group.
    pub fn set(&self, group: u32) -> Rc<RoaringBitmap> {
        self.groups.get(group as usize).map_or_else(Rc::default, |group| Rc::clone(&group.set))
    }
}

fn is_within(node: &Node) -> bool {
    matches!(node, Node::Fact(Fact::Secret { .. } | Fact::Secrets(_) | Fact::Everything(_)))
}
