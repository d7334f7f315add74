use serde_json::json;

use super::redact::redact;

#[test]
fn what_may_hold_a_credential_is_dropped_and_what_decides_stays() {
    let mut object = json!({
        "kind": "Deployment",
        "metadata": {"name": "app", "managedFields": [{}], "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "MARKER", "kept": "yes"}},
        "spec": {"template": {"spec": {"serviceAccountName": "app", "containers": [{
            "args": ["--token=MARKER", "--token-file=/run/token", "--no-cross-namespace-refs=true", "--db-password=$(PASSWORD)"],
            "env": [{"name": "A", "value": "MARKER"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        }], "initContainers": [{"env": [{"name": "C", "value": "MARKER"}]}]}}},
    });
    redact(&mut object);
    let text = object.to_string();
    assert!(!text.contains("MARKER"), "{text}");
    for kept in
        ["--token-file=/run/token", "--no-cross-namespace-refs=true", "$(PASSWORD)", "secretKeyRef", "kept"]
    {
        assert!(text.contains(kept), "{kept} is gone from {text}");
    }
}

#[test]
fn values_of_releases_are_dropped() {
    let mut object = json!({
        "kind": "HelmRelease", "metadata": {"name": "r"},
        "spec": {"serviceAccountName": "sa", "values": {"password": "MARKER"}, "valuesFrom": [{"kind": "Secret", "name": "v"}],
            "postBuild": {"substitute": {"p": "MARKER"}, "substituteFrom": [{"kind": "Secret", "name": "w"}]}},
    });
    redact(&mut object);
    let text = object.to_string();
    assert!(!text.contains("MARKER"), "{text}");
    assert!(text.contains("valuesFrom") && text.contains("substituteFrom"), "{text}");
}
