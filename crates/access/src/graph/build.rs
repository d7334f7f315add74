//! Builds the graph: identities and bindings first, then whatever follows from each new node, until nothing is new;
//! then closes it, which finds what follows from several nodes together.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Edge, Graph, Holds, Mask, Node, NodeId, Via,
    halves::{Entry, Halves, is_writing_new},
    index::Index,
    matches::{Needs, RoleMatches},
    pass_on::Writer,
    reads::{Reader, Reads},
};
use crate::{
    Admission, Certainty, ClusterFacts, Fact, Identity, Need, Scope, Snapshot, SubjectKind, Symbol, Symbols,
    Template, catalogue,
    close::Closure,
    deputies,
    rbac::{self, Rbac},
};

/// What was compiled of one cluster.
#[derive(Debug, Clone)]
pub struct ClusterState {
    /// Its RBAC.
    pub rbac: Rbac,
    /// The edges that may hold in it.
    pub templates: Arc<Vec<Template>>,
    /// Its admission policies.
    pub admission: Arc<Admission>,
    /// Names that are used often.
    pub names: Names,
}

/// Symbols of well-known names.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// `system:authenticated`.
    pub authenticated: Symbol,
    /// `system:unauthenticated`.
    pub unauthenticated: Symbol,
    /// `system:serviceaccounts`.
    pub accounts: Symbol,
    /// `system:masters`.
    pub masters: Symbol,
    /// `system:kube-controller-manager`.
    pub controller_manager: Symbol,
    /// `kubernetes.io/service-account-token`.
    pub token_type: Symbol,
}

/// Builds the graph of a snapshot and closes it, over proven edges and over all. Names that are new (implicit groups)
/// are interned.
pub fn build(snapshot: &mut Snapshot) -> (Graph, Closure, Closure) {
    let names: Vec<String> = snapshot.clusters.iter().map(|cluster| cluster.name.clone()).collect();
    let symbols = &mut snapshot.symbols;
    let states: Vec<ClusterState> =
        snapshot.clusters.iter().map(|cluster| compile(cluster, symbols, &names)).collect();
    let mut workshop = Workshop::new(&snapshot.clusters, &snapshot.symbols, &states);
    let mut proven = Closure::new(&mut workshop, Certainty::Proven);
    let mut all = Closure::new(&mut workshop, Certainty::Assumed);
    workshop.close_new(&mut proven, &mut all);
    workshop.bury();
    let (made, kept) = workshop.close();
    (Graph { made, kept, clusters: states }, proven, all)
}

fn compile(cluster: &ClusterFacts, symbols: &mut Symbols, clusters: &[String]) -> ClusterState {
    let names = Names {
        authenticated: symbols.intern("system:authenticated"),
        unauthenticated: symbols.intern("system:unauthenticated"),
        accounts: symbols.intern("system:serviceaccounts"),
        masters: symbols.intern("system:masters"),
        controller_manager: symbols.intern("system:kube-controller-manager"),
        token_type: symbols.intern("kubernetes.io/service-account-token"),
    };
    for account in namespaces_with_accounts(cluster) {
        let group = format!("system:serviceaccounts:{}", symbols.name(account));
        symbols.intern(&group);
    }
    let admission = Admission::new(cluster, symbols);
    let templates = Arc::new(templates(cluster, &admission, symbols, clusters));
    ClusterState { rbac: Rbac::new(cluster, symbols), templates, admission: Arc::new(admission), names }
}

/// The edges that may hold in a cluster. `clusters`: the names of all that were loaded.
pub fn templates(
    cluster: &ClusterFacts,
    admission: &Admission,
    symbols: &mut Symbols,
    clusters: &[String],
) -> Vec<Template> {
    let mut templates = catalogue::templates(cluster, admission, symbols);
    templates.extend(deputies::deputies(cluster, symbols, clusters));
    templates
}

fn namespaces_with_accounts(cluster: &ClusterFacts) -> FxHashSet<Symbol> {
    let named = cluster.bindings.iter().flat_map(|binding| &binding.subjects);
    let named = named.filter(|s| s.kind == SubjectKind::ServiceAccount).map(|subject| subject.namespace);
    cluster.service_accounts.iter().map(|account| account.namespace).chain(named).collect()
}

/// Whether an object exists in a scope.
type Existing = FxHashMap<(ExistingObject, Scope), Option<Certainty>>;
/// The use of a template by somebody in a namespace, for a name.
type Question = (u32, Identity, Option<Symbol>, Option<Symbol>);
/// Group, plural and name of an object, any name if none.
pub type ExistingObject = (Symbol, Symbol, Option<Symbol>);

/// In clusters with more bindings, some rare ways are not followed: the pairs of who acts and who holds grow with the
/// square.
pub const BINDINGS_MAX: usize = 2_000;

