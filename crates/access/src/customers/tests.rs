//! Owners by name, the tenants file, objects, presets, suggestions.

mod file;
mod presets;

use super::{Customer, Customers, Owner, Platform, source_name};
use crate::{SubjectKind, deputies::tests::support::snapshot};

fn acme() -> Owner {
    Owner::Customer("acme".to_owned())
}

fn beta() -> Owner {
    Owner::Customer("beta".to_owned())
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn two() -> Customers {
    let acme = Customer {
        namespaces: list(&["org-acme", "both"]),
        namespace_prefix: Some("acme-".to_owned()),
        groups: list(&["acme:admins"]),
        users: list(&["jane@acme.example", "system:serviceaccount:ci:acme"]),
        sources: list(&["https://git.acme.example", "https://github.com/acme"]),
        clusters: list(&["acme-prod"]),
    };
    let beta = Customer {
        namespaces: list(&["org-beta", "both", "acme-shared"]),
        namespace_prefix: Some("acme-beta-".to_owned()),
        ..Customer::default()
    };
    Customers {
        customers: [("acme".to_owned(), acme), ("beta".to_owned(), beta)].into(),
        platform: Platform {
            namespaces: list(&["monitoring"]),
            groups: list(&["admins"]),
            users: list(&["root@platform.example", "system:serviceaccount:org-acme:agent"]),
            sources: list(&["https://github.com/acme/platform"]),
            rest: false,
        },
        source: "test".to_owned(),
    }
}

#[test]
fn namespaces_are_exact_before_prefixes_and_the_longest_prefix_decides() {
    let customers = two();
    for (name, owner) in [
        ("org-acme", acme()),
        ("org-acme2", Owner::Unknown),
        ("acme-apps", acme()),
        ("acme-beta-apps", beta()),
        ("acme-shared", beta()),
        ("both", Owner::Unknown),
        ("monitoring", Owner::Platform),
        ("kube-system", Owner::Platform),
        ("bailey-system", Owner::Platform),
        ("default", Owner::Unknown),
    ] {
        assert_eq!(customers.owner_of_namespace(name), owner, "{name}");
    }
}

#[test]
fn the_rest_is_the_platforms_only_where_that_is_said() {
    let mut customers = two();
    customers.platform.rest = true;
    assert_eq!(customers.owner_of_namespace("default"), Owner::Platform);
    assert_eq!(customers.owner_of_namespace("both"), Owner::Unknown, "two owners are not the rest");
    let group = customers.owner_of_subject(SubjectKind::Group, "", "somebody");
    assert_eq!(group, Owner::Unknown, "the rest is about namespaces");
    assert_eq!(customers.owner_of_source("https://example.org/x"), Owner::Unknown);
    assert_eq!(customers.owner_of_cluster("mc"), Owner::Unknown);
}

#[test]
fn subjects_are_exact_and_those_of_kubernetes_are_the_platforms() {
    let customers = two();
    use SubjectKind::{Group, ServiceAccount, User};
    for (kind, namespace, name, owner) in [
        (User, "", "jane@acme.example", acme()),
        (User, "", "jane@acme.example.org", Owner::Unknown),
        (User, "", "root@platform.example", Owner::Platform),
        (User, "", "system:kube-controller-manager", Owner::Platform),
        (User, "", "system:node:worker-1", Owner::Platform),
        (User, "", "system:anonymous", Owner::Unknown),
        (User, "", "system:serviceaccount:org-beta:x", beta()),
        (User, "", "acme:admins", Owner::Unknown),
        (Group, "", "acme:admins", acme()),
        (Group, "", "acme", Owner::Unknown),
        (Group, "", "admins", Owner::Platform),
        (Group, "", "system:masters", Owner::Platform),
        (Group, "", "system:nodes", Owner::Platform),
        (Group, "", "kubeadm:cluster-admins", Owner::Platform),
        (Group, "", "system:authenticated", Owner::Unknown),
        (Group, "", "system:serviceaccounts", Owner::Unknown),
        (Group, "", "system:serviceaccounts:org-beta", beta()),
        (Group, "", "system:serviceaccounts:kube-system", Owner::Platform),
        (ServiceAccount, "org-acme", "automation", acme()),
        (ServiceAccount, "org-acme", "agent", Owner::Platform),
        (ServiceAccount, "ci", "acme", acme()),
        (ServiceAccount, "ci", "other", Owner::Unknown),
        (ServiceAccount, "kube-system", "x", Owner::Platform),
    ] {
        assert_eq!(customers.owner_of_subject(kind, namespace, name), owner, "{kind:?} {namespace}/{name}");
    }
    assert!(Customers::is_everyone("system:unauthenticated") && !Customers::is_everyone("system:masters"));
}

#[test]
fn sources_match_between_parts_of_a_path_only() {
    let customers = two();
    for (url, owner) in [
        ("https://git.acme.example/platform/apps.git", acme()),
        ("ssh://git@git.acme.example:22/apps", acme()),
        ("oci://git.acme.example/charts", acme()),
        ("https://git.acme.example.evil.example/apps", Owner::Unknown),
        ("https://github.com/acme/apps", acme()),
        ("git@github.com:acme/apps.git", acme()),
        ("https://github.com/acme-evil/apps", Owner::Unknown),
        ("https://github.com/acme/platform", Owner::Platform),
        ("https://github.com/acme/platform/sub", Owner::Platform),
        ("https://github.com/acme/platform2", acme()),
    ] {
        assert_eq!(customers.owner_of_source(url), owner, "{url}");
    }
}

#[test]
fn one_repository_has_one_name() {
    for url in [
        "https://github.com/acme/apps",
        "https://github.com/acme/apps.git",
        "https://user@GitHub.com/acme/apps/",
        "ssh://git@github.com/acme/apps.git",
        "ssh://git@ssh.github.com:443/acme/apps.git",
        "git@github.com:acme/apps.git",
        "https://github.com:443//acme/apps?ref=main",
    ] {
        assert_eq!(source_name(url), "github.com/acme/apps", "{url}");
    }
    assert_eq!(source_name("oci://ghcr.io/acme/apps"), "oci://ghcr.io/acme/apps");
    assert_eq!(source_name("https://git.example:8443/a"), "git.example:8443/a");
    assert_eq!(source_name(&source_name("oci://ghcr.io/acme/apps")), "oci://ghcr.io/acme/apps");
    assert_eq!(source_name(""), "");
}

#[test]
fn a_cluster_is_its_customers_by_name_or_by_the_namespace_of_its_object() {
    let customers = two();
    assert_eq!(customers.owner_of_cluster("acme-prod"), acme());
    assert_eq!(customers.owner_of_cluster("org-beta/prod"), beta());
    assert_eq!(customers.owner_of_cluster("monitoring/mc"), Owner::Platform);
    assert_eq!(customers.owner_of_cluster("other"), Owner::Unknown);
}

const OBJECTS: &str = "
apiVersion: bailey.dev/v1alpha1
kind: Tenant
metadata: {name: acme}
spec:
  namespaces: [org-acme]
  namespacePrefix: acme-
  subjects:
    installers: {groups: ['acme:admins'], serviceAccounts: [ci/acme]}
    viewers: {users: [joe@acme.example]}
status: {namespaces: [org-acme, acme-apps]}
---
apiVersion: bailey.dev/v1alpha1
kind: Installation
metadata: {name: installation}
spec:
  managementCluster: {name: mc}
  platform: {namespaces: [monitoring], groups: [admins], users: [root], serviceAccounts: [org-acme/agent]}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: prod, namespace: org-acme}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: mc, namespace: monitoring}
