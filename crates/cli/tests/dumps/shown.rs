//! What a selection, a waiver and a name of a subject leave of an answer. The number before each test is its row in the
//! list of known faults of which the analyser's own tests are made, too.

use bailey_cli::Exit;
use serde_json::Value;

use crate::{Folder, bailey};

const TENANTS: &[u8] =
    b"customers: {acme: {namespaces: [org-acme], users: [ann], groups: [acme-dev]}, beta: {namespaces: [org-beta]}}\nplatform: {rest: true}\n";

const CLUSTER: &str = "
{apiVersion: v1, kind: Secret, type: Opaque, metadata: {namespace: org-beta, name: s}}
---
{apiVersion: v1, kind: Secret, type: Opaque, metadata: {namespace: org-acme, name: s}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: org-acme, name: x}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: [{verbs: [get], apiGroups: [''], resources: [secrets]}]}
";

/// The cluster with one more binding.
fn cluster(kind: &str, namespace: &str, subject: &str) -> Folder {
    let binding = format!(
        "---\n{{apiVersion: rbac.authorization.k8s.io/v1, kind: {kind}, metadata: {{{namespace} name: b}}, roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}}, subjects: [{subject}]}}\n"
    );
    let text = format!("{CLUSTER}{binding}");
    Folder::new(&[("dump.yaml", text.as_bytes()), ("tenants.yaml", TENANTS)])
}

fn ask(folder: &Folder, arguments: &[&str]) -> (Exit, Value) {
    let tenants = folder.path("tenants.yaml");
    let common = ["-o", "json", "--tenants", tenants.to_str().unwrap()];
    let arguments: Vec<_> = arguments.iter().chain(&common).copied().collect();
    let output = bailey(&arguments, &folder.path("dump.yaml")).unwrap();
    (output.exit, serde_json::from_str(&output.text).unwrap())
}

fn subjects(audit: &Value) -> Vec<&str> {
    audit["findings"].as_array().unwrap().iter().map(|finding| finding["subject"].as_str().unwrap()).collect()
}

const USER: &str = "{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}";
const EVERYBODY: &str = "{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}";

/// 4
#[test]
fn no_selection_hides_what_everybody_may_do() {
    let folder = cluster("ClusterRoleBinding", "", EVERYBODY);
    for selection in [
        &["audit"][..],
        &["audit", "-n", "org-beta"],
        &["audit", "--customer", "acme"],
        &["audit", "--severity", "critical"],
    ] {
        let (exit, audit) = ask(&folder, selection);
        assert_eq!(exit, Exit::Findings, "{selection:?}");
        assert!(subjects(&audit).contains(&"group:system:authenticated"), "{selection:?}: {audit}");
    }
}

/// 25
#[test]
fn a_namespace_keeps_the_users_that_are_bound_in_it() {
    let folder = cluster("RoleBinding", "namespace: org-beta,", USER);
    let (exit, audit) = ask(&folder, &["audit", "-n", "org-beta"]);
    assert_eq!((exit, subjects(&audit)), (Exit::Findings, vec!["user:ann"]));
    let (exit, audit) = ask(&folder, &["audit", "-n", "org-acme"]);
    assert_eq!((exit, subjects(&audit)), (Exit::Clean, vec![]));
}

/// 24
#[test]
fn a_waiver_is_for_one_way_with_an_owner_and_a_day() {
    let folder = cluster("RoleBinding", "namespace: org-beta,", USER);
    let (_, audit) = ask(&folder, &["audit"]);
    let id = audit["findings"][0]["id"].as_str().unwrap().to_owned();
    let waive = |id: &str, expires: &str| {
        let path = folder.path("waivers.yaml");
        std::fs::write(
            &path,
            format!("waivers: [{{id: {id}, owner: pia, reason: migration, expires: {expires}}}]"),
        )
        .unwrap();
        ask(&folder, &["audit", "--fail-on", "low", "--waivers", path.to_str().unwrap()])
    };
    let (exit, audit) = waive(&id, "2999-01-01");
    assert_eq!((exit, subjects(&audit)), (Exit::Clean, vec![]), "{audit}");
    let (exit, audit) = waive(&id, "2001-01-01");
    assert_eq!(exit, Exit::Findings);
    assert!(
        subjects(&audit).contains(&"user:ann") && audit.to_string().contains("expired-waiver"),
        "{audit}"
    );
    let (exit, audit) = waive("read-secret-00000000", "2999-01-01");
    assert_eq!(exit, Exit::Findings);
    assert!(subjects(&audit).contains(&"user:ann") && audit.to_string().contains("unused-waiver"), "{audit}");
}

/// 26
#[test]
fn a_group_is_asked_for_as_a_group() {
    let group = "{apiGroup: rbac.authorization.k8s.io, kind: Group, name: acme-dev}";
    let folder = cluster("RoleBinding", "namespace: org-beta,", group);
    let (_, why) = ask(&folder, &["why", "group:acme-dev", "org-beta/s"]);
    assert_eq!(why["reached"], true);
    // A user of that name is another subject, and nobody guesses.
    let tenants = folder.path("tenants.yaml");
    let arguments = ["why", "user:acme-dev", "org-beta/s", "--tenants", tenants.to_str().unwrap()];
    let error = bailey(&arguments, &folder.path("dump.yaml")).unwrap_err();
    assert!(error.to_string().contains("user:acme-dev"), "{error}");
}

/// 11
#[test]
fn users_and_groups_are_shown_independently() {
    let group = "{apiGroup: rbac.authorization.k8s.io, kind: Group, name: acme-dev}";
    let folder = cluster("RoleBinding", "namespace: org-beta,", &format!("{group}, {USER}"));
    let (_, audit) = ask(&folder, &["audit"]);
    assert_eq!(subjects(&audit), ["group:acme-dev", "user:ann"]);
}
