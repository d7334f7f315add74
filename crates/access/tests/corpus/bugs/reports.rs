//! What findings are about, and what a selection leaves.

use crate::cluster::{Cluster, account, binding, role, secret};
use bailey_access::answer::Verdict;

const TENANTS: &str =
    "customers: {acme: {namespaces: [org-acme]}, beta: {namespaces: [org-beta]}}\nplatform: {rest: true}";

fn objects(bindings: &[String]) -> Vec<String> {
    let own =
        [secret("org-acme/s"), secret("org-beta/s"), account("org-acme/x"), role("reader", &["get secrets"])];
    own.iter().chain(bindings).cloned().collect()
}

/// 24
#[test]
fn a_finding_is_about_a_subject_and_a_way_and_not_about_a_role() {
    let none = Cluster::with_tenants(&objects(&[]), TENANTS);
    assert_eq!(none.findings(), [], "a role that nobody holds is no finding");

    let own = binding("org-acme/r", "ClusterRole reader", &["sa:org-acme/x"]);
    let inside = Cluster::with_tenants(&objects(std::slice::from_ref(&own)), TENANTS);
    assert_eq!(inside.findings(), [], "a role that is held at home is no finding");

    let abroad = binding("org-beta/r", "ClusterRole reader", &["sa:org-acme/x"]);
    let outside = Cluster::with_tenants(&objects(&[own, abroad]), TENANTS);
    let findings = outside.findings();
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let finding = &findings[0];
    assert_eq!((finding.subject.as_str(), finding.secret_count), ("sa:org-acme/x", 1));
    assert_eq!(finding.secrets, ["org-beta/*"]);
    let named: Vec<_> = finding.path.iter().map(|step| step.object.as_str()).collect();
    assert!(named.contains(&"RoleBinding org-beta/r"), "{named:?}");
    assert!(!named.contains(&"RoleBinding org-acme/r"), "{named:?}");
}

/// 24: whoever waives a finding by its id waives this way and no other.
#[test]
fn an_id_is_the_same_in_each_run_and_another_for_each_way() {
    let ids = |bindings: &[String]| {
        let cluster = Cluster::with_tenants(&objects(bindings), TENANTS);
        cluster.findings().into_iter().map(|finding| finding.id).collect::<Vec<_>>()
    };
    let r = binding("org-beta/r", "ClusterRole reader", &["sa:org-acme/x"]);
    let q = binding("org-beta/q", "ClusterRole reader", &["group:acme"]);
    let first = ids(std::slice::from_ref(&r));
    assert_eq!(first.len(), 1);
    assert_eq!(first, ids(std::slice::from_ref(&r)));
    // What stands beside it, and the order, change nothing.
    let beside = ids(&[q.clone(), account("org-beta/y"), r.clone()]);
    assert!(beside.contains(&first[0]), "{beside:?} {first:?}");
    assert!(!ids(&[q]).contains(&first[0]));
    let renamed = binding("org-beta/other", "ClusterRole reader", &["sa:org-acme/x"]);
    assert_ne!(ids(&[renamed]), first);
}

/// 25
#[test]
fn a_user_that_is_bound_in_one_namespace_is_found_there() {
    let cluster = Cluster::with_tenants(
        &objects(&[binding("org-beta/r", "ClusterRole reader", &["user:ann"])]),
        "customers: {acme: {namespaces: [org-acme], users: [ann]}, beta: {namespaces: [org-beta]}}\nplatform: {rest: true}",
    );
    assert!(cluster.reads("user:ann", "org-beta/s") && !cluster.reads("user:ann", "org-acme/s"));
    let findings = cluster.findings_of("user:ann");
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].secrets, ["org-beta/*"]);
}

#[test]
fn verdicts_say_whose_the_audience_is() {
    let everybody = [
        secret("platform/s"),
        binding("org-acme/r", "ClusterRole reader", &["sa:org-acme/x"]),
        binding("org-beta/r", "ClusterRole reader", &["sa:org-acme/x"]),
    ];
    let cluster = Cluster::with_tenants(&objects(&everybody), TENANTS);
    let verdicts: Vec<_> = cluster
        .access
        .audit(bailey_access::Subjects::None)
        .secrets
        .iter()
        .map(|secret| (secret.namespace.clone(), secret.verdict, secret.audience.clone()))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("org-acme".to_owned(), Verdict::ExactlyOne, vec!["acme".to_owned()]),
            ("org-beta".to_owned(), Verdict::Shared, vec!["acme".to_owned()]),
            ("platform".to_owned(), Verdict::PlatformOnly, Vec::new()),
        ]
    );
}

#[test]
fn a_secret_that_does_not_exist_is_not_counted() {
    let named = [
        role("org-beta/r", &["get secrets named s,nothing"]),
        binding("org-beta/r", "Role r", &["sa:org-acme/x"]),
    ];
    let findings = Cluster::with_tenants(&objects(&named), TENANTS).findings();
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].secret_count, 1, "{:?}", findings[0].secrets);
}
