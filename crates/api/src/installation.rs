//! `Installation`: what the platform says about itself, once per management cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{NamespaceName, ServiceAccountRef};

/// What the platform team says about this management cluster: what is its own, and how far the rails act.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "bailey.dev",
    version = "v1alpha1",
    kind = "Installation",
    status = "InstallationStatus",
    derive = "PartialEq",
    category = "bailey",
    doc = "What the platform team says about this management cluster: what is its own, and how far the rails act.",
    validation = Rule::new("self.metadata.name == 'installation'").message("there is one Installation per management cluster: name it `installation`"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message"),
    printcolumn(name = "Enforcement", type_ = "string", json_path = ".spec.enforcement"),
    printcolumn(name = "Tenants", type_ = "integer", json_path = ".status.tenants"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct InstallationSpec {
    /// This management cluster.
    pub management_cluster: ManagementCluster,
    /// Whether one customer or several use this management cluster.
    #[serde(default)]
    pub tenancy: Tenancy,
    /// What happens to a request that a rail refuses.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// What is the platform's own. Everyone else is bounded.
    pub platform: Platform,
    /// Namespaced kinds, as `PLURAL.GROUP`, that tenants never get, beside the built-in list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(max = 253)))]
    #[x_kube(validation = Rule::new("self.all(k, k.contains('.'))").message("write a kind as PLURAL.GROUP, for example rolebindingtemplates.auth.example.com"))]
    pub protected_kinds: Vec<String>,
}

/// The management cluster itself.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagementCluster {
    /// Its name in Cluster API; the Secret `NAME-kubeconfig` must never be the target of a customer's release.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
}

/// Whether one customer or several use this management cluster.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
pub enum Tenancy {
    /// One customer.
    #[default]
    Dedicated,
    /// Several customers.
    Shared,
}

/// What happens to a request that a rail refuses. Roll out in this order.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
pub enum Enforcement {
    /// It goes through, and the audit log names the rail.
    #[default]
    Audit,
    /// It goes through, and its author sees a warning that names the rail.
    Warn,
    /// It is refused, and installs of tenants are scoped.
    Enforce,
}

impl Enforcement {
    /// The mode as the API shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "Audit",
            Self::Warn => "Warn",
            Self::Enforce => "Enforce",
        }
    }
}

/// What is the platform's own, by exact name.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct Platform {
    /// Namespaces of the platform. `kube-system`, `kube-public`, `kube-node-lease` and `bailey-system` always are.
    /// Their ServiceAccounts are platform principals.
    #[schemars(length(min = 1, max = 1000))]
    pub namespaces: Vec<NamespaceName>,
    /// User names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), inner(length(min = 1, max = 253)))]
    pub users: Vec<String>,
    /// Groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), inner(length(min = 1, max = 253)))]
    #[x_kube(validation = Rule::new("!self.exists(g, g in ['system:authenticated', 'system:unauthenticated', 'system:serviceaccounts'])").message("`system:authenticated`, `system:unauthenticated` and `system:serviceaccounts` hold customers too: list the platform's groups exactly"))]
    pub groups: Vec<String>,
    /// ServiceAccounts outside the platform's namespaces, as `NAMESPACE/NAME`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub service_accounts: Vec<ServiceAccountRef>,
}

/// What is in effect.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallationStatus {
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, and `Reconciling` or `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The number of valid tenants.
    #[serde(default)]
    pub tenants: i64,
    /// What each rail does on this cluster.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub rails: Vec<RailStatus>,
}

/// What one rail does on this cluster.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RailStatus {
    /// The rail, such as `hidden-read`.
    pub name: String,
    /// What it does to a request that it refuses.
    pub state: RailState,
    /// What it holds, in a line.
    pub holds: String,
}

/// What a rail does to a request that it refuses.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
pub enum RailState {
    /// It refuses or scopes it.
    Enforced,
    /// It warns the author.
    Warned,
    /// It writes it to the audit log.
    Audited,
    /// It does nothing, because this cluster lacks the API or the mode does not call for it.
    Absent,
}
