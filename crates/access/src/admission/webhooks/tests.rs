use serde_json::{Value, json};

use crate::{
    Sample,
    admission::{
        Decision,
        tests::{All, Loaded, somebody},
    },
};

fn sample(resource: &str) -> Sample {
    Sample {
        operation: "CREATE",
        group: String::new(),
        resource: resource.to_owned(),
        object: json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {}}),
        old_object: Value::Null,
        essential: Vec::new(),
    }
}

fn by(objects: Vec<Value>, resource: &str, namespace: &str) -> Option<String> {
    let namespaces =
        ["one", "kube-system"].map(|name| json!({"kind": "Namespace", "metadata": {"name": name}}));
    let admission = Loaded::new(objects.into_iter().chain(namespaces)).admission();
    match admission.decide(&sample(resource), &somebody(), Some(namespace), "it", &All(false)) {
        Decision::Unknown { by, .. } => Some(by),
        Decision::Passes => None,
        Decision::Blocked { by, .. } => panic!("blocked by {by}"),
    }
}

fn webhook(name: &str, more: &str) -> Value {
    let webhook = format!(
        "{{name: w, {more} rules: [{{apiGroups: [''], apiVersions: ['*'], operations: [CREATE], resources: [pods]}}]}}"
    );
    let webhook: Value = serde_saphyr::from_str(&webhook).unwrap();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": [webhook],
    })
}

#[test]
fn a_webhook_that_is_asked_leaves_the_answer_open() {
    let asked = Some("ValidatingWebhookConfiguration x, webhook w".to_owned());
    for (more, expected) in [
        ("", &asked),
        ("failurePolicy: Ignore,", &asked),
        ("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: one}},", &asked),
        ("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: two}},", &None),
        ("objectSelector: {matchLabels: {a: b}},", &asked),
        ("objectSelector: {matchLabels: {a: c}},", &None),
        ("matchConditions: [{name: c, expression: \"request.userInfo.username != 'eve'\"}],", &None),
        ("matchConditions: [{name: c, expression: \"request.userInfo.username == 'eve'\"}],", &asked),
        ("matchConditions: [{name: c, expression: object.spec.absent}],", &asked),
    ] {
        assert_eq!(&by(vec![webhook("x", more)], "pods", "one"), expected, "{more}");
    }
    assert_eq!(by(vec![webhook("x", "")], "configmaps", "one"), None);
}

#[test]
fn webhooks_of_engines_count_only_without_their_policies() {
    let policy = json!({"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": {"rules": []}});
    let template = json!({"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate", "metadata": {"name": "t"}});
    for (name, policies) in [
        ("kyverno-resource-validating-webhook-cfg", policy),
        ("gatekeeper-validating-webhook-configuration", template),
    ] {
        assert!(by(vec![webhook(name, "")], "pods", "one").is_some(), "{name}");
        assert_eq!(by(vec![webhook(name, ""), policies], "pods", "one"), None, "{name}");
    }
}

#[test]
fn a_constraint_of_gatekeeper_leaves_what_it_matches_open() {
    let constraint = |spec: &str| -> Value {
        let spec: Value = serde_saphyr::from_str(spec).unwrap();
        json!({"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": "K8sNoPods", "metadata": {"name": "c"}, "spec": spec})
    };
    for (spec, namespace, is_asked) in [
        ("{match: {kinds: [{apiGroups: [''], kinds: [Pod]}]}}", "one", true),
        ("{match: {kinds: [{apiGroups: ['*'], kinds: ['*']}]}}", "one", true),
        ("{match: {kinds: [{apiGroups: [''], kinds: [Service]}]}}", "one", false),
        ("{}", "one", true),
        ("{enforcementAction: dryrun}", "one", false),
        ("{enforcementAction: warn}", "one", false),
        ("{match: {namespaces: [one]}}", "one", true),
        ("{match: {namespaces: [two]}}", "one", false),
        ("{match: {excludedNamespaces: ['kube-*']}}", "kube-system", false),
        ("{match: {excludedNamespaces: ['kube-*']}}", "one", true),
        ("{match: {labelSelector: {matchLabels: {a: b}}}}", "one", true),
        ("{match: {namespaceSelector: {matchLabels: {a: b}}}}", "one", false),
    ] {
        let found = by(vec![constraint(spec)], "pods", namespace);
        assert_eq!(found, is_asked.then(|| "K8sNoPods c".to_owned()), "{spec} {namespace}");
    }
}
