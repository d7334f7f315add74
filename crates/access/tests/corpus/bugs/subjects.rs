//! Whom a binding names.

use crate::cluster::{Cluster, account, binding, role, secret};
use bailey_access::{SubjectRef, Subjects, answer::Severity};

/// 3
#[test]
fn a_binding_of_an_implicit_group_gives_to_each_account_and_is_a_finding_of_the_group() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        account("a/x"),
        account("b/y"),
        binding("open", "ClusterRole cluster-admin", &["group:system:serviceaccounts"]),
    ]);
    for subject in ["sa:a/x", "sa:b/y", "group:system:serviceaccounts"] {
        assert!(cluster.reads(subject, "a/s"), "{subject}");
    }
    let findings = cluster.findings();
    let worst: Vec<_> = findings.iter().filter(|finding| finding.severity == Severity::Critical).collect();
    assert_eq!(worst.len(), 1, "{worst:#?}");
    assert_eq!((worst[0].subject.as_str(), worst[0].secret_count), ("group:system:serviceaccounts", 1));
}

/// 3
#[test]
fn a_binding_of_an_implicit_group_is_one_finding() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        account("a/x"),
        account("b/y"),
        binding("open", "ClusterRole cluster-admin", &["group:system:serviceaccounts"]),
    ]);
    let findings = cluster.findings();
    let about: Vec<_> = findings.iter().map(|finding| (&finding.subject, &finding.rule)).collect();
    assert_eq!(about.len(), 1, "{about:#?}");
}

/// 3, the other way
#[test]
fn a_binding_of_the_accounts_of_one_namespace_gives_to_no_others() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        account("a/x"),
        account("b/y"),
        role("a/r", &["get secrets"]),
        binding("a/r", "Role r", &["group:system:serviceaccounts:b"]),
    ]);
    assert!(cluster.reads("sa:b/y", "a/s"));
    assert!(!cluster.reads("sa:a/x", "a/s"));
}

/// 4
#[test]
fn no_selection_of_subjects_hides_an_implicit_group() {
    const GROUP: &str = "group:system:authenticated";
    let cluster = Cluster::with_tenants(
        &[
            secret("org-acme/s"),
            account("org-acme/x"),
            binding("open", "ClusterRole cluster-admin", &["group:system:authenticated"]),
        ],
        "customers: {acme: {namespaces: [org-acme]}}\nplatform: {rest: true}",
    );
    assert!(cluster.readers("org-acme/s").contains(GROUP), "{:?}", cluster.readers("org-acme/s"));
    for which in [Subjects::All, Subjects::Foreign] {
        let audit = cluster.access.audit(which);
        assert!(audit.secrets[0].subjects.iter().any(|entry| entry.subject == GROUP), "{which:?}");
    }
    assert!(cluster.findings().iter().any(|finding| finding.subject == GROUP));
}

/// 5: seen on a real API server, a group alone is not impersonated, since somebody must be in it.
#[test]
fn whoever_impersonates_masters_with_any_user_has_full_control() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        role("group", &["impersonate groups named system:masters"]),
        role("user", &["impersonate users named nobody"]),
        binding("group", "ClusterRole group", &["user:both", "user:half"]),
        binding("user", "ClusterRole user", &["user:both"]),
    ]);
    assert!(cluster.reads("user:both", "a/s"));
    let reach = cluster.access.reach(&"user:both".parse().unwrap()).unwrap();
    assert!(reach.full_control, "{reach:#?}");
    assert!(!cluster.reads("user:half", "a/s"));
}

/// 6
#[test]
fn whoever_impersonates_accounts_of_a_namespace_is_each_of_them_and_no_other() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        secret("b/s"),
        account("a/x"),
        account("a/y"),
        account("b/z"),
        role("a/x", &["get secrets"]),
        binding("a/x", "Role x", &["sa:a/x"]),
        role("b/z", &["get secrets"]),
        binding("b/z", "Role z", &["sa:b/z"]),
        role("a/impersonate", &["impersonate serviceaccounts"]),
        binding("a/impersonate", "Role impersonate", &["user:ann"]),
    ]);
    let reach = cluster.access.reach(&"user:ann".parse().unwrap()).unwrap();
    let identities: Vec<_> = reach.identities.iter().map(|identity| identity.what.as_str()).collect();
    assert!(identities.contains(&"sa:a/x") && identities.contains(&"sa:a/y"), "{identities:?}");
    assert!(!identities.contains(&"sa:b/z"), "{identities:?}");
    assert!(cluster.reads("user:ann", "a/s") && !cluster.reads("user:ann", "b/s"));
}