/// What was made so far, of all clusters.
#[derive(Debug, Clone, Default)]
pub struct Made {
    pub nodes: indexmap::IndexSet<(u16, Node), rustc_hash::FxBuildHasher>,
    pub edges: Vec<Vec<Edge>>,
    /// What each node holds of conjunctions.
    pub holds: Vec<Holds>,
    /// When each node was last come by, see [`super::reached`].
    pub seen: Vec<u32>,
    pub epoch: u32,
    pub joints: Vec<super::Joint>,
    pub notes: Vec<String>,
    /// What admission took away, by the identity.
    pub blocked: BTreeMap<NodeId, Vec<super::Blocked>>,
    /// What was not followed since it would cost too much: for which node, in which cluster, what.
    pub limits: BTreeSet<(NodeId, u16, &'static str)>,
    /// Where the edges to a node start, once there was a change.
    pub incoming: Option<Vec<Vec<NodeId>>>,
    /// Nodes to which nothing leads from anybody who exists; they have no edges.
    pub dead: FxHashSet<NodeId>,
    /// Those of them to which something leads again since the last change.
    pub revived: Vec<NodeId>,
    /// Nodes to which an edge less leads since the last change.
    pub orphans: Vec<NodeId>,
}

impl Made {
    /// The edges that start at a node.
    pub fn edges_of(&self, node: NodeId) -> &[Edge] {
        self.edges.get(node as usize).map_or(&[], Vec::as_slice)
    }

    /// Where the edges to a node start, some more than once; nothing before the first change.
    pub fn incoming_of(&self, node: NodeId) -> &[NodeId] {
        let incoming = self.incoming.as_ref().and_then(|incoming| incoming.get(node as usize));
        incoming.map_or(&[], Vec::as_slice)
    }
}

/// What is kept of the work on one cluster, so that a change makes little anew.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    asked: Vec<bool>,
    halves: Halves,
    needs: Needs,
    pub own: FxHashMap<NodeId, Vec<Entry>>,
    pub writers: FxHashMap<NodeId, Rc<Writer>>,
    pub matches: FxHashMap<u32, Rc<RoleMatches>>,
    existing: RefCell<Existing>,
    passed: RefCell<FxHashSet<Question>>,
    pub index: Index,
    reads: Reads,
}

/// The graph while it is made, with one builder for each cluster.
pub struct Workshop<'a> {
    /// What was made so far; a builder borrows it while it works.
    pub made: Made,
    builders: Vec<Builder<'a>>,
}

impl<'a> Workshop<'a> {
    fn new(facts: &'a [ClusterFacts], symbols: &'a Symbols, states: &'a [ClusterState]) -> Self {
        let kept = facts.iter().zip(states).map(|(facts, state)| Kept::new(facts, symbols, state));
        let mut workshop = Self::again(facts, symbols, states, Made::default(), kept.collect());
        for index in 0..workshop.builders.len() {
            workshop.with(index, |builder| {
                builder.identities();
                builder.expand_new();
            });
        }
        workshop.stitch_new();
        workshop
    }

    /// Opens it again, to go on with what was made and kept.
    pub fn again(
        facts: &'a [ClusterFacts],
        symbols: &'a Symbols,
        states: &'a [ClusterState],
        made: Made,
        kept: Vec<Kept>,
    ) -> Self {
        let builders = (0u16..).zip(facts).zip(states).zip(kept);
        let builders =
            builders.map(|(((index, facts), state), kept)| Builder::new(index, facts, symbols, state, kept));
        Self { made, builders: builders.collect() }
    }

    /// What was made, and what is kept of each cluster.
    pub fn close(self) -> (Made, Vec<Kept>) {
        (self.made, self.builders.into_iter().map(Builder::keep).collect())
    }

    /// Lets the builder of a cluster work on what was made so far.
    pub fn with<R: Default>(&mut self, cluster: usize, work: impl FnOnce(&mut Builder<'a>) -> R) -> R {
        let Some(builder) = self.builders.get_mut(cluster) else { return R::default() };
        std::mem::swap(&mut builder.made, &mut self.made);
        let result = work(builder);
        std::mem::swap(&mut builder.made, &mut self.made);
        result
    }

    /// The builder of a cluster.
    pub fn builder(&self, cluster: u16) -> Option<&Builder<'a>> {
        self.builders.get(usize::from(cluster))
    }

    /// How many clusters there are.
    pub fn builder_count(&self) -> usize {
        self.builders.len()
    }

    /// The edges that start at a node.
    pub fn edges_of(&self, node: NodeId) -> &[Edge] {
        self.made.edges_of(node)
    }

