//! The language in which edges are said: who holds these facts, holds that one too.
//!
//! A [`Template`] is said once and made real at each scope where somebody holds what it needs: the rows of the
//! catalogue and what deputies do are the same kind of thing. The closure of all clauses is what an identity reaches.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{SubjectKind, Symbol};

/// Where a right or a power holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In the whole cluster, and so in each of its namespaces.
    Cluster,
    /// In one namespace.
    Namespace(Symbol),
}

/// Somebody who can act, within one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Its kind.
    pub kind: SubjectKind,
    /// Namespace of a ServiceAccount, else empty.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
}

/// Something that can be held, within one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// Acts as this identity.
    Identity(Identity),
    /// Holds the rules of a role (namespace none: a ClusterRole) in a scope.
    Role {
        /// Namespace of a Role.
        namespace: Option<Symbol>,
        /// Its name.
        name: Symbol,
        /// Where it is bound.
        scope: Scope,
    },
    /// Reads each Secret there.
    Secrets(Scope),
    /// Reads one Secret.
    Secret {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
    },
    /// Acts as each ServiceAccount there.
    Accounts(Scope),
    /// Runs pods of its own making there.
    Pods(Scope),
    /// Runs code in each pod that runs there.
    Inside(Scope),
    /// Runs code in one pod.
    InsidePod {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
    },
    /// Is root on one node.
    Node(Symbol),
    /// Is root on any node that it chooses.
    Nodes,
    /// Acts as any user of its choice, `system:masters` apart.
    AnyUser,
    /// Holds every right there. In the cluster: what `system:masters` holds.
    Everything(Scope),
    /// Decides what an external source (a Git or OCI URL) delivers.
    Source(Symbol),
    /// Holds a cloud identity (an account, a role, an API key by its public name).
    Cloud(Symbol),
    /// Controls the whole cluster behind a kubeconfig; the name is `namespace/cluster`.
    OtherCluster(Symbol),
}

/// How sure an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Follows from what was loaded.
    Proven,
    /// Holds unless something that was not loaded, or could not be evaluated, prevents it.
    Assumed,
}

/// Where a need of a template must be held, seen from the scope at which the template is made real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In that same scope.
    Here,
    /// In the whole cluster: a cluster-scoped resource.
    Cluster,
    /// In one certain namespace.
    In(Symbol),
}

/// What a right on objects of one name is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Named {
    /// Nothing: the API server does not know the name when it decides (`create`, `deletecollection`).
    Never,
    /// The same as without a name, as long as an object of that name exists or can be made.
    Exists,
    /// The object of that name; the template's gift is about it.
    Target,
}

/// One need of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// A right; any one of the verbs on any one of the resources will do.
    Right {
        /// The verbs.
        verbs: Vec<Symbol>,
        /// The API group.
        group: Symbol,
        /// The plurals, with a subresource as `pods/exec`.
        resources: Vec<Symbol>,
        /// The only names that count, besides a right without names; empty for all.
        names: Vec<Symbol>,
        /// Where it must be held.
        place: Place,
        /// What a right by name is good for.
        named: Named,
    },
    /// A power over the scope of the template, such as reading its Secrets.
    Power(Power),
    /// Acts as somebody else by impersonation, whoever that is.
    AnyImpersonation,
    /// One certain fact.
    Fact(Fact),
}

/// A power over the scope at which a template is made real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// [`Fact::Secrets`].
    Secrets,
    /// [`Fact::Accounts`].
    Accounts,
    /// [`Fact::Pods`].
    Pods,
    /// [`Fact::Inside`].
    Inside,
    /// [`Fact::Everything`].
    Everything,
}

impl Power {
    /// The fact of this power in a scope.
    pub fn at(self, scope: Scope) -> Fact {
        match self {
            Self::Secrets => Fact::Secrets(scope),
            Self::Accounts => Fact::Accounts(scope),
            Self::Pods => Fact::Pods(scope),
            Self::Inside => Fact::Inside(scope),
            Self::Everything => Fact::Everything(scope),
        }
    }

    /// The power of a fact, and its scope; none for facts that are no power.
    pub fn of(fact: &Fact) -> Option<(Self, Scope)> {
        Some(match fact {
            Fact::Secrets(scope) => (Self::Secrets, *scope),
            Fact::Accounts(scope) => (Self::Accounts, *scope),
            Fact::Pods(scope) => (Self::Pods, *scope),
            Fact::Inside(scope) => (Self::Inside, *scope),
            Fact::Everything(scope) => (Self::Everything, *scope),
            _ => return None,
        })
    }
}

