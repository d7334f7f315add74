use bailey_api::{Installation, Tenant};
use bailey_guardrails::{Facts, boundary, policies, validate};

use super::*;

fn model() -> Model {
    let installation: Installation = serde_json::from_value(json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "Installation", "metadata": {"name": "installation"},
        "spec": {"managementCluster": {"name": "harbour"},
            "platform": {"namespaces": ["flux"], "users": ["pia"], "groups": ["admins"]}},
    }))
    .unwrap();
    let tenant: Tenant = serde_json::from_value(json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": "acme"},
        "spec": {"namespaces": ["org-acme"], "install": {"accounts": ["org-acme/installer"]},
            "subjects": {"installers": {"groups": ["acme-admins"]}, "developers": {"groups": ["acme-devs"]}}},
    }))
    .unwrap();
    let (model, problems) = validate(&installation, &[tenant], &Facts::default());
    assert_eq!(problems, []);
    model
}

fn survey(existing: &[Existing], bindings: &[BindingFact], namespaces: &[Value]) -> Readiness {
    let model = model();
    let (index, policies) = (boundary(&model), policies().unwrap());
    let discovery = Discovery::default();
    let survey = Survey { model: &model, boundary: &index, policies: &policies, discovery: &discovery };
    let (readiness, unknown) = survey.run(existing, bindings, namespaces);
    assert_eq!(unknown, []);
    readiness
}

fn release(namespace: &str, name: &str, spec: Value) -> Existing {
    Existing {
        group: "helm.toolkit.fluxcd.io".to_owned(),
        resource: "helmreleases".to_owned(),
        object: json!({"kind": "HelmRelease", "metadata": {"namespace": namespace, "name": name}, "spec": spec}),
    }
}

fn cluster_admin(subject: Value) -> BindingFact {
    BindingFact {
        kind: BindingKind::ClusterRoleBinding,
        namespace: None,
        name: "all".to_owned(),
        role: "ClusterRole/cluster-admin".to_owned(),
        subjects: vec![serde_json::from_value(subject).unwrap()],
        rules: vec![
            serde_json::from_value(json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})).unwrap(),
        ],
    }
}

fn objects(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.object.as_str()).collect()
}

#[test]
fn a_release_without_an_account_is_in_the_way_and_one_for_installers_is_noted() {
    let readiness = survey(
        &[
            release("org-acme", "loose", json!({})),
            release("org-acme", "fine", json!({"serviceAccountName": "installer"})),
            release("flux", "platforms", json!({})),
            release("nowhere", "stray", json!({})),
        ],
        &[],
        &[],
    );
    assert_eq!(objects(&readiness.findings), ["HelmRelease nowhere/stray", "HelmRelease org-acme/loose"]);
    assert_eq!(objects(&readiness.notes), ["HelmRelease org-acme/fine"]);
    assert!(readiness.notes[0].message.starts_with("only installers may change it"));
}

#[test]
fn a_binding_whose_author_is_unknown_is_noted_and_one_of_the_tenants_helm_is_in_the_way() {
    let binding = |name: &str, annotations: Value| Existing {
        group: "rbac.authorization.k8s.io".to_owned(),
        resource: "rolebindings".to_owned(),
        object: json!({"kind": "RoleBinding",
            "metadata": {"namespace": "org-acme", "name": name, "annotations": annotations},
            "subjects": [{"kind": "Group", "name": "admins"}]}),
    };
    let readiness = survey(
        &[
            binding("theirs", json!({"meta.helm.sh/release-namespace": "org-acme"})),
            binding("whose", json!({})),
        ],
        &[],
        &[],
    );
    assert_eq!(objects(&readiness.findings), ["RoleBinding org-acme/theirs"]);
    assert_eq!(objects(&readiness.notes), ["RoleBinding org-acme/whose"]);
}

#[test]
fn rights_that_reach_too_far_are_found_whoever_holds_them() {
    let user = |name: &str| json!({"kind": "User", "name": name});
    let bindings = [
        cluster_admin(user("ci")),
        cluster_admin(user("pia")),
        cluster_admin(user("system:kube-scheduler")),
        cluster_admin(json!({"kind": "ServiceAccount", "namespace": "ci", "name": "runner"})),
        cluster_admin(json!({"kind": "Group", "name": "acme-admins"})),
    ];
    let readiness = survey(&[], &bindings, &[]);
    let found: Vec<_> = readiness.findings.iter().map(|f| (f.kind, f.object.as_str())).collect();
    assert_eq!(
        found,
        [
            (FindingKind::UnlistedPrincipal, "sa:ci/runner"),
            (FindingKind::UnlistedPrincipal, "user:ci"),
            (FindingKind::ForeignGrant, "group:acme-admins"),
        ]
    );
}

#[test]
fn a_label_that_fits_no_tenant_is_found() {
    let namespace = |name: &str| json!({"metadata": {"name": name, "labels": {"bailey.dev/tenant": "acme"}}});
    let readiness = survey(&[], &[], &[namespace("org-acme"), namespace("odd"), namespace("flux")]);
    assert_eq!(objects(&readiness.findings), ["Namespace flux", "Namespace odd"]);
}
