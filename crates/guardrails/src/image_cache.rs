//! From an `ImageCache` to what runs it: in the management cluster, and in a workload cluster.
//!
//! INVARIANT: Secrets are named in volumes and nowhere else; nothing here needs a right on them.

mod config;
mod pod;
mod workload;

#[cfg(test)]
mod tests;

use bailey_api::{CacheStorage, IMAGE_CACHE_ACCOUNT, ImageCache, OPERATOR_NAMESPACE};
use serde_json::{Value, json};

use pod::{CachePod, labels, selector};

pub use workload::{NodeFiles, WORKLOAD_NAMESPACE, workload_manifests};

/// The port that nodes ask.
const PORT: u16 = 5000;
/// The port of probes, metrics and a page.
const ADMIN_PORT: u16 = 8080;

/// Why an ImageCache cannot be put into effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageCacheProblem {
    /// It is where the operator may not write.
    #[error(
        "ImageCaches work in the namespace `{OPERATOR_NAMESPACE}` only, where the operator may write: make it there, and delete this one"
    )]
    Namespace,
    /// Nobody said which image runs it.
    #[error("spec.image: name the image of Bailey that runs the cache")]
    Image,
    /// A size that cannot be read, or that is too large.
    #[error("{field}: `{text}` is no size; write it as in `200Gi`")]
    Size {
        /// The field.
        field: &'static str,
        /// What it says.
        text: String,
    },
    /// There is nothing for workload clusters in it.
    #[error("spec.workloadClusters: say what their caches are like")]
    NoWorkloadClusters,
}

/// An object of a cache.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheObject {
    /// API group, version, kind and plural.
    pub resource: (&'static str, &'static str, &'static str, &'static str),
    /// Its name.
    pub name: String,
    /// All of it, ready for a server-side apply.
    pub content: Value,
}

/// What an ImageCache comes to in the management cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagementCache {
    /// All objects, in the order to apply them.
    pub objects: Vec<CacheObject>,
    /// Where it is reached inside the cluster.
    pub address: String,
    /// What each replica may keep, as the cache reads it.
    pub budget: String,
}

/// Builds the cache of the management cluster; `image` runs it unless the spec names another.
pub fn management_cache(
    cache: &ImageCache,
    image: Option<&str>,
) -> Result<ManagementCache, ImageCacheProblem> {
    let (name, namespace) = names(cache);
    if namespace != OPERATOR_NAMESPACE {
        return Err(ImageCacheProblem::Namespace);
    }
    let image = cache.spec.image.as_deref().or(image).ok_or(ImageCacheProblem::Image)?;
    let budget = budget("spec.storage", &cache.spec.storage)?;
    let config = config::management(&cache.spec, &budget);
    let pod = CachePod {
        name,
        namespace,
        image,
        replicas: cache.spec.replicas,
        storage: &cache.spec.storage,
        resources: &cache.spec.resources,
        config: &config.text,
        volumes: config.volumes,
    };
    let mut objects = pod.objects();
    objects.push(network_policy(cache, name, namespace));
    let owner = json!([{
        "apiVersion": format!("{}/{}", bailey_api::GROUP, bailey_api::VERSION), "kind": "ImageCache",
        "name": name, "uid": cache.metadata.uid.as_deref().unwrap_or_default(),
        "controller": true, "blockOwnerDeletion": true,
    }]);
    for object in &mut objects {
        // What it owns goes with it, so the operator deletes nothing.
        if let Some(metadata) = object.content.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("ownerReferences".to_owned(), owner.clone());
        }
    }
    let scheme = if cache.spec.tls.is_some() { "https" } else { "http" };
    Ok(ManagementCache { objects, address: format!("{scheme}://{name}.{namespace}.svc:{PORT}"), budget })
}

/// Who may reach the cache. It may reach registries anywhere, but not what hands out credentials to machines.
fn network_policy(cache: &ImageCache, name: &str, namespace: &str) -> CacheObject {
    let clients = &cache.spec.clients;
    let from = if clients.is_empty() {
        json!([{ "namespaceSelector": {} }])
    } else {
        clients.iter().map(|network| json!({ "ipBlock": { "cidr": network } })).collect()
    };
    let spec = json!({
        "podSelector": { "matchLabels": selector(name) },
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            { "from": from, "ports": [{ "port": PORT, "protocol": "TCP" }] },
            { "from": [{ "namespaceSelector": {} }], "ports": [{ "port": ADMIN_PORT, "protocol": "TCP" }] },
        ],
        "egress": [
            { "ports": [{ "port": 53, "protocol": "UDP" }, { "port": 53, "protocol": "TCP" }] },
            { "to": [
                { "ipBlock": { "cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"] } },
                { "ipBlock": { "cidr": "::/0", "except": ["fe80::/10"] } },
            ] },
        ],
    });
    object(NETWORK_POLICY, name, namespace, &[("spec", spec)])
}

/// What blobs may take, in MiB, as the cache reads it.
fn budget(field: &'static str, storage: &CacheStorage) -> Result<String, ImageCacheProblem> {
    let mebibytes =
        |text: &String| mebibytes(text).ok_or(ImageCacheProblem::Size { field, text: text.clone() });
    let budget = match &storage.budget {
        Some(budget) => mebibytes(budget)?,
        // The file system and the index take some of the rest.
        None => mebibytes(&storage.size)?.saturating_mul(9) / 10,
    };
    Ok(format!("{budget}MiB"))
}

fn mebibytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let factor = match unit {
        "Mi" => 1,
        "Gi" => 1 << 10,
        "Ti" => 1 << 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

fn names(cache: &ImageCache) -> (&str, &str) {
    let metadata = &cache.metadata;
    (metadata.name.as_deref().unwrap_or_default(), metadata.namespace.as_deref().unwrap_or_default())
}

type Resource = (&'static str, &'static str, &'static str, &'static str);

const CONFIG_MAP: Resource = ("", "v1", "ConfigMap", "configmaps");
const SERVICE: Resource = ("", "v1", "Service", "services");
const SERVICE_ACCOUNT: Resource = ("", "v1", "ServiceAccount", "serviceaccounts");
const NAMESPACE: Resource = ("", "v1", "Namespace", "namespaces");
const STATEFUL_SET: Resource = ("apps", "v1", "StatefulSet", "statefulsets");
const DAEMON_SET: Resource = ("apps", "v1", "DaemonSet", "daemonsets");
const BUDGET: Resource = ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
const NETWORK_POLICY: Resource = ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies");

fn object(resource: Resource, name: &str, namespace: &str, body: &[(&str, Value)]) -> CacheObject {
    let (group, version, kind, _) = resource;
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut content = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": { "name": name, "namespace": namespace, "labels": labels(name) },
    });
    if let Some(content) = content.as_object_mut() {
        content.extend(body.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    }
    CacheObject { resource, name: name.to_owned(), content }
}

/// The account of a cache's pods: it holds no right, and no token of it is mounted.
fn account(namespace: &str) -> CacheObject {
    let none = ("automountServiceAccountToken", json!(false));
    object(SERVICE_ACCOUNT, IMAGE_CACHE_ACCOUNT, namespace, &[none])
}
