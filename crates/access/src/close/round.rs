//! One round of closing: strongly connected components, sinks first, and what follows at each from several things.

use std::{
    hash::{Hash as _, Hasher as _},
    rc::Rc,
};

use roaring::RoaringBitmap;
use rustc_hash::{FxHashSet, FxHasher};

use super::{Closure, Of, is_end, walk::Walk};
use crate::{
    Certainty, Fact, Power, Scope,
    graph::{Holds, Node, NodeId, Workshop},
};

/// One round.
pub(super) struct Closing {
    pub(super) closure: Closure,
    walk: Walk,
    least: Certainty,
    /// How many nodes a search for conjunctions may come by.
    most: usize,
    /// Hashes of what needs no more searches.
    pub(super) settled: FxHashSet<u64>,
    /// Whether edges were added to what was not closed yet, or a search was put off.
    pub(super) again: bool,
}

impl Closing {
    pub(super) fn new(
        closure: Closure,
        least: Certainty,
        most: usize,
        settled: FxHashSet<u64>,
        nodes: usize,
    ) -> Self {
        Self { closure, walk: Walk::new(nodes), least, most, settled, again: false }
    }

    /// Closes all of some nodes, powers first, so that they are closed when something is found to give one; then those
    /// that come by while it does.
    pub(super) fn all(&mut self, workshop: &mut Workshop<'_>, nodes: &[NodeId]) {
        let is_power = |node: &NodeId| {
            let node = workshop.made.nodes.get_index(*node as usize);
            matches!(node, Some((_, Node::Fact(fact))) if Power::of(fact).is_some())
        };
        let powers: Vec<NodeId> = nodes.iter().copied().filter(is_power).collect();
        let mut next = NodeId::try_from(workshop.made.nodes.len()).unwrap_or(NodeId::MAX);
        for root in powers.iter().chain(nodes) {
            self.from(*root, workshop);
        }
        while (next as usize) < workshop.made.nodes.len() {
            self.from(next, workshop);
            next += 1;
        }
    }

    /// Tarjan's algorithm without recursion. Components come out sinks first, so each set is made when its component is
    /// complete.
    fn from(&mut self, root: NodeId, workshop: &mut Workshop<'_>) {
        if !self.is_open(root) || !self.walk.is_new(root) {
            return;
        }
        self.walk.enter(root);
        let mut frames = vec![(root, 0usize)];
        while let Some((node, next)) = frames.last_mut() {
            let node = *node;
            if let Some(to) = successor(workshop, node, next, self.least) {
                if !self.is_open(to) {
                    continue;
                }
                if self.walk.is_new(to) {
                    self.walk.enter(to);
                    frames.push((to, 0));
                } else {
                    self.walk.lower(node, self.walk.index(to));
                }
                continue;
            }
            frames.pop();
            if let Some((parent, _)) = frames.last() {
                self.walk.lower(*parent, self.walk.low(node));
            }
            if self.walk.low(node) == self.walk.index(node) {
                let members = self.walk.leave(node);
                self.complete(workshop, &members);
            }
        }
    }

    /// Whether a node is in no component yet.
    fn is_open(&self, node: NodeId) -> bool {
        self.closure.component.get(node as usize) == Some(&u32::MAX)
    }

