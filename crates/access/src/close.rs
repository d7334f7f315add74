//! What every node reaches, all at once: strongly connected components, then sets united from the sinks up.
//!
//! A set holds the nodes that answers are about: Secrets, whole scopes, clusters, cloud identities. Sets that are equal
//! are shared. When a component is complete, all that lies below it is known, and it is asked what follows from several
//! things together (see `graph::meet`); that may add edges to what is not closed yet, so all is closed again until no
//! edge is new.

mod full;
mod plain;
mod round;
mod walk;

use std::rc::Rc;

use roaring::RoaringBitmap;
use rustc_hash::FxHashSet;

use self::{full::FullSets, plain::Plain, round::Closing};
use crate::{
    Certainty, Fact, Scope,
    graph::{Holds, Made, Node, NodeId, Workshop},
};

/// What every node reaches.
#[derive(Debug, Clone, Default)]
pub struct Closure {
    component: Vec<u32>,
    sets: Vec<Rc<RoaringBitmap>>,
    known: Vec<Of>,
    /// Components that are no more.
    free: Vec<u32>,
    /// The sets of those that reach every right in their cluster.
    full: FullSets,
    /// Who reaches every right in the only cluster, once there was a change.
    plain: Option<Plain>,
}

/// What is known of a component besides its set.
#[derive(Debug, Clone, Copy)]
struct Of {
    cluster: u16,
    /// What it reaches of conjunctions.
    holds: Holds,
    /// Where it reaches every right in its cluster, so that nothing can be added: its set, one of [`FullSets`].
    full: Option<u32>,
    /// How many nodes are in it.
    size: u32,
    /// A hash of all that is reached: the same in two rounds only if nothing below has changed.
    below: u64,
}

impl Closure {
    /// Closes a graph over the edges that are at least this sure: `Proven`, or with `Assumed` all of them. Edges that
    /// follow from several things together are added to the graph.
    pub fn new(workshop: &mut Workshop<'_>, least: Certainty) -> Self {
        let mut closure = Self::default();
        closure.renew(workshop, least, &[]);
        closure
    }

    /// Closes some nodes again, and those that are new. Whatever leads to one of the nodes is among them.
    pub fn renew(&mut self, workshop: &mut Workshop<'_>, least: Certainty, cone: &[NodeId]) {
        let before = NodeId::try_from(self.component.len()).unwrap_or(NodeId::MAX);
        let mut most = MOST.into_iter();
        let mut settled = FxHashSet::default();
        loop {
            let most = most.next().unwrap_or(usize::MAX);
            let revived = workshop.made.revived.iter().filter(|node| **node < before);
            let mut again: Vec<NodeId> = cone.iter().chain(revived).copied().collect();
            again.extend(before..NodeId::try_from(workshop.made.nodes.len()).unwrap_or(NodeId::MAX));
            self.open(&again, workshop.made.nodes.len());
            self.full.look(workshop);
            let closure = std::mem::take(self);
            let mut closing = Closing::new(closure, least, most, settled, workshop.made.nodes.len());
            closing.all(workshop, &again);
            *self = closing.closure;
            // What leads into another cluster has taken the set of that one as it was.
            let grown = self.full.look(workshop);
            let is_behind = grown && workshop.builder_count() > 1;
            if !closing.again && !is_behind {
                break;
            }
            settled = closing.settled;
        }
        if self.full.is_grown() {
            self.full.settle();
            for (set, known) in self.sets.iter_mut().zip(&self.known) {
                if let Some(group) = known.full {
                    *set = self.full.set(group);
                }
            }
        }
    }

    /// Before the first change, finds who reaches every right in the only cluster by plain edges.
    pub fn prepare(&mut self, made: &Made, least: Certainty) -> Vec<NodeId> {
        if self.plain.is_some() {
            return Vec::new();
        }
        let plain = self.plain.insert(Plain::new(made, goal(made), least));
        let nodes = (0..made.nodes.len()).filter_map(|node| NodeId::try_from(node).ok());
        nodes.filter(|node| plain.has(*node)).collect()
    }

    /// After the edges of these nodes were made anew: who may reach something else now. `with`: others of whom some
    /// edges were taken.
    pub fn cone(&mut self, made: &Made, changed: &[NodeId], with: &[NodeId]) -> Vec<NodeId> {
        let Some(plain) = &mut self.plain else { return made.cone(changed, |_| false) };
        let mut of = plain.lose(made, changed);
        of.extend(changed.iter().chain(with));
        made.cone(&of, |node| plain.has(node))
    }

