use serde_json::{Value, json};

use super::*;
use crate::{
    Sample,
    admission::{
        Requester,
        request::{Namespaces, Prepared},
        tests::Loaded,
    },
};

struct Ask {
    operation: &'static str,
    resource: &'static str,
    namespace: Option<&'static str>,
    object: Value,
    old_object: Value,
    essential: Vec<&'static str>,
}

impl Default for Ask {
    fn default() -> Self {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"labels": {"a": "b"}}});
        Self {
            operation: "CREATE",
            resource: "/secrets",
            namespace: Some("one"),
            object,
            old_object: Value::Null,
            essential: vec![],
        }
    }
}

/// In both readings: as sent, and with what is essential.
fn matches(constraints: &str, ask: &Ask) -> [Truth; 2] {
    let constraints = Constraints::new(Some(&serde_saphyr::from_str::<Value>(constraints).unwrap()));
    let (group, resource) = ask.resource.split_once('/').unwrap();
    let sample = Sample {
        operation: ask.operation,
        group: group.to_owned(),
        resource: resource.to_owned(),
        object: ask.object.clone(),
        old_object: ask.old_object.clone(),
        essential: ask.essential.iter().map(|pointer| (*pointer).to_owned()).collect(),
    };
    let loaded = Loaded::new([
        json!({"kind": "Namespace", "metadata": {"name": "one", "labels": {"team": "x"}}}),
        json!({"kind": "Namespace", "metadata": {"name": "two"}}),
    ]);
    let namespaces = Namespaces::new(&loaded.facts, &loaded.symbols);
    let who = Requester { user: "ann".to_owned(), groups: Vec::new() };
    let prepared = Prepared::new(&sample, &who, &namespaces, ask.namespace, "it", None);
    [prepared.as_sent(), prepared.as_essential()].map(|request| {
        let truth = constraints.matches(&request);
        assert!(truth == Truth::False || constraints.may_concern(request.sort()));
        truth
    })
}

fn rule(more: &str) -> String {
    format!(
        "{{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets], {more}}}]}}"
    )
}

#[test]
fn rules_match_as_the_api_server_does() {
    use Truth::{False, True};
    let with = |groups: &str, operations: &str, resources: &str, more: &str| {
        format!(
            "{{resourceRules: [{{apiGroups: {groups}, apiVersions: ['*'], operations: {operations}, resources: {resources}, {more}}}]}}"
        )
    };
    let secret = Ask::default();
    let exec = Ask { operation: "CONNECT", resource: "/pods/exec", ..Ask::default() };
    let pods = Ask { resource: "/pods", ..Ask::default() };
    let role = Ask { resource: "rbac.authorization.k8s.io/clusterroles", namespace: None, ..Ask::default() };
    let namespace = Ask { resource: "/namespaces", namespace: None, ..Ask::default() };
    for (constraints, ask, expected) in [
        (with("['']", "[CREATE]", "[secrets]", ""), &secret, True),
        (with("['*']", "['*']", "['*']", ""), &secret, True),
        (with("[apps]", "['*']", "['*']", ""), &secret, False),
        (with("['']", "[UPDATE]", "[secrets]", ""), &secret, False),
        (with("['']", "[CREATE]", "[configmaps]", ""), &secret, False),
        // A star alone has no subresources; one after the slash has the resource too.
        (with("['']", "[CONNECT]", "['*']", ""), &exec, False),
        (with("['']", "[CONNECT]", "['pods/*']", ""), &exec, True),
        (with("['']", "[CREATE]", "['pods/*']", ""), &pods, True),
        (with("['']", "[CONNECT]", "['*/*']", ""), &exec, True),
        (with("['']", "[CONNECT]", "['*/exec']", ""), &exec, True),
        (with("['']", "[CONNECT]", "['pods/exec']", ""), &exec, True),
        (with("['']", "[CONNECT]", "['pods']", ""), &exec, False),
        (with("['']", "[CREATE]", "[secrets]", "resourceNames: [it]"), &secret, True),
        (with("['']", "[CREATE]", "[secrets]", "resourceNames: [other]"), &secret, False),
        (with("['*']", "['*']", "['*']", "scope: Namespaced"), &secret, True),
        (with("['*']", "['*']", "['*']", "scope: Cluster"), &secret, False),
        (with("['*']", "['*']", "['*']", "scope: Cluster"), &role, True),
        (with("['*']", "['*']", "['*']", "scope: Cluster"), &namespace, True),
        (with("['*']", "['*']", "['*']", "scope: Namespaced"), &namespace, False),
        (with("['*']", "['*']", "['*']", "scope: '*'"), &role, True),
    ] {
        assert_eq!(matches(&constraints, ask), [expected; 2], "{constraints}");
    }
    let excluded = "{resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}], \
                    excludeResourceRules: [{apiGroups: [''], apiVersions: ['*'], operations: ['*'], resources: [secrets]}]}";
    assert_eq!(matches(excluded, &secret), [False; 2]);
    assert_eq!(matches(excluded, &pods), [True; 2]);
    // What configures admission is never asked about.
    let configuration = Ask {
        resource: "admissionregistration.k8s.io/validatingadmissionpolicies",
        namespace: None,
        ..Ask::default()
    };
    assert_eq!(matches(&with("['*']", "['*']", "['*']", ""), &configuration), [False; 2]);
}

