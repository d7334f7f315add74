//! `Boundary`: the index that the rails look things up in. Written by the operator only.
//!
//! Maps, not lists, because a rail looks up one key per request and a look-up in a map does not grow with
//! the number of tenants.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who belongs to whom, for the admission policies. Written by the operator; do not edit.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Default)]
#[kube(
    group = "bailey.dev",
    version = "v1alpha1",
    kind = "Boundary",
    plural = "boundaries",
    derive = "PartialEq",
    category = "bailey",
    doc = "Who belongs to whom, for the admission policies. Written by the operator; do not edit.",
    validation = Rule::new("self.metadata.name == 'installation'").message("there is one Boundary, named `installation`, and the operator writes it"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BoundarySpec {
    /// The Secret that holds the management cluster's own kubeconfig.
    pub management_kubeconfig: String,
    /// Namespaces: to the tenant, or to `platform`.
    pub namespaces: BTreeMap<String, String>,
    /// Groups: to the tenant, or to `platform`.
    pub groups: BTreeMap<String, String>,
    /// User names: to the tenant, or to `platform`.
    pub users: BTreeMap<String, String>,
    /// Names and groups of custom kinds: to the tenant that may define them.
    pub crds: BTreeMap<String, String>,
    /// Tenants by name.
    pub tenants: BTreeMap<String, TenantBoundary>,
}

/// The owner value that stands for the platform in a [`Boundary`].
pub const PLATFORM: &str = "platform";

/// What one tenant is entitled to.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantBoundary {
    /// Namespaces whose names begin with this may be created; empty for none.
    pub namespace_prefix: String,
    /// Install accounts, as `NAMESPACE/NAME`.
    pub install_accounts: Vec<String>,
    /// Control accounts, as `NAMESPACE/NAME`.
    pub control_accounts: Vec<String>,
    /// Charts that an in-cluster App may name.
    pub control_charts: Vec<String>,
    /// Namespaces beside the tenant's own whose sources its releases may use.
    #[serde(default)]
    pub source_namespaces: Vec<String>,
}
