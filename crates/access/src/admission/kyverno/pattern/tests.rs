use serde_json::json;

use super::*;
use crate::{
    Sample,
    admission::{
        Requester,
        request::{Namespaces, Prepared},
        view::Parts,
    },
};

/// What may come out, as letters: Pass, Fail, Skip.
fn outcome(resource: &Value, essential: Option<&[&str]>, pattern: &str) -> String {
    let pattern: Value = serde_saphyr::from_str(pattern).unwrap();
    let sample = Sample {
        operation: "CREATE",
        group: String::new(),
        resource: "things".to_owned(),
        object: json!({}),
        old_object: Value::Null,
        essential: Vec::new(),
    };
    let who = Requester { user: "ann".to_owned(), groups: Vec::new() };
    let namespaces = Namespaces::default();
    let prepared = Prepared::new(&sample, &who, &namespaces, Some("org-acme"), "thing", None);
    let request = prepared.as_sent();
    let parts = Parts::only(essential.unwrap_or(&[""]).iter().copied());
    let names = Names { request: &request, element: None };
    let outcome = compare(names, Child::Present(View::partial(resource, &parts)), &pattern);
    let letters = [(outcome.pass, 'P'), (outcome.fail, 'F'), (outcome.skip, 'S')];
    letters.into_iter().filter_map(|(may, letter)| may.then_some(letter)).collect()
}

#[test]
fn scalars_compare_as_in_kyverno() {
    for (value, pattern, expected) in [
        (json!("a"), "'?*'", Some(true)),
        (json!(""), "'?*'", Some(false)),
        (Value::Null, "'?*'", Some(false)),
        (Value::Null, "'*'", Some(false)),
        (json!("abc"), "a*", Some(true)),
        (json!("abc"), "'!a*'", Some(false)),
        (json!("xbc"), "'!a*'", Some(true)),
        (Value::Null, "'!a*'", Some(false)),
        (json!("b"), "a | b", Some(true)),
        (json!("c"), "a | b", Some(false)),
        (json!("org-acme"), "org-* & !org-giantswarm", Some(true)),
        (json!("org-giantswarm"), "org-* & !org-giantswarm", Some(false)),
        (json!("default"), "org-* & !org-giantswarm", Some(false)),
        (json!(false), "'false'", Some(true)),
        (json!(true), "'false'", Some(false)),
        (json!(true), "true", Some(true)),
        (json!("true"), "true", Some(false)),
        (json!(0), "0", Some(true)),
        (json!(8080), "0", Some(false)),
        (json!("8080"), "8080", Some(true)),
        (json!(8080), "'>1024'", Some(true)),
        (json!(80), "'>1024'", Some(false)),
        (json!(1024), "'>=1024 & <=2000'", Some(true)),
        (Value::Null, "'<10'", Some(true)),
        (json!("text"), "'>1024'", Some(false)),
        (json!("512Mi"), "'<=1Gi'", None),
        (json!("1Gi"), "1Gi", Some(true)),
        (json!(5), "1-10", None),
        (Value::Null, "null", Some(true)),
        (json!(""), "null", Some(true)),
        (json!("x"), "null", Some(false)),
        (json!({"a": 1}), "a", Some(false)),
    ] {
        let pattern: Value = serde_saphyr::from_str(pattern).unwrap();
        let value = Some(&value).filter(|value| !value.is_null());
        assert_eq!(scalar_matches(value, &pattern), expected, "{value:?} {pattern}");
    }
}

