//! Makes anew what a change of facts touches, and closes again only what leads there.
//!
//! The nodes that read of what has changed lose their edges and are expanded again. Whatever leads to them, the cone, may
//! reach something else now: there the edges that need several things are taken back, and are found again when the cone
//! is closed. Whoever reaches every right in the cluster by a way that is left as it was is no part of it (`close::plain`).
//! All else keeps its nodes, edges and sets.
//!
//! INVARIANT: what anybody who exists reaches is the same as in a graph made of the new facts alone.

use roaring::RoaringBitmap;
use rustc_hash::FxHashSet;

use super::{
    Edge, Graph, Node, NodeId, Via, Workshop,
    build::{Builder, ExistingObject},
    change::{Change, Changes, Touched},
    reads::{Read, Reader},
};
use crate::{Certainty, Fact, Need, Power, Scope, Snapshot, SubjectKind, close::Closure};

/// After how many edges of several inputs that nothing uses any more all is made anew.
const JOINTS_UNUSED_MAX: usize = 20_000;

/// What a change has made other, for who asks about it.
#[derive(Debug, Clone)]
pub struct Renewal {
    /// The nodes that were expanded again, those where several things were looked for again, and those that have appeared
    /// or are gone.
    pub touched: Vec<NodeId>,
    /// Whether somebody has appeared or is gone.
    pub somebody: bool,
}

impl Graph {
    /// Makes a change, in the snapshot and in all that follows from it. None if it must be made from the snapshot, which
    /// is changed in any case.
    pub fn renew(
        &mut self,
        snapshot: &mut Snapshot,
        changes: Changes,
        closures: [(&mut Closure, Certainty); 2],
    ) -> Option<Renewal> {
        let cluster = usize::from(changes.cluster);
        let names: Vec<String> = snapshot.clusters.iter().map(|cluster| cluster.name.clone()).collect();
        let facts = snapshot.clusters.get_mut(cluster)?;
        let (state, kept) = (self.clusters.get_mut(cluster)?, self.kept.get_mut(cluster)?);
        let symbols = &mut snapshot.symbols;
        let change = Change { facts, symbols, state, kept, touched: Touched::default() };
        let touched = change.make(changes);
        if touched.all || self.made.joints.len() > JOINTS_UNUSED_MAX {
            return None;
        }
        if touched.templates {
            let facts = snapshot.clusters.get(cluster)?;
            let state = self.clusters.get(cluster)?;
            let templates = super::build::templates(facts, &state.admission, &mut snapshot.symbols, &names);
            if templates != *state.templates {
                return None;
            }
        }
        let states = std::mem::take(&mut self.clusters);
        let (made, kept) = (std::mem::take(&mut self.made), std::mem::take(&mut self.kept));
        let mut workshop = Workshop::again(&snapshot.clusters, &snapshot.symbols, &states, made, kept);
        let renewal = workshop.renew(cluster, &touched, closures);
        (self.made, self.kept) = workshop.close();
        self.clusters = states;
        Some(renewal)
    }
}

