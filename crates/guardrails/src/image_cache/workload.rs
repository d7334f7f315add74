//! What a workload cluster needs: a cache of its own, and on each node a shim and the files that containerd reads.

use bailey_api::{IMAGE_CACHE_ACCOUNT, ImageCache, WorkloadCaches};
use serde_json::{Value, json};

use super::pod::{CachePod, USER, labels, restricted, selector};
use super::{
    CacheObject, DAEMON_SET, ImageCacheProblem, NAMESPACE, PORT, account, budget, config, names, object,
};

/// The namespace of everything that is put into workload clusters.
pub const WORKLOAD_NAMESPACE: &str = "bailey-images";

/// Where containerd looks, on the node and in the step that writes there.
const CERTS_D: &str = "/etc/containerd/certs.d";

/// What becomes of the files that containerd reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeFiles {
    /// They are written.
    Written,
    /// They are removed, so that shims can go.
    Removed,
}

/// Builds what a workload cluster needs, in the order to apply it. Nothing of it depends on the management cluster to run.
pub fn workload_manifests(
    cache: &ImageCache,
    image: Option<&str>,
    files: NodeFiles,
) -> Result<Vec<CacheObject>, ImageCacheProblem> {
    let caches = cache.spec.workload_clusters.as_ref().ok_or(ImageCacheProblem::NoWorkloadClusters)?;
    let image = cache.spec.image.as_deref().or(image).ok_or(ImageCacheProblem::Image)?;
    let budget = budget("spec.workloadClusters.storage", &caches.storage)?;
    let (name, _) = names(cache);
    let config = config::workload(&cache.spec, caches, &budget);
    let pod = CachePod {
        name,
        namespace: WORKLOAD_NAMESPACE,
        image,
        replicas: caches.replicas,
        storage: &caches.storage,
        resources: &cache.spec.resources,
        config: &config.text,
        volumes: config.volumes,
    };
    let mut objects = vec![namespace(), account(WORKLOAD_NAMESPACE)];
    objects.extend(pod.objects());
    objects.push(node_agent(cache, caches, image, files));
    Ok(objects)
}

/// The shim needs the network of the node, and its set-up a folder of it: no less than `privileged` admits that.
fn namespace() -> CacheObject {
    let mut namespace = object(NAMESPACE, WORKLOAD_NAMESPACE, "", &[]);
    if let Some(metadata) = namespace.content.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
        metadata.insert("labels".to_owned(), json!({ "pod-security.kubernetes.io/enforce": "privileged" }));
    }
    namespace
}

/// The arguments of the step that writes or removes the files of containerd on a node.
fn hosts_toml(cache: &ImageCache, caches: &WorkloadCaches, listen: &str, files: NodeFiles) -> Vec<String> {
    let mut words: Vec<_> =
        ["cache", "hosts-toml", "--leave-foreign", "--dir", CERTS_D].map(str::to_owned).into();
    let mut say = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
    say("--cache", &format!("http://{listen}"));
    let all: Vec<_> = cache.spec.upstreams.iter().map(|upstream| &upstream.name).collect();
    let named = if caches.registries.is_empty() { all } else { caches.registries.iter().collect() };
    named.into_iter().for_each(|registry| say("--registry", registry));
    if let Some(version) = &caches.containerd {
        say("--containerd", version);
    }
    if files == NodeFiles::Removed {
        words.push("--remove".to_owned());
    } else if caches.offline {
        words.push("--offline".to_owned());
    }
    words
}

fn node_agent(cache: &ImageCache, caches: &WorkloadCaches, image: &str, files: NodeFiles) -> CacheObject {
    let (name, _) = names(cache);
    let shim = format!("{name}-shim");
    let listen = format!("127.0.0.1:{}", caches.node_port);
    let hosts = hosts_toml(cache, caches, &listen, files);
    let pod = json!({
        "serviceAccountName": IMAGE_CACHE_ACCOUNT,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "hostNetwork": true,
        // Names of Services, although on the node's network.
        "dnsPolicy": "ClusterFirstWithHostNet",
        "priorityClassName": "system-node-critical",
        "tolerations": [{ "operator": "Exists" }],
        "terminationGracePeriodSeconds": 30,
        "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } },
        "initContainers": [{
            "name": "hosts-toml", "image": image, "args": hosts,
            // Files of containerd are root's.
            "securityContext": {
                "runAsUser": 0, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"], "add": ["DAC_OVERRIDE"] },
            },
            "resources": { "requests": { "cpu": "10m", "memory": "32Mi" }, "limits": { "memory": "64Mi" } },
            "volumeMounts": [{ "name": "certs-d", "mountPath": CERTS_D }],
        }],
        "containers": [{
            "name": "shim", "image": image,
            "args": [
                "cache", "shim", "--listen", listen,
                "--cache", format!("{name}.{WORKLOAD_NAMESPACE}.svc:{PORT}"),
            ],
            "livenessProbe": {
                "tcpSocket": { "host": "127.0.0.1", "port": caches.node_port },
                "periodSeconds": 20, "timeoutSeconds": 5,
            },
            "resources": { "requests": { "cpu": "10m", "memory": "32Mi" }, "limits": { "memory": "64Mi" } },
            "securityContext": with_user(restricted()),
        }],
        "volumes": [{ "name": "certs-d", "hostPath": { "path": CERTS_D, "type": "DirectoryOrCreate" } }],
    });
    let spec = json!({
        "selector": { "matchLabels": selector(&shim) },
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "10%" } },
        "template": { "metadata": { "labels": labels(&shim) }, "spec": pod },
    });
    object(DAEMON_SET, &shim, WORKLOAD_NAMESPACE, &[("spec", spec)])
}

fn with_user(mut context: Value) -> Value {
    if let Some(context) = context.as_object_mut() {
        context.insert("runAsNonRoot".to_owned(), json!(true));
        context.insert("runAsUser".to_owned(), json!(USER));
        context.insert("runAsGroup".to_owned(), json!(USER));
    }
    context
}
