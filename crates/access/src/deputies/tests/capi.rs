//! Cluster API: Secrets, control planes, cloud identities.

use super::support::{edges, lines_of};

const CLUSTER: &str = "
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: prod, namespace: org-acme}
spec:
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: prod-cp}
";

fn secret(name: &str, kind: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: org-acme}}\ntype: {kind}\n"
    )
}

#[test]
fn kubeconfigs_and_keys_of_a_cluster_are_the_cluster() {
    for (name, edge, sure) in [
        ("prod-kubeconfig", "capi-kubeconfig", ""),
        ("prod-user-kubeconfig", "capi-kubeconfig", ""),
        ("prod-ca", "capi-ca", ""),
        ("prod-sa", "capi-ca", ""),
        ("prod-etcd", "capi-ca", " (assumed)"),
        ("prod-proxy", "capi-ca", " (assumed)"),
    ] {
        let text = format!("{CLUSTER}{}", secret(name, "Opaque"));
        let found = lines_of(&text, edge);
        let wanted = format!("{edge}: secret:org-acme/{name} -> cluster:org-acme/prod{sure}");
        assert!(found.contains(&wanted), "{wanted}\n{found:#?}");
    }
}

#[test]
fn the_type_says_it_without_a_cluster_object_too() {
    let text = secret("prod-kubeconfig", "cluster.x-k8s.io/secret");
    assert_eq!(
        lines_of(&text, "capi-kubeconfig"),
        ["capi-kubeconfig: secret:org-acme/prod-kubeconfig -> cluster:org-acme/prod"]
    );
}

#[test]
fn a_secret_that_only_ends_alike_is_nothing() {
    let text = secret("webhook-ca", "Opaque");
    assert!(lines_of(&text, "capi-ca").is_empty());
}

#[test]
fn the_kubeconfig_of_the_cluster_itself_is_everything() {
    let text = secret("here-kubeconfig", "cluster.x-k8s.io/secret");
    assert_eq!(
        lines_of(&text, "capi-kubeconfig"),
        ["capi-kubeconfig: secret:org-acme/here-kubeconfig -> everything:*"]
    );
    let named = format!(
        "{}---\napiVersion: bailey.dev/v1alpha1\nkind: Installation\nmetadata: {{name: installation}}\nspec: {{managementCluster: {{name: mc}}}}\n",
        secret("mc-kubeconfig", "cluster.x-k8s.io/secret")
    );
    assert_eq!(
        lines_of(&named, "capi-kubeconfig"),
        ["capi-kubeconfig: secret:org-acme/mc-kubeconfig -> everything:*"]
    );
}

#[test]
fn bootstrap_data_is_assumed() {
    let text = format!("{CLUSTER}{}", secret("prod-def00-x7k", "cluster.x-k8s.io/secret"));
    assert_eq!(
        lines_of(&text, "capi-bootstrap-data"),
        ["capi-bootstrap-data: secret:org-acme/prod-def00-x7k -> cluster:org-acme/prod (assumed)"]
    );
    let other = format!("{CLUSTER}{}", secret("prod-def00-values", "Opaque"));
    assert!(lines_of(&other, "capi-bootstrap-data").is_empty());
}

#[test]
fn who_changes_the_control_plane_object_holds_the_cluster() {
    assert_eq!(
        lines_of(CLUSTER, "capi-control-plane"),
        [
            "capi-control-plane: patch,update kubeadmcontrolplanes.controlplane.cluster.x-k8s.io/prod-cp -> cluster:org-acme/prod in org-acme"
        ]
    );
    let old = CLUSTER.replace(
        "apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane",
        "apiVersion: controlplane.cluster.x-k8s.io/v1alpha1, kind: KamajiControlPlane",
    );
    assert_eq!(
        lines_of(&old, "capi-control-plane"),
        [
            "capi-control-plane: patch,update kamajicontrolplanes.controlplane.cluster.x-k8s.io/prod-cp -> cluster:org-acme/prod (assumed) in org-acme"
        ]
    );
}

