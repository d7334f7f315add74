//! Rights to give rights.

use crate::cluster::{Cluster, account, binding, role, secret};
use bailey_access::answer::Severity;

const BIND: &str = "create rolebindings in rbac.authorization.k8s.io";

/// 7
#[test]
fn whoever_makes_bindings_in_a_namespace_gets_that_namespace_only() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        secret("b/s"),
        role("a/r", &[BIND, "bind clusterroles in rbac.authorization.k8s.io"]),
        binding("a/r", "Role r", &["user:ann"]),
    ]);
    assert!(cluster.reads("user:ann", "a/s") && !cluster.reads("user:ann", "b/s"));
    let reach = cluster.access.reach(&"user:ann".parse().unwrap()).unwrap();
    assert!(!reach.full_control);
}

/// 8: the delegation example of the Kubernetes documentation.
#[test]
fn a_role_grantor_is_admin_of_its_namespace_and_half_of_one_is_nothing() {
    let grantor =
        role("role-grantor", &[BIND, "bind clusterroles in rbac.authorization.k8s.io named admin,edit,view"]);
    let cluster = Cluster::new(&[
        secret("a/s"),
        secret("b/s"),
        grantor,
        role("half", &["bind clusterroles in rbac.authorization.k8s.io named admin"]),
        role("other-half", &[BIND]),
        binding("a/whole", "ClusterRole role-grantor", &["user:ann"]),
        binding("a/half", "ClusterRole half", &["user:half"]),
        binding("a/other-half", "ClusterRole other-half", &["user:other-half"]),
    ]);
    assert!(cluster.reads("user:ann", "a/s") && !cluster.reads("user:ann", "b/s"));
    assert!(!cluster.reads("user:half", "a/s"));
    assert!(!cluster.reads("user:other-half", "a/s"));
    let edges = cluster.edges("user:ann", "a/s");
    assert!(edges.iter().any(|edge| edge.contains("bind")), "{edges:?}");
}

/// 9
#[test]
fn bind_counts_on_roles_and_not_on_bindings() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        role("wrong", &["create,bind rolebindings in rbac.authorization.k8s.io"]),
        role("right", &[BIND, "bind clusterroles in rbac.authorization.k8s.io"]),
        binding("a/wrong", "ClusterRole wrong", &["user:wrong"]),
        binding("a/right", "ClusterRole right", &["user:right"]),
    ]);
    assert!(!cluster.reads("user:wrong", "a/s"));
    assert!(cluster.reads("user:right", "a/s"));
}

/// 15
#[test]
fn a_rule_with_a_name_is_judged_by_what_is_named() {
    let create = "create clusterrolebindings in rbac.authorization.k8s.io";
    let cluster = Cluster::new(&[
        secret("a/s"),
        role("admin-binder", &[create, "bind clusterroles in rbac.authorization.k8s.io named cluster-admin"]),
        role("view-binder", &[create, "bind clusterroles in rbac.authorization.k8s.io named view"]),
        role("a/reader", &["get configmaps named cm-x"]),
        binding("admin-binder", "ClusterRole admin-binder", &["sa:b/binder"]),
        binding("view-binder", "ClusterRole view-binder", &["sa:b/viewer"]),
        binding("a/reader", "Role reader", &["sa:b/reader"]),
        account("b/binder"),
        account("b/viewer"),
        account("b/reader"),
    ]);
    assert!(cluster.reads("sa:b/binder", "a/s"));
    assert!(!cluster.reads("sa:b/viewer", "a/s") && !cluster.reads("sa:b/reader", "a/s"));
    assert_eq!(cluster.findings_of("sa:b/viewer"), []);
    assert_eq!(cluster.findings_of("sa:b/reader"), []);

    // Of a customer it is the worst that there is.
    let tenants = "customers: {beta: {namespaces: [b]}}\nplatform: {rest: true}";
    let objects = [
        secret("a/s"),
        account("b/binder"),
        role("admin-binder", &[create, "bind clusterroles in rbac.authorization.k8s.io named cluster-admin"]),
        binding("admin-binder", "ClusterRole admin-binder", &["sa:b/binder"]),
    ];
    let cluster = Cluster::with_tenants(&objects, tenants);
    let worst: Vec<_> = cluster.findings_of("sa:b/binder").iter().map(|f| f.severity).collect();
    assert_eq!(worst[0], Severity::Critical);
}

/// The same way, taken one step further by what is only assumed, leads to a part of the same.
#[test]
fn what_is_assumed_beside_a_proven_wider_end_is_no_finding_of_its_own() {
    let create = "create clusterrolebindings in rbac.authorization.k8s.io";
    let bind = "bind clusterroles in rbac.authorization.k8s.io named cluster-admin";
    let cluster = Cluster::with_tenants(
        &[
            secret("a/s"),
            account("b/binder"),
            role("admin-binder", &[create, bind]),
            binding("admin-binder", "ClusterRole admin-binder", &["sa:b/binder"]),
        ],
        "customers: {beta: {namespaces: [b]}}\nplatform: {rest: true}",
    );
    let findings = cluster.findings_of("sa:b/binder");
    assert_eq!(findings.len(), 1, "{findings:#?}");
}

/// 21
#[test]
fn whoever_writes_and_reads_secrets_makes_itself_a_token() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        account("kube-system/strong"),
        role("a/r", &["get secrets"]),
        binding("a/r", "Role r", &["sa:kube-system/strong"]),
        role("both", &["create,get secrets"]),
        role("write", &["create,update secrets"]),
        binding("kube-system/both", "ClusterRole both", &["user:both"]),
        binding("kube-system/write", "ClusterRole write", &["user:write"]),
    ]);
    let edges = cluster.edges("user:both", "a/s");
    assert!(edges.contains(&"token-secret".to_owned()), "{edges:?}");
    assert!(!cluster.reads("user:write", "a/s"));
}

#[test]
fn an_aggregated_role_without_rules_in_the_manifest_holds_what_it_selects() {
    let aggregated = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, \
                      aggregationRule: {clusterRoleSelectors: [{matchLabels: {x: 'y'}}]}, rules: []}";
    let part = |name: &str, label: &str, resource: &str| {
        format!(
            "{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {{name: {name}, labels: {{x: '{label}'}}}}, rules: [{{verbs: [get], apiGroups: [''], resources: [{resource}]}}]}}"
        )
    };
    let of = |label| {
        let objects = [
            secret("a/s"),
            aggregated.to_owned(),
            part("part", label, "secrets"),
            part("other", "y", "configmaps"),
            binding("a/all", "ClusterRole all", &["user:ann"]),
        ];
        Cluster::new(&objects).reads("user:ann", "a/s")
    };
    assert!(of("y"));
    assert!(!of("n"));
}
