use serde_json::json;

use super::*;

fn installation() -> Installation {
    serde_json::from_value(json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "Installation", "metadata": {"name": "installation"},
        "spec": {"managementCluster": {"name": "mc"}, "platform": {"namespaces": ["monitoring"], "groups": ["ops"]}},
    }))
    .unwrap()
}

fn tenant(name: &str, spec: serde_json::Value) -> Tenant {
    serde_json::from_value(json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}

fn problem_of(second: serde_json::Value) -> String {
    let first = tenant(
        "acme",
        json!({"namespaces": ["org-acme"], "namespacePrefix": "acme-",
            "subjects": {"installers": {"groups": ["acme-admins"]}}, "crds": {"groups": ["argoproj.io"]}}),
    );
    let (model, problems) = validate(&installation(), &[tenant("beta", second), first], &Facts::default());
    assert_eq!(model.tenants.keys().map(|n| n.as_str()).collect::<Vec<_>>(), ["acme"]);
    format!("{} {}", problems[0].field, problems[0].message)
}

#[test]
fn what_another_has_leaves_the_later_tenant_out_with_the_reason() {
    assert_eq!(
        problem_of(json!({"namespaces": ["org-acme"]})),
        "spec.namespaces namespace `org-acme` belongs to tenant `acme`; remove it from one of the two"
    );
    assert_eq!(
        problem_of(json!({"namespaces": ["monitoring"]})),
        "spec.namespaces namespace `monitoring` belongs to the platform; remove it from one of the two"
    );
    assert!(
        problem_of(json!({"namespaces": ["acme-x"]}))
            .contains("lies under the prefix `acme-` of tenant `acme`")
    );
    assert!(
        problem_of(json!({"namespaces": ["b"], "namespacePrefix": "org-"}))
            .contains("would cover `org-acme`")
    );
    assert!(
        problem_of(json!({"namespaces": ["b"], "subjects": {"viewers": {"groups": ["ops"]}}}))
            .contains("the platform")
    );
    assert!(
        problem_of(json!({"namespaces": ["b"], "subjects": {"viewers": {"groups": ["acme-admins"]}}}))
            .contains("tenant `acme`")
    );
    assert!(
        problem_of(json!({"namespaces": ["b"], "crds": {"names": ["applications.argoproj.io"]}}))
            .contains("tenant `acme`")
    );
    assert!(
        problem_of(
            json!({"namespaces": ["b"], "subjects": {"installers": {"serviceAccounts": ["org-acme/x"]}}})
        )
        .contains("in no namespace of the tenant")
    );
}

#[test]
fn a_labelled_namespace_counts_only_under_the_prefix() {
    let facts = Facts {
        namespaces: ["acme-one", "stolen"]
            .map(|n| {
                let labels = BTreeMap::from([(bailey_api::TENANT_LABEL.to_owned(), "acme".to_owned())]);
                NamespaceFact::new(NamespaceName::new(n).unwrap(), &labels)
            })
            .into(),
        ..Facts::default()
    };
    let spec = json!({"namespaces": ["org-acme"], "namespacePrefix": "acme-"});
    let (model, problems) = validate(&installation(), &[tenant("acme", spec)], &facts);
    assert_eq!(problems, []);
    assert_eq!(model.namespace_owner("acme-one"), Some("acme"));
    assert_eq!(model.namespace_owner("stolen"), None);
    assert_eq!(model.namespace_owner("kube-system"), Some("platform"));
}
