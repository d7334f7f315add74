//! Which rule a binding gives, and what the rule covers.

use crate::cluster::{Cluster, account, binding, load_into, role, secret};
use bailey_access::{Access, Check, ClusterAuthorizer, Customers, Requester, Snapshot, rbac::Rbac};

/// 1
#[test]
fn a_role_of_the_same_name_in_another_namespace_is_another_role() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        secret("b/s"),
        role("a/r", &["get configmaps"]),
        role("b/r", &["get secrets"]),
        binding("a/r", "Role r", &["user:ann"]),
        binding("b/r", "Role r", &["user:bob"]),
    ]);
    assert!(!cluster.reads("user:ann", "a/s") && !cluster.reads("user:ann", "b/s"));
    assert!(cluster.reads("user:bob", "b/s") && !cluster.reads("user:bob", "a/s"));
}

/// 2
#[test]
fn accounts_of_the_same_name_in_two_namespaces_are_two() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        secret("b/s"),
        account("a/default"),
        account("b/default"),
        role("a/r", &["get secrets"]),
        role("b/r", &["get pods"]),
        binding("a/r", "Role r", &["sa:a/default"]),
        binding("b/r", "Role r", &["sa:b/default"]),
    ]);
    assert!(cluster.reads("sa:a/default", "a/s") && !cluster.reads("sa:a/default", "b/s"));
    assert!(!cluster.reads("sa:b/default", "a/s") && !cluster.reads("sa:b/default", "b/s"));
}

/// 12
#[test]
fn everything_in_one_group_is_nothing_in_another() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        role("metal", &["* * in metal3.io"]),
        role("other", &["get,list,watch,patch secrets in secrets.example"]),
        role("core", &["get *"]),
        binding("metal", "ClusterRole metal", &["user:metal"]),
        binding("other", "ClusterRole other", &["user:other"]),
        binding("core", "ClusterRole core", &["user:core"]),
    ]);
    assert!(!cluster.reads("user:metal", "a/s"));
    assert!(!cluster.reads("user:other", "a/s"));
    assert!(cluster.reads("user:core", "a/s"));
}

/// 13
#[test]
fn a_deployment_of_its_own_group_mounts_any_secret_and_runs_as_any_account() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        secret("b/s"),
        account("a/strong"),
        role("b/r", &["get secrets"]),
        binding("b/r", "Role r", &["sa:a/strong"]),
        role("a/apps", &["create deployments in apps"]),
        binding("a/apps", "Role apps", &["user:ann"]),
        role("a/core", &["create deployments"]),
        binding("a/core", "Role core", &["user:bob"]),
    ]);
    assert_eq!(cluster.edges("user:ann", "a/s"), ["bound", "create-workload", "mount-any-secret"]);
    let to_b = cluster.edges("user:ann", "b/s");
    assert!(to_b.contains(&"run-as-account".to_owned()), "{to_b:?}");
    // There are no deployments in the core group.
    assert!(!cluster.reads("user:bob", "a/s") && !cluster.reads("user:bob", "b/s"));
}

/// 14
#[test]
fn a_rule_with_a_name_reaches_exactly_that_secret() {
    let cluster = Cluster::new(&[
        secret("a/ca-key"),
        secret("a/other"),
        role("a/r", &["get secrets named ca-key"]),
        binding("a/r", "Role r", &["user:ann"]),
    ]);
    assert!(cluster.reads("user:ann", "a/ca-key"));
    assert!(!cluster.reads("user:ann", "a/other"));
}

/// 16
#[test]
fn a_rule_with_a_name_does_not_silence_one_without() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        secret("a/t"),
        role("a/both", &["get secrets named nothing", "list secrets"]),
        role("a/one", &["get secrets named nothing", "list configmaps"]),
        binding("a/both", "Role both", &["user:ann"]),
        binding("a/one", "Role one", &["user:bob"]),
    ]);
    assert!(cluster.reads("user:ann", "a/s") && cluster.reads("user:ann", "a/t"));
    assert!(!cluster.reads("user:bob", "a/s") && !cluster.reads("user:bob", "a/t"));
}

