use super::{Kinds, Route, expected, resource_name, route};
use crate::load::shape::Shape;

fn is_kept(group: &str, kind: &str) -> bool {
    matches!(route(group, kind), Route::Object(_) | Route::Workload)
}

#[test]
fn kinds_that_decide_about_edges_are_kept() {
    for (group, kind) in [
        ("bailey.dev", "Tenant"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("apps", "Deployment"),
        ("helm.toolkit.fluxcd.io", "HelmRelease"),
        ("fluxcd.controlplane.io", "FluxInstance"),
        ("argoproj.io", "Application"),
        ("external-secrets.io", "ClusterSecretStore"),
        ("generators.external-secrets.io", "ECRAuthorizationToken"),
        ("cert-manager.io", "ClusterIssuer"),
        ("pkg.crossplane.io", "Provider"),
        ("kubernetes.crossplane.io", "Object"),
        ("aws.upbound.io", "ProviderConfig"),
        ("kyverno.io", "ClusterPolicy"),
        ("policies.kyverno.io", "ValidatingPolicy"),
        ("templates.gatekeeper.sh", "ConstraintTemplate"),
        ("constraints.gatekeeper.sh", "K8sRequiredLabels"),
        ("velero.io", "Restore"),
        ("monitoring.coreos.com", "ServiceMonitor"),
        ("application.giantswarm.io", "App"),
        ("security.giantswarm.io", "Organization"),
        ("auth.giantswarm.io", "RoleBindingTemplate"),
        ("cluster.x-k8s.io", "Cluster"),
        ("infrastructure.cluster.x-k8s.io", "AWSCluster"),
        ("capsule.clastix.io", "Tenant"),
        ("kamaji.clastix.io", "TenantControlPlane"),
        ("operators.coreos.com", "OperatorGroup"),
        ("operators.coreos.com", "ClusterServiceVersion"),
        ("olm.operatorframework.io", "ClusterExtension"),
        ("keda.sh", "ScaledObject"),
        ("argoproj.io", "Rollout"),
    ] {
        assert!(is_kept(group, kind), "{group} {kind}");
    }
}

#[test]
fn kinds_from_which_nothing_follows_are_not() {
    for (group, kind) in [
        ("", "Event"),
        ("", "Service"),
        ("apps", "ReplicaSet"),
        ("batch", "Job"),
        ("kyverno.io", "UpdateRequest"),
        ("aws.upbound.io", "ProviderConfigUsage"),
        ("application.giantswarm.io", "AppCatalogEntry"),
    ] {
        assert!(matches!(route(group, kind), Route::Nothing), "{group} {kind}");
    }
    for group in ["example.com", "notcrossplane.io", "fluxcd.io.example.com", "x.bailey.dev"] {
        assert!(matches!(route(group, "Thing"), Route::Unknown), "{group}");
    }
    // Of a kind of the same name in another group, nothing is taken for RBAC or core.
    assert!(matches!(route("example.com", "Secret"), Route::Unknown));
    assert!(matches!(route("authorization.openshift.io", "Role"), Route::Unknown));
    assert!(matches!(route("monitoring.coreos.com", "PrometheusRule"), Route::Object(Shape::Only(_))));
}

#[test]
fn plurals_are_guessed_as_upstream_does() {
    for (group, kind, expected) in [
        ("", "Pod", "pods"),
        ("", "Endpoints", "endpoints"),
        ("networking.k8s.io", "NetworkPolicy", "networkpolicies.networking.k8s.io"),
        ("networking.k8s.io", "Ingress", "ingresses.networking.k8s.io"),
        ("apps", "Deployment", "deployments.apps"),
        ("example.com", "Gateway", "gatewaies.example.com"),
    ] {
        assert_eq!(resource_name(group, kind), expected);
    }
}

#[test]
fn a_source_tells_what_it_holds_by_its_last_part() {
    for (source, expected_kind) in [
        ("secrets.json", Some(("v1", "Secret"))),
        ("dump/a/pods.json.gz", Some(("v1", "Pod"))),
        ("C:\\dump\\nodes.yaml", Some(("v1", "Node"))),
        ("https://h/api/v1/namespaces/a/secrets?limit=500", Some(("v1", "Secret"))),
        ("roles.rbac.authorization.k8s.io.json", Some(("rbac.authorization.k8s.io/v1", "Role"))),
        ("dump.json", None),
        ("secrets/dump.json", None),
        ("", None),
    ] {
        assert_eq!(expected(source), expected_kind, "{source}");
    }
}

#[test]
fn counts_add_up_whatever_the_order() {
    let mut kinds = Kinds::default();
    for kind in ["Pod", "Pod", "Secret", "Pod", "Secret"] {
        kinds.of("v1", kind).count += 1;
    }
    let counts: Vec<_> = kinds.counts().into_iter().map(|((_, kind), count)| (kind, count)).collect();
    assert_eq!(counts, [("Pod".to_owned(), 3), ("Secret".to_owned(), 2)]);
    assert_eq!(kinds.all().filter(|met| met.count > 0).count(), 2);
}
