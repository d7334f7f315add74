//! Pods, which are nine tenths of a dump: bodies as long as real ones, with Secrets mounted in each of the four ways.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::bindings::numbers;
use super::lists::List;
use super::objects::{metadata, node_name, time};
use super::plan::{Place, Plan, STEMS, Secret};
use super::random::Random;

/// Programs of Kubernetes with a pod on each node.
const AGENTS: &[&str] = &["cilium", "kube-proxy"];

/// Writes all pods.
pub fn pods(plan: &Plan, list: &mut List) -> Result<()> {
    let mut random = plan.random("pods");
    let platform = plan.places.iter().filter(|place| place.customer.is_none());
    let mut written = 0;
    for place in platform {
        if place.name == "kube-system" {
            for agent in AGENTS {
                for node in 0..plan.counts.nodes {
                    let account = if *agent == "kube-proxy" { agent } else { "default" };
                    let owner = Owner { kind: "DaemonSet", stem: agent };
                    list.add(&pod(&mut random, place, owner, account, node))?;
                    written += 1;
                }
            }
        }
        for account in &place.accounts {
            // Only operators run; the controllers of Kubernetes have accounts and no pods, and planted ones nothing.
            if account == "default" || account.ends_with("-controller") && place.name == "kube-system" {
                continue;
            }
            if ["planted", "kube-public", "default"].iter().any(|prefix| place.name.starts_with(prefix)) {
                continue;
            }
            let node = random.below(plan.counts.nodes);
            list.add(&pod(&mut random, place, Owner { kind: "ReplicaSet", stem: account }, account, node))?;
            written += 1;
        }
    }
    let customers = plan.customers();
    let numbers = numbers(customers.len(), plan.counts.pods.saturating_sub(written), &mut random);
    for (place, number) in customers.iter().zip(numbers) {
        for _ in 0..number {
            let account = random.pick(&place.accounts).map_or("default", String::as_str);
            let kind = random.weighted("ReplicaSet", &[(80, "ReplicaSet"), (12, "StatefulSet"), (8, "Job")]);
            let owner = Owner { kind, stem: random.word(STEMS) };
            let node = random.below(plan.counts.nodes);
            list.add(&pod(&mut random, place, owner, account, node))?;
        }
    }
    Ok(())
}

/// The container beside that of the app which some pods have.
const PROXY: (&str, &str) = ("proxy", "registry.example.com/platform/proxy:1.30.2");

/// What a pod was made by.
#[derive(Clone, Copy)]
struct Owner<'a> {
    kind: &'static str,
    stem: &'a str,
}

/// A pod's volumes, and what its first container mounts and takes from Secrets.
#[derive(Default)]
struct Mounts {
    volumes: Vec<Value>,
    mounts: Vec<Value>,
    env: Vec<Value>,
    env_from: Vec<Value>,
}

fn pod(random: &mut Random, place: &Place, owner: Owner<'_>, account: &str, node: usize) -> Value {
    let metadata = pod_metadata(random, place, owner);
    let mut mounts = mounts(random, place);
    let version = format!("{}.{}.{}", random.below(5), random.below(30), random.below(9));
    let image = format!("registry.example.com/{}/{}:{version}", place.name, owner.stem);
    let mut images = vec![(owner.stem, image.as_str())];
    let mut containers = vec![container(random, owner.stem, &image, &mut mounts)];
    if random.percent(12) {
        images.push(PROXY);
        containers.push(container(random, PROXY.0, PROXY.1, &mut Mounts::default()));
    }
    let status = status(random, node, &images);
    let spec = spec(random, place, account, node, containers, mounts.volumes);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
}

fn pod_metadata(random: &mut Random, place: &Place, owner: Owner<'_>) -> Value {
    let stem = owner.stem;
    let hash = random.suffix(10);
    let (base, name) = match owner.kind {
        "DaemonSet" => (stem.to_owned(), format!("{stem}-{}", random.suffix(5))),
        _ => (format!("{stem}-{hash}"), format!("{stem}-{hash}-{}", random.suffix(5))),
    };
    let version = format!("{}.{}", 1 + random.below(4), random.below(40));
    let labels = json!({
        "app.kubernetes.io/instance": stem,
        "app.kubernetes.io/name": stem,
        "app.kubernetes.io/version": format!("{version}.{}", random.below(10)),
        "helm.sh/chart": format!("{stem}-{version}.0"),
        "pod-template-hash": hash,
    });
    let annotations = json!({
        "prometheus.io/scrape": "true",
    });
    let api = if owner.kind == "Job" { "batch/v1" } else { "apps/v1" };
    let owners = json!([{
        "apiVersion": api, "blockOwnerDeletion": true, "controller": true,
        "kind": owner.kind, "name": base, "uid": random.uuid(),
    }]);
    let mut metadata = metadata(random, Some(&place.name), &name, labels);
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("annotations".to_owned(), annotations);
        metadata.insert("generateName".to_owned(), format!("{base}-").into());
        metadata.insert("ownerReferences".to_owned(), owners);
    }
    metadata
}

/// The digest of an image or a file.
fn digest(random: &mut Random) -> String {
    (0..4).map(|_| format!("{:016x}", random.bits())).collect()
}