/// 17
#[test]
fn names_are_compared_and_are_no_patterns() {
    let cluster = Cluster::new(&[
        secret("a/a.b"),
        secret("a/axb"),
        secret("namespaces/s"),
        role("a/dot", &["get secrets named a.b"]),
        role("a/star", &["get,list secrets named *"]),
        role("a/regex", &["get,list secrets named .*"]),
        binding("a/dot", "Role dot", &["user:dot"]),
        binding("a/star", "Role star", &["user:star"]),
        binding("a/regex", "Role regex", &["user:regex"]),
    ]);
    assert!(cluster.reads("user:dot", "a/a.b") && !cluster.reads("user:dot", "a/axb"));
    for nobody in ["user:star", "user:regex"] {
        assert!(!cluster.reads(nobody, "a/a.b") && !cluster.reads(nobody, "a/axb"), "{nobody}");
    }
    assert!(!cluster.reads("user:dot", "namespaces/s"));
}

fn allows(snapshot: &mut Snapshot, user: &str, check: &Check) -> bool {
    let facts = snapshot.clusters[0].clone();
    let rbac = Rbac::new(&facts, &mut snapshot.symbols);
    let who = Requester { user: user.to_owned(), groups: Vec::new() };
    bailey_access::Authorizer::allows(&ClusterAuthorizer::new(&facts, &snapshot.symbols, &rbac), &who, check)
}

/// 18
#[test]
fn a_star_before_a_subresource_and_behind_a_path_matches() {
    let mut snapshot = Snapshot::default();
    let objects = [
        role("r", &["patch */scale", "{verbs: [get], nonResourceURLs: ['/api/*']}"]),
        binding("r", "ClusterRole r", &["user:ann"]),
    ];
    load_into(&mut snapshot, "mc", &objects);
    let scale = |group: &str, resource: &str, subresource: &str| Check {
        verb: "patch".to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: "a".to_owned(),
        ..Check::default()
    };
    let path = |path: &str| Check { verb: "get".to_owned(), path: Some(path.to_owned()), ..Check::default() };
    for (check, allowed) in [
        (scale("", "replicationcontrollers", "scale"), true),
        (scale("", "replicationcontrollers", "status"), false),
        (scale("", "replicationcontrollers", ""), false),
        (scale("apps", "deployments", "scale"), false),
        (path("/api/v1"), true),
        (path("/api/"), true),
        (path("/apis"), false),
        (path("/metrics"), false),
    ] {
        assert_eq!(allows(&mut snapshot, "ann", &check), allowed, "{check:?}");
    }
}

/// 18, as an edge
#[test]
fn a_star_before_token_makes_tokens_and_a_star_behind_does_not() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        account("a/strong"),
        role("a/r", &["get secrets"]),
        binding("a/r", "Role r", &["sa:a/strong"]),
        role("a/any", &["create */token"]),
        role("a/none", &["create serviceaccounts/*"]),
        binding("a/any", "Role any", &["user:ann"]),
        binding("a/none", "Role none", &["user:bob"]),
    ]);
    assert!(cluster.reads("user:ann", "a/s"));
    assert!(!cluster.reads("user:bob", "a/s"));
}

/// 22
#[test]
fn equal_names_in_two_clusters_stay_apart() {
    let mut snapshot = Snapshot::default();
    let roles =
        |rule| [secret("a/s"), account("a/x"), role("a/r", &[rule]), binding("a/r", "Role r", &["sa:a/x"])];
    load_into(&mut snapshot, "mc", &roles("get configmaps"));
    load_into(&mut snapshot, "wc1", &roles("get secrets"));
    assert_eq!(snapshot.gaps, []);
    let cluster = Cluster { access: Access::new(snapshot, Customers::default()) };
    assert!(!cluster.reads("sa:a/x", "mc:a/s"));
    assert!(!cluster.reads("mc:sa:a/x", "wc1:a/s"));
    assert!(!cluster.reads("wc1:sa:a/x", "mc:a/s"));
    assert!(cluster.reads("wc1:sa:a/x", "wc1:a/s"));
}

/// 23
#[test]
fn equal_names_of_other_kinds_stay_apart() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        secret("b/s"),
        account("a/x"),
        role("a/r", &["get configmaps"]),
        role("r", &["get secrets"]),
        binding("a/role", "Role r", &["user:x"]),
        binding("a/cluster-role", "ClusterRole r", &["group:x"]),
    ]);
    assert!(!cluster.reads("user:x", "a/s"));
    assert!(cluster.reads("group:x", "a/s"));
    assert!(!cluster.reads("group:x", "b/s"));
    assert!(!cluster.reads("sa:a/x", "a/s"));
}