impl Workshop<'_> {
    fn renew(
        &mut self,
        cluster: usize,
        touched: &Touched,
        mut closures: [(&mut Closure, Certainty); 2],
    ) -> Renewal {
        self.made.turn_around();
        let nodes = self.made.nodes.len();
        // In several clusters whoever reaches all of one may still gain something in another.
        let is_single = self.builder_count() == 1;
        for (closure, least) in &mut closures {
            if is_single {
                self.prepare(closure, *least);
            }
        }
        let (dirty, mut changed) = self.with(cluster, |builder| builder.dirty(touched));
        let before: Vec<_> = closures.iter().map(|(closure, _)| closure.beyond(&self.made, &dirty)).collect();
        self.with(cluster, |builder| {
            changed.extend(dirty.iter().copied().filter(|id| builder.remake(*id)));
            for node in &touched.nodes {
                if builder.is_root(node) {
                    builder.node(*node);
                } else if let Some(node) = builder.find(*node) {
                    builder.made.orphans.push(node);
                }
            }
            builder.expand_new();
        });
        self.stitch_new();
        let mut cone = Vec::new();
        let mut is_beyond = false;
        for ((closure, least), before) in closures.iter_mut().zip(before) {
            cone = closure.cone(&self.made, &changed, &cone);
            let reached = closure.reached_beyond(&cone);
            self.close_again(closure, *least, &cone);
            closure.gain(&self.made, cone.clone(), nodes);
            let after = [closure.beyond(&self.made, &dirty), closure.reached_beyond(&cone)];
            let before = before.iter().chain(&reached);
            let mut others = RoaringBitmap::new();
            before.zip(after.iter().flatten()).for_each(|(before, after)| others |= before ^ after);
            is_beyond |= closure.is_beyond_changed(&self.made, &changed, &others);
        }
        if is_single && is_beyond {
            // Those who reach every right in the cluster may reach something else beyond it.
            let cone = self.made.cone(&changed, |_| false);
            for (closure, least) in &mut closures {
                self.close_again(closure, *least, &cone);
            }
        }
        let [(proven, _), (all, _)] = &mut closures;
        self.close_new(proven, all);
        for (closure, _) in &mut closures {
            closure.gain(&self.made, Vec::new(), nodes);
        }
        let (revived, died) = (std::mem::take(&mut self.made.revived), self.bury_new());
        for (closure, _) in &mut closures {
            closure.leave(&died);
        }
        let is_somebody = |node: &NodeId| {
            let node = self.made.nodes.get_index(*node as usize);
            matches!(node, Some((_, Node::Fact(Fact::Identity(_) | Fact::Source(_)))))
        };
        let born = (nodes..self.made.nodes.len()).filter_map(|node| NodeId::try_from(node).ok());
        let others: Vec<NodeId> = born.chain(revived).chain(died).collect();
        let somebody = others.iter().any(is_somebody);
        Renewal { somebody, touched: [dirty, changed, others].concat() }
    }

    /// Before the first change: finds who reaches every right anyway, and takes what followed for them from several
    /// things, so that it needs not be kept true.
    fn prepare(&mut self, closure: &mut Closure, least: Certainty) {
        for node in closure.prepare(&self.made, least) {
            self.made.forget(node, |edge| matches!(edge.via, Via::Joint(_)) && edge.certainty >= least);
        }
    }

    /// Closes what was made while the other closure was.
    pub fn close_new(&mut self, proven: &mut Closure, all: &mut Closure) {
        let mut nodes = 0;
        while nodes != self.made.nodes.len() {
            nodes = self.made.nodes.len();
            proven.renew(self, Certainty::Proven, &[]);
            all.renew(self, Certainty::Assumed, &[]);
        }
    }

    /// Takes back in a cone what followed from several things, and closes it again.
    fn close_again(&mut self, closure: &mut Closure, least: Certainty, cone: &[NodeId]) {
        for node in cone {
            self.made.forget(*node, |edge| matches!(edge.via, Via::Joint(_)) && edge.certainty == least);
        }
        closure.renew(self, least, cone);
    }

    /// Takes the edges of all nodes to which nothing leads from anybody who exists.
    pub fn bury(&mut self) {
        let mut reached = vec![false; self.made.nodes.len()];
        let mut open: Vec<NodeId> = (0..)
            .zip(&self.made.nodes)
            .filter(|(_, (cluster, node))| self.is_root(*cluster, node))
            .map(|(id, _)| id)
            .collect();
        while let Some(node) = open.pop() {
            match reached.get_mut(node as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            open.extend(self.edges_of(node).iter().map(|edge| edge.to));
        }
        for (node, _) in (0..).zip(&reached).filter(|(_, reached)| !**reached) {
            self.made.dead.insert(node);
            self.made.forget(node, |_| true);
        }
    }

    /// The same after a change: whatever has lost an edge that led to it is looked at.
    fn bury_new(&mut self) -> Vec<NodeId> {
        let mut died = Vec::new();
        let mut seen = FxHashSet::default();
        while let Some(node) = self.made.orphans.pop() {
            if self.made.dead.contains(&node) || !seen.insert(node) {
                continue;
            }
            for node in self.left_alone(node) {
                if self.made.dead.insert(node) {
                    died.push(node);
                    self.made.forget(node, |_| true);
                }
            }
            // What hangs on these may have to be looked at again.
            if !died.is_empty() {
                seen.clear();
            }
        }
        died
    }

    /// All that leads to a node, if nobody who exists is among it.
    fn left_alone(&self, node: NodeId) -> Vec<NodeId> {
        let mut before = vec![node];
        let mut seen = FxHashSet::from_iter([node]);
        let mut at = 0;
        while let Some(node) = before.get(at).copied() {
            at += 1;
            let what = self.made.nodes.get_index(node as usize);
            if what.is_some_and(|(cluster, node)| self.is_root(*cluster, node)) {
                return Vec::new();
            }
            before.extend(self.made.incoming_of(node).iter().filter(|from| seen.insert(**from)));
        }
        before
    }

    /// Whether a node is somebody who exists whatever leads there.
    fn is_root(&self, cluster: u16, node: &Node) -> bool {
        self.builder(cluster).is_some_and(|builder| builder.is_root(node))
    }
}