    fn complete(&mut self, workshop: &mut Workshop<'_>, members: &[NodeId]) {
        let component = self.closure.free.pop();
        let component =
            component.unwrap_or_else(|| u32::try_from(self.closure.sets.len()).unwrap_or(u32::MAX));
        let mut ends = RoaringBitmap::new();
        let mut below: Vec<u32> = Vec::new();
        let mut own = Holds::default();
        let first = members.first().and_then(|first| workshop.made.nodes.get_index(*first as usize));
        let cluster = first.map_or(0, |(cluster, _)| *cluster);
        let mut full = false;
        for &member in members {
            if let Some(slot) = self.closure.component.get_mut(member as usize) {
                *slot = component;
            }
            let Some((_, node)) = workshop.made.nodes.get_index(member as usize) else { continue };
            if is_end(node) {
                ends.insert(member);
            }
            full |= *node == Node::Fact(Fact::Everything(Scope::Cluster));
            if let Some(holds) = workshop.made.holds.get(member as usize) {
                own.join(holds);
            }
            let edges = workshop.edges_of(member).iter().filter(|edge| edge.certainty <= self.least);
            let of = edges.filter_map(|edge| self.closure.component.get(edge.to as usize));
            below.extend(of.filter(|c| **c != component));
        }
        below.sort_unstable();
        below.dedup();
        let of_cluster = |known: &&Of| known.cluster == cluster;
        let mut known = below.iter().filter_map(|c| self.closure.known.get(*c as usize)).filter(of_cluster);
        full |= known.any(|known| known.full.is_some());
        let mut all = self.hash(members, &below);
        if !full && !self.settled.contains(&all) {
            let (is_new, is_written) = self.is_meeting(workshop, cluster, members, &own, &below);
            let later = is_written && self.most != usize::MAX;
            self.again |= later;
            if is_new || (is_written && !later) {
                full = self.meet(workshop, (cluster, component), members, &mut below, (all, later));
                all = self.hash(members, &below);
            } else if !later {
                self.settled.insert(all);
            }
        }
        let mut holds = own;
        for known in below.iter().filter_map(|c| self.closure.known.get(*c as usize)).filter(of_cluster) {
            holds.join(&known.holds);
        }
        let group = full.then(|| self.closure.group(workshop, cluster, &ends, &below));
        let set = match group {
            Some(group) => self.closure.full.set(group),
            None => self.unite(ends, &below),
        };
        let size = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let of = Of { cluster, holds, full: group, size, below: all };
        match self
            .closure
            .sets
            .get_mut(component as usize)
            .zip(self.closure.known.get_mut(component as usize))
        {
            Some(slot) => (*slot.0, *slot.1) = (set, of),
            None => {
                self.closure.known.push(of);
                self.closure.sets.push(set);
            }
        }
    }

    fn hash(&self, members: &[NodeId], below: &[u32]) -> u64 {
        let mut hasher = FxHasher::default();
        let known = below.iter().filter_map(|c| self.closure.known.get(*c as usize)).map(|known| known.below);
        let mut below: Vec<u64> = known.collect();
        let mut members = members.to_vec();
        below.sort_unstable();
        members.sort_unstable();
        (members, below).hash(&mut hasher);
        hasher.finish()
    }

    /// What may follow from several things here, and not already at one of the components below.
    fn is_meeting(
        &self,
        workshop: &Workshop<'_>,
        cluster: u16,
        members: &[NodeId],
        own: &Holds,
        below: &[u32],
    ) -> (bool, bool) {
        let known = below.iter().filter_map(|c| self.closure.known.get(*c as usize));
        let known = known.filter(|known| known.cluster == cluster).map(|known| &known.holds);
        let below: Vec<&Holds> = known.filter(|holds| !holds.is_empty()).collect();
        if own.is_empty() && below.len() < 2 {
            return (false, false);
        }
        workshop.is_meeting(cluster, members, own, &below)
    }

    /// Whether the component now reaches every right of its cluster.
    fn meet(
        &mut self,
        workshop: &mut Workshop<'_>,
        (cluster, own): (u16, u32),
        members: &[NodeId],
        below: &mut Vec<u32>,
        (all, later): (u64, bool),
    ) -> bool {
        let before = workshop.made.nodes.len();
        let least = self.least;
        let most = self.most;
        let met = workshop.with(usize::from(cluster), |builder| builder.meet(members, least, most));
        if met.given.is_empty() && !met.put_off && !later {
            self.settled.insert(all);
        }
        let after = workshop.made.nodes.len();
        self.again |= met.put_off || after != before;
        self.walk.grow(after);
        self.closure.component.resize(after, u32::MAX);
        for node in met.given {
            match self.closure.component.get(node as usize) {
                Some(component) if *component == own => {}
                Some(component) if *component != u32::MAX => below.push(*component),
                _ => self.again = true,
            }
        }
        below.sort_unstable();
        below.dedup();
        met.full
    }

    fn unite(&self, mut own: RoaringBitmap, below: &[u32]) -> Rc<RoaringBitmap> {
        let sets = &self.closure.sets;
        let mut sets: Vec<&Rc<RoaringBitmap>> =
            below.iter().filter_map(|c| sets.get(*c as usize)).filter(|set| !set.is_empty()).collect();
        sets.sort_by_key(|set| Rc::as_ptr(set));
        sets.dedup_by_key(|set| Rc::as_ptr(set));
        match (own.is_empty(), sets.as_slice()) {
            (true, [only]) => Rc::clone(only),
            _ => {
                sets.iter().for_each(|set| own |= set.as_ref());
                Rc::new(own)
            }
        }
    }
}

/// The next successor of a node.
fn successor(workshop: &Workshop<'_>, node: NodeId, next: &mut usize, least: Certainty) -> Option<NodeId> {
    while let Some(edge) = workshop.edges_of(node).get(*next) {
        *next += 1;
        if edge.certainty <= least {
            return Some(edge.to);
        }
    }
    None
}
