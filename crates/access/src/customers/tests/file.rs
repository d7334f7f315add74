//! The tenants file: what is read, and what is refused with which words.

use super::{Customers, Owner, acme};

fn error(text: &str) -> String {
    Customers::from_file(text, "tenants.yaml").expect_err("a refusal").to_string()
}

#[test]
fn a_whole_file_is_read() {
    let text = "
customers:
  acme:
    namespaces: [org-acme]
    namespacePrefix: acme-
    groups: ['acme:admins']
    users: [jane@acme.example]
    sources: ['https://git.acme.example/']
    clusters: [acme-prod]
  beta: {namespaces: [org-beta]}
platform: {namespaces: [monitoring], groups: [admins], users: [root], sources: ['https://github.com/platform'], rest: true}
";
    let read = Customers::from_file(text, "tenants.yaml").expect("a tenants file");
    assert!(read.hints.is_empty());
    let customers = read.customers;
    assert_eq!(customers.source, "tenants.yaml");
    assert_eq!(customers.owner_of_namespace("acme-x"), acme());
    assert_eq!(customers.owner_of_source("https://git.acme.example/apps"), acme());
    assert_eq!(customers.owner_of_namespace("anything"), Owner::Platform);
}

#[test]
fn json_is_read_too() {
    let text = r#"{"customers": {"acme": {"namespaces": ["org-acme"]}}, "platform": {"rest": false}}"#;
    let read = Customers::from_file(text, "tenants.json").expect("a tenants file");
    assert_eq!(read.customers.owner_of_namespace("org-acme"), acme());
    assert_eq!(read.customers.owner_of_namespace("other"), Owner::Unknown);
}

#[test]
fn an_answer_key_is_a_tenants_file_and_its_other_fields_are_named() {
    let text = "
fixture: mc.yaml
customers:
  acme: {namespaces: [org-acme], groups: ['customer-acme:Admins', 'customer-acme:Readers']}
platform_namespaces: [kube-system, default, giantswarm]
planted: [{id: K1}]
";
    let read = Customers::from_file(text, "answers.yaml").expect("a tenants file");
    assert_eq!(read.customers.owner_of_namespace("giantswarm"), Owner::Platform);
    assert_eq!(
        read.hints,
        ["tenants file `answers.yaml`: `fixture`, `planted` mean nothing here and were passed over"]
    );
}

#[test]
fn errors_name_file_and_field_and_the_way_out() {
    for (text, wanted) in [
        (
            "customers: {acme: {namespace: [a]}}",
            "field `customers.acme.namespace`: there is no such field; known are",
        ),
        ("customer: {acme: {}}", "field `customer`: there is no such field; did you mean `customers`?"),
        ("customers: {}\nplatfrom: {}", "did you mean `platform`?"),
        ("platform: {rest: true}", "field `customers`: it is missing"),
        ("customers: [acme]", "field `customers`: it must be a map"),
        ("customers: {acme: {namespaces: org-acme}}", "field `customers.acme.namespaces`: it must be a list"),
        (
            "customers: {acme: {namespaces: [1]}}",
            "field `customers.acme.namespaces[0]`: it must be a name in quotes",
        ),
        ("customers: {acme: {groups: ['acme:*']}}", "`acme:*`: names are exact"),
        ("customers: {acme: {groups: ['system:masters']}}", "`system:masters` belongs to Kubernetes"),
        ("customers: {acme: {namespaces: [kube-system]}}", "`kube-system` belongs to the cluster itself"),
        (
            "customers: {acme: {namespacePrefix: a}}",
            "field `customers.acme.namespacePrefix`: use at least three",
        ),
        ("customers: {platform: {}}", "field `customers.platform`: this name has a meaning of its own"),
        ("customers: {}\nplatform: {rest: yes please}", "field `platform.rest`: it must be true or false"),
        ("customers: {}\nplatform: {groups: ['system:authenticated']}", "holds customers too"),
        ("customers: {}\nplatform: {cluster: []}", "field `platform.cluster`: there is no such field"),
        ("- a", "field `(the whole file)`: it must be a map"),
    ] {
        let error = error(text);
        assert!(
            error.starts_with("tenants file `tenants.yaml`, field") && error.contains(wanted),
            "{text}\n{error}"
        );
    }
}

#[test]
fn what_is_no_yaml_says_so_and_keeps_the_cause() {
    let error = Customers::from_file("customers: {", "tenants.yaml").expect_err("a refusal");
    assert_eq!(error.to_string(), "cannot read tenants file `tenants.yaml`: it is neither YAML nor JSON");
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(error.reason(), "TenantsSyntax");
}

#[test]
fn one_thing_has_one_owner() {
    for (text, what) in [
        (
            "customers: {a: {namespaces: [x]}, b: {namespaces: [x]}}",
            "`namespace x` is said to belong to `a` and to `b`",
        ),
        (
            "customers: {a: {groups: [x]}}\nplatform: {groups: [x]}",
            "`group x` is said to belong to `a` and to `platform`",
        ),
        (
            "customers: {a: {sources: ['https://git.example/x.git']}, b: {sources: ['git@git.example:x']}}",
            "is said to belong to `a` and to `b`",
        ),
        ("customers: {a: {namespaces: [x]}}\nplatform_namespaces: [x]", "to `a` and to `platform`"),
    ] {
        assert!(error(text).contains(what), "{}", error(text));
    }
    // A user and a group of one name are two things.
    assert!(Customers::from_file("customers: {a: {groups: [x]}, b: {users: [x]}}", "f").is_ok());
}
