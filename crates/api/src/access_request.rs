//! `AccessRequest`: what one binding of a tenant asked for, and what came of it.

use k8s_openapi::{api::rbac::v1::PolicyRule, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one binding of a tenant asked for: requested, granted and refused rules, each refusal with its reason.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "bailey.dev",
    version = "v1alpha1",
    kind = "AccessRequest",
    namespaced,
    status = "AccessRequestStatus",
    derive = "PartialEq",
    category = "bailey",
    shortname = "areq",
    doc = "What one binding of a tenant asked for: requested, granted and refused rules, each refusal with its reason.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message"
    ),
    printcolumn(name = "Tenant", type_ = "string", json_path = ".spec.tenant"),
    printcolumn(name = "Requested", type_ = "integer", json_path = ".status.requestedCount"),
    printcolumn(name = "Granted", type_ = "integer", json_path = ".status.grantedCount"),
    printcolumn(name = "Refused", type_ = "integer", json_path = ".status.refusedCount"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AccessRequestSpec {
    /// The tenant that asks.
    #[schemars(length(min = 1, max = 40))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("spec.tenant is written by the operator and does not change"))]
    pub tenant: String,
    /// The binding that asks.
    #[x_kube(validation = Rule::new("self == oldSelf").message("spec.binding is written by the operator and does not change"))]
    pub binding: BindingRef,
    /// Refused rules that the platform grants after all. Only what was requested takes effect; namespaced
    /// kinds stay inside the tenant's namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    #[x_kube(validation = Rule::new("self.all(r, r.verbs.all(v, !(v in ['*', 'impersonate', 'bind', 'escalate'])))").message("spec.approved: name each verb; `*`, `impersonate`, `bind` and `escalate` cannot be approved, since they reach beyond any boundary"))]
    #[x_kube(validation = Rule::new("self.all(r, !has(r.resources) || r.resources.all(x, x != '*'))").message("spec.approved: name each resource instead of `*`"))]
    #[x_kube(validation = Rule::new("self.all(r, !has(r.apiGroups) || r.apiGroups.all(x, x != '*'))").message("spec.approved: name each API group instead of `*`"))]
    pub approved: Vec<ApprovedRule>,
}

/// A binding of RBAC.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingRef {
    /// Its kind.
    pub kind: BindingKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The kind of a binding.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
pub enum BindingKind {
    /// Asks for rights in the whole cluster.
    ClusterRoleBinding,
    /// Asks for rights in its namespace.
    RoleBinding,
}

impl BindingKind {
    /// The kind as the API shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterRoleBinding => "ClusterRoleBinding",
            Self::RoleBinding => "RoleBinding",
        }
    }
}

/// A refused rule that the platform grants after all.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedRule {
    /// API groups, `""` for the core group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(max = 253)))]
    pub api_groups: Vec<String>,
    /// Resources, with `/SUBRESOURCE` where meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(max = 253)))]
    pub resources: Vec<String>,
    /// Names of objects; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(max = 253)))]
    pub resource_names: Vec<String>,
    /// Paths that are not resources.
    #[serde(default, rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(max = 253)))]
    pub non_resource_urls: Vec<String>,
    /// Verbs.
    #[schemars(length(min = 1, max = 20), inner(length(max = 63)))]
    pub verbs: Vec<String>,
}

/// What came of a request.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessRequestStatus {
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, and `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The role that was asked for, as `KIND/NAME`.
    #[serde(default)]
    pub role: String,
    /// Who gets the granted rules, as `KIND:NAME` in the notation of the command line.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// The rules as the role states them.
    #[serde(default)]
    pub requested: Vec<PolicyRule>,
    /// What is in effect.
    #[serde(default)]
    pub granted: Vec<GrantedRule>,
    /// What is not, and why.
    #[serde(default)]
    pub refused: Vec<RefusedRule>,
    /// The number of requested rules.
    #[serde(default)]
    pub requested_count: i64,
    /// The number of requested rules of which something is granted.
    #[serde(default)]
    pub granted_count: i64,
    /// The number of refused parts.
    #[serde(default)]
    pub refused_count: i64,
}

/// A granted part of a requested rule.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantedRule {
    /// The position of the requested rule, from 0.
    pub request: i64,
    /// Where it holds.
    pub scope: GrantScope,
    /// The rule in effect.
    pub rule: PolicyRule,
    /// Whether the platform approved it by hand.
    #[serde(default)]
    pub approved: bool,
}

/// Where a granted rule holds.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
pub enum GrantScope {
    /// In each of the tenant's namespaces, or in the namespace of the RoleBinding.
    Namespaces,
    /// In the whole cluster, for cluster-scoped kinds that harm nobody or are the tenant's own.
    Cluster,
}

/// A refused part of a request.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedRule {
    /// The position of the requested rule, from 0; absent where a subject is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<i64>,
    /// What is refused, in the words of RBAC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<PolicyRule>,
    /// Why, from a finite list.
    pub reason: RefusalReason,
    /// Why, for people.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// Why a part of a request is refused.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
pub enum RefusalReason {
    /// A cluster-scoped kind that is not the tenant's own.
    ClusterScoped,
    /// A namespaced kind that fences tenants.
    ProtectedKind,
    /// A verb that reaches beyond any boundary.
    EscalatingVerb,
    /// A path of the API server that is not a resource.
    NonResourceUrl,
    /// No such resource is served now; granted by itself when it is.
    NotServed,
    /// A verb that the resource does not have.
    UnknownVerb,
    /// A subject that is not the tenant's.
    ForeignSubject,
    /// The record of the request cannot be read.
    Unreadable,
}

impl RefusalReason {
    /// The reason as the API shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterScoped => "ClusterScoped",
            Self::ProtectedKind => "ProtectedKind",
            Self::EscalatingVerb => "EscalatingVerb",
            Self::NonResourceUrl => "NonResourceUrl",
            Self::NotServed => "NotServed",
            Self::UnknownVerb => "UnknownVerb",
            Self::ForeignSubject => "ForeignSubject",
            Self::Unreadable => "Unreadable",
        }
    }
}
