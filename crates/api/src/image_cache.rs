//! `ImageCache`: a pull-through cache of images, for the management cluster and below it for workload clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The account that pods of a cache run as; it holds no right.
pub const IMAGE_CACHE_ACCOUNT: &str = "bailey-image-cache";

/// A pull-through cache of images, in the namespace `bailey-system`. What caches of workload clusters need is printed by
/// `bailey cache manifests`.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "bailey.dev",
    version = "v1alpha1",
    kind = "ImageCache",
    namespaced,
    status = "ImageCacheStatus",
    derive = "PartialEq",
    category = "bailey",
    doc = "A pull-through cache of images, in the namespace `bailey-system`. What caches of workload clusters need is printed by `bailey cache manifests`.",
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40").message("name an ImageCache with at most 40 lower-case letters, digits and `-`, a letter first: its Service has the same name"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message"),
    printcolumn(name = "Address", type_ = "string", json_path = ".status.address"),
    printcolumn(name = "Budget", type_ = "string", json_path = ".status.budget"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.defaultUpstream) || self.upstreams.exists(u, u.name == self.defaultUpstream)").message("defaultUpstream: name one of `upstreams`"))]
#[x_kube(validation = Rule::new("!has(self.bootstrap) || self.bootstrap.all(i, self.upstreams.exists(u, i.startsWith(u.name + '/')))").message("bootstrap: an image is of a registry that is none of `upstreams`; add the registry, or the caches cannot have it"))]
#[x_kube(validation = Rule::new("!has(self.workloadClusters) || has(self.workloadClusters.parent) || !has(self.workloadClusters.parentCaConfigMap)").message("workloadClusters.parentCaConfigMap: it is for `parent`; give that too, or leave both out"))]
pub struct ImageCacheSpec {
    /// The image of Bailey that runs the cache; that of the operator if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// How many run. Each has a disk of its own, and fetches for itself.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10))]
    pub replicas: i32,
    /// The disk of each.
    pub storage: CacheStorage,
    /// The closed list of registries that may be asked. Nothing that a node names is ever dialled.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub upstreams: Vec<CacheUpstream>,
    /// The registry that is meant where a request names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub default_upstream: Option<String>,
    /// For how long tags are believed.
    #[serde(default)]
    pub freshness: CacheFreshness,
    /// What is never evicted, here and in workload clusters: images, which are also fetched ahead, and digests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), inner(length(min = 1, max = 512)))]
    #[x_kube(validation = Rule::new("self.all(p, p.matches('^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}|[^/@]+/[^@]+(:[^/@:]+|@sha(256|512):[0-9a-f]+))$'))").message("pins: write each as REGISTRY/REPOSITORY:TAG, REGISTRY/REPOSITORY@DIGEST or a digest"))]
    pub pins: Vec<String>,
    /// Images without which a cluster does not start, pinned like `pins`. `bailey cache bootstrap` tells them from a
    /// cluster that runs, and whether one is missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(min = 1, max = 512)))]
    #[x_kube(validation = Rule::new("self.all(p, p.matches('^[^/@]+/[^@]+(:[^/@:]+|@sha(256|512):[0-9a-f]+)$'))").message("bootstrap: write each as REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@DIGEST"))]
    pub bootstrap: Vec<String>,
    /// The machines that pinned images are for, as OS/ARCHITECTURE; linux/amd64 if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        inner(length(max = 64), regex(pattern = r"^[a-z0-9]+/[a-z0-9]+(/[a-z0-9]+)?$"))
    )]
    pub pin_platforms: Vec<String>,
    /// The Secret, of type `kubernetes.io/tls`, to serve with. Without one the cache speaks plain HTTP. With `ca.crt` in
    /// it, nodes must show certificates of that authority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<CacheTls>,
    /// Who may reach it, as addresses of networks; everyone inside the cluster and nobody else if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 64)))]
    #[x_kube(validation = Rule::new("self.all(c, isCIDR(c))").message("clients: write each as a network, such as 10.0.0.0/8"))]
    pub clients: Vec<String>,
    /// What a pod of the cache asks for.
    #[serde(default)]
    pub resources: CacheResources,
    /// Caches in workload clusters; what they need is printed by `bailey cache manifests`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_clusters: Option<WorkloadCaches>,
}

/// A disk for blobs.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.budget) || !quantity(self.budget).isGreaterThan(quantity(self.size))").message("storage.budget: it is more than the disk holds; make it at most `size`, or leave it out for nine tenths"))]
#[x_kube(validation = Rule::new("self.size == oldSelf.size && has(self.storageClass) == has(oldSelf.storageClass) && (!has(self.storageClass) || self.storageClass == oldSelf.storageClass)").message("storage: disks of a cache that exists do not change; make a second ImageCache, point the nodes to it, and delete this one"))]
pub struct CacheStorage {
    /// The size of the volume, such as 200Gi.
    #[schemars(length(max = 20), regex(pattern = r"^[1-9][0-9]{0,9}(Mi|Gi|Ti)$"))]
    pub size: String,
    /// What blobs and fetches under way may take; nine tenths of the volume if absent. Never more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^[1-9][0-9]{0,9}(Mi|Gi|Ti)$"))]
    pub budget: Option<String>,
    /// The StorageClass; the cluster's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage_class: Option<String>,
}

