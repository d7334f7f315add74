use serde_json::json;

use super::*;

#[test]
fn aggregated_answers_become_one_entry_per_group_and_resource() {
    let core = json!({"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": "v1", "resources": [
        {"resource": "pods", "scope": "Namespaced", "verbs": ["list", "get"],
            "subresources": [{"subresource": "exec", "verbs": ["create"]}]},
        {"resource": "tokens", "scope": "Cluster", "subresources": [{"subresource": "part", "verbs": ["get"]}]},
    ]}]}]});
    let apis = json!({"kind": "APIGroupDiscoveryList", "items": [
        {"metadata": {"name": "a.example"}, "versions": [
            {"version": "v2", "resources": [{"resource": "things", "scope": "Cluster", "verbs": ["get"]}]},
            {"version": "v1", "resources": [{"resource": "things", "scope": "Cluster", "verbs": ["list"]}]},
        ]},
        {"metadata": {"name": "stale.example"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
    ]});
    let discovery = Discovery::from_aggregated(&[core, apis]).unwrap();
    let shown: Vec<_> = discovery
        .resources()
        .iter()
        .map(|r| format!("{:?} {}/{} {}", r.scope, r.group, r.name, r.verbs.join(",")))
        .collect();
    assert_eq!(
        shown,
        [
            "Namespaced /pods get,list",
            "Namespaced /pods/exec create",
            "Cluster /tokens/part get",
            "Cluster a.example/things get,list",
        ]
    );
}

#[test]
fn an_answer_that_is_not_aggregated_is_an_error_not_an_empty_cluster() {
    let legacy = json!({"kind": "APIGroupList", "groups": []});
    let message = Discovery::from_aggregated(&[legacy]).unwrap_err().to_string();
    assert!(message.contains("`APIGroupList` instead of `APIGroupDiscoveryList`"), "{message}");
    let broken = json!({"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"resources": [{}]}]}]});
    assert!(matches!(Discovery::from_aggregated(&[broken]), Err(DiscoveryError::Shape(_))));
}