";

#[test]
fn tenants_and_the_installation_say_who_is_who() {
    let snapshot = snapshot(OBJECTS);
    let mut customers = Customers::from_objects(&snapshot).expect("a Tenant");
    assert_eq!(customers.source, "Tenant objects");
    for (kind, namespace, name, owner) in [
        (SubjectKind::Group, "", "acme:admins", acme()),
        (SubjectKind::User, "", "joe@acme.example", acme()),
        (SubjectKind::ServiceAccount, "ci", "acme", acme()),
        (SubjectKind::ServiceAccount, "acme-other", "x", acme()),
        (SubjectKind::ServiceAccount, "org-acme", "agent", Owner::Platform),
        (SubjectKind::Group, "", "admins", Owner::Platform),
        (SubjectKind::User, "", "root", Owner::Platform),
    ] {
        assert_eq!(customers.owner_of_subject(kind, namespace, name), owner, "{kind:?} {namespace}/{name}");
    }
    customers.add_clusters(&snapshot);
    assert_eq!(customers.owner_of_cluster("prod"), acme());
    assert_eq!(customers.owner_of_cluster("mc"), Owner::Unknown);
}

#[test]
fn without_tenants_there_is_nothing_to_go_by() {
    assert_eq!(
        Customers::from_objects(&snapshot("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")),
        None
    );
}

const HELD: &str = "
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: mystery}
type: Opaque
---
apiVersion: v1
kind: Namespace
metadata: {name: empty}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: org-acme}
type: Opaque
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: org-acme}
roleRef: {kind: ClusterRole, name: view}
subjects: [{kind: Group, name: 'who:knows'}, {kind: Group, name: 'acme:admins'}, {kind: User, name: someone@else.example}, {kind: Group, name: 'system:authenticated'}]
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: a, namespace: org-acme}
spec: {url: 'https://git.nobody.example/x.git'}
";

#[test]
fn what_has_no_owner_is_named() {
    let snapshot = snapshot(HELD);
    let unowned = two().unowned(&snapshot);
    assert_eq!(unowned.namespaces, [("mystery".to_owned(), 1)].into());
    assert_eq!(unowned.groups, ["who:knows".to_owned()].into());
    assert_eq!(unowned.users, ["someone@else.example".to_owned()].into());
    assert_eq!(unowned.sources, ["git.nobody.example/x".to_owned()].into());
    assert_eq!(two().hints(&snapshot).len(), 4);
}

#[test]
fn a_suggestion_can_be_read_back_and_says_the_same() {
    let snapshot = snapshot(HELD);
    let mut customers = two();
    customers.customers.get_mut("beta").expect("beta").namespaces.retain(|name| name != "both");
    let text = customers.suggest(&snapshot);
    for wanted in [
        "#   namespaces:\n#   - mystery  # 1 Secrets\n",
        "#   - \"who:knows\"\n",
        "#   - git.nobody.example/x\n",
    ] {
        assert!(
            text.contains(wanted)
                || text.contains(&wanted.replace("git.nobody.example/x", "\"git.nobody.example/x\"")),
            "{text}"
        );
    }
    let again = Customers::from_file(&text, "test").expect("a tenants file").customers;
    assert_eq!(again, customers);
}

#[test]
fn with_nothing_known_a_suggestion_is_a_file_to_start_from() {
    let text = Customers::default().suggest(&snapshot(HELD));
    let read = Customers::from_file(&text, "new").expect("a tenants file");
    assert!(read.customers.customers.is_empty() && read.hints.is_empty(), "{text}");
    assert!(text.contains("mystery") && text.contains("org-acme"), "{text}");
}
