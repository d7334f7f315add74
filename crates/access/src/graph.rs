//! The graph of powers: a node is something that can be held, an edge leads to what its holder holds too.
//!
//! Roles in their scopes stand between identities and what they reach, so that the size is that of the input and not
//! subjects times Secrets. Where several things are needed at once, the edge starts at the node from which all of them
//! are reached, is found when that node is closed, and names them as the inputs of its [`Joint`].
//!
//! INVARIANT: every edge is true for whoever holds its start.

mod bindings;
mod build;
mod by_name;
mod change;
mod constrained;
mod expand;
mod halves;
mod index;
mod join;
mod matches;
mod meet;
mod pass_on;
mod reached;
mod reads;
mod renew;
mod targets;

use std::collections::BTreeSet;

use build::Kept;
pub use build::Made;
pub use build::{ClusterState, Workshop, build};
pub use change::{Changes, Edit};
pub use halves::{Holds, Mask};
pub use matches::{Match, Needs, role_matches};

use crate::{Certainty, Fact, Identity, Scope, Symbol};

/// Index of a node.
pub type NodeId = u32;

/// Something that can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// A fact.
    Fact(Fact),
    /// A role that was gained on the way, so that any of one's identities may hold it.
    Gained {
        /// Index into the cluster's roles.
        role: u32,
        /// Where it is held.
        scope: Scope,
    },
    /// A role that an identity which holds it passed on to another: what the role is worth to each by itself is known of
    /// the one who had it, so that only what must be held together with something else is new.
    Passed {
        /// Index into the cluster's roles.
        role: u32,
        /// Where it is held.
        scope: Scope,
        /// The name of the binding that was made for it, which is used up.
        used: Option<Symbol>,
    },
    /// Impersonates somebody, whoever that is.
    Impersonates,
    /// Acts as somebody by impersonation: holds what that one holds, but impersonates nobody in turn.
    Acting(Identity),
    /// Acts as somebody by impersonation, for the requests only that a second right names.
    ActingFor {
        /// The one who does.
        holder: NodeId,
        /// As whom.
        identity: Identity,
    },
    /// Acts as any user by impersonation.
    ActingAsAnyUser,
}

/// Why an edge is there. Indices are into the facts of the edge's cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A binding that names the identity.
    Binding(u32),
    /// A rule of the role, which is all that a template needs.
    Rule {
        /// The template, `u32::MAX` for every right at once.
        template: u32,
        /// The role.
        role: u32,
        /// The rule.
        rule: u16,
    },
    /// A rule of a role that a binding gives to this very identity, on whom it depends what the right is worth.
    Admitted {
        /// The template.
        template: u32,
        /// The binding.
        binding: u32,
        /// The rule.
        rule: u16,
        /// Index into the notes of the graph, `u32::MAX` for none.
        note: u32,
    },
    /// A template.
    Template(u32),
    /// Several things at once: index into the joints of the graph.
    Joint(u32),
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

/// Several things that together give one, all of them reached from where the edge starts.
#[derive(Debug, Clone)]
pub struct Joint {
    /// The template.
    pub template: u32,
    /// What is needed.
    pub inputs: Box<[Input]>,
}

/// One of several things that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// Who or what holds it.
    pub node: NodeId,
    /// By which rule, none where the node is itself what is needed.
    pub via: Option<Via>,
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
#[derive(Debug, Clone)]
pub struct Graph {
    made: Made,
    kept: Vec<Kept>,
    /// What was compiled of each cluster.
    pub clusters: Vec<ClusterState>,
}

impl Graph {
    /// How many nodes.
    pub fn len(&self) -> usize {
        self.made.nodes.len()
    }

    /// How many edges.
    pub fn edge_count(&self) -> usize {
        self.made.edges.iter().map(Vec::len).sum()
    }

    /// The node of an index: its cluster and what it is.
    pub fn node(&self, id: NodeId) -> Option<&(u16, Node)> {
        self.made.nodes.get_index(id as usize)
    }

    /// The index of a fact in a cluster, if anybody could hold it.
    pub fn find(&self, cluster: u16, fact: Fact) -> Option<NodeId> {
        self.made.nodes.get_index_of(&(cluster, Node::Fact(fact))).and_then(|i| NodeId::try_from(i).ok())
    }

    /// All nodes with their indices.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, u16, &Node)> {
        (0..).zip(self.made.nodes.iter()).map(|(id, (cluster, node))| (id, *cluster, node))
    }

    /// Whether a node is somebody, or what somebody does by the hands of others.
    pub fn is_somebody(&self, id: NodeId) -> bool {
        let node = self.node(id).map(|(_, node)| node);
        matches!(
            node,
            Some(Node::Fact(Fact::Identity(_) | Fact::Source(_)) | Node::Acting(_) | Node::ActingFor { .. })
        )
    }

    /// Whether anything leads to a node from anybody who exists.
    pub fn is_there(&self, id: NodeId) -> bool {
        !self.made.dead.contains(&id)
    }

    /// Whoever ways start from, by cluster.
    pub fn somebodies(&self) -> impl Iterator<Item = (u16, Fact)> {
        self.nodes().filter_map(|(id, cluster, node)| match node {
            Node::Fact(fact @ (Fact::Identity(_) | Fact::Source(_))) if self.is_there(id) => {
                Some((cluster, *fact))
            }
            _ => None,
        })
    }

    /// How many edges need several things at once.
    pub fn joint_count(&self) -> usize {
        self.made.joints.len()
    }

    /// What an edge says that needs several things at once.
    pub fn joint(&self, index: u32) -> Option<&Joint> {
        self.made.joints.get(index as usize)
    }

    /// The text of a guard.
    pub fn note(&self, index: u32) -> Option<&str> {
        self.made.notes.get(index as usize).map(String::as_str)
    }

    /// What admission took away.
    pub fn blocked(&self) -> impl Iterator<Item = &Blocked> {
        self.made.blocked.values().flatten()
    }

    /// What was not followed since it would cost too much, by cluster.
    pub fn limits(&self) -> BTreeSet<(u16, &'static str)> {
        self.made.limits.iter().map(|(_, cluster, what)| (*cluster, *what)).collect()
    }

    /// The edges that start at a node.
    pub fn edges_of(&self, id: NodeId) -> &[Edge] {
        self.made.edges.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// What an edge needs besides its start.
    pub fn inputs_of(&self, edge: &Edge) -> &[Input] {
        match edge.via {
            Via::Joint(index) => self.made.joints.get(index as usize).map_or(&[], |joint| &joint.inputs),
            _ => &[],
        }
    }
}
