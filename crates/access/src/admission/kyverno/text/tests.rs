use serde_json::json;

use super::*;
use crate::{
    Sample,
    admission::{
        Requester,
        request::{Namespaces, Prepared},
    },
};

#[test]
fn wildcards_match_as_a_shell_does() {
    for (pattern, text, expected) in [
        ("*", "", true),
        ("*", "a", true),
        ("?*", "", false),
        ("?*", "a", true),
        ("org-*", "org-acme", true),
        ("org-*", "my-org-acme", false),
        ("*-acme", "org-acme", true),
        ("a*b*c", "aXbXbXc", true),
        ("a*b*c", "aXbX", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("*a", "ba*", false),
        ("**", "x", true),
    ] {
        assert_eq!(wildcard(pattern, text), expected, "{pattern} {text}");
    }
}

#[test]
fn kinds_are_read_in_all_their_forms() {
    for (text, group, kind, subresource) in [
        ("Pod", "*", "Pod", ""),
        ("*", "*", "*", ""),
        ("*/*", "*", "*", "*"),
        ("*/scale", "*", "*", "scale"),
        ("v1/Pod", "*", "Pod", ""),
        ("Pod/exec", "*", "Pod", "exec"),
        ("Pod.exec", "*", "Pod", "exec"),
        ("v1/Pod.exec", "*", "Pod", "exec"),
        ("v1/Pod/exec", "*", "Pod", "exec"),
        ("*/Pod", "*", "Pod", ""),
        ("apps/v1/Deployment", "apps", "Deployment", ""),
        ("cluster.x-k8s.io/*/Cluster", "cluster.x-k8s.io", "Cluster", ""),
        ("apps/v1/Deployment/scale", "apps", "Deployment", "scale"),
        ("v1beta1/Thing", "*", "Thing", ""),
    ] {
        let expected = KindPattern {
            group: group.to_owned(),
            kind: kind.to_owned(),
            subresource: subresource.to_owned(),
        };
        assert_eq!(KindPattern::new(text), expected, "{text}");
    }
}

/// What variables become in a request of an account of namespace `org-acme`, with only `/spec/a` essential.
fn substituted(operation: &'static str, text: &str) -> String {
    let object = json!({
        "metadata": {"labels": {"a/b": "x", "empty": ""}},
        "spec": {"a": {"b": 1}, "other": "o", "text": "t"},
    });
    let is_delete = operation == "DELETE";
    let sample = Sample {
        operation,
        group: String::new(),
        resource: "things".to_owned(),
        object: if is_delete { Value::Null } else { object.clone() },
        old_object: if is_delete { object } else { Value::Null },
        essential: vec!["/spec/a".to_owned(), "/metadata/labels".to_owned()],
    };
    let who = Requester::service_account("org-acme", "robot");
    let namespaces = Namespaces::default();
    let prepared = Prepared::new(&sample, &who, &namespaces, Some("org-acme"), "thing", None);
    let request = prepared.as_essential();
    match (Names { request: &request, element: None }).substitute(text) {
        Found::Value(value) => value.to_string(),
        Found::Null => "null".to_owned(),
        Found::Unknown => "unknown".to_owned(),
    }
}

#[test]
fn variables_are_replaced_where_their_values_are_certain() {
    for (text, expected) in [
        ("plain", "\"plain\""),
        ("{{request.operation}}", "\"CREATE\""),
        ("{{ request.namespace }}", "\"org-acme\""),
        ("{{request.object.metadata.namespace}}-x", "\"org-acme-x\""),
        ("{{request.object.metadata.name}}/{{request.operation}}", "\"thing/CREATE\""),
        ("{{request.userInfo.username}}", "\"system:serviceaccount:org-acme:robot\""),
        ("{{serviceAccountName}} {{serviceAccountNamespace}}", "\"robot org-acme\""),
        ("{{request.object.spec.a}}", "{\"b\":1}"),
        ("{{request.object.spec.a.b}}", "1"),
        ("{{request.object.spec.a.c}}", "null"),
        ("{{request.object.spec.a.c || 'd'}}", "\"d\""),
        ("{{request.object.spec.a.c || `[1]`}}", "[1]"),
        ("{{request.object.metadata.labels.\"a/b\"}}", "\"x\""),
        ("{{request.object.metadata.labels.\"a/b\" || ''}}", "\"x\""),
        ("{{request.object.metadata.labels.empty || 'd'}}", "\"d\""),
        ("{{request.object.metadata.labels.none || ''}}", "\"\""),
        ("{{request.object.metadata.labels.empty || request.object.metadata.labels.\"a/b\"}}", "\"x\""),
        ("{{request.object.spec.a.c || request.object.spec.a.d}}", "null"),
        ("{{request.object.spec.a.c || 'a||b'}}", "unknown"),
        ("{{request.object.spec.text}}", "unknown"),
        ("{{request.object.spec}}", "unknown"),
        ("{{request.object.spec.text || 'd'}}", "unknown"),
        ("{{request.roles}}", "unknown"),
        ("{{request.dryRun}}", "unknown"),
        ("{{somethingElse}}", "unknown"),
        ("{{to_upper(request.operation)}}", "unknown"),
        ("{{request.object.spec.a[0]}}", "unknown"),
        ("{{request.operation", "unknown"),
        ("{{element.name}}", "unknown"),
    ] {
        assert_eq!(substituted("CREATE", text), expected, "{text}");
    }
    assert_eq!(substituted("DELETE", "{{request.object.metadata.labels.\"a/b\"}}"), "\"x\"");
    assert_eq!(substituted("DELETE", "{{request.oldObject.spec.text}}"), "\"t\"");
    assert_eq!(substituted("CREATE", "{{request.oldObject.spec.text}}"), "null");
}
