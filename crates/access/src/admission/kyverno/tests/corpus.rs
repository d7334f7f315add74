//! Policies of real installations, which are no part of the repository: see [`bailey_testkit::corpora`].

use serde_json::{Value, json};

use super::*;
use crate::{PodSecurityLevel, admission::Admission};

/// The cluster of a file, if there is one.
fn cluster(file: &str) -> Option<Admission> {
    let folder = bailey_testkit::corpora("policies of real installations")?;
    let text = std::fs::read_to_string(folder.join("mc").join(file)).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let items =
        documents.iter().flat_map(|document| document["items"].as_array().into_iter().flatten().cloned());
    let known = ["Namespace", "Deployment", "ClusterPolicy", "PolicyException"];
    Some(
        Loaded::new(items.filter(|item| known.contains(&item["kind"].as_str().unwrap_or_default())))
            .admission(),
    )
}

fn flux(kind: &str, spec: &Value, essential: &[&str]) -> Sample {
    let (group, version, plural) = match kind {
        "HelmRelease" => ("helm.toolkit.fluxcd.io", "v2", "helmreleases"),
        "Kustomization" => ("kustomize.toolkit.fluxcd.io", "v1", "kustomizations"),
        _ => ("fluxcd.controlplane.io", "v1", "resourcesets"),
    };
    let object =
        json!({"apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": {}, "spec": spec});
    sample("CREATE", &format!("{group}/{plural}"), &object, essential)
}

/// How a release names its source, so that no rule about sources speaks.
fn with_source(mut spec: Value) -> Value {
    spec["chartRef"] = json!({"kind": "OCIRepository", "name": "x"});
    spec["sourceRef"] = json!({"kind": "GitRepository", "name": "x"});
    spec
}

#[test]
fn flux_tenancy_of_a_shared_installation_is_decided() {
    for file in ["mc-two-tenants-known.yaml", "mc-acme-only.yaml"] {
        let Some(admission) = cluster(file) else { return };
        let account = ["/spec/serviceAccountName", "/spec/kubeConfig"];
        let target = ["/spec/targetNamespace", "/spec/kubeConfig"];
        let source = ["/spec/chartRef/namespace", "/spec/chart"];
        for (sample, namespace, expected) in [
            // Without an account or a kubeconfig a release runs as the controller.
            (flux("HelmRelease", &with_source(json!({})), &account), "org-acme", "blocked"),
            (flux("Kustomization", &with_source(json!({})), &account), "org-acme", "blocked"),
            (flux("ResourceSet", &json!({}), &account[..1]), "org-acme", "blocked"),
            (
                flux("HelmRelease", &with_source(json!({"serviceAccountName": "a"})), &account),
                "org-acme",
                "passes",
            ),
            (
                flux(
                    "HelmRelease",
                    &with_source(json!({"kubeConfig": {"secretRef": {"name": "k"}}})),
                    &account,
                ),
                "org-acme",
                "passes",
            ),
            // The namespaces of the platform are left out.
            (flux("HelmRelease", &with_source(json!({})), &account), "giantswarm", "passes"),
            (flux("Kustomization", &with_source(json!({})), &account), "flux-giantswarm", "passes"),
            // Into another namespace: only those of organisations.
            (
                flux(
                    "HelmRelease",
                    &with_source(json!({"serviceAccountName": "a", "targetNamespace": "kube-system"})),
                    &target,
                ),
                "org-acme",
                "blocked",
            ),
            (
                flux(
                    "HelmRelease",
                    &with_source(json!({"serviceAccountName": "a", "targetNamespace": "org-giantswarm"})),
                    &target,
                ),
                "org-acme",
                "blocked",
            ),
            (
                flux(
                    "HelmRelease",
                    &with_source(json!({"serviceAccountName": "a", "targetNamespace": "org-beta"})),
                    &target,
                ),
                "org-acme",
                "passes",
            ),
            // From a source of somebody else.
            (
                flux(
                    "HelmRelease",
                    &json!({"serviceAccountName": "a", "chartRef": {"namespace": "org-beta"}}),
                    &source,
                ),
                "org-acme",
                "blocked",
            ),
            (
                flux(
                    "HelmRelease",
                    &json!({"serviceAccountName": "a", "chartRef": {"namespace": "default"}}),
                    &source,
                ),
                "org-acme",
                "passes",
            ),
        ] {
            let decision = admission.decide(&sample, &somebody(), Some(namespace), "x", &All(false));
            let shown = shown(&decision);
            assert!(shown.starts_with(expected), "{file} {namespace} {}: {shown}", sample.object);
        }
    }
}

#[test]
fn deletions_are_decided_by_operation_and_label() {
    for file in ["mc-two-tenants-known.yaml", "mc-acme-only.yaml"] {
        let Some(admission) = cluster(file) else { return };
        let label = json!({"giantswarm.io/prevent-deletion": "true"});
        let secret =
            |labels: &Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"labels": labels}});
        for (operation, object, expected) in [
            ("DELETE", secret(&label), "blocked"),
            ("DELETE", secret(&json!({"x": "y"})), "passes"),
            ("CREATE", secret(&label), "passes"),
        ] {
            let sample = sample(operation, "/secrets", &object, &[]);
            let decision = admission.decide(&sample, &somebody(), Some("org-acme"), "x", &All(false));
            assert!(shown(&decision).starts_with(expected), "{file} {operation}: {}", shown(&decision));
        }
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {}});
        for (namespace, expected) in [("org-giantswarm", "blocked"), ("org-acme", "passes")] {
            let sample = sample("CREATE", "cluster.x-k8s.io/clusters", &cluster, &[]);
            let decision = admission.decide(&sample, &somebody(), Some(namespace), "x", &All(false));
            assert!(shown(&decision).starts_with(expected), "{file} {namespace}: {}", shown(&decision));
        }
    }
}

#[test]
fn pods_that_take_over_a_node_are_decided_one_by_one() {
    for file in ["mc-two-tenants-known.yaml", "mc-acme-only.yaml"] {
        let Some(admission) = cluster(file) else { return };
        let drop = json!({"capabilities": {"drop": ["ALL"]}});
        let mut privileged = drop.clone();
        privileged["privileged"] = json!(true);
        let container = |context: &Value| json!([{"name": "c", "image": "i:1", "securityContext": context}]);
        for (spec, essential, expected) in [
            (json!({"containers": container(&drop)}), "/spec/x", "passes"),
            (
                json!({"containers": container(&privileged)}),
                "/spec/containers/0/securityContext/privileged",
                "blocked",
            ),
            (json!({"containers": container(&drop), "hostPID": true}), "/spec/hostPID", "blocked"),
            (
                json!({"containers": container(&drop), "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
                "/spec/volumes/0/hostPath",
                "blocked",
            ),
            // These policies look at `containers` alone.
            (
                json!({"containers": container(&drop), "initContainers": container(&privileged)}),
                "/spec/initContainers/0/securityContext/privileged",
                "passes",
            ),
        ] {
            let sample = sample("CREATE", "/pods", &pod(spec), &[essential]);
            let decision = admission.decide(&sample, &somebody(), Some("org-acme"), "x", &All(false));
            assert!(shown(&decision).starts_with(expected), "{file} {essential}: {}", shown(&decision));
        }
        let found = admission.pod_security("org-acme");
        assert_eq!(found.level, PodSecurityLevel::Privileged, "{}", found.by);
        assert!(found.by.contains("nothing refuses a container with SYS_ADMIN"), "{}", found.by);
        assert_eq!(admission.pod_security("monitoring").level, PodSecurityLevel::Privileged);
    }
}
