//! What a cache is run by, in either cluster: configuration, Service, StatefulSet, disruption budget.

use bailey_api::{CacheResources, CacheStorage, IMAGE_CACHE_ACCOUNT};
use serde_json::{Value, json};

use super::config::{STORE, Volume};
use super::{ADMIN_PORT, BUDGET, CONFIG_MAP, CacheObject, PORT, SERVICE, STATEFUL_SET, object};

/// The user and group that everything of Bailey runs as.
pub const USER: u32 = 65532;

/// A cache that is to run.
pub struct CachePod<'a> {
    pub name: &'a str,
    pub namespace: &'a str,
    pub image: &'a str,
    pub replicas: i32,
    pub storage: &'a CacheStorage,
    pub resources: &'a CacheResources,
    pub config: &'a str,
    pub volumes: Vec<Volume>,
}

/// By which pods of a cache are found; never changes.
pub fn selector(name: &str) -> Value {
    json!({
        "app.kubernetes.io/name": "bailey", "app.kubernetes.io/component": "image-cache",
        "app.kubernetes.io/instance": name,
    })
}

/// What all objects of a cache carry.
pub fn labels(name: &str) -> Value {
    let mut labels = selector(name);
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("app.kubernetes.io/managed-by".to_owned(), json!("bailey"));
        labels.insert(bailey_api::COMPONENT_LABEL.to_owned(), json!("image-cache"));
    }
    labels
}

impl CachePod<'_> {
    pub fn objects(&self) -> Vec<CacheObject> {
        let object = |resource, body: &[(&str, Value)]| object(resource, self.name, self.namespace, body);
        let service = json!({
            "selector": selector(self.name),
            "ports": [{ "name": "registry", "port": PORT, "targetPort": "registry", "protocol": "TCP" }],
        });
        let disruptions = json!({
            "maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": { "matchLabels": selector(self.name) },
        });
        vec![
            object(CONFIG_MAP, &[("data", json!({ "cache.yaml": self.config }))]),
            object(SERVICE, &[("spec", service)]),
            object(STATEFUL_SET, &[("spec", self.stateful_set())]),
            object(BUDGET, &[("spec", disruptions)]),
        ]
    }

    fn stateful_set(&self) -> Value {
        let mut claim = json!({
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": self.storage.size } },
        });
        if let (Some(class), Some(claim)) = (&self.storage.storage_class, claim.as_object_mut()) {
            claim.insert("storageClassName".to_owned(), json!(class));
        }
        json!({
            "serviceName": self.name,
            "replicas": self.replicas,
            // A cache needs no other to start.
            "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": selector(self.name) },
            "template": {
                // Pods start again when what they read at their start changes. Passwords they read again by themselves.
                "metadata": {
                    "labels": labels(self.name),
                    "annotations": { "bailey.dev/config": format!("{:016x}", fingerprint(self.config)) },
                },
                "spec": self.pod(),
            },
            "volumeClaimTemplates": [{ "metadata": { "name": "store" }, "spec": claim }],
        })
    }

    fn pod(&self) -> Value {
        let probe = |path: &str, seconds: u32| {
            json!({
                "httpGet": { "path": path, "port": "admin" }, "periodSeconds": seconds, "timeoutSeconds": 5,
            })
        };
        let mut volumes = vec![json!({ "name": "config", "configMap": { "name": self.name } })];
        let mut mounts = vec![
            json!({ "name": "config", "mountPath": "/etc/bailey/config", "readOnly": true }),
            json!({ "name": "store", "mountPath": STORE }),
        ];
        for volume in &self.volumes {
            let mut source = volume.source.clone();
            if let Some(source) = source.as_object_mut() {
                source.insert("name".to_owned(), json!(volume.name));
            }
            volumes.push(source);
            mounts.push(json!({ "name": volume.name, "mountPath": volume.path, "readOnly": true }));
        }
        let memory = self.resources.memory.as_deref().unwrap_or("256Mi");
        let cpu = self.resources.cpu.as_deref().unwrap_or("100m");
        json!({
            "serviceAccountName": IMAGE_CACHE_ACCOUNT,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            // More than the cache gives answers to finish.
            "terminationGracePeriodSeconds": 30,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": "cache",
                "image": self.image,
                "args": ["cache", "--config", "/etc/bailey/config/cache.yaml", "--log-json"],
                "ports": [
                    { "name": "registry", "containerPort": PORT, "protocol": "TCP" },
                    { "name": "admin", "containerPort": ADMIN_PORT, "protocol": "TCP" },
                ],
                "livenessProbe": probe("/livez", 10),
                "readinessProbe": probe("/readyz", 5),
                "resources": { "requests": { "cpu": cpu, "memory": memory }, "limits": { "memory": memory } },
                "securityContext": restricted(),
                "volumeMounts": mounts,
            }],
            "volumes": volumes,
            "topologySpreadConstraints": [{
                "topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": { "matchLabels": selector(self.name) },
            }],
        })
    }
}

/// The level `restricted` of the Pod Security Standards, and nothing of the image to be written.
pub fn restricted() -> Value {
    json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
    })
}

/// FNV-1a of 64 bits: tells texts apart that nobody chose to look alike, and is the same in each version.
pub fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
