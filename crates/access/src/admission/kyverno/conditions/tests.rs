use serde_json::json;

use super::*;
use crate::{
    Sample,
    admission::{
        Requester,
        request::{Namespaces, Prepared},
    },
};

fn hold(conditions: &str) -> Truth {
    let sample = Sample {
        operation: "DELETE",
        group: String::new(),
        resource: "things".to_owned(),
        object: Value::Null,
        old_object: json!({"metadata": {"labels": {"keep": "yes"}}}),
        essential: Vec::new(),
    };
    let who = Requester { user: "ann".to_owned(), groups: vec!["dev".to_owned(), "ops-1".to_owned()] };
    let namespaces = Namespaces::default();
    let prepared = Prepared::new(&sample, &who, &namespaces, Some("org-acme"), "thing", None);
    let request = prepared.as_sent();
    let conditions = Conditions::new(&serde_saphyr::from_str(conditions).unwrap());
    conditions.hold(Names { request: &request, element: None })
}

#[test]
fn each_operator_compares_as_in_kyverno() {
    use Truth::{False, True, Unknown};
    for (key, operator, value, expected) in [
        ("'{{request.operation}}'", "Equals", "DELETE", True),
        ("'{{request.operation}}'", "Equal", "'DEL*'", True),
        ("'{{request.operation}}'", "NotEquals", "CREATE", True),
        ("\"{{request.oldObject.metadata.labels.keep || ''}}\"", "NotEquals", "''", True),
        ("\"{{request.oldObject.metadata.labels.absent || ''}}\"", "NotEquals", "''", False),
        ("'{{request.userInfo.username}}'", "AnyIn", "[bob, ann]", True),
        ("'{{request.userInfo.username}}'", "In", "['a*']", True),
        ("'{{request.userInfo.username}}'", "NotIn", "[bob]", True),
        ("'{{request.userInfo.username}}'", "AnyIn", "ann", True),
        ("'{{request.userInfo.groups}}'", "AnyIn", "['ops-*']", True),
        ("'{{request.userInfo.groups}}'", "AllIn", "['ops-*']", False),
        ("'{{request.userInfo.groups}}'", "AnyNotIn", "['ops-*']", True),
        ("'{{request.userInfo.groups}}'", "AllNotIn", "[admins]", True),
        ("'{{request.userInfo.groups}}'", "NotIn", "[admins]", Unknown),
        ("3", "Equals", "3", True),
        ("3", "Equals", "'3'", Unknown),
        ("1Gi", "Equals", "1024Mi", Unknown),
        ("true", "Equals", "true", True),
        ("3", "GreaterThan", "2", Unknown),
        ("'{{request.oldObject.absent}}'", "Equals", "x", Unknown),
        ("'{{lookup}}'", "Equals", "x", Unknown),
        ("x", "AnyIn", "'[\"x\"]'", Unknown),
    ] {
        let text = format!("all: [{{key: {key}, operator: {operator}, value: {value}}}]");
        assert_eq!(hold(&text), expected, "{text}");
    }
}

#[test]
fn blocks_combine_any_and_all() {
    use Truth::{False, True, Unknown};
    let (yes, no, unknown) = (
        "{key: a, operator: Equals, value: a}",
        "{key: a, operator: Equals, value: b}",
        "{key: '{{lookup}}', operator: Equals, value: b}",
    );
    for (text, expected) in [
        ("{}".to_owned(), True),
        (format!("all: [{yes}, {no}]"), False),
        (format!("any: [{yes}, {no}]"), True),
        (format!("any: [{no}]"), False),
        (format!("{{any: [{yes}], all: [{no}]}}"), False),
        (format!("[{yes}, {yes}]"), True),
        (format!("[{{any: [{yes}]}}, {{all: [{no}]}}]"), False),
        (format!("all: [{unknown}, {no}]"), False),
        (format!("all: [{unknown}, {yes}]"), Unknown),
        (format!("any: [{unknown}, {yes}]"), True),
    ] {
        assert_eq!(hold(&text), expected, "{text}");
    }
}
