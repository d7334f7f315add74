use serde_json::json;

use super::*;
use crate::admission::view::Parts;

/// A pod that every level takes, changed by a merge of `change` into `spec`.
fn pod(change: Value) -> Value {
    let context = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"}, "runAsNonRoot": true,
    });
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {},
        "spec": {"containers": [{"name": "c", "securityContext": context}]},
    });
    merge(&mut pod["spec"], change);
    pod
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (name, value) in change {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(change)) if into.len() == change.len() => {
            for (into, change) in into.iter_mut().zip(change) {
                merge(into, change);
            }
        }
        (into, change) => *into = change,
    }
}

fn violation(pod: &Value, level: PodSecurityLevel) -> String {
    match violated(View::certain(pod), level, &[]) {
        None => "none".to_owned(),
        Some((control, truth)) => format!("{control}: {truth:?}"),
    }
}

#[test]
fn each_level_refuses_what_the_standards_say() {
    let context = |context: Value| json!({"containers": [{"securityContext": context}]});
    for (change, baseline, restricted) in [
        (json!({}), "none", "none"),
        (context(json!({"privileged": true})), "Privileged Containers", "Privileged Containers"),
        (context(json!({"privileged": false})), "none", "none"),
        (
            json!({"initContainers": [{"securityContext": {"privileged": true}}]}),
            "Privileged Containers",
            "Privileged Containers",
        ),
        (
            json!({"ephemeralContainers": [{"securityContext": {"privileged": true}}]}),
            "Privileged Containers",
            "Privileged Containers",
        ),
        (json!({"hostNetwork": true}), "Host Namespaces", "Host Namespaces"),
        (json!({"hostPID": true}), "Host Namespaces", "Host Namespaces"),
        (json!({"hostIPC": false}), "none", "none"),
        (json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}), "HostPath Volumes", "Volume Types"),
        (json!({"volumes": [{"name": "v", "secret": {}}, {"name": "w"}]}), "none", "none"),
        (json!({"volumes": [{"name": "v", "nfs": {}}]}), "none", "Volume Types"),
        (context(json!({"capabilities": {"add": ["SYS_ADMIN"]}})), "Capabilities", "Capabilities"),
        (context(json!({"capabilities": {"add": ["CHOWN"]}})), "none", "Capabilities"),
        (context(json!({"capabilities": {"add": ["NET_BIND_SERVICE"]}})), "none", "none"),
        (context(json!({"capabilities": {"drop": ["NET_RAW"]}})), "none", "Capabilities"),
        (context(json!({"windowsOptions": {"hostProcess": true}})), "HostProcess", "HostProcess"),
        (json!({"containers": [{"ports": [{"hostPort": 80}]}]}), "Host Ports", "Host Ports"),
        (json!({"containers": [{"ports": [{"hostPort": 0}, {"containerPort": 80}]}]}), "none", "none"),
        (context(json!({"procMount": "Unmasked"})), "/proc Mount Type", "/proc Mount Type"),
        (context(json!({"procMount": "Default"})), "none", "none"),
        (context(json!({"appArmorProfile": {"type": "Unconfined"}})), "AppArmor", "AppArmor"),
        (json!({"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}), "SELinux", "SELinux"),
        (
            json!({"securityContext": {"seLinuxOptions": {"type": "container_t", "user": "u"}}}),
            "SELinux",
            "SELinux",
        ),
        (json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}), "Seccomp", "Seccomp"),
        (json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}}), "Sysctls", "Sysctls"),
        (json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}}), "none", "none"),
        (
            json!({"containers": [{"livenessProbe": {"httpGet": {"host": "10.0.0.1"}}}]}),
            "Host Probes",
            "Host Probes",
        ),
        (json!({"containers": [{"livenessProbe": {"httpGet": {"port": 1}}}]}), "none", "none"),
        (context(json!({"allowPrivilegeEscalation": true})), "none", "Privilege Escalation"),
        (context(json!({"allowPrivilegeEscalation": null})), "none", "Privilege Escalation"),
        (context(json!({"runAsNonRoot": null})), "none", "Running as Non-root"),
        (context(json!({"runAsNonRoot": false})), "none", "Running as Non-root"),
        (
            json!({"securityContext": {"runAsNonRoot": true}, "containers": [{"securityContext": {"runAsNonRoot": null}}]}),
            "none",
            "none",
        ),
        (json!({"securityContext": {"runAsNonRoot": false}}), "none", "Running as Non-root"),
        (context(json!({"runAsUser": 0})), "none", "Running as Non-root user"),
        (context(json!({"seccompProfile": null})), "none", "Seccomp"),
        (
            json!({"securityContext": {"seccompProfile": {"type": "Localhost"}}, "containers": [{"securityContext": {"seccompProfile": null}}]}),
            "none",
            "none",
        ),
    ] {
        let pod = pod(change.clone());
        for (level, expected) in
            [(PodSecurityLevel::Baseline, baseline), (PodSecurityLevel::Restricted, restricted)]
        {
            let found = violation(&pod, level);
            let expected = if expected == "none" { expected.to_owned() } else { format!("{expected}: True") };
            assert_eq!(found, expected, "{level:?} {change}");
        }
        assert_eq!(violation(&pod, PodSecurityLevel::Privileged), "none");
    }
}

#[test]
fn annotations_for_app_armor_count() {
    let mut pod = pod(json!({}));
    for (profile, expected) in
        [("unconfined", "AppArmor: True"), ("runtime/default", "none"), ("localhost/x", "none")]
    {
        pod["metadata"]["annotations"] =
            json!({"container.apparmor.security.beta.kubernetes.io/c": profile, "other": "unconfined"});
        assert_eq!(violation(&pod, PodSecurityLevel::Baseline), expected, "{profile}");
    }
}

#[test]
fn a_user_namespace_leaves_the_restricted_controls_open() {
    let change = json!({"hostUsers": false, "containers": [{"securityContext": {"runAsNonRoot": false}}]});
    assert_eq!(violation(&pod(change), PodSecurityLevel::Restricted), "Running as Non-root: Unknown");
}

#[test]
fn a_control_may_be_left_out() {
    let pod = pod(json!({"hostPID": true}));
    let without = violated(View::certain(&pod), PodSecurityLevel::Baseline, &["Host Namespaces".to_owned()]);
    assert_eq!(without, None);
}

#[test]
fn only_essential_fields_prove_a_violation() {
    let pod = pod(json!({"hostPID": true, "hostNetwork": true}));
    let of = |essential: &[&str]| {
        let parts = Parts::only(essential.iter().copied());
        violated(View::partial(&pod, &parts), PodSecurityLevel::Baseline, &[]).map(|(_, truth)| truth)
    };
    assert_eq!(of(&["/spec/hostPID"]), Some(Truth::True));
    assert_eq!(of(&["/spec/nodeName"]), Some(Truth::Unknown));
}
