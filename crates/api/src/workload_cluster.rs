//! `WorkloadCluster`: a cluster that may connect to the management cluster. Made and removed by the issuer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A workload cluster that may connect, in the namespace `bailey-system`. The issuer makes one for each Cluster of Cluster
/// API and removes it with that. Deleting one ends every session of the cluster within a second.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "bailey.dev",
    version = "v1alpha1",
    kind = "WorkloadCluster",
    namespaced,
    status = "WorkloadClusterStatus",
    derive = "PartialEq",
    category = "bailey",
    doc = "A workload cluster that may connect, in the namespace `bailey-system`. The issuer makes one for each Cluster of Cluster API and removes it with that. Deleting one ends every session of the cluster within a second.",
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
    printcolumn(name = "Path", type_ = "string", json_path = ".status.path"),
    printcolumn(
        name = "Certificate-Until",
        type_ = "date",
        json_path = ".status.certificateNotAfter",
        priority = 1
    ),
    printcolumn(name = "Skew", type_ = "integer", json_path = ".status.skewSeconds", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadClusterSpec {
    /// The Cluster object that it stands for.
    #[x_kube(validation = Rule::new("self == oldSelf").message("cluster: it never changes; another Cluster has a WorkloadCluster of its own"))]
    pub cluster: ClusterReference,
    /// The labels of the Cluster, by which InternalServices choose.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub labels: std::collections::BTreeMap<String, String>,
    /// What its agents send as SNI: 32 random hexadecimal digits. No credential.
    #[schemars(length(max = 32), regex(pattern = "^[0-9a-f]{32}$"))]
    pub sni_label: String,
    /// Addresses that it is known to come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub sources: Vec<ClusterSource>,
    /// Certificates from before this moment are refused, and their sessions end. Set it to now when a key may be known to
    /// somebody; agents get new certificates by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_before: Option<Time>,
}

/// A Cluster object of Cluster API.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: a Cluster that was made again under its name has another.
    #[schemars(length(min = 8, max = 64))]
    pub uid: String,
}

/// Addresses of a cluster.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSource {
    /// A network, such as 192.0.2.0/24.
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("isCIDR(self)").message("sources.cidr: write it as a network, such as 192.0.2.7/32"))]
    pub cidr: String,
    /// How it is known.
    pub from: SourceProvenance,
}

/// How an address is known.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
pub enum SourceProvenance {
    /// From the cluster's objects of Cluster API.
    Crd,
    /// Written down by the platform.
    Declared,
}

/// How the cluster is connected.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadClusterStatus {
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready` says that every service answers, through the whole path.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How its agents come: `Direct`, `Proxy` or `ApiServer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// When the certificate of its agents is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_not_after: Option<Time>,
    /// How far its clock is ahead of that of the management cluster, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skew_seconds: Option<i64>,
    /// How each service that it may reach answers.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub services: Vec<ClusterServiceStatus>,
}

/// How a service answers.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterServiceStatus {
    /// The InternalService.
    pub name: String,
    /// Whether the last probe reached it.
    pub ready: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