fn spec(
    random: &mut Random,
    place: &Place,
    account: &str,
    node: usize,
    containers: Vec<Value>,
    volumes: Vec<Value>,
) -> Value {
    let mut spec = json!({
        "containers": containers,
        "dnsPolicy": "ClusterFirst",
        "nodeName": node_name(node),
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {
            "fsGroup": 65_532, "runAsGroup": 65_532, "runAsNonRoot": true, "runAsUser": 65_532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccountName": account,
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {
                "effect": "NoExecute", "key": "node.kubernetes.io/not-ready",
                "operator": "Exists", "tolerationSeconds": 300,
            },
        ],
        "volumes": volumes,
    });
    let pull = place.secrets.iter().find(|secret| secret.kind == "kubernetes.io/dockerconfigjson");
    if let (Some(pull), Some(spec)) = (pull.filter(|_| random.percent(40)), spec.as_object_mut()) {
        spec.insert("imagePullSecrets".to_owned(), json!([{"name": pull.name}]));
    }
    spec
}

fn container(random: &mut Random, name: &str, image: &str, mounts: &mut Mounts) -> Value {
    let port = if name == PROXY.0 { (15_090, "metrics") } else { (8080, "http") };
    let mut env = vec![
        json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}),
        json!({"name": "LOG_LEVEL", "value": random.word(&["debug", "info", "warn"])}),
    ];
    env.append(&mut mounts.env);
    let mut container = json!({
        "args": ["--config=/etc/app/config.yaml", format!("--workers={}", 1 + random.below(16))],
        "env": env,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": {
            "failureThreshold": 3, "httpGet": {"path": "/healthz", "port": port.1, "scheme": "HTTP"},
            "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1,
        },
        "name": name,
        "ports": [{"containerPort": port.0, "name": port.1, "protocol": "TCP"}],
        "resources": {
            "limits": {"memory": format!("{}Mi", 64 << random.below(5))},
            "requests": {"cpu": format!("{}m", 25 << random.below(5)), "memory": "64Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true,
        },
        "volumeMounts": mounts.mounts,
    });
    if let (Some(container), false) = (container.as_object_mut(), mounts.env_from.is_empty()) {
        container.insert("envFrom".to_owned(), std::mem::take(&mut mounts.env_from).into());
    }
    container
}

/// Draws what a pod mounts: its token always, and none to three Secrets of its namespace.
fn mounts(random: &mut Random, place: &Place) -> Mounts {
    let token = format!("kube-api-access-{}", random.suffix(5));
    let mut drawn = Mounts {
        volumes: vec![
            json!({"name": token, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                {"downwardAPI": {"items": [
                    {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"},
                ]}},
            ]}}),
            json!({"configMap": {"defaultMode": 420, "name": "config"}, "name": "config"}),
        ],
        mounts: vec![
            json!({"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token, "readOnly": true}),
            json!({"mountPath": "/etc/app", "name": "config"}),
        ],
        ..Mounts::default()
    };
    for index in 0..random.weighted(0, &[(40, 0), (35, 1), (18, 2), (7, 3)]) {
        let helm = |secret: &Secret| secret.kind.starts_with("helm.sh/");
        let Some(secret) = random.pick(&place.secrets).filter(|secret| !helm(secret)) else { continue };
        drawn.take(random, secret, index);
    }
    drawn
}

impl Mounts {
    /// Takes a Secret in one of the ways that pods can.
    fn take(&mut self, random: &mut Random, secret: &Secret, index: usize) {
        let volume = format!("secret-{index}");
        let mut mount = Map::new();
        match random.below(4) {
            0 => self
                .volumes
                .push(json!({"name": volume, "secret": {"defaultMode": 420, "secretName": secret.name}})),
            1 => self.volumes.push(json!({"name": volume, "projected": {"defaultMode": 420, "sources": [
                {"secret": {"items": [{"key": "password", "path": "password"}], "name": secret.name}},
            ]}})),
            2 => {
                let source = json!({"secretKeyRef": {"key": "password", "name": secret.name}});
                self.env.push(json!({"name": format!("PASSWORD_{index}"), "valueFrom": source}));
                return;
            }
            _ => {
                self.env_from.push(json!({"secretRef": {"name": secret.name}}));
                return;
            }
        }
        mount.insert("mountPath".to_owned(), format!("/etc/secret-{index}").into());
        mount.insert("name".to_owned(), volume.into());
        mount.insert("readOnly".to_owned(), true.into());
        self.mounts.push(mount.into());
    }
}

fn status(random: &mut Random, node: usize, containers: &[(&str, &str)]) -> Value {
    let started = time(random);
    let condition = |kind: &str| json!({"lastTransitionTime": started, "status": "True", "type": kind});
    let statuses: Vec<Value> = containers
        .iter()
        .map(|(name, image)| {
            let repository = image.rsplit_once(':').map_or(*image, |(repository, _)| repository);
            json!({
                "containerID": format!("containerd://{}", digest(random)),
                "image": image,
                "imageID": format!("{repository}@sha256:{}", digest(random)),
                "lastState": {},
                "name": name,
                "ready": true,
                "restartCount": random.below(4),
                "started": true,
                "state": {"running": {"startedAt": started}},
            })
        })
        .collect();
    let ip = format!("10.{}.{}.{}", 64 + node / 256, node % 256, 1 + random.below(250));
    json!({
        "conditions": [
            condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled"),
        ],
        "containerStatuses": statuses,
        "hostIP": format!("10.0.{}.{}", node / 256, node % 256),
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "qosClass": "Burstable",
        "startTime": started,
    })
}