/// A registry that may be asked.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(has(self.dockerConfigSecret) && has(self.basicAuth))").message("upstreams: give either `dockerConfigSecret` or `basicAuth`"))]
pub struct CacheUpstream {
    /// The registry as images name it, such as docker.io or registry.example:5000.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$")
    )]
    pub name: String,
    /// Where it is, if not at https://NAME.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new("isURL(self) && url(self).getScheme() in ['http', 'https']").message("upstreams.url: write it as https://HOST or https://HOST:PORT"))]
    pub url: Option<String>,
    /// A Secret of type `kubernetes.io/dockerconfigjson` in the same namespace. It is mounted, and read by the cache alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub docker_config_secret: Option<String>,
    /// A user name, with its password in a Secret that is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<CacheBasicAuth>,
    /// A ConfigMap whose `ca.crt` the registry's certificate is checked by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ca_config_map: Option<String>,
    /// Hosts of token services on other domains, which may be told the credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 253)))]
    pub realms: Vec<String>,
    /// Hosts with private addresses that redirects may lead to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 253)))]
    pub private_hosts: Vec<String>,
}

/// A user name and where its password is.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheBasicAuth {
    /// The user name.
    #[schemars(length(min = 1, max = 253))]
    pub username: String,
    /// A Secret in the same namespace with a key `password`. It is mounted, and read by the cache alone.
    #[schemars(length(min = 1, max = 253))]
    pub password_secret: String,
}

/// What to serve with.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheTls {
    /// The Secret with `tls.crt` and `tls.key`. It is mounted, and read by the cache alone.
    #[schemars(length(min = 1, max = 253))]
    pub secret: String,
    /// Whether nodes must show certificates of the authority in the Secret's `ca.crt`.
    #[serde(default)]
    pub client_certificates: bool,
}

/// For how long tags are believed.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct CacheFreshness {
    /// For how long a tag is not asked about again: `immutable`, or a time such as 60s; 60s if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^(immutable|[0-9]+(s|m|h|d))$"))]
    pub tags: Option<String>,
    /// For how long a tag is served though its registry cannot be asked: `unlimited`, `never`, or a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^(unlimited|never|[0-9]+(s|m|h|d))$"))]
    pub stale_if_error: Option<String>,
    /// What becomes of a tag that its registry does not have any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<CacheGone>,
    /// The first rule that matches a tag decides in place of `tags`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub rules: Vec<CacheFreshnessRule>,
}

/// What becomes of a tag that its registry does not have any more.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
pub enum CacheGone {
    /// It is served on.
    Keep,
    /// It is gone here as well.
    Follow,
}

/// A rule for some tags.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheFreshnessRule {
    /// Which images, such as registry.example/acme/*; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub images: Option<String>,
    /// Which of their tags: `versions`, such as 1.2.3, or a pattern, such as edge-*.
    #[schemars(length(min = 1, max = 128))]
    pub tags: String,
    /// `immutable`, or a time such as 10s.
    #[schemars(length(max = 20), regex(pattern = r"^(immutable|[0-9]+(s|m|h|d))$"))]
    pub fresh: String,
}

/// What a pod of a cache asks for.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheResources {
    /// Processor time, such as 250m; 100m if absent. There is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]+m?$"))]
    pub cpu: Option<String>,
    /// Memory, such as 256Mi, which is asked for and the limit; 256Mi if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^[1-9][0-9]*(Mi|Gi)$"))]
    pub memory: Option<String>,
}

/// Caches in workload clusters, and what their nodes are told.
#[derive(KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!self.offline || size(self.registries) > 0").message("workloadClusters.offline: nodes would find no image at all if the file for all registries led nowhere else; name the registries it is for in `registries`"))]
pub struct WorkloadCaches {
    /// Where the cache of the management cluster is, as workload clusters reach it. Without one their caches ask the
    /// registries themselves, without credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new("isURL(self) && url(self).getScheme() in ['http', 'https']").message("workloadClusters.parent: write it as https://HOST:PORT"))]
    pub parent: Option<String>,
    /// A ConfigMap of the workload cluster whose `ca.crt` the parent's certificate is checked by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub parent_ca_config_map: Option<String>,
    /// How many run in each cluster.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10))]
    pub replicas: i32,
    /// The disk of each.
    pub storage: CacheStorage,
    /// The registries that nodes are told to ask the cache for; all, one file for each of `upstreams`, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 253)))]
    pub registries: Vec<String>,
    /// Whether nodes never go to these registries themselves, so that without an uplink no pull waits for them.
    #[serde(default)]
    pub offline: bool,
    /// The version of containerd on the nodes, such as 2.1; newer settings are used only if it knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]+\.[0-9]+(\.[0-9]+)?$"))]
    pub containerd: Option<String>,
    /// The port on the loopback of each node that containerd is told.
    #[serde(default = "shim_port")]
    #[schemars(range(min = 1024, max = 65535))]
    pub node_port: i32,
    /// For how long tags are believed there.
    #[serde(default)]
    pub freshness: CacheFreshness,
}

/// What runs.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageCacheStatus {
    /// The generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, and `Reconciling` or `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Where it is reached inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What each may keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// How many of its pods serve.
    #[serde(default)]
    pub ready_replicas: i32,
}

fn one() -> i32 {
    1
}

fn shim_port() -> i32 {
    5000
}
