//! Namespaces, nodes, accounts, roles and Secrets, as an API server shows them.

use std::collections::BTreeMap;

use bailey_api::TENANT_LABEL;
use serde_json::{Map, Value, json};

use super::fixed::ClusterRole;
use super::plan::{Place, Role, Secret};
use super::random::Random;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The version of Kubernetes that the cluster runs.
const KUBELET: &str = "v1.36.3";

/// Metadata with what the API server adds.
pub fn metadata(random: &mut Random, namespace: Option<&str>, name: &str, labels: Value) -> Value {
    let mut metadata = Map::new();
    metadata.insert("creationTimestamp".to_owned(), time(random).into());
    if labels.as_object().is_some_and(|labels| !labels.is_empty()) {
        metadata.insert("labels".to_owned(), labels);
    }
    metadata.insert("name".to_owned(), name.into());
    if let Some(namespace) = namespace {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    metadata.insert("resourceVersion".to_owned(), (100_000 + random.below(90_000_000)).to_string().into());
    metadata.insert("uid".to_owned(), random.uuid().into());
    metadata.into()
}

/// A moment of 2026.
pub fn time(random: &mut Random) -> String {
    let (month, day) = (1 + random.below(9), 1 + random.below(28));
    let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
    format!("2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Names a node.
pub fn node_name(index: usize) -> String {
    format!("node-{index:04}.compute.internal")
}

pub fn namespace(random: &mut Random, place: &Place) -> Value {
    let mut labels = BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), place.name.clone())]);
    if let Some(customer) = place.customer {
        labels.insert(TENANT_LABEL.to_owned(), format!("c{customer:04}"));
    }
    if let Some(level) = &place.level {
        for mode in ["audit", "enforce", "warn"] {
            labels.insert(format!("pod-security.kubernetes.io/{mode}"), level.clone());
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": metadata(random, None, &place.name, json!(labels)),
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

pub fn node(random: &mut Random, index: usize) -> Value {
    let name = node_name(index);
    let control_plane = index < 3;
    let mut labels = json!({
        "beta.kubernetes.io/arch": "amd64",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": random.word(&["m6i.xlarge", "m6i.2xlarge", "r6i.2xlarge"]),
        "topology.kubernetes.io/zone": random.word(&["eu-central-1a", "eu-central-1b", "eu-central-1c"]),
    });
    let mut spec = json!({"podCIDR": format!("10.{}.{}.0/24", 64 + index / 256, index % 256)});
    if control_plane {
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("node-role.kubernetes.io/control-plane".to_owned(), "".into());
        }
        if let Some(spec) = spec.as_object_mut() {
            let taint = json!([{"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane"}]);
            spec.insert("taints".to_owned(), taint);
        }
    }
    let room = json!({"cpu": "8", "ephemeral-storage": "103798244Ki", "memory": "32374276Ki", "pods": "110"});
    let condition = |kind: &str, status: &str| json!({"reason": format!("Kubelet{kind}"), "status": status, "type": kind});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(random, None, &name, labels),
        "spec": spec,
        "status": {
            "addresses": [
                {"address": format!("10.0.{}.{}", index / 256, index % 256), "type": "InternalIP"},
                {"address": name, "type": "Hostname"},
            ],
            "allocatable": room,
            "capacity": room,
            "conditions": [
                condition("MemoryPressure", "False"),
                condition("DiskPressure", "False"),
                condition("PIDPressure", "False"),
                condition("Ready", "True"),
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": random.uuid(),
                "containerRuntimeVersion": "containerd://2.4.2",
                "kernelVersion": "6.12.40",
                "kubeProxyVersion": KUBELET,
                "kubeletVersion": KUBELET,
                "machineID": random.uuid().replace('-', ""),
                "operatingSystem": "linux",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
                "systemUUID": random.uuid(),
            },
        },
    })
}

pub fn account(random: &mut Random, place: &Place, name: &str) -> Value {
    let labels = if name == "default" { json!({}) } else { json!({"app.kubernetes.io/name": name}) };
    let mut account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(random, Some(&place.name), name, labels),
    });
    let pull = place.secrets.iter().find(|secret| secret.kind == "kubernetes.io/dockerconfigjson");
    if let (Some(pull), Some(fields)) = (pull.filter(|_| random.percent(30)), account.as_object_mut()) {
        fields.insert("imagePullSecrets".to_owned(), json!([{"name": pull.name}]));
    }
    account
}

pub fn role(random: &mut Random, place: &Place, role: &Role) -> Value {
    json!({
        "apiVersion": RBAC,
        "kind": "Role",
        "metadata": metadata(random, Some(&place.name), &role.name, json!({})),
        "rules": role.rules,
    })
}

pub fn cluster_role(random: &mut Random, role: &ClusterRole) -> Value {
    let mut object = Map::new();
    if let Some(label) = &role.aggregates {
        let rule = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
        object.insert("aggregationRule".to_owned(), rule);
    }
    object.insert("apiVersion".to_owned(), RBAC.into());
    object.insert("kind".to_owned(), "ClusterRole".into());
    object.insert("metadata".to_owned(), metadata(random, None, &role.name, json!(role.labels)));
    object.insert("rules".to_owned(), json!(role.rules));
    object.into()
}

/// A Secret without values, as a dump should hold it.
pub fn secret(random: &mut Random, place: &Place, secret: &Secret) -> Value {
    let mut labels = Map::new();
    labels.insert(
        "app.kubernetes.io/managed-by".to_owned(),
        random.word(&["Helm", "external-secrets", "flux"]).into(),
    );
    if let Some(cluster) = &secret.cluster {
        labels.insert("cluster.x-k8s.io/cluster-name".to_owned(), cluster.clone().into());
    }
    if let Some((_, release)) = secret.name.split_once("sh.helm.release.v1.") {
        let (name, version) = release.rsplit_once(".v").unwrap_or((release, "1"));
        labels.insert("name".to_owned(), name.into());
        labels.insert("owner".to_owned(), "helm".into());
        labels.insert("status".to_owned(), "deployed".into());
        labels.insert("version".to_owned(), version.into());
    }
    let mut metadata = metadata(random, Some(&place.name), &secret.name, labels.into());
    if let (Some(account), Some(metadata)) = (&secret.account, metadata.as_object_mut()) {
        let annotations = json!({
            "kubernetes.io/service-account.name": account,
            "kubernetes.io/service-account.uid": random.uuid(),
        });
        metadata.insert("annotations".to_owned(), annotations);
    }
    json!({
        "apiVersion": "v1",
        "immutable": random.percent(5),
        "kind": "Secret",
        "metadata": metadata,
        "type": secret.kind,
    })
}