impl super::build::Made {
    /// Notes where the edges to each node start.
    fn turn_around(&mut self) {
        if self.incoming.is_some() {
            return;
        }
        let mut incoming = vec![Vec::new(); self.nodes.len()];
        for (from, edges) in (0..).zip(&self.edges) {
            for edge in edges {
                if let Some(of) = incoming.get_mut(edge.to as usize) {
                    of.push(from);
                }
            }
        }
        self.incoming = Some(incoming);
    }

    /// All nodes that lead to some of these, and these; not those, nor by way of those, that may be left out.
    pub fn cone(&self, of: &[NodeId], is_left_out: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let mut seen = vec![false; self.nodes.len()];
        let mut cone: Vec<NodeId> = Vec::new();
        let mut open = of.to_vec();
        while let Some(node) = open.pop() {
            match seen.get_mut(node as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            if is_left_out(node) {
                continue;
            }
            cone.push(node);
            open.extend(self.incoming_of(node));
        }
        cone.sort_unstable();
        cone
    }

    /// Takes some of a node's edges, and what was not followed from it.
    pub fn forget(&mut self, node: NodeId, is_gone: impl Fn(&Edge) -> bool) {
        let after = (node.saturating_add(1), 0, "");
        let limits: Vec<_> = self.limits.range((node, 0, "")..after).copied().collect();
        for limit in limits {
            self.limits.remove(&limit);
        }
        let Some(edges) = self.edges.get_mut(node as usize) else { return };
        let Some(incoming) = self.incoming.as_mut() else {
            edges.retain(|edge| !is_gone(edge));
            return;
        };
        let orphans = &mut self.orphans;
        edges.retain(|edge| {
            let gone = is_gone(edge);
            if gone && let Some(of) = incoming.get_mut(edge.to as usize) {
                if let Some(at) = of.iter().position(|from| *from == node) {
                    of.swap_remove(at);
                }
                orphans.push(edge.to);
            }
            !gone
        });
    }
}

impl Builder<'_> {
    /// The nodes that have read of what is touched: those to expand again, and those where several things met.
    fn dirty(&mut self, touched: &Touched) -> (Vec<NodeId>, Vec<NodeId>) {
        let mut readers: Vec<Reader> = touched.reads.iter().flat_map(|read| self.reads.take(read)).collect();
        for (of, scope) in self.appeared(touched) {
            readers.extend(self.reads.take(&Read::Existing(of, scope)));
        }
        readers.extend(touched.nodes.iter().filter_map(|node| self.find(*node)).map(Reader::Node));
        readers.sort_unstable();
        readers.dedup();
        let (mut nodes, mut meetings) = (Vec::new(), Vec::new());
        for reader in readers {
            match reader {
                Reader::Node(node) if !self.made.dead.contains(&node) => nodes.push(node),
                Reader::Meeting(node) if !self.made.dead.contains(&node) => meetings.push(node),
                _ => {}
            }
        }
        (nodes, meetings)
    }

