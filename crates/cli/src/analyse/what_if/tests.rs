use super::*;

const BEFORE: &str = "\
{kind: Namespace, apiVersion: v1, metadata: {name: org-acme}}
---
{kind: Namespace, apiVersion: v1, metadata: {name: org-beta}}
---
{kind: Secret, apiVersion: v1, type: Opaque, metadata: {name: db, namespace: org-beta}}
---
{kind: Secret, apiVersion: v1, type: Opaque, metadata: {name: db, namespace: org-acme}}
---
{kind: ServiceAccount, apiVersion: v1, metadata: {name: app, namespace: org-acme}}
---
{kind: ClusterRole, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: reader}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}
---
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: reader, namespace: org-acme}, rules: []}
---
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: reader, namespace: org-acme}
roleRef: {kind: ClusterRole, name: reader, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: ServiceAccount, name: app, namespace: org-acme}]
---
{kind: Deployment, apiVersion: apps/v1, metadata: {name: app, namespace: org-acme}, spec: {template: {spec: {containers: []}}}}
";

fn before() -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, Some("harbour"));
    loader.source("before.yaml");
    loader.load(BEFORE.as_bytes()).unwrap();
    loader.finish();
    assert_eq!(snapshot.gaps, []);
    snapshot
}

fn change(text: &str, namespace: Option<&str>) -> Change {
    let file = File::new(Path::new("change.yaml"), text.to_owned()).unwrap();
    Change { files: vec![file], namespace: namespace.map(str::to_owned), cluster: None }
}

/// How many there are: namespaces, accounts, roles, bindings, Secrets, other objects.
fn counts(snapshot: &Snapshot) -> [usize; 6] {
    let facts = &snapshot.clusters[0];
    [
        facts.namespaces.len(),
        facts.service_accounts.len(),
        facts.roles.len(),
        facts.bindings.len(),
        facts.secrets.len(),
        facts.objects.len(),
    ]
}

const BINDING: &str = "\
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: reader}
roleRef: {kind: ClusterRole, name: reader, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: ServiceAccount, name: app, namespace: org-acme}]
";

#[test]
fn objects_are_added_beside_what_is_there_in_the_namespace_given() {
    let before = before();
    let after = change(BINDING, Some("org-beta")).add(&before, None).unwrap();
    assert_eq!(counts(&after.snapshot), [2, 1, 2, 2, 2, 1]);
    assert_eq!(after.objects, ["RoleBinding org-beta/reader"]);
    assert_eq!(after.snapshot.gaps, []);
    assert_eq!(counts(&before), [2, 1, 2, 1, 2, 1], "the state before stays");
    let replaced = change(BINDING, Some("org-acme")).add(&before, None).unwrap();
    assert_eq!(counts(&replaced.snapshot), counts(&before));
}

#[test]
fn a_list_in_a_manifest_is_not_all_that_the_cluster_has() {
    let list = format!(
        "kind: RoleBindingList\napiVersion: rbac.authorization.k8s.io/v1\nitems:\n- {}",
        BINDING.replace('\n', "\n  ")
    );
    let after = change(&list, Some("org-beta")).add(&before(), None).unwrap();
    assert!(!after.snapshot.clusters[0].has_listed("rolebindings.rbac.authorization.k8s.io"));
    assert_eq!(after.objects, ["RoleBinding org-beta/reader"]);
}

#[test]
fn each_kind_is_taken_away_and_nothing_else() {
    let metadata = "metadata: {name: reader, namespace: org-acme}";
    let rbac = "apiVersion: rbac.authorization.k8s.io/v1";
    for (object, expected, name) in [
        (
            format!("{{kind: RoleBinding, {rbac}, {metadata}}}"),
            [2, 1, 2, 0, 2, 1],
            "RoleBinding org-acme/reader",
        ),
        (format!("{{kind: Role, {rbac}, {metadata}}}"), [2, 1, 1, 1, 2, 1], "Role org-acme/reader"),
        (
            format!("{{kind: ClusterRole, {rbac}, metadata: {{name: reader}}}}"),
            [2, 1, 1, 1, 2, 1],
            "ClusterRole reader",
        ),
        (
            "{kind: Secret, apiVersion: v1, metadata: {name: db, namespace: org-beta}}".to_owned(),
            [2, 1, 2, 1, 1, 1],
            "Secret org-beta/db",
        ),
        (
            "{kind: ServiceAccount, apiVersion: v1, metadata: {name: app, namespace: org-acme}}".to_owned(),
            [2, 0, 2, 1, 2, 1],
            "ServiceAccount org-acme/app",
        ),
        (
            "{kind: Deployment, apiVersion: apps/v1, metadata: {name: app, namespace: org-acme}}".to_owned(),
            [2, 1, 2, 1, 2, 0],
            "Deployment org-acme/app",
        ),
    ] {
        let after = change(&object, None).remove(&before(), None).unwrap();
        assert_eq!(counts(&after.snapshot), expected, "{name}");
        assert_eq!((after.objects, after.absent.len()), (vec![name.to_owned()], 0));
    }
}

#[test]
fn a_namespace_goes_with_all_that_is_in_it() {
    let after = change("{kind: Namespace, apiVersion: v1, metadata: {name: org-acme}}", None)
        .remove(&before(), None)
        .unwrap();
    assert_eq!(counts(&after.snapshot), [1, 0, 1, 0, 1, 0]);
    assert_eq!(after.objects, ["Namespace org-acme"]);
}

#[test]
fn what_is_not_there_is_named_and_a_namespace_is_taken_from_the_flag() {
    let secret = "{kind: Secret, apiVersion: v1, metadata: {name: db}}";
    let after = change(secret, None).remove(&before(), None).unwrap();
    assert_eq!((after.objects.len(), after.absent), (0, vec!["Secret default/db".to_owned()]));
    let after = change(secret, Some("org-acme")).remove(&before(), None).unwrap();
    assert_eq!(after.objects, ["Secret org-acme/db"]);
    let other = "{kind: Role, apiVersion: example.com/v1, metadata: {name: reader, namespace: org-acme}}";
    let after = change(other, None).remove(&before(), None).unwrap();
    assert_eq!(after.absent, ["Role org-acme/reader"], "a kind of the same name in another group");
}

#[test]
fn the_cluster_that_changes_must_have_been_read() {
    let mut change = change(BINDING, Some("org-beta"));
    change.cluster = Some("wc1".to_owned());
    let error = change.add(&before(), None).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("loaded: harbour"), "{error}");
}

#[test]
fn manifests_without_an_object_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("values.txt"), "a: b").unwrap();
    let error = Change::read(&[folder.path().to_owned()]).map(|_| ()).unwrap_err();
    assert_eq!(error.exit(), crate::Exit::Usage);
}
