use serde_json::{Value, json};

use super::redact;

/// The object without what may be a value; nothing of what is planted may be left.
fn redacted(mut object: Value) -> Value {
    redact(&mut object);
    assert!(!object.to_string().contains("MARKER"), "{object}");
    object
}

fn deployment(image: &str) -> Value {
    json!({
        "kind": "Deployment",
        "metadata": {"name": "app", "managedFields": [{}], "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "MARKER", "note": "MARKER", "bailey.dev/kept": "yes"}},
        "spec": {"template": {"metadata": {"annotations": {"a": "MARKER"}}, "spec": {"serviceAccountName": "app", "containers": [{
            "image": image,
            "args": ["--token=MARKER", "--api-token", "MARKER", "--token-file=/run/token", "--no-cross-namespace-refs=true", "--db-password=$(PASSWORD)"],
            "env": [{"name": "A", "value": "MARKER"}, {"name": "WATCH_NAMESPACE", "value": "team"}],
        }], "initContainers": [{"args": ["MARKER"], "env": [{"name": "C", "value": "MARKER"}]}]}}},
    })
}

#[test]
fn of_a_controller_flags_and_settings_stay_and_what_may_be_a_credential_does_not() {
    let text = redacted(deployment("fluxcd/kustomize-controller:v1")).to_string();
    for kept in [
        "--token-file=/run/token",
        "--no-cross-namespace-refs=true",
        "$(PASSWORD)",
        "team",
        "bailey.dev/kept",
    ] {
        assert!(text.contains(kept), "{kept} is gone from {text}");
    }
}

#[test]
fn of_another_program_nothing_that_it_is_told_stays() {
    let app = redacted(deployment("app:1"));
    assert_eq!(app["spec"]["template"]["spec"]["containers"][0], json!({"image": "app:1"}));
    let pod = json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{
        "command": ["curl", "-u", "admin:MARKER"], "env": [
            {"name": "A", "value": "MARKER"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}});
    assert!(redacted(pod).to_string().contains("secretKeyRef"));
}

#[test]
fn settings_of_controllers_stay() {
    let map = redacted(json!({
        "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "annotations": {"a": "MARKER"}},
        "data": {"dex.config": "MARKER", "application.sync.impersonation.enabled": "true"}, "binaryData": {"b": "MARKER"},
    }));
    assert_eq!(map["data"], json!({"application.sync.impersonation.enabled": "true"}));
}

#[test]
fn values_of_releases_and_logins_in_urls_are_dropped() {
    let release = redacted(json!({
        "kind": "HelmRelease", "metadata": {"name": "r"},
        "spec": {"serviceAccountName": "sa", "values": {"password": "MARKER"}, "valuesFrom": [{"kind": "Secret", "name": "v"}],
            "postBuild": {"substitute": {"p": "MARKER"}, "substituteFrom": [{"kind": "Secret", "name": "w"}]}},
    }));
    let text = release.to_string();
    assert!(text.contains("valuesFrom") && text.contains("substituteFrom"), "{text}");
    let source =
        json!({"repoURL": "https://u:MARKER@git.example/acme/apps.git", "helm": {"values": "MARKER"}});
    let application = redacted(json!({
        "kind": "Application", "metadata": {"name": "a"}, "operation": {"sync": {"source": source}},
        "spec": {"project": "p", "source": source, "sources": [source]}, "status": {"history": [{"source": source}]},
    }));
    assert_eq!(application["spec"]["sources"][0], json!({"repoURL": "https://git.example/acme/apps.git"}));
    let kept = json!({"kind": "GitRepository", "spec": {"url": "ssh://git@git.example/acme/apps"}});
    assert_eq!(redacted(kept.clone()), kept);
}