#[test]
fn machines_are_assumed_and_classes_reach_other_namespaces() {
    assert!(lines_of(CLUSTER, "capi-machine").iter().all(|line| line.ends_with("(assumed) in org-acme")));
    assert_eq!(lines_of(CLUSTER, "capi-machine").len(), 2);
    let classed = CLUSTER.replace("spec:", "spec:\n  topology: {classRef: {name: aws, namespace: classes}}");
    let found = lines_of(&classed, "capi-cluster-class");
    assert_eq!(
        found,
        [
            "capi-cluster-class: patch,update clusterclasses,clusterclasses/status.cluster.x-k8s.io/aws -> cluster:org-acme/prod in classes"
        ]
    );
}

fn identity(allowed: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: x, namespace: capa}}
spec: {{template: {{spec: {{serviceAccountName: capa, containers: [{{name: m, image: 'registry.example/cluster-api-aws-controller:v2'}}]}}}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: org-acme, labels: {{customer: acme}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: org-beta, labels: {{customer: beta}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterRoleIdentity
metadata: {{name: acme}}
spec: {{roleARN: 'arn:aws:iam::111111111111:role/capa'{allowed}}}
"
    )
}

#[test]
fn an_identity_is_for_the_namespaces_that_it_admits() {
    let place = |allowed: &str| {
        let found = lines_of(&identity(allowed), "capi-cloud-identity");
        let create = found.into_iter().find(|line| line.contains("create awsclusters."));
        create.map(|line| line.rsplit("role/capa").next().unwrap_or_default().to_owned())
    };
    assert_eq!(place(""), None, "nobody");
    assert_eq!(place(", allowedNamespaces: {}").as_deref(), Some(""), "everybody");
    assert_eq!(place(", allowedNamespaces: {list: [org-acme]}").as_deref(), Some(" in org-acme"));
    assert_eq!(
        place(", allowedNamespaces: {list: [org-acme], selector: {}}").as_deref(),
        Some(" in org-acme")
    );
    let selector = ", allowedNamespaces: {selector: {matchLabels: {customer: beta}}}";
    assert_eq!(place(selector).as_deref(), Some(" in org-beta"));
    let none = ", allowedNamespaces: {selector: {matchLabels: {customer: nobody}}}";
    assert_eq!(place(none), None);
}

#[test]
fn who_changes_identities_admits_themselves() {
    let found = lines_of(&identity(", allowedNamespaces: {list: [org-acme]}"), "capi-cloud-identity-write");
    assert!(
        found.iter().any(|line| line.contains("awsclusterroleidentities")
            && line.contains("/acme everywhere and create,patch,update awsclusters.")),
        "{found:#?}"
    );
}

#[test]
fn resource_sets_need_their_controller() {
    assert!(!edges(CLUSTER).contains("capi-resource-set"));
    let with = format!("{CLUSTER}---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: x, namespace: capi}}
spec: {{template: {{spec: {{serviceAccountName: capi, containers: [{{name: m, image: 'registry.example/cluster-api-controller:v1'}}]}}}}}}
");
    assert_eq!(
        lines_of(&with, "capi-resource-set"),
        [
            "capi-resource-set: create,patch,update clusterresourcesets.addons.cluster.x-k8s.io and create,patch,update configmaps -> cluster:org-acme/prod in org-acme"
        ]
    );
}

#[test]
fn hosted_control_planes_name_their_kubeconfig() {
    let text = "
apiVersion: kamaji.clastix.io/v1alpha1
kind: TenantControlPlane
metadata: {name: t1, namespace: org-acme}
status: {kubeconfig: {admin: {secretName: t1-admin}}}
";
    assert_eq!(
        lines_of(text, "kamaji-kubeconfig"),
        ["kamaji-kubeconfig: secret:org-acme/t1-admin -> cluster:org-acme/t1"]
    );
}
