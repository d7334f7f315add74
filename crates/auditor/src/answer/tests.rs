use bailey_access::{Loader, Snapshot};

use super::*;

const CLUSTER: &str = "
apiVersion: bailey.dev/v1alpha1
kind: Installation
metadata: {name: installation}
spec: {tenancy: Shared, enforcement: Audit}
---
apiVersion: bailey.dev/v1alpha1
kind: Tenant
metadata: {name: acme}
spec: {namespaces: [org-acme], subjects: {installers: {users: [dora]}}}
---
apiVersion: bailey.dev/v1alpha1
kind: Tenant
metadata: {name: beta}
spec: {namespaces: [org-beta], subjects: {installers: {users: [bert]}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: org-acme}
---
apiVersion: v1
kind: Namespace
metadata: {name: org-beta}
---
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: org-acme}
type: Opaque
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: read, namespace: org-acme}
rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: own, namespace: org-acme}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: read}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: dora}]
";

fn snapshot(more: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, Some("mc"));
    loader.source("test");
    loader.load_yaml(format!("{CLUSTER}{more}").as_bytes()).unwrap();
    loader.finish();
    snapshot.gaps.clear();
    snapshot
}

fn bound_to(user: &str) -> String {
    format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: more, namespace: org-acme}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: read}}\nsubjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: {user}}}]\n"
    )
}

#[test]
fn a_tenant_that_shares_nothing_is_isolated() {
    let answer = answer(snapshot(""));
    let acme = &answer.tenants["acme"];
    assert_eq!((acme.isolated.holds, acme.isolated.reason), (Some(true), Reason::ExactlyOneCustomer));
    assert_eq!(acme.secrets, TenantSecrets { total: 1, exactly_one: 1, ..TenantSecrets::default() });
    assert_eq!(answer.secrets[&("exactly-one", "proven")], 1);
}

#[test]
fn a_binding_of_another_customer_is_said_of_both() {
    let answer = answer(snapshot(&bound_to("bert")));
    let (acme, beta) = (&answer.tenants["acme"], &answer.tenants["beta"]);
    assert_eq!(acme.isolated.holds, Some(false));
    assert_eq!(
        acme.isolated.message,
        "others reach 1 of its 1 Secrets: org-acme/db by beta; see: bailey audit"
    );
    assert_eq!((beta.isolated.holds, beta.isolated.reason), (Some(false), Reason::ReachesOthers));
    assert_eq!(
        beta.isolated.message,
        "it reaches 1 Secrets of others: org-acme/db of acme; see: bailey audit"
    );
    assert_eq!(beta.secrets.others, 1);
    assert_eq!(answer.secrets[&("shared", "proven")], 1);
}

#[test]
fn nobody_is_said_to_be_isolated_while_something_is_not_known() {
    let stranger = answer(snapshot(&bound_to("stranger")));
    let acme = &stranger.tenants["acme"];
    assert_eq!((acme.isolated.holds, acme.isolated.reason), (None, Reason::Incomplete));
    assert!(acme.isolated.message.contains("org-acme/db by somebody who belongs to nobody"), "{acme:?}");

    let mut unread = snapshot("");
    unread.gaps.push(bailey_access::Gap {
        cluster: None,
        what: "pods".to_owned(),
        why: "forbidden".to_owned(),
    });
    let acme = &answer(unread).tenants["acme"];
    assert_eq!(acme.isolated.holds, None);
    assert_eq!(acme.isolated.message, "not everything is known: pods: forbidden; see: bailey audit");
}