#[test]
fn versions_count_where_they_must_be_exact() {
    use Truth::{False, True, Unknown};
    let exact = |versions: &str, group: &str| {
        format!(
            "{{matchPolicy: Exact, resourceRules: [{{apiGroups: ['{group}'], apiVersions: {versions}, operations: ['*'], resources: ['*']}}]}}"
        )
    };
    let custom = Ask {
        resource: "example.com/things",
        object: json!({"apiVersion": "example.com/v1", "kind": "Thing"}),
        ..Ask::default()
    };
    // Whoever sends it may take another version that is served.
    assert_eq!(matches(&exact("[v1]", "example.com"), &custom), [True, Unknown]);
    assert_eq!(matches(&exact("[v2]", "example.com"), &custom), [False, Unknown]);
    assert_eq!(matches(&exact("['*']", "example.com"), &custom), [True; 2]);
    assert_eq!(matches(&exact("[v1]", ""), &Ask::default()), [True; 2]);
    assert_eq!(matches(&exact("[v2]", ""), &Ask::default()), [False; 2]);
    let equivalent = exact("[v2]", "example.com").replace("Exact", "Equivalent");
    assert_eq!(matches(&equivalent, &custom), [True; 2]);
}

#[test]
fn selectors_look_at_the_namespace_and_at_both_objects() {
    use Truth::{False, True, Unknown};
    let with = |selector: &str| rule("").replacen('{', &format!("{{{selector}, "), 1);
    let secret = Ask::default();
    let labelled = Ask { essential: vec!["/metadata/labels"], ..Ask::default() };
    let old = Ask {
        operation: "UPDATE",
        old_object: json!({"metadata": {"labels": {"a": "b"}}}),
        ..Ask::default()
    };
    let elsewhere = Ask { namespace: Some("two"), ..Ask::default() };
    let nowhere = Ask { namespace: Some("unheard"), ..Ask::default() };
    let in_cluster = Ask { namespace: None, ..Ask::default() };
    for (selector, ask, expected) in [
        ("namespaceSelector: {matchLabels: {team: x}}", &secret, [True, True]),
        ("namespaceSelector: {matchLabels: {team: y}}", &secret, [False, False]),
        ("namespaceSelector: {matchLabels: {team: x}}", &elsewhere, [False, False]),
        ("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: two}}", &elsewhere, [True, True]),
        (
            "namespaceSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}",
            &elsewhere,
            [True, True],
        ),
        (
            "namespaceSelector: {matchExpressions: [{key: team, operator: NotIn, values: [x]}]}",
            &secret,
            [False, False],
        ),
        (
            "namespaceSelector: {matchExpressions: [{key: team, operator: NotIn, values: [x]}]}",
            &elsewhere,
            [True, True],
        ),
        (
            "namespaceSelector: {matchExpressions: [{key: team, operator: Unheard}]}",
            &secret,
            [Unknown, Unknown],
        ),
        ("namespaceSelector: {matchLabels: {team: x}}", &nowhere, [Unknown, Unknown]),
        ("namespaceSelector: {}", &nowhere, [True, True]),
        ("namespaceSelector: {matchLabels: {team: x}}", &in_cluster, [True, True]),
        ("objectSelector: {matchLabels: {a: b}}", &secret, [True, Unknown]),
        ("objectSelector: {matchLabels: {a: b}}", &labelled, [True, True]),
        ("objectSelector: {matchExpressions: [{key: c, operator: Exists}]}", &labelled, [False, False]),
        // The old object is what it is.
        ("objectSelector: {matchLabels: {a: b}}", &old, [True, True]),
    ] {
        assert_eq!(matches(&with(selector), ask), expected, "{selector} {:?}", ask.namespace);
    }
}

#[test]
fn a_namespace_that_is_written_is_matched_by_its_own_labels() {
    let constraints = "{namespaceSelector: {matchLabels: {team: x}}, resourceRules: \
                       [{apiGroups: [''], apiVersions: ['*'], operations: ['*'], resources: [namespaces]}]}";
    let labels = json!({"metadata": {"labels": {"team": "x"}}});
    let ask = |operation, object: &Value, old_object: &Value, essential| Ask {
        operation,
        resource: "/namespaces",
        namespace: None,
        object: object.clone(),
        old_object: old_object.clone(),
        essential,
    };
    use Truth::{False, True, Unknown};
    let none = json!({"metadata": {}});
    for (ask, expected) in [
        (ask("CREATE", &labels, &Value::Null, vec![]), [True, Unknown]),
        (ask("CREATE", &labels, &Value::Null, vec!["/metadata/labels"]), [True, True]),
        // Whoever takes the label off is not matched any more.
        (ask("UPDATE", &none, &labels, vec!["/metadata/labels"]), [False, False]),
        (ask("DELETE", &Value::Null, &labels, vec![]), [True, True]),
    ] {
        assert_eq!(matches(constraints, &ask), expected, "{}", ask.operation);
    }
}
