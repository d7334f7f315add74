//! `Tenant`: one customer of the installation.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApiGroup, CrdName, NamespaceName, ServiceAccountRef};

/// One customer: its namespaces, its people and accounts, and what it may install.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "bailey.dev",
    version = "v1alpha1",
    kind = "Tenant",
    status = "TenantStatus",
    derive = "PartialEq",
    category = "bailey",
    doc = "One customer: its namespaces, its people and accounts, and what it may install.",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40").message("name a Tenant with at most 40 lower-case letters, digits and `-`"),
    validation = Rule::new("!(self.metadata.name in ['platform', 'bailey'])").message("`platform` and `bailey` are reserved: choose the customer's name"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message"),
    printcolumn(name = "Namespaces", type_ = "integer", json_path = ".status.namespaceCount"),
    printcolumn(name = "Requests", type_ = "integer", json_path = ".status.requests"),
    printcolumn(name = "Bounded", type_ = "string", json_path = ".status.conditions[?(@.type==\"Bounded\")].status"),
    printcolumn(name = "Isolated", type_ = "string", json_path = ".status.conditions[?(@.type==\"Isolated\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.install) || !has(self.install.accounts) || self.install.accounts.all(a, a.split('/')[0] in self.namespaces)").message("install.accounts: an install account must be in one of the tenant's namespaces"))]
#[x_kube(validation = Rule::new("!has(self.install) || !has(self.install.controlAccounts) || self.install.controlAccounts.all(a, a.split('/')[0] in self.namespaces)").message("install.controlAccounts: a control account must be in one of the tenant's namespaces"))]
#[x_kube(validation = Rule::new("!has(self.install) || !has(self.install.accounts) || !has(self.install.controlAccounts) || !self.install.accounts.exists(a, a in self.install.controlAccounts)").message("install: an account is either an install account or a control account, since their rights decide what a release may do"))]
pub struct TenantSpec {
    /// Namespaces of the tenant; missing ones are created. A namespace belongs to one tenant.
    #[schemars(length(min = 1, max = 200))]
    #[x_kube(validation = Rule::new("!self.exists(n, n in ['default', 'bailey-system'] || n.startsWith('kube-'))").message("`default`, `bailey-system` and `kube-*` belong to the cluster: give the tenant namespaces of its own"))]
    pub namespaces: Vec<NamespaceName>,
    /// Lets the tenant create further namespaces whose names begin with this, for example `acme-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 40), regex(pattern = r"^[a-z0-9][-a-z0-9]*-$"))]
    #[x_kube(validation = Rule::new("!(self in ['kube-', 'bailey-', 'default-', 'openshift-'])").message("this prefix belongs to the cluster: use one with the customer's name, ending in `-`"))]
    pub namespace_prefix: Option<String>,
    /// People and accounts, by role.
    #[serde(default)]
    pub subjects: Subjects,
    /// Installing on the management cluster.
    #[serde(default)]
    pub install: Install,
    /// The custom kinds that the tenant may define.
    #[serde(default)]
    pub crds: CrdEntitlement,
    /// What its pods may ask of a node. Bailey tightens the Pod Security level of its namespaces, never loosens it.
    #[serde(default)]
    pub pod_security: PodSecurity,
}

/// A level of the Pod Security Standards.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, JsonSchema)]
pub enum PodSecurity {
    /// Everything, root on the node included: with it the tenant reaches whatever runs on the same node.
    Privileged,
    /// Nothing known to escape to the node.
    #[default]
    Baseline,
    /// What hardened apps need.
    Restricted,
}

impl PodSecurity {
    /// The level as Pod Security labels carry it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }

    /// The level that a Pod Security label carries.
    pub fn from_label(value: &str) -> Option<Self> {
        [Self::Privileged, Self::Baseline, Self::Restricted].into_iter().find(|level| level.as_str() == value)
    }
}

/// Who acts for the tenant, by role. Each role holds what the ones below it hold.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subjects {
    /// May install on the management cluster and on workload clusters.
    #[serde(default)]
    pub installers: SubjectSet,
    /// May create workload clusters and install on them.
    #[serde(default)]
    pub developers: SubjectSet,
    /// May look, but not at Secrets.
    #[serde(default)]
    pub viewers: SubjectSet,
}

/// Subjects by exact name.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct SubjectSet {
    /// Groups of the identity provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    #[x_kube(validation = Rule::new("!self.exists(g, g.startsWith('system:'))").message("groups that begin with `system:` belong to Kubernetes: name a group of your identity provider, or use serviceAccounts"))]
    pub groups: Vec<String>,
    /// User names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    #[x_kube(validation = Rule::new("!self.exists(u, u.startsWith('system:'))").message("users that begin with `system:` belong to Kubernetes: name a person, or use serviceAccounts"))]
    pub users: Vec<String>,
    /// ServiceAccounts as `NAMESPACE/NAME`, for GitOps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub service_accounts: Vec<ServiceAccountRef>,
}

/// Installing on the management cluster.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct Install {
    /// Where installers may install.
    #[serde(default)]
    pub target: InstallTarget,
    /// Accounts that releases may name to install on the management cluster. They get the installers' rights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub accounts: Vec<ServiceAccountRef>,
    /// Accounts that releases may name to create workload clusters and releases. Any developer may use them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub control_accounts: Vec<ServiceAccountRef>,
    /// Charts that an in-cluster App may name, because they render only Cluster API and app kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(min = 1, max = 253)))]
    pub control_charts: Vec<String>,
    /// Namespaces beside the tenant's own whose Flux sources its releases may use, for catalogs of the platform.
    /// Whatever such a source holds can be read by the tenant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub source_namespaces: Vec<NamespaceName>,
}

/// Where installers may install.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
pub enum InstallTarget {
    /// On the management cluster, inside the tenant's boundary, and on workload clusters.
    #[default]
    ManagementCluster,
    /// On workload clusters only.
    WorkloadClusters,
}

/// The custom kinds that the tenant may define.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct CrdEntitlement {
    /// Whole API groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    #[x_kube(validation = Rule::new("!self.exists(g, g == 'k8s.io' || g.endsWith('.k8s.io') || g.endsWith('.kubernetes.io') || g == 'bailey.dev')").message("crds.groups: groups of Kubernetes and Bailey cannot be given as a whole; list single kinds in crds.names"))]
    pub groups: Vec<ApiGroup>,
    /// Single definitions, as `PLURAL.GROUP`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    #[x_kube(validation = Rule::new("!self.exists(n, n.endsWith('.bailey.dev'))").message("crds.names: the kinds of bailey.dev are the platform's"))]
    pub names: Vec<CrdName>,
}

/// What is in effect for a tenant.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantStatus {
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `Bounded`, `Isolated` where the auditor runs, and `Reconciling` or `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The namespaces that belong to the tenant now, sorted.
    #[serde(default)]
    pub namespaces: Vec<NamespaceName>,
    /// Their number.
    #[serde(default)]
    pub namespace_count: i64,
    /// The number of its AccessRequests.
    #[serde(default)]
    pub requests: i64,
    /// Who reaches its Secrets, and which it reaches; written by the auditor where one runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets: Option<TenantSecrets>,
}

/// The Secrets of a tenant by who reaches them, directly or by any detour.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantSecrets {
    /// Secrets in its namespaces.
    pub total: i64,
    /// Those that provably nobody but it and the platform reaches.
    pub exactly_one: i64,
    /// Those that others provably reach, too.
    pub shared: i64,
    /// Those of which that is not sure.
    pub unknown: i64,
    /// Secrets of the platform and of others that somebody of it provably reaches.
    pub others: i64,
}
