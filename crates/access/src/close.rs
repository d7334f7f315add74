//! What every node reaches, all at once: strongly connected components, then sets united from the sinks up.
//!
//! A set holds the nodes that answers are about: Secrets, whole scopes, clusters, cloud identities. Sets that are equal
//! are shared. When a component is complete, all that lies below it is known, and it is asked what follows from several
//! things together (see `graph::meet`); that may add edges to what is not closed yet, so all is closed again until no
//! edge is new.

use std::{
    hash::{Hash as _, Hasher as _},
    rc::Rc,
};

use roaring::RoaringBitmap;
use rustc_hash::{FxHashSet, FxHasher};

use crate::{
    Certainty, Fact, Power, Scope,
    graph::{Holds, Node, NodeId, Workshop},
};

/// What every node reaches.
#[derive(Debug)]
pub struct Closure {
    component: Vec<u32>,
    sets: Vec<Rc<RoaringBitmap>>,
}

/// What is known of a component besides its set.
#[derive(Debug, Clone, Copy)]
struct Of {
    cluster: u16,
    /// What it reaches of conjunctions.
    holds: Holds,
    /// Whether it reaches every right in its cluster, so that nothing can be added.
    full: bool,
    /// A hash of all that is reached: the same in two rounds only if nothing below has changed.
    below: u64,
}

impl Closure {
    /// Closes a graph over the edges that are at least this sure: `Proven`, or with `Assumed` all of them. Edges that
    /// follow from several things together are added to the graph.
    pub fn new(workshop: &mut Workshop<'_>, least: Certainty) -> Self {
        let mut most = MOST.into_iter();
        let mut settled = FxHashSet::default();
        loop {
            let most = most.next().unwrap_or(usize::MAX);
            let mut closing = Closing::new(least, most, settled, workshop.made.nodes.len());
            closing.all(workshop);
            if !closing.again {
                return closing.closure;
            }
            settled = closing.settled;
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
}

/// One round.
struct Closing {
    closure: Closure,
    known: Vec<Of>,
    walk: Walk,
    least: Certainty,
    /// How many nodes a search for conjunctions may come by.
    most: usize,
    /// Hashes of what needs no more searches.
    settled: FxHashSet<u64>,
    /// Whether edges were added to what was not closed yet, or a search was put off.
    again: bool,
}

/// How many nodes searches for conjunctions may come by, round by round; then any number. Most of what reaches very much
/// turns out to reach everything once the small ones are closed. Roles that are written into are left to the end as well.
const MOST: [usize; 2] = [500, 5_000];

impl Closing {
    fn new(least: Certainty, most: usize, settled: FxHashSet<u64>, nodes: usize) -> Self {
        Self {
            closure: Closure { component: vec![u32::MAX; nodes], sets: Vec::new() },
            known: Vec::new(),
            walk: Walk::new(nodes),
            least,
            most,
            settled,
            again: false,
        }
    }

    /// Powers first, so that they are closed when something is found to give one.
    fn all(&mut self, workshop: &mut Workshop<'_>) {
        let is_power = |node: &Node| matches!(node, Node::Fact(fact) if Power::of(fact).is_some());
        let powers: Vec<NodeId> = (0..)
            .zip(&workshop.made.nodes)
            .filter(|(_, (_, node))| is_power(node))
            .map(|(id, _)| id)
            .collect();
        for root in powers {
            self.from(root, workshop);
        }
        let mut root = 0;
        while (root as usize) < workshop.made.nodes.len() {
            self.from(root, workshop);
            root += 1;
        }
    }

    /// Tarjan's algorithm without recursion. Components come out sinks first, so each set is made when its component is
    /// complete.
    fn from(&mut self, root: NodeId, workshop: &mut Workshop<'_>) {
        if !self.walk.is_new(root) {
            return;
        }
        self.walk.enter(root);
        let mut frames = vec![(root, 0usize)];
        while let Some((node, next)) = frames.last_mut() {
            let node = *node;
            if let Some(to) = successor(workshop, node, next, self.least) {
                if self.walk.is_new(to) {
                    self.walk.enter(to);
                    frames.push((to, 0));
                } else if self.closure.component.get(to as usize) == Some(&u32::MAX) {
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

    fn complete(&mut self, workshop: &mut Workshop<'_>, members: &[NodeId]) {
        let component = u32::try_from(self.closure.sets.len()).unwrap_or(u32::MAX);
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
        full |= below.iter().filter_map(|c| self.known.get(*c as usize)).filter(of_cluster).any(|c| c.full);
        let mut all = self.hash(members, &below);
        if !full && !self.settled.contains(&all) {
            let (is_new, is_written) = self.is_meeting(workshop, cluster, members, &own, &below);
            let later = is_written && self.most != usize::MAX;
            self.again |= later;
            if is_new || (is_written && !later) {
                full = self.meet(workshop, cluster, members, &mut below, (all, later));
                all = self.hash(members, &below);
            } else if !later {
                self.settled.insert(all);
            }
        }
        let mut holds = own;
        for known in below.iter().filter_map(|c| self.known.get(*c as usize)).filter(of_cluster) {
            holds.join(&known.holds);
        }
        self.known.push(Of { cluster, holds, full, below: all });
        self.closure.sets.push(self.unite(ends, &below));
    }

    fn hash(&self, members: &[NodeId], below: &[u32]) -> u64 {
        let mut hasher = FxHasher::default();
        let known = below.iter().filter_map(|c| self.known.get(*c as usize)).map(|known| known.below);
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
        let known = below.iter().filter_map(|c| self.known.get(*c as usize));
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
        cluster: u16,
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
                Some(component) if *component != u32::MAX => {
                    if (*component as usize) < self.known.len() {
                        below.push(*component);
                    }
                }
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

/// Whether a node is one that answers are about.
fn is_end(node: &Node) -> bool {
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

    fn grow(&mut self, nodes: usize) {
        self.index.resize(nodes, u32::MAX);
        self.low.resize(nodes, 0);
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
