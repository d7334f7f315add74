//! The graph of powers: a node is something that can be held, an edge leads to what its holder holds too.
//!
//! Nodes for capabilities stand between identities and what they reach, so that the size is that of the input and not
//! subjects times Secrets. Where several things are needed at once there is an [`And`]. Nodes are made only where
//! somebody could hold them.
//!
//! INVARIANT: every edge is true for whoever holds its start, except those of rights that admission may refuse, which
//! start at the one identity they were decided for.

mod build;
mod expand;
mod instances;
mod matches;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

pub use build::{ClusterState, build};

use crate::{Certainty, Fact, Scope, Symbol};

/// Index of a node.
pub type NodeId = u32;

/// Something that can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// A fact.
    Fact(Fact),
    /// What one need of a template asks for, in a scope, perhaps for one name.
    Need {
        /// Index into the cluster's templates.
        template: u32,
        /// Index into the template's needs.
        need: u8,
        /// Where; the cluster for needs that are not of the template's own scope.
        scope: Scope,
        /// The name.
        name: Option<Symbol>,
    },
    /// A role that was gained on the way, so that it is not known who acts.
    Gained {
        /// Index into the cluster's roles.
        role: u32,
        /// Where it is held.
        scope: Scope,
    },
    /// Impersonates somebody, whoever that is.
    Impersonates,
}

/// Why an edge is there. Indices are into the facts of the edge's cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A binding that names the identity.
    Binding(u32),
    /// A rule of the role.
    Rule {
        /// The template whose need it meets.
        template: u32,
        /// The role.
        role: u32,
        /// The rule.
        rule: u16,
    },
    /// A rule of a role that a binding gives to this very identity; admission was asked.
    Admitted {
        /// The template whose need it meets.
        template: u32,
        /// The binding.
        binding: u32,
        /// The rule.
        rule: u16,
        /// Index into [`Graph::notes`], `u32::MAX` for none.
        note: u32,
    },
    /// A template.
    Template(u32),
    /// A pod.
    Pod(&'static str, u32),
    /// A Secret.
    Secret(&'static str, u32),
    /// An edge that follows from what the nodes are.
    Plain(&'static str),
    /// What holds in the cluster holds in a namespace; no step for people.
    Narrow,
}

/// An edge.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    /// Where it leads.
    pub to: NodeId,
    /// Why.
    pub via: Via,
    /// How sure.
    pub certainty: Certainty,
}

/// Who holds all inputs holds the output.
#[derive(Debug, Clone)]
pub struct And {
    /// The inputs.
    pub inputs: Vec<NodeId>,
    /// The output.
    pub gives: NodeId,
    /// The template.
    pub template: u32,
    /// How sure.
    pub certainty: Certainty,
}

/// An edge that admission took away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The cluster.
    pub cluster: u16,
    /// The template.
    pub template: u32,
    /// The identity's node.
    pub identity: NodeId,
    /// Where.
    pub scope: Scope,
    /// By what.
    pub by: String,
}

/// The graph of an installation.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: IndexSet<(u16, Node), FxBuildHasher>,
    starts: Vec<u32>,
    edges: Vec<Edge>,
    /// The conjunctions.
    pub ands: Vec<And>,
    ands_of: FxHashMap<NodeId, Vec<u32>>,
    /// Texts of guards.
    pub notes: Vec<String>,
    /// What admission took away.
    pub blocked: Vec<Blocked>,
    /// What was compiled of each cluster.
    pub clusters: Vec<ClusterState>,
}

impl Graph {
    /// How many nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many edges.
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// The node of an index: its cluster and what it is.
    pub fn node(&self, id: NodeId) -> Option<&(u16, Node)> {
        self.nodes.get_index(id as usize)
    }

    /// The index of a fact in a cluster, if anybody could hold it.
    pub fn find(&self, cluster: u16, fact: Fact) -> Option<NodeId> {
        self.nodes.get_index_of(&(cluster, Node::Fact(fact))).and_then(|i| NodeId::try_from(i).ok())
    }

    /// All nodes with their indices.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, u16, &Node)> {
        (0..).zip(self.nodes.iter()).map(|(id, (cluster, node))| (id, *cluster, node))
    }

    /// The edges that start at a node.
    pub fn edges_of(&self, id: NodeId) -> &[Edge] {
        let start = self.starts.get(id as usize).copied().unwrap_or(0) as usize;
        let end = self.starts.get(id as usize + 1).copied().unwrap_or(0) as usize;
        self.edges.get(start..end).unwrap_or(&[])
    }

    /// The conjunctions that a node is an input of.
    pub fn ands_of(&self, id: NodeId) -> &[u32] {
        self.ands_of.get(&id).map_or(&[], Vec::as_slice)
    }
}
