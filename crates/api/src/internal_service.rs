//! `InternalService`: a Service of the management cluster that chosen workload clusters reach, and nobody else.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Service of the management cluster that chosen workload clusters reach, in the namespace `bailey-system`. There it is
/// a Service of the same name in the namespace `bailey-tunnel`.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "bailey.dev",
    version = "v1alpha1",
    kind = "InternalService",
    namespaced,
    status = "InternalServiceStatus",
    derive = "PartialEq",
    category = "bailey",
    doc = "A Service of the management cluster that chosen workload clusters reach, in the namespace `bailey-system`. There it is a Service of the same name in the namespace `bailey-tunnel`.",
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63").message("name an InternalService with at most 63 lower-case letters, digits and `-`, a letter first: Services have the same name"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message"),
    printcolumn(name = "Backend", type_ = "string", json_path = ".spec.backend.name"),
    printcolumn(name = "Clusters", type_ = "integer", json_path = ".status.clusters"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct InternalServiceSpec {
    /// The Service of the management cluster behind it.
    pub backend: InternalServiceBackend,
    /// The port of the Service in workload clusters; that of the backend if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Which clusters reach it; none if absent.
    #[serde(default)]
    pub clusters: ClusterSelection,
}

/// A Service of the management cluster.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InternalServiceBackend {
    /// Its namespace.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Its port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

/// Clusters: those that are named, and those whose labels match. Nothing is meant if both are absent.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelection {
    /// Clusters by name, as NAMESPACE/NAME of the Cluster object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(min = 3, max = 127)))]
    #[x_kube(validation = Rule::new("self.all(n, n.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'))").message("clusters.names: write each as NAMESPACE/NAME"))]
    pub names: Vec<String>,
    /// Clusters by the labels of the Cluster object. An empty selector means every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// Who reaches it.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InternalServiceStatus {
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, and `Reconciling` or `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How many clusters may reach it.
    #[serde(default)]
    pub clusters: i32,
    /// The port that agents listen on for it, chosen once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20000, max = 29999))]
    pub agent_port: Option<i32>,
}
