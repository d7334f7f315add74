//! Builds the graph: identities and bindings first, then whatever follows from each new node, until nothing is new.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::{And, Blocked, Edge, Graph, Node, NodeId, Via, matches::Match};
use crate::{
    Admission, Certainty, ClusterFacts, Fact, Identity, Need, Scope, Snapshot, SubjectKind, Symbol, Symbols,
    Template, catalogue, deputies,
    rbac::{self, Rbac},
};

/// What was compiled of one cluster.
#[derive(Debug)]
pub struct ClusterState {
    /// Its RBAC.
    pub rbac: Rbac,
    /// The edges that may hold in it.
    pub templates: Vec<Template>,
    /// Its admission policies.
    pub admission: Admission,
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

/// Builds the graph of a snapshot. Names that are new (implicit groups) are interned.
pub fn build(snapshot: &mut Snapshot) -> Graph {
    let names: Vec<String> = snapshot.clusters.iter().map(|cluster| cluster.name.clone()).collect();
    let mut made = Made::default();
    let symbols = &mut snapshot.symbols;
    for (index, cluster) in (0u16..).zip(&snapshot.clusters) {
        let state = compile(cluster, symbols, &names);
        let mut builder = Builder::new(index, cluster, symbols, &state, &mut made);
        builder.identities();
        builder.close();
        made.clusters.push(state);
    }
    made.finish()
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
    let mut templates = catalogue::templates(cluster, &admission, symbols);
    templates.extend(deputies::deputies(cluster, symbols, clusters));
    ClusterState { rbac: Rbac::new(cluster, symbols), templates, admission, names }
}

fn namespaces_with_accounts(cluster: &ClusterFacts) -> FxHashSet<Symbol> {
    let named = cluster.bindings.iter().flat_map(|binding| &binding.subjects);
    let named = named.filter(|s| s.kind == SubjectKind::ServiceAccount).map(|subject| subject.namespace);
    cluster.service_accounts.iter().map(|account| account.namespace).chain(named).collect()
}

/// What was made so far, of all clusters.
#[derive(Debug, Default)]
pub struct Made {
    pub nodes: IndexSet<(u16, Node), FxBuildHasher>,
    pub edges: Vec<(NodeId, Edge)>,
    pub ands: Vec<And>,
    pub notes: Vec<String>,
    pub blocked: Vec<Blocked>,
    pub clusters: Vec<ClusterState>,
}

impl Made {
    /// Sorts the edges by where they start.
    fn finish(self) -> Graph {
        let mut starts = vec![0u32; self.nodes.len() + 1];
        for (from, _) in &self.edges {
            if let Some(count) = starts.get_mut(*from as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut edges = self.edges;
        edges.sort_by_key(|(from, _)| *from);
        let mut ands_of: FxHashMap<NodeId, Vec<u32>> = FxHashMap::default();
        for (index, and) in (0u32..).zip(&self.ands) {
            for input in &and.inputs {
                ands_of.entry(*input).or_default().push(index);
            }
        }
        Graph {
            nodes: self.nodes,
            starts,
            edges: edges.into_iter().map(|(_, edge)| edge).collect(),
            ands: self.ands,
            ands_of,
            notes: self.notes,
            blocked: self.blocked,
            clusters: self.clusters,
        }
    }
}

/// Where a need is held, and for which name.
pub type Held = (Scope, Option<Symbol>);

/// Builds the part of one cluster.
pub struct Builder<'a> {
    pub cluster: u16,
    pub facts: &'a ClusterFacts,
    pub symbols: &'a Symbols,
    pub state: &'a ClusterState,
    pub made: &'a mut Made,
    /// Templates whose rights admission may refuse in this cluster.
    pub guarded: Vec<bool>,
    /// What each role meets, compiled when it is first needed.
    pub matches: FxHashMap<u32, std::rc::Rc<Vec<Match>>>,
    /// The needs for which there are nodes, by template.
    pub needs: FxHashMap<u32, FxHashSet<(u8, Scope, Option<Symbol>)>>,
    /// The roles for which there are nodes.
    pub held: FxHashSet<(Option<Symbol>, Symbol, Scope)>,
    /// Conjunctions that were made.
    pub conjunctions: FxHashSet<(u32, Scope, Option<Symbol>, NodeId)>,
    /// Needs that were joined to wider ones.
    pub joined: FxHashSet<(u32, u8, Held, Held)>,
    pub index: super::expand::Index,
    cursor: usize,
}

impl<'a> Builder<'a> {
    fn new(
        cluster: u16,
        facts: &'a ClusterFacts,
        symbols: &'a Symbols,
        state: &'a ClusterState,
        made: &'a mut Made,
    ) -> Self {
        let concerned = |template: &Template| template.samples.iter().any(|s| state.admission.concerns(s));
        let cursor = made.nodes.len();
        Self {
            cluster,
            facts,
            symbols,
            state,
            made,
            guarded: state.templates.iter().map(concerned).collect(),
            matches: FxHashMap::default(),
            needs: FxHashMap::default(),
            held: FxHashSet::default(),
            conjunctions: FxHashSet::default(),
            joined: FxHashSet::default(),
            index: super::expand::Index::new(facts, symbols, state),
            cursor,
        }
    }