    /// After these were closed again, and nodes from an index on: finds who of them reaches every right.
    pub fn gain(&mut self, made: &Made, mut closed: Vec<NodeId>, new: usize) {
        let Some(plain) = &mut self.plain else { return };
        closed.extend((new..made.nodes.len()).filter_map(|node| NodeId::try_from(node).ok()));
        closed.extend(&made.revived);
        plain.gain(made, &closed);
    }

    /// After these are gone.
    pub fn leave(&mut self, gone: &[NodeId]) {
        if let Some(plain) = &mut self.plain {
            plain.leave(gone);
        }
    }

    /// What the edges of some nodes lead to that is neither a Secret nor a scope of the only cluster.
    pub fn beyond(&self, made: &Made, nodes: &[NodeId]) -> Vec<RoaringBitmap> {
        let of_all = goal(made).and_then(|goal| self.set(goal));
        let of_all = of_all.map(|set| self.full.beyond(0, set)).unwrap_or_default();
        let of = |node: &NodeId| {
            let edges = made.edges_of(*node).iter();
            let mut targets: Vec<u32> = edges.filter_map(|edge| self.component_of(edge.to)).collect();
            targets.sort_unstable();
            targets.dedup();
            let mut all = RoaringBitmap::new();
            for component in targets {
                let at = component as usize;
                let (Some(known), Some(set)) = (self.known.get(at), self.sets.get(at)) else { continue };
                match known.full {
                    // What everything gives is not gained or lost by this.
                    Some(_) => all |= self.full.beyond(0, set) - &of_all,
                    None => all |= self.full.beyond(0, set),
                }
            }
            all
        };
        nodes.iter().map(of).collect()
    }

    /// The same of what nodes reach.
    pub fn reached_beyond(&self, nodes: &[NodeId]) -> Vec<RoaringBitmap> {
        let of = |node: &NodeId| self.set(*node).map(|set| self.full.beyond(0, set)).unwrap_or_default();
        nodes.iter().map(of).collect()
    }

    /// Whether those who reach every right in the only cluster may have gained or lost some of these by changes of nodes.
    pub fn is_beyond_changed(&self, made: &Made, changed: &[NodeId], others: &RoaringBitmap) -> bool {
        let (Some(plain), Some(goal)) = (&self.plain, goal(made)) else { return !others.is_empty() };
        !others.iter().all(|end| plain.leads_to(made, goal, end, changed))
    }

    /// Forgets the components of nodes.
    fn open(&mut self, nodes: &[NodeId], count: usize) {
        self.component.resize(count, u32::MAX);
        for node in nodes {
            let Some(slot) = self.component.get_mut(*node as usize).filter(|slot| **slot != u32::MAX) else {
                continue;
            };
            let component = std::mem::replace(slot, u32::MAX);
            // Others may stay in it, who reach every right in any case.
            let Some(known) = self.known.get_mut(component as usize) else { continue };
            known.size = known.size.saturating_sub(1);
            if known.size == 0 {
                self.free.push(component);
                if let Some(set) = self.sets.get_mut(component as usize) {
                    *set = Rc::default();
                }
            }
        }
    }

    /// The set of a component that reaches every right in its cluster.
    fn group(&mut self, workshop: &Workshop<'_>, cluster: u16, ends: &RoaringBitmap, below: &[u32]) -> u32 {
        self.full.look(workshop);
        let mut beyond = self.full.beyond(cluster, ends);
        let mut groups: Vec<u32> = Vec::new();
        for (known, set) in
            below.iter().filter_map(|c| self.known.get(*c as usize).zip(self.sets.get(*c as usize)))
        {
            match known.full.filter(|_| known.cluster == cluster) {
                Some(group) => groups.push(group),
                None if set.is_empty() => {}
                None => beyond |= self.full.beyond(cluster, set),
            }
        }
        groups.sort_unstable();
        groups.dedup();
        self.full.find(cluster, beyond, &groups)
    }

    /// The ends that a node reaches. Who reaches every right in its cluster reaches every Secret there, whether or not a
    /// way leads to it by name.
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

/// How many nodes searches for conjunctions may come by, round by round; then any number. Most of what reaches very much
/// turns out to reach everything once the small ones are closed. Roles that are written into are left to the end as well.
const MOST: [usize; 2] = [500, 5_000];

/// Every right in the only cluster.
fn goal(made: &Made) -> Option<NodeId> {
    let everything = (0, Node::Fact(Fact::Everything(Scope::Cluster)));
    made.nodes.get_index_of(&everything).and_then(|goal| NodeId::try_from(goal).ok())
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
