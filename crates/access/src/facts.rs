//! What is known of clusters, in the smallest form that answers who reaches what.
//!
//! A loader fills a [`Snapshot`]; nothing here knows where it came from but [`Origin`]. Kinds that come in tens of
//! thousands have their own types; of the few that decide about edges (policies, deputies, custom resources) the
//! whole object is kept. No value of a Secret is ever in here.

use serde_json::Value;

use crate::{Symbol, Symbols};

/// Everything that was loaded, of one or several clusters.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The names used by all facts.
    pub symbols: Symbols,
    /// The clusters. Each namespace, binding and Secret belongs to exactly one.
    pub clusters: Vec<ClusterFacts>,
    /// Files or addresses that [`Origin::source`] points to.
    pub sources: Vec<String>,
    /// What could not be loaded. Not empty means: the answer is incomplete.
    pub gaps: Vec<Gap>,
}

/// What could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The cluster, where it is known.
    pub cluster: Option<String>,
    /// What is missing: a kind (`pods`), an object, a file with its position.
    pub what: String,
    /// Why, and what to do.
    pub why: String,
}

/// Where an object was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// Index into [`Snapshot::sources`].
    pub source: u32,
    /// Line in a file, counted from 1; 0 if it came from an API server.
    pub line: u32,
}

/// What is known of one cluster.
#[derive(Debug, Clone, Default)]
pub struct ClusterFacts {
    /// The name that the user gave it, else the one of its context or of its Installation, else `cluster`.
    pub name: String,
    /// Minor version of Kubernetes 1.x, where it is known.
    pub minor: Option<u16>,
    /// Namespaces.
    pub namespaces: Vec<NamespaceFact>,
    /// ServiceAccounts.
    pub service_accounts: Vec<ServiceAccountFact>,
    /// Roles and ClusterRoles.
    pub roles: Vec<RoleFact>,
    /// RoleBindings and ClusterRoleBindings.
    pub bindings: Vec<BindingFact>,
    /// Secrets, without values.
    pub secrets: Vec<SecretFact>,
    /// Pods.
    pub pods: Vec<PodFact>,
    /// Nodes.
    pub nodes: Vec<NodeFact>,
    /// Objects of all other kinds that matter, whole.
    pub objects: Vec<ObjectFact>,
    /// Kinds that were listed whole, as `plural.group` (`pods`, `roles.rbac.authorization.k8s.io`). Of a kind that is
    /// not here, nothing follows from the absence of an object.
    pub listed: Vec<String>,
}

/// A Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceFact {
    /// Its name.
    pub name: Symbol,
    /// Its labels.
    pub labels: Vec<(Symbol, Symbol)>,
    /// Where it was read.
    pub origin: Origin,
}

/// A ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccountFact {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
    /// Names of its `imagePullSecrets` and `secrets`.
    pub secrets: Vec<Symbol>,
    /// A cloud identity that it carries (the value of an IRSA or workload identity annotation).
    pub cloud_identity: Option<Symbol>,
}

/// A Role, or a ClusterRole where the namespace is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleFact {
    /// Namespace of a Role.
    pub namespace: Option<Symbol>,
    /// Its name.
    pub name: Symbol,
    /// Its rules as stored. For an aggregated role read from static manifests these may be missing.
    pub rules: Vec<RuleFact>,
    /// Its labels.
    pub labels: Vec<(Symbol, Symbol)>,
    /// The selectors of its `aggregationRule`, empty for none.
    pub aggregation: Vec<SelectorFact>,
    /// Where it was read.
    pub origin: Origin,
}

/// A PolicyRule (`rbac.authorization.k8s.io/v1`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct RuleFact {
    /// `apiGroups`, `""` for core.
    pub api_groups: Vec<Symbol>,
    /// `resources`, with a subresource as `pods/exec`.
    pub resources: Vec<Symbol>,
    /// `resourceNames`, empty for all.
    pub resource_names: Vec<Symbol>,
    /// `verbs`.
    pub verbs: Vec<Symbol>,
    /// `nonResourceURLs`.
    pub non_resource_urls: Vec<Symbol>,
}

/// A label selector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SelectorFact {
    /// `matchLabels`.
    pub labels: Vec<(Symbol, Symbol)>,
    /// `matchExpressions`.
    pub expressions: Vec<ExpressionFact>,
}

/// One `matchExpressions` entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionFact {
    /// The label's key.
    pub key: Symbol,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: Symbol,
    /// The values.
    pub values: Vec<Symbol>,
}

/// A RoleBinding, or a ClusterRoleBinding where the namespace is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingFact {
    /// Namespace of a RoleBinding.
    pub namespace: Option<Symbol>,
    /// Its name.
    pub name: Symbol,
    /// Whether `roleRef` names a ClusterRole; else a Role of the binding's namespace.
    pub cluster_role: bool,
    /// Name in `roleRef`.
    pub role: Symbol,
    /// Its subjects.
    pub subjects: Vec<SubjectFact>,
    /// Where it was read.
    pub origin: Origin,
}

/// Kind of an RBAC subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    /// A user; `system:serviceaccount:NS:NAME` is the ServiceAccount and never kept as a user.
    User,
    /// A group.
    Group,
    /// A ServiceAccount.
    ServiceAccount,
}

/// A subject of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SubjectFact {
    /// Its kind.
    pub kind: SubjectKind,
    /// Namespace of a ServiceAccount; where the manifest has none, that of the RoleBinding. Empty for others.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
}

/// A Secret, never with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFact {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
    /// Its `type`.
    pub kind: Symbol,
    /// The account named by `kubernetes.io/service-account.name`, for a token Secret.
    pub service_account: Option<Symbol>,
    /// The label `cluster.x-k8s.io/cluster-name`.
    pub cluster_name: Option<Symbol>,
    /// The label `argocd.argoproj.io/secret-type`.
    pub argocd_type: Option<Symbol>,
    /// Where it was read.
    pub origin: Origin,
}

/// A Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodFact {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
    /// Its ServiceAccount, `default` where the manifest has none.
    pub service_account: Symbol,
    /// The node it runs on.
    pub node: Option<Symbol>,
    /// Names of all Secrets it takes in: volumes, projected sources, env, envFrom of all containers (init and ephemeral
    /// ones too), imagePullSecrets, CSI and other volume secretRefs.
    pub secrets: Vec<Symbol>,
    /// Whether it can take over its node: privileged, hostPID, a hostPath volume, or a capability such as SYS_ADMIN.
    pub privileged: bool,
    /// Whether a token of its account is mounted.
    pub token: bool,
}

/// A Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFact {
    /// Its name.
    pub name: Symbol,
    /// Whether it carries `node-role.kubernetes.io/control-plane`.
    pub control_plane: bool,
}

/// An object of a kind that has no type of its own here.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectFact {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// Its namespace, empty in the cluster scope.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
    /// The whole object, without `managedFields` and without `last-applied-configuration`.
    pub body: Value,
    /// Where it was read.
    pub origin: Origin,
}

impl ObjectFact {
    /// The API group, empty for core.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The value at a JSON pointer, if it is a non-empty string.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.body.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
}

impl ClusterFacts {
    /// The objects of a group and kind.
    pub fn objects_of<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = &'a ObjectFact> + 'a {
        self.objects.iter().filter(move |object| object.kind == kind && object.group() == group)
    }

    /// Whether a kind (`plural.group`) was listed whole.
    pub fn has_listed(&self, kind: &str) -> bool {
        self.listed.iter().any(|listed| listed == kind)
    }
}
