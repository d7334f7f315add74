use bailey_api::{Installation, Tenant};
use serde_json::{Value, json};

use super::*;
use crate::{Facts, Resource, ResourceScope, validate};

fn model() -> Model {
    let installation: Installation = serde_json::from_value(json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "Installation", "metadata": {"name": "installation"},
        "spec": {"managementCluster": {"name": "mc"}, "enforcement": "Enforce", "platform": {"namespaces": ["monitoring"]}},
    }))
    .unwrap();
    let tenants: Vec<Tenant> = [("acme", json!(["apps-acme", "org-acme"])), ("beta", json!(["org-beta"]))]
        .map(|(name, namespaces)| {
            serde_json::from_value(json!({
                "apiVersion": "bailey.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": name},
                "spec": {"namespaces": namespaces, "subjects": {"installers": {"groups": [format!("{name}-admins")]}}},
            }))
            .unwrap()
        })
        .into();
    validate(&installation, &tenants, &Facts::default()).0
}

fn discovery() -> Discovery {
    let resource = |name: &str, scope| Resource {
        group: String::new(),
        name: name.into(),
        scope,
        verbs: ["get", "list", "create"].map(Into::into).into(),
    };
    Discovery::new([resource("pods", ResourceScope::Namespaced), resource("nodes", ResourceScope::Cluster)])
}

fn binding(kind: BindingKind, name: &str, subjects: Value) -> RequestedBinding {
    let namespace = (kind == BindingKind::RoleBinding).then(|| NamespaceName::new("org-acme").unwrap());
    let rule = json!({"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list"]});
    RequestedBinding {
        kind,
        namespace,
        name: name.into(),
        uid: "uid-1".into(),
        tenant: TenantName::new("acme").unwrap(),
        subjects: serde_json::from_value(subjects).unwrap(),
        approved: Vec::new(),
        role: "ClusterRole/app".into(),
        rules: Ok(vec![serde_json::from_value(rule).unwrap()]),
    }
}

fn app() -> Value {
    json!([{"kind": "ServiceAccount", "name": "app", "namespace": "org-acme"}])
}

#[test]
fn a_cluster_wide_binding_becomes_one_in_each_namespace() {
    let model = model();
    let (discovery, binding) = (discovery(), binding(BindingKind::ClusterRoleBinding, "app", app()));
    let projection = Projector::new(&model, &discovery).project(&binding).unwrap();
    let objects: Vec<_> = projection.objects.iter().map(|o| &o.content).collect();
    insta::assert_yaml_snapshot!(objects);
}

#[test]
fn a_binding_in_a_namespace_stays_there() {
    let model = model();
    let (discovery, binding) = (discovery(), binding(BindingKind::RoleBinding, "app", app()));
    let projection = Projector::new(&model, &discovery).project(&binding).unwrap();
    let places: Vec<_> = projection.objects.iter().map(Object::path).collect();
    assert_eq!(
        places,
        ["org-acme/rolebinding.app", "org-acme/bailey:rolebinding:app", "org-acme/bailey:rolebinding:app"]
    );
}

#[test]
fn subjects_of_nobody_and_of_others_get_nothing() {
    let subjects = json!([
        {"kind": "Group", "name": "system:authenticated"},
        {"kind": "Group", "name": "beta-admins"},
        {"kind": "User", "name": "system:serviceaccount:monitoring:agent"},
        {"kind": "Group", "name": "acme-admins"},
    ]);
    let model = model();
    let (discovery, binding) = (discovery(), binding(BindingKind::ClusterRoleBinding, "app", subjects));
    let projection = Projector::new(&model, &discovery).project(&binding).unwrap();
    assert_eq!(projection.subjects.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["acme-admins"]);
    let foreign = projection.scoped.refused.iter().filter(|r| r.reason == RefusalReason::ForeignSubject);
    let messages: Vec<_> = foreign.map(|r| r.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "Group beta-admins is of tenant beta, so it gets nothing from this binding",
            "Group system:authenticated is not one of tenant acme's subjects, so it gets nothing from this binding",
            "User system:serviceaccount:monitoring:agent is the platform's, so it gets nothing from this binding",
        ]
    );
}

#[test]
fn an_unreadable_request_grants_nothing_and_says_why() {
    let model = model();
    let discovery = discovery();
    let mut binding = binding(BindingKind::ClusterRoleBinding, "app", app());
    binding.rules = Err("ClusterRole `x` does not exist".into());
    let projection = Projector::new(&model, &discovery).project(&binding).unwrap();
    assert_eq!(projection.objects.len(), 1, "only the AccessRequest");
    assert_eq!(projection.scoped.refused[0].reason, RefusalReason::Unreadable);
}

#[test]
fn names_of_requests_are_valid_and_apart() {
    let named = |name: &str| request_name(&binding(BindingKind::ClusterRoleBinding, name, app()));
    assert_eq!(named("argocd-server"), "clusterrolebinding.argocd-server");
    let (a, b) = (named("System:Thing"), named("system:thing"));
    assert!(a.starts_with("clusterrolebinding.system-thing-") && a != b, "{a} {b}");
    assert!(named(&"x".repeat(253)).len() <= 253);
}