/// 10
#[test]
fn a_group_in_a_binding_does_not_end_the_list_of_subjects() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        account("a/x"),
        account("a/y"),
        role("a/r", &["get secrets"]),
        binding("a/r", "Role r", &["group:dev", "sa:a/x", "user:ann"]),
    ]);
    for subject in ["group:dev", "sa:a/x", "user:ann"] {
        assert!(cluster.reads(subject, "a/s"), "{subject}");
    }
    assert!(!cluster.reads("sa:a/y", "a/s"));
}

/// 11
#[test]
fn users_and_groups_are_answered_independently() {
    let of = |subjects: &[&str]| {
        let objects = [secret("a/s"), role("a/r", &["get secrets"]), binding("a/r", "Role r", subjects)];
        Cluster::new(&objects).readers("a/s").into_iter().collect::<Vec<_>>()
    };
    assert_eq!(of(&["user:ann", "group:dev"]), ["group:dev", "user:ann"]);
    assert_eq!(of(&["user:ann"]), ["user:ann"]);
    assert_eq!(of(&["group:dev"]), ["group:dev"]);
}

/// 19
#[test]
fn a_cluster_role_through_a_role_binding_is_listed_there_and_masters_everywhere() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        secret("b/s"),
        role("r", &["get secrets"]),
        binding("a/r", "ClusterRole r", &["user:ann"]),
    ]);
    assert!(cluster.reads("user:ann", "a/s") && !cluster.reads("user:ann", "b/s"));
    for secret in ["a/s", "b/s"] {
        assert!(cluster.reads("group:system:masters", secret), "{secret}");
    }
}

/// 26
#[test]
fn subjects_and_subresources_are_said_and_never_guessed() {
    for (text, shown) in [
        ("user:users", "user:users"),
        ("group:groups", "group:groups"),
        ("sa:a/pods", "sa:a/pods"),
        ("user:system:serviceaccount:a:x", "sa:a/x"),
        ("wc1:group:dev", "wc1:group:dev"),
    ] {
        assert_eq!(text.parse::<SubjectRef>().unwrap().to_string(), shown);
    }
    for text in ["groups", "users/ann", "ann", "sa:x", "group:"] {
        let error = text.parse::<SubjectRef>().unwrap_err().to_string();
        assert!(error.contains("write sa:NAMESPACE/NAME, user:NAME, group:NAME"), "{error}");
    }
    // Kinds of others that are called like those of identity, and a subresource in the place of a name.
    let cluster = Cluster::new(&[
        secret("a/s"),
        account("a/x"),
        crate::cluster::pod("a/p", "x", &["s"]),
        role("own", &["impersonate users,groups in iam.example", "create pods named exec"]),
        role("exec", &["create pods/exec"]),
        binding("own", "ClusterRole own", &["user:own"]),
        binding("a/exec", "ClusterRole exec", &["user:exec"]),
    ]);
    assert!(!cluster.reads("user:own", "a/s"));
    assert!(cluster.reads("user:exec", "a/s"));
}

#[test]
fn who_is_not_logged_in_is_a_subject_too() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        account("b/y"),
        role("a/r", &["get secrets"]),
        binding("a/r", "Role r", &["user:system:anonymous", "group:system:unauthenticated"]),
    ]);
    assert!(cluster.reads("user:system:anonymous", "a/s"));
    assert!(cluster.reads("group:system:unauthenticated", "a/s"));
    assert!(!cluster.reads("sa:b/y", "a/s"), "an account is logged in");
}

#[test]
fn an_account_without_a_namespace_is_one_of_the_bindings_namespace() {
    let subject = "subjects: [{kind: ServiceAccount, name: x}]";
    let binding = format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{namespace: a, name: r}}, roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}}, {subject}}}"
    );
    let cluster = Cluster::new(&[
        secret("a/s"),
        account("a/x"),
        account("default/x"),
        role("a/r", &["get secrets"]),
        binding,
    ]);
    assert!(cluster.reads("sa:a/x", "a/s"));
    assert!(!cluster.reads("sa:default/x", "a/s"));
}