    /// Makes a node for each account, each subject of a binding, and whoever is always there.
    fn identities(&mut self) {
        for account in &self.facts.service_accounts {
            self.identity(SubjectKind::ServiceAccount, account.namespace, account.name);
        }
        let subjects = self.facts.bindings.iter().flat_map(|binding| &binding.subjects);
        let subjects: Vec<Identity> = subjects.filter_map(rbac::identity_of).collect();
        for subject in subjects {
            self.fact(Fact::Identity(subject));
        }
        let names = self.state.names;
        self.identity(SubjectKind::Group, Symbol::EMPTY, names.masters);
        self.identity(SubjectKind::Group, Symbol::EMPTY, names.authenticated);
        self.identity(SubjectKind::User, Symbol::EMPTY, names.controller_manager);
        // External sources start ways of their own.
        let templates = &self.state.templates;
        let sources: Vec<Fact> = templates
            .iter()
            .flat_map(|template| &template.when)
            .filter_map(|need| match need {
                Need::Fact(fact @ Fact::Source(_)) => Some(*fact),
                _ => None,
            })
            .collect();
        for source in sources {
            self.fact(source);
        }
    }

    pub fn identity(&mut self, kind: SubjectKind, namespace: Symbol, name: Symbol) -> NodeId {
        self.fact(Fact::Identity(Identity { kind, namespace, name }))
    }

    /// Expands each new node once, then looks for conjunctions that became possible, until nothing is new.
    fn close(&mut self) {
        loop {
            while let Some((cluster, node)) = self.made.nodes.get_index(self.cursor).copied() {
                let id = NodeId::try_from(self.cursor).unwrap_or(NodeId::MAX);
                self.cursor += 1;
                debug_assert_eq!(cluster, self.cluster);
                self.expand(id, node);
            }
            self.conjunctions();
            if self.cursor == self.made.nodes.len() {
                return;
            }
        }
    }

    /// The node of a fact, made if it is new.
    pub fn fact(&mut self, fact: Fact) -> NodeId {
        if let Fact::Role { namespace, name, scope } = fact {
            self.held.insert((namespace, name, scope));
        }
        self.node(Node::Fact(fact))
    }

    /// A node, made if it is new.
    pub fn node(&mut self, node: Node) -> NodeId {
        if let Node::Need { template, need, scope, name } = node {
            self.needs.entry(template).or_default().insert((need, scope, name));
        }
        let (index, _) = self.made.nodes.insert_full((self.cluster, node));
        NodeId::try_from(index).unwrap_or(NodeId::MAX)
    }

    pub fn edge(&mut self, from: NodeId, to: NodeId, via: Via) {
        self.edge_of(from, to, via, Certainty::Proven);
    }

    pub fn edge_of(&mut self, from: NodeId, to: NodeId, via: Via, certainty: Certainty) {
        if from != to {
            self.made.edges.push((from, Edge { to, via, certainty }));
        }
    }

    pub fn template(&self, index: u32) -> Option<&'a Template> {
        self.state.templates.get(index as usize)
    }
}
