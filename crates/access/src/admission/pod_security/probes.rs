//! Pods that would take over their node, as harmless as they can be otherwise.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{Sample, admission::Requester};

/// A way to take over a node, and a pod for it.
pub(super) struct Probe {
    /// For people.
    pub(super) what: &'static str,
    pub(super) sample: Sample,
}

/// Those who make pods: somebody, and what makes them for somebody.
pub(super) fn makers() -> &'static [Requester] {
    static MAKERS: LazyLock<[Requester; 2]> = LazyLock::new(|| {
        let somebody =
            Requester { user: "somebody".to_owned(), groups: vec!["system:authenticated".to_owned()] };
        [somebody, Requester::service_account("kube-system", "replicaset-controller")]
    });
    MAKERS.as_slice()
}

/// All probes.
pub(super) fn all() -> &'static [Probe] {
    static PROBES: LazyLock<Vec<Probe>> = LazyLock::new(|| {
        let mut probes = vec![
            in_pod("a pod with hostPID", "/hostPID", json!({"hostPID": true})),
            in_pod(
                "a pod with a hostPath volume",
                "/volumes/0/hostPath",
                json!({"volumes": [{"name": "probe", "hostPath": {"path": "/"}}]}),
            ),
        ];
        let privileged = ("privileged", json!(true));
        let added = ("capabilities/add", json!(["SYS_ADMIN"]));
        for (list, what) in [
            ("containers", ["a privileged container", "a container with SYS_ADMIN"]),
            ("initContainers", ["a privileged init container", "an init container with SYS_ADMIN"]),
            (
                "ephemeralContainers",
                ["a privileged ephemeral container", "an ephemeral container with SYS_ADMIN"],
            ),
        ] {
            let [of_privileged, of_added] = what;
            probes.push(in_container(of_privileged, list, &privileged));
            probes.push(in_container(of_added, list, &added));
        }
        probes
    });
    PROBES.as_slice()
}

fn container(name: &str) -> Value {
    json!({
        "name": name,
        "image": "registry.example/probe:1.0.0",
        "imagePullPolicy": "Always",
        "resources": {
            "limits": {"cpu": "10m", "memory": "16Mi", "ephemeral-storage": "16Mi"},
            "requests": {"cpu": "10m", "memory": "16Mi", "ephemeral-storage": "16Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "privileged": false,
            "readOnlyRootFilesystem": true,
            "runAsGroup": 65532,
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    })
}

/// A pod that any level takes.
fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {},
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [container("main")],
            "securityContext": {
                "fsGroup": 65532,
                "runAsGroup": 65532,
                "runAsNonRoot": true,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    })
}

fn created(what: &'static str, object: Value, essential: String) -> Probe {
    let sample = Sample {
        operation: "CREATE",
        group: String::new(),
        resource: "pods".to_owned(),
        object,
        old_object: Value::Null,
        essential: vec![essential],
    };
    Probe { what, sample }
}

fn in_pod(what: &'static str, essential: &str, spec: Value) -> Probe {
    let mut pod = pod();
    if let (Some(into), Value::Object(fields)) =
        (pod.pointer_mut("/spec").and_then(Value::as_object_mut), spec)
    {
        into.extend(fields);
    }
    created(what, pod, format!("/spec{essential}"))
}

fn in_container(what: &'static str, list: &'static str, (field, value): &(&str, Value)) -> Probe {
    let mut pod = pod();
    if let Some(spec) = pod.pointer_mut("/spec").and_then(Value::as_object_mut) {
        spec.entry(list).or_insert_with(|| json!([container("other")]));
    }
    let before = pod.clone();
    let context = format!("/spec/{list}/0/securityContext");
    let parent = field.rsplit_once('/').map_or(context.clone(), |(parent, _)| format!("{context}/{parent}"));
    let name = field.rsplit_once('/').map_or(*field, |(_, name)| name);
    if let Some(parent) = pod.pointer_mut(&parent).and_then(Value::as_object_mut) {
        parent.insert(name.to_owned(), value.clone());
    }
    let mut probe = created(what, pod, format!("{context}/{field}"));
    if list == "ephemeralContainers" {
        // Added to a pod that runs.
        let mut before = before;
        if let Some(spec) = before.pointer_mut("/spec").and_then(Value::as_object_mut) {
            spec.remove(list);
        }
        probe.sample.operation = "UPDATE";
        probe.sample.resource = "pods/ephemeralcontainers".to_owned();
        probe.sample.old_object = before;
    }
    probe
}