#[test]
fn a_resource_is_compared_field_by_field() {
    let pod = json!({
        "spec": {
            "hostPID": true,
            "containers": [
                {"name": "a", "image": "x/a:1", "securityContext": {"privileged": false}},
                {"name": "b", "image": "x/b:1"},
            ],
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "emptyDir": {}}],
            "tags": ["a", "b"],
        },
    });
    for (pattern, expected) in [
        ("spec: {hostPID: true}", "P"),
        ("spec: {hostPID: 'false'}", "F"),
        ("spec: {absent: '?*'}", "F"),
        ("spec: {absent: '*'}", "F"),
        ("spec: {hostPID: '*'}", "P"),
        ("spec: {=(absent): 'x', =(hostPID): true}", "P"),
        ("spec: {=(hostPID): false}", "F"),
        ("spec: {X(hostPID): 'null'}", "F"),
        ("spec: {X(absent): 'null'}", "P"),
        ("spec: {absent: {x: 1}}", "F"),
        ("spec: {hostPID: {x: 1}}", "F"),
        ("spec: {containers: [{=(securityContext): {=(privileged): 'false'}}]}", "P"),
        ("spec: {containers: [{securityContext: {privileged: 'false'}}]}", "F"),
        ("spec: {containers: [{image: 'x/*'}]}", "P"),
        ("spec: {containers: [{(name): a, image: 'x/a*'}]}", "P"),
        ("spec: {containers: [{(name): b, image: 'x/a*'}]}", "F"),
        ("spec: {containers: [{(name): c, image: 'y*'}]}", "S"),
        ("spec: {(hostPID): true, absent: '?*'}", "F"),
        ("spec: {(hostPID): false, absent: '?*'}", "S"),
        ("spec: {(absent): x, hostPID: false}", "S"),
        ("spec: {<(absent): x, hostPID: true}", "P"),
        ("spec: {<(hostPID): false, absent: x}", "S"),
        ("spec: {^(containers): [{name: b}]}", "P"),
        ("spec: {^(containers): [{name: c}]}", "F"),
        ("spec: {=(volumes): [{X(hostPath): 'null'}]}", "F"),
        ("spec: {tags: ['a | b']}", "P"),
        ("spec: {tags: 'a | b'}", "P"),
        ("spec: {tags: [a]}", "F"),
        ("spec: {tags: []}", "F"),
        ("spec: {hostPID: '{{request.operation}}'}", "F"),
        ("spec: {hostPID: '{{unheard}}'}", "PFS"),
        ("metadata: {labels: {'x*': '?*'}}", "F"),
    ] {
        assert_eq!(outcome(&pod, None, pattern), expected, "{pattern}");
    }
}

#[test]
fn only_what_is_certain_decides() {
    let pod = json!({
        "spec": {
            "hostPID": true, "image": "i",
            "containers": [{"image": "i", "securityContext": {"privileged": true}}],
        },
    });
    let essential = ["/spec/hostPID", "/spec/account", "/spec/containers/0/securityContext/privileged"];
    for (pattern, expected) in [
        ("spec: {=(hostPID): 'false', =(hostIPC): 'false', =(hostNetwork): 'false'}", "F"),
        ("spec: {=(hostIPC): 'false'}", "PF"),
        ("spec: {account: '?*'}", "F"),
        ("spec: {=(account): x}", "P"),
        ("spec: {image: 'i'}", "PF"),
        ("spec: {X(image): 'null'}", "PF"),
        ("spec: {containers: [{=(securityContext): {=(privileged): 'false'}}]}", "F"),
        (
            "spec: {=(initContainers): [{=(securityContext): {=(privileged): 'false'}}], containers: [{=(securityContext): {=(privileged): 'false'}}]}",
            "F",
        ),
        // A condition on something unknown may keep the rule out.
        ("spec: {(image): i, account: '?*'}", "FS"),
        ("spec: {containers: [{(image): i, securityContext: {privileged: false}}]}", "PFS"),
        ("spec: {(hostPID): true, account: '?*'}", "F"),
        ("spec: {other: {(x): 1}, account: '?*'}", "FS"),
        ("spec: {^(containers): [{securityContext: {privileged: false}}]}", "PF"),
    ] {
        assert_eq!(outcome(&pod, Some(&essential), pattern), expected, "{pattern}");
    }
}