    /// What may follow from several things at nodes of a cluster that reach each other, and not already at one of those
    /// below: whether a conjunction, and whether that a role is written.
    pub fn is_meeting(
        &self,
        cluster: u16,
        members: &[NodeId],
        local: &Holds,
        below: &[&Holds],
    ) -> (bool, bool) {
        let Some(builder) = self.builders.get(usize::from(cluster)) else { return (false, false) };
        let requesters = builder.requests(&self.made, members);
        let mut all = builder.halves.conjunctions.iter();
        (all.any(|of| of.is_new(local, below, &requesters)), is_writing_new(local, below))
    }

    /// Whoever controls a cluster that was loaded, too, holds everything in it.
    pub fn stitch_new(&mut self) {
        let names: Vec<&str> = self.builders.iter().map(|builder| builder.facts.name.as_str()).collect();
        if names.len() < 2 {
            return;
        }
        let of = |from: u16, name: Symbol| {
            let symbols = self.builders.get(usize::from(from))?.symbols;
            let name = symbols.name(name);
            let plain = name.rsplit_once('/').map_or(name, |(_, plain)| plain);
            let found = names.iter().position(|known| *known == name || *known == plain);
            found.and_then(|index| u16::try_from(index).ok())
        };
        let others: Vec<(NodeId, u16, u16)> = (0..)
            .zip(&self.made.nodes)
            .filter_map(|(id, (cluster, node))| match node {
                Node::Fact(Fact::OtherCluster(name)) => Some((id, *cluster, of(*cluster, *name)?)),
                _ => None,
            })
            .filter(|(_, from, to)| from != to)
            .collect();
        for (from, _, to) in others {
            self.with(usize::from(to), |builder| {
                let everything = builder.fact(Fact::Everything(Scope::Cluster));
                if builder.made.edges_of(from).iter().all(|edge| edge.to != everything) {
                    builder.edge(from, everything, Via::Plain("other-cluster"));
                }
                builder.expand_new();
            });
        }
    }
}

/// Builds the part of one cluster.
pub struct Builder<'a> {
    pub cluster: u16,
    pub facts: &'a ClusterFacts,
    pub symbols: &'a Symbols,
    pub state: &'a ClusterState,
    /// What was made so far, of all clusters; empty while others work.
    pub made: Made,
    /// Templates whose rights admission may refuse in this cluster.
    pub asked: Vec<bool>,
    /// The parts of conjunctions.
    pub halves: Halves,
    /// The needs by API group.
    pub needs: Needs,
    /// What identities hold of conjunctions by themselves.
    pub own: FxHashMap<NodeId, Vec<Entry>>,
    /// Those who write roles, by their nodes.
    pub writers: FxHashMap<NodeId, Rc<Writer>>,
    /// What each role meets, compiled when it is first needed.
    pub matches: FxHashMap<u32, Rc<RoleMatches>>,
    /// Which objects that rights need exist, once looked for.
    pub existing: RefCell<Existing>,
    /// What admission lets through whatever the bindings.
    pub passed: RefCell<FxHashSet<Question>>,
    pub index: Index,
    pub reads: Reads,
    /// Nodes that were made and are not expanded yet.
    new: Vec<NodeId>,
}

impl Kept {
    fn new(facts: &ClusterFacts, symbols: &Symbols, state: &ClusterState) -> Self {
        let concerned = |template: &Template| template.samples.iter().any(|s| state.admission.concerns(s));
        Self {
            asked: state.templates.iter().map(concerned).collect(),
            halves: Halves::new(&state.templates),
            needs: Needs::new(&state.templates),
            index: Index::new(facts, symbols, state),
            ..Self::default()
        }
    }
}

impl<'a> Builder<'a> {
    fn new(
        cluster: u16,
        facts: &'a ClusterFacts,
        symbols: &'a Symbols,
        state: &'a ClusterState,
        kept: Kept,
    ) -> Self {
        let Kept { asked, halves, needs, own, writers, matches, existing, passed, index, reads } = kept;
        let (made, new) = (Made::default(), Vec::new());
        Self {
            cluster,
            facts,
            symbols,
            state,
            made,
            asked,
            halves,
            needs,
            own,
            writers,
            matches,
            existing,
            passed,
            index,
            reads,
            new,
        }
    }

    fn keep(self) -> Kept {
        let Self { asked, halves, needs, own, writers, matches, existing, passed, index, reads, .. } = self;
        Kept { asked, halves, needs, own, writers, matches, existing, passed, index, reads }
    }

    /// Makes a node for each account, each subject of a binding, and whoever is always there.
    pub fn identities(&mut self) {
        for account in &self.facts.service_accounts {
            self.identity(SubjectKind::ServiceAccount, account.namespace, account.name);
        }
        let facts = self.facts;
        for subject in facts.bindings.iter().flat_map(|binding| &binding.subjects) {
            if let Some(identity) = rbac::identity_of(subject) {
                self.fact(Fact::Identity(identity));
            }
        }
        let names = self.state.names;
        self.identity(SubjectKind::Group, Symbol::EMPTY, names.masters);
        self.identity(SubjectKind::Group, Symbol::EMPTY, names.authenticated);
        self.identity(SubjectKind::User, Symbol::EMPTY, names.controller_manager);
        // External sources start ways of their own.
        let state = self.state;
        for need in state.templates.iter().flat_map(|template| &template.when) {
            if let Need::Fact(fact @ Fact::Source(_)) = need {
                self.fact(*fact);
            }
        }
    }