    /// The bindings and ClusterRoles that some right needs and that exist now, or no longer.
    fn appeared(&mut self, touched: &Touched) -> Vec<(ExistingObject, Scope)> {
        let group = self.symbols.find("rbac.authorization.k8s.io");
        let asked: Vec<_> = self
            .existing
            .borrow()
            .iter()
            .filter(|(((of, _, name), _), _)| {
                Some(*of) == group && name.is_none_or(|name| touched.names.contains(&name))
            })
            .map(|(key, found)| (*key, *found))
            .collect();
        let mut appeared = Vec::new();
        for ((of, scope), before) in asked {
            let now = self.exists(of, scope);
            if now != before {
                self.existing.borrow_mut().insert((of, scope), now);
                appeared.push((of, scope));
            }
        }
        appeared
    }

    /// Takes the edges of a node and expands it again. Says whether it is worth something else now.
    fn remake(&mut self, id: NodeId) -> bool {
        let Some((cluster, node)) = self.made.nodes.get_index(id as usize).copied() else { return false };
        if cluster != self.cluster {
            return false;
        }
        let power = match &node {
            Node::Fact(fact) => Power::of(fact),
            _ => None,
        };
        // Edges to namespaces come with the nodes of these.
        let inherits = power.is_some_and(|(_, scope)| scope == Scope::Cluster);
        let stays = |edge: &Edge| matches!(edge.via, Via::Joint(_)) || (inherits && edge.via == Via::Narrow);
        let leads = |builder: &Self| {
            let edges = builder.made.edges_of(id).iter().filter(|edge| !stays(edge));
            let mut edges: Vec<(NodeId, Certainty)> = edges.map(|edge| (edge.to, edge.certainty)).collect();
            edges.sort_unstable();
            edges.dedup();
            edges
        };
        let before = (leads(self), self.made.holds.get(id as usize).copied());
        self.made.forget(id, |edge| !stays(edge));
        let own = self.own.remove(&id).unwrap_or_default();
        let writer = self.writers.remove(&id);
        self.made.blocked.remove(&id);
        self.expand_one(id);
        let after = (leads(self), self.made.holds.get(id as usize).copied());
        let acts = |(edges, _): &(Vec<(NodeId, Certainty)>, _)| {
            edges.iter().any(|(to, _)| {
                matches!(self.made.nodes.get_index(*to as usize), Some((_, Node::ActingFor { .. })))
            })
        };
        // What is held by rules of a role may be others although the sorts of them are the same.
        let is_role =
            matches!(node, Node::Fact(Fact::Role { .. }) | Node::Gained { .. } | Node::Passed { .. });
        is_role
            || acts(&after)
            || before != after
            || own != self.own.get(&id).cloned().unwrap_or_default()
            || writer != self.writers.get(&id).cloned()
    }

    /// Whether a node is somebody who exists whatever leads there.
    pub fn is_root(&self, node: &Node) -> bool {
        let identity = match node {
            Node::Fact(Fact::Identity(identity)) => identity,
            Node::Fact(source @ Fact::Source(_)) => {
                let needs = self.state.templates.iter().flat_map(|template| &template.when);
                return needs
                    .filter(|need| matches!(need, Need::Fact(Fact::Source(_))))
                    .any(|need| *need == Need::Fact(*source));
            }
            _ => return false,
        };
        let names = self.state.names;
        let exists = match identity.kind {
            SubjectKind::ServiceAccount => {
                let places = self.index.accounts_by_name.get(&identity.name);
                places.is_some_and(|places| places.contains(&identity.namespace))
            }
            SubjectKind::Group => [names.masters, names.authenticated].contains(&identity.name),
            SubjectKind::User => identity.name == names.controller_manager,
        };
        exists || !self.state.rbac.bindings_of(identity).is_empty()
    }
}
