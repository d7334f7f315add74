//! What a workload cluster is given, as objects. None of it is secret.

use bailey_tunnel::claims::{AGENT_ACCOUNT, AGENT_NAMESPACE};
use bailey_tunnel::directory::{Cluster, Service};
use bailey_tunnel::names::InstallationName;
use serde_json::{Value, json};

/// The file that an agent is configured by, in its ConfigMap.
pub const AGENT_FILE: &str = "agent.json";
/// The port of probes and metrics.
const ADMIN_PORT: u16 = 8080;

/// What is the same for all workload clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The installation.
    pub installation: InstallationName,
    /// Where gateways are, as HOST:PORT.
    pub gateways: Vec<String>,
    /// The image that agents run; none where they are run in another way.
    pub image: Option<String>,
    /// The authorities of the installation, in PEM.
    pub bundle: String,
}

/// A service as a workload cluster sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// Its port there.
    pub port: u16,
    /// The port of the agent.
    pub agent_port: u16,
}

/// Gives everything that a workload cluster gets, in the order to apply it.
pub fn objects(site: &Site, cluster: &Cluster, services: &[Offered]) -> Vec<Value> {
    let mut objects = vec![
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": AGENT_NAMESPACE, "labels": {
                "app.kubernetes.io/managed-by": "bailey", "pod-security.kubernetes.io/enforce": "restricted",
            } },
        }),
        named("v1", "ServiceAccount", AGENT_ACCOUNT, json!({})),
        named(
            "rbac.authorization.k8s.io/v1",
            "Role",
            AGENT_ACCOUNT,
            json!({ "rules": [{
            "apiGroups": [""], "resources": ["serviceaccounts/token"],
            "resourceNames": [AGENT_ACCOUNT], "verbs": ["create"],
        }] }),
        ),
        named(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            AGENT_ACCOUNT,
            json!({
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": AGENT_ACCOUNT },
                "subjects": [{ "kind": "ServiceAccount", "name": AGENT_ACCOUNT, "namespace": AGENT_NAMESPACE }],
            }),
        ),
        named(
            "v1",
            "ConfigMap",
            AGENT_ACCOUNT,
            json!({ "data": { AGENT_FILE: config(site, cluster).to_string() } }),
        ),
    ];
    if let Some(image) = &site.image {
        objects.push(deployment(image));
        objects.push(named(
            "policy/v1",
            "PodDisruptionBudget",
            AGENT_ACCOUNT,
            json!({
                "spec": { "maxUnavailable": 1, "selector": { "matchLabels": labels() } },
            }),
        ));
    }
    objects.extend(services.iter().map(service));
    objects
}

/// Gives the offers of a cluster: the port there is the service's own, or that of its backend.
pub fn offered(service: &Service, port: u16) -> Offered {
    Offered { name: service.name.to_string(), port, agent_port: service.agent_port }
}

fn config(site: &Site, cluster: &Cluster) -> Value {
    json!({
        "installation": site.installation, "cluster": cluster.uid, "sniLabel": cluster.sni_label,
        "gateways": site.gateways, "bundle": site.bundle,
    })
}

fn labels() -> Value {
    json!({ "app.kubernetes.io/name": AGENT_ACCOUNT })
}

fn named(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": { "name": name, "namespace": AGENT_NAMESPACE, "labels": { "app.kubernetes.io/managed-by": "bailey" } },
    });
    if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
        object.extend(rest);
    }
    object
}

fn service(offered: &Offered) -> Value {
    named(
        "v1",
        "Service",
        &offered.name,
        json!({ "spec": {
        "selector": labels(),
        "ports": [{ "name": "tcp", "port": offered.port, "targetPort": offered.agent_port, "protocol": "TCP" }],
    } }),
    )
}

fn deployment(image: &str) -> Value {
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": ADMIN_PORT }, "periodSeconds": 5 });
    named(
        "apps/v1",
        "Deployment",
        AGENT_ACCOUNT,
        json!({ "spec": {
        "replicas": 2,
        "selector": { "matchLabels": labels() },
        "strategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
        "template": {
            "metadata": { "labels": labels() },
            "spec": {
                "serviceAccountName": AGENT_ACCOUNT,
                "priorityClassName": "system-cluster-critical",
                "terminationGracePeriodSeconds": 90,
                "topologySpreadConstraints": [{
                    "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": { "matchLabels": labels() },
                }],
                "securityContext": { "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": { "type": "RuntimeDefault" } },
                "containers": [{
                    "name": "agent", "image": image, "imagePullPolicy": "IfNotPresent",
                    "args": ["agent", "--config", format!("/etc/bailey/{AGENT_FILE}"), "--admin", format!("0.0.0.0:{ADMIN_PORT}"), "--log-json"],
                    "ports": [{ "name": "admin", "containerPort": ADMIN_PORT }],
                    "readinessProbe": probe("/readyz"), "livenessProbe": probe("/livez"),
                    "resources": { "requests": { "cpu": "50m", "memory": "64Mi" }, "limits": { "memory": "192Mi" } },
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                        "capabilities": { "drop": ["ALL"] },
                    },
                    "volumeMounts": [{ "name": "config", "mountPath": "/etc/bailey", "readOnly": true }],
                }],
                "volumes": [{ "name": "config", "configMap": { "name": AGENT_ACCOUNT } }],
            },
        },
    } }),
    )
}