    /// What each of some identities, with its groups, holds for its own requests.
    fn requests(&self, made: &Made, members: &[NodeId]) -> Vec<Mask> {
        let own = |node: NodeId| made.holds.get(node as usize).map_or_else(Mask::default, |holds| holds.own);
        let of = |node: &NodeId| {
            let (identity, acting) = match made.nodes.get_index(*node as usize)? {
                (_, Node::ActingFor { .. }) => return Some(own(*node)),
                (_, Node::Fact(Fact::Identity(identity))) => (*identity, false),
                (_, Node::Acting(identity)) => (*identity, true),
                _ => return None,
            };
            let mut mask = own(*node);
            if !mask.is_empty() || members.len() == 1 {
                let groups = self.groups_of(identity, acting);
                let nodes = groups.filter_map(|group| made.nodes.get_index_of(&(self.cluster, group)));
                let nodes = nodes.filter_map(|index| NodeId::try_from(index).ok());
                nodes.for_each(|group| mask.join(&own(group)));
            }
            Some(mask)
        };
        members.iter().filter_map(of).filter(|mask| !mask.is_empty()).collect()
    }

    pub fn identity(&mut self, kind: SubjectKind, namespace: Symbol, name: Symbol) -> NodeId {
        self.fact(Fact::Identity(Identity { kind, namespace, name }))
    }

    /// Expands each new node once, until nothing is new.
    pub fn expand_new(&mut self) {
        while let Some(id) = self.new.pop() {
            self.expand_one(id);
        }
    }

    /// Expands a node that has no edges yet.
    pub fn expand_one(&mut self, id: NodeId) {
        if let Some((_, node)) = self.made.nodes.get_index(id as usize).copied() {
            let before = self.reads.set(Some(Reader::Node(id)));
            self.expand(id, node);
            self.note_holds(id, node);
            self.reads.set(before);
        }
    }

    /// Notes what a node holds of conjunctions, in short.
    pub fn note_holds(&mut self, id: NodeId, node: Node) {
        let holds = self.holds_of(id, node);
        if let Some(slot) = self.made.holds.get_mut(id as usize) {
            *slot = holds;
        }
    }

    /// The node of a fact, made if it is new.
    pub fn fact(&mut self, fact: Fact) -> NodeId {
        self.node(Node::Fact(fact))
    }

    /// A node, made if it is new.
    pub fn node(&mut self, node: Node) -> NodeId {
        let (index, is_new) = self.made.nodes.insert_full((self.cluster, node));
        let id = NodeId::try_from(index).unwrap_or(NodeId::MAX);
        if is_new {
            self.made.edges.push(Vec::new());
            self.made.holds.push(Holds::default());
            self.made.seen.push(0);
            if let Some(incoming) = &mut self.made.incoming {
                incoming.push(Vec::new());
            }
            self.new.push(id);
        } else if !self.made.dead.is_empty() && self.made.dead.remove(&id) {
            self.made.revived.push(id);
            self.new.push(id);
        }
        id
    }

    /// The node if there is one.
    pub fn find(&self, node: Node) -> Option<NodeId> {
        self.made.nodes.get_index_of(&(self.cluster, node)).and_then(|index| NodeId::try_from(index).ok())
    }

    pub fn edge(&mut self, from: NodeId, to: NodeId, via: Via) {
        self.edge_of(from, to, via, Certainty::Proven);
    }

    pub fn edge_of(&mut self, from: NodeId, to: NodeId, via: Via, certainty: Certainty) {
        if from != to
            && let Some(edges) = self.made.edges.get_mut(from as usize)
        {
            edges.push(Edge { to, via, certainty });
            let incoming = self.made.incoming.as_mut().and_then(|incoming| incoming.get_mut(to as usize));
            if let Some(incoming) = incoming {
                incoming.push(from);
            }
        }
    }

    /// Notes that something is not followed.
    pub fn limit(&mut self, what: &'static str) {
        let node = self.reads.now().unwrap_or_default();
        self.made.limits.insert((node, self.cluster, what));
    }

    /// Whether the cluster is too large to look at each pair of who acts and who holds.
    pub fn is_large(&self) -> bool {
        self.facts.bindings.len() > BINDINGS_MAX
    }

    pub fn template(&self, index: u32) -> Option<&'a Template> {
        self.state.templates.get(index as usize)
    }
}
