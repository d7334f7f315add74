//! Verbs and subresources that show values, one by one.

use crate::cluster::{Cluster, account, binding, load, namespace, pod, role, secret};

/// One user with one rule in namespace a, with a pod that mounts `s` and runs as an account that reads `t`.
fn with(rules: &[&str]) -> Cluster {
    Cluster::new(&[
        namespace("a"),
        secret("a/s"),
        secret("b/t"),
        account("a/x"),
        pod("a/p", "x", &["s"]),
        role("b/t", &["get secrets named t"]),
        binding("b/t", "Role t", &["sa:a/x"]),
        role("a/r", rules),
        binding("a/r", "Role r", &["user:ann"]),
    ])
}

/// 20: the cases that were missing elsewhere, and those that look like them and are none.
#[test]
fn each_way_to_a_value_is_known_and_each_look_alike_is_none() {
    const RBAC: &str = "in rbac.authorization.k8s.io";
    let escalate = format!("patch,escalate roles {RBAC} named r");
    let named = format!("patch,escalate roles {RBAC} named other");
    let cases: &[(&[&str], bool, bool)] = &[
        // Rules, and whether s of the namespace and t of the account are read.
        (&["get secrets"], true, false),
        (&["list secrets"], true, false),
        (&["watch secrets"], true, false),
        (&["patch secrets"], true, false),
        (&["delete secrets"], true, false),
        (&["deletecollection secrets"], true, false),
        (&["update secrets"], false, false),
        (&["create secrets"], false, false),
        (&["get secrets/status"], false, false),
        (&["create pods"], true, true),
        (&["get,list,watch pods"], false, false),
        (&["create pods/exec"], true, true),
        (&["create pods/attach"], true, true),
        (&["get pods/exec"], false, false),
        (&["patch pods/ephemeralcontainers"], true, true),
        (&["update pods"], true, true),
        (&["get pods/log"], false, false),
        (&["create pods/eviction"], false, false),
        (&["create serviceaccounts/token"], false, true),
        (&["create serviceaccounts/token named x"], false, true),
        (&["create serviceaccounts/token named y"], false, false),
        (&["create serviceaccounts"], false, false),
        (&["impersonate serviceaccounts"], false, true),
        (&["impersonate serviceaccounts named y"], false, false),
        (&[&escalate], true, true),
        (&[&named], false, false),
        (&["create jobs in batch"], true, true),
        (&["patch cronjobs in batch"], true, true),
        (&["create replicationcontrollers"], true, true),
        (&["create cronjobs"], false, false),
    ];
    let mut wrong = Vec::new();
    for (rules, s, t) in cases {
        let cluster = with(rules);
        let found = (cluster.reads("user:ann", "a/s"), cluster.reads("user:ann", "b/t"));
        if found != (*s, *t) {
            wrong.push(format!("{rules:?}: {found:?} instead of {:?}", (s, t)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// 20
#[test]
fn a_role_with_rules_null_is_a_role_that_grants_nothing() {
    let null = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: a, name: r}, rules: null}";
    let cluster = Cluster::new(&[
        secret("a/s"),
        null.to_owned(),
        binding("a/r", "Role r", &["user:ann"]),
        role("a/q", &["get secrets"]),
        binding("a/q", "Role q", &["user:bob"]),
    ]);
    assert!(!cluster.reads("user:ann", "a/s"));
    assert!(cluster.reads("user:bob", "a/s"));
}

/// 20
#[test]
fn a_rule_that_is_indented_wrongly_is_told_and_not_dropped_silently() {
    let wrong = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {namespace: a, name: r}\n\
                 rules:\n- verbs: get\n  apiGroups: ['']\n  resources: [secrets]\n";
    let objects = [secret("a/s"), wrong.to_owned(), role("a/q", &["get secrets"])];
    let snapshot = load(&objects);
    assert_eq!(snapshot.gaps.len(), 1, "{:?}", snapshot.gaps);
    let told = format!("{}: {}", snapshot.gaps[0].what, snapshot.gaps[0].why);
    assert!(told.starts_with("Role a/r in `objects.yaml`, line 9"), "{told}");
    assert_eq!(snapshot.clusters[0].roles.len(), 1, "the role after it is read");
}