/// What a template gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gift {
    /// A power over the scope of the template.
    Power(Power),
    /// The object of the name in the right: the ServiceAccount, Secret, pod, node, user, group, role of that name.
    /// Without a name: each of them in the scope.
    Target(Target),
    /// One certain fact, whatever the scope.
    Fact(Fact),
    /// Nothing that the closure follows; the edge makes a finding only.
    Nothing,
}

/// What a name in a right stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A Secret: it is read.
    Secret,
    /// A ServiceAccount: one acts as it.
    Account,
    /// A ServiceAccount that exists or is only named by a binding: one acts as it by impersonation.
    AnyAccount,
    /// A ServiceAccount that does not exist and is named by a binding: one makes it and acts as it.
    AbsentAccount,
    /// A pod: one runs code in it.
    Pod,
    /// A node: one runs code in all its pods.
    NodePods,
    /// A user: one acts as it; without a name any user.
    User,
    /// A group: one acts as a member; without a name any group, so `system:masters`.
    Group,
    /// A ClusterRole: one holds its rules in the scope; without a name any, so everything there.
    ClusterRole,
    /// A Role of the namespace: one holds its rules there.
    Role,
    /// A ClusterRole that exists: one writes any rule into it, so holds everything where it, or one that can be made
    /// to aggregate it, is bound to oneself.
    HeldClusterRole,
    /// A Role that exists, in the same way.
    HeldRole,
    /// A ClusterRole that one deletes and makes again with any rule: one holds everything where it is bound to oneself,
    /// unless it is what lets one do so.
    ReplacedClusterRole,
    /// A Role, in the same way.
    ReplacedRole,
    /// A ClusterRole that one makes with any rule: one holds everything where one that can be made to aggregate it, or
    /// an absent one of its name, is bound to oneself.
    NewClusterRole,
    /// A Role that one makes with any rule, in the same way.
    NewRole,
    /// A ClusterRole that does not exist and that one makes and binds: one holds everything in the scope.
    AbsentClusterRole,
    /// A Role that does not exist, in the same way.
    AbsentRole,
    /// A binding to a ClusterRole: one joins it.
    JoinedClusterRole,
    /// A binding to a Role: one joins it.
    JoinedRole,
    /// A token Secret: one points it at any account of its namespace and acts as that.
    TokenSecret,
    /// A Secret that does not exist: made as a token Secret, it is one of any account of its namespace.
    AbsentSecret,
    /// A Secret that one deletes and makes again as a token Secret of any account of its namespace.
    ReplacedSecret,
}

/// A request that stands for the use of an edge, as admission sees it. An edge with several is blocked only where
/// each of them is.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'static str,
    /// The API group.
    pub group: String,
    /// The plural, with a subresource as `pods/exec`.
    pub resource: String,
    /// The object as it would be sent; null for a delete.
    pub object: Value,
    /// The object before; null for a create.
    pub old_object: Value,
    /// JSON pointers into `object` without which the edge would not be one (`/spec/serviceAccountName` absent). A policy
    /// that refuses the sample for another field proves nothing: an attacker would send another value.
    pub essential: Vec<String>,
}

/// An edge, said for all scopes at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// Id of a row of the catalogue.
    pub edge: &'static str,
    /// What must be held, all of it.
    pub when: Vec<Need>,
    /// What it gives.
    pub gives: Gift,
    /// How sure it is.
    pub certainty: Certainty,
    /// The object that makes it so, as `Kind NAMESPACE/NAME`, and what of it: for people.
    pub evidence: String,
    /// What was looked at and does not prevent it, or why it is only assumed: for people.
    pub guard: Option<String>,
    /// Namespaces where something prevents it.
    pub except: Vec<Symbol>,
    /// The only namespaces where it holds, if not all.
    pub only: Option<Vec<Symbol>>,
    /// Requests by which it is used; empty where no admission is involved.
    pub samples: Vec<Sample>,
    /// Indices of the needs that one requester must hold all by itself: one request is checked for them. Others may be
    /// held by several identities, one after the other.
    pub alone: Vec<usize>,
    /// Whether it takes credentials: the API server lets nobody impersonate who is impersonated itself.
    pub credentials: bool,
}
