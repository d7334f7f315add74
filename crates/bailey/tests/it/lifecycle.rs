//! What comes and goes: tenants, namespaces, approvals, Bailey's own objects. Nothing is orphaned or half done.

use std::time::{Duration, Instant};

use bailey_testkit::{Access, ManagementCluster};
use serde_json::Value;

use crate::{enforced, stock};

async fn ok(access: &Access, arguments: &[&str]) -> String {
    access.kubectl(arguments, None).await.unwrap().stdout_of_success().unwrap()
}

async fn install_app(installer: &Access) {
    let app = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: app, namespace: org-acme}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: acme-app}
rules:
  - {apiGroups: [""], resources: [pods, endpoints], verbs: [get, create]}
  - {apiGroups: [""], resources: [nodes], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: acme-app}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: acme-app}
subjects: [{kind: ServiceAccount, name: app, namespace: org-acme}]
"#;
    installer.kubectl(&["apply", "-f", "-"], Some(app)).await.unwrap().stdout_of_success().unwrap();
}

const REQUEST: [&str; 6] =
    ["get", "accessrequest", "clusterrolebinding.acme-app", "-n", "org-acme", "-ojson"];

async fn may(cluster: &ManagementCluster, question: &[&str]) -> bool {
    let app = cluster.plane.service_account("org-acme", "app").await.unwrap();
    app.kubectl(&[&["auth", "can-i"], question].concat(), None).await.unwrap().stdout.trim() == "yes"
}

fn answered(request: &Value) -> bool {
    request["status"]["observedGeneration"] == request["metadata"]["generation"]
        && request["status"]["conditions"][0]["status"] == "True"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_platform_approves_and_takes_back_what_was_refused() {
    let mut cluster = enforced().await;
    install_app(&cluster.installer().unwrap()).await;
    let request = cluster.until(&REQUEST, answered).await.unwrap();
    assert_eq!(request["status"]["refusedCount"], 2, "{request}");
    assert!(!may(&cluster, &["list", "nodes"]).await);
    assert!(!may(&cluster, &["create", "endpoints", "-n", "org-acme"]).await);

    let approve = r#"{"spec":{"approved":[{"apiGroups":[""],"resources":["nodes"],"verbs":["list"]},
        {"apiGroups":[""],"resources":["endpoints","secrets"],"verbs":["create","get"]}]}}"#;
    let patch =
        ["patch", "accessrequest", "clusterrolebinding.acme-app", "-n", "org-acme", "--type=merge", "-p"];
    let refused =
        cluster.installer().unwrap().kubectl(&[&patch[..], &[approve]].concat(), None).await.unwrap();
    assert!(!refused.success(), "a customer approved its own request");
    ok(cluster.plane.admin(), &[&patch[..], &[approve]].concat()).await;
    cluster.until(&REQUEST, |r| answered(r) && r["status"]["refusedCount"] == 0).await.unwrap();
    assert!(may(&cluster, &["list", "nodes"]).await);
    assert!(may(&cluster, &["create", "endpoints", "-n", "org-acme"]).await);
    assert!(!may(&cluster, &["create", "endpoints", "-n", "org-beta"]).await);
    assert!(!may(&cluster, &["get", "secrets", "-n", "org-acme"]).await, "approved, but never asked for");

    ok(cluster.plane.admin(), &[&patch[..], &[r#"{"spec":{"approved":[]}}"#]].concat()).await;
    cluster.until(&REQUEST, |r| answered(r) && r["status"]["refusedCount"] == 2).await.unwrap();
    assert!(!may(&cluster, &["list", "nodes"]).await);

    for (bad, said) in [
        (
            r#"{"spec":{"approved":[{"apiGroups":["*"],"resources":["x"],"verbs":["get"]}]}}"#,
            "name each API group",
        ),
        (
            r#"{"spec":{"approved":[{"apiGroups":[""],"resources":["x"],"verbs":["escalate"]}]}}"#,
            "cannot be approved",
        ),
        (r#"{"spec":{"tenant":"beta"}}"#, "does not change"),
    ] {
        let output = cluster.plane.admin().kubectl(&[&patch[..], &[bad]].concat(), None).await.unwrap();
        assert!(output.stderr.contains(said), "{bad}: {}", output.stderr);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_goes_only_when_its_apps_have_and_leaves_nothing() {
    let mut cluster = enforced().await;
    let installer = cluster.installer().unwrap();
    install_app(&installer).await;
    cluster.until(&REQUEST, answered).await.unwrap();

    ok(cluster.plane.admin(), &["delete", "tenant", "acme", "--wait=false"]).await;
    let in_use =
        |t: &Value| t["status"].to_string().contains("apps are installed: ClusterRoleBinding acme-app");
    let tenant = cluster.until(&["get", "tenant", "acme", "-o", "json"], in_use).await.unwrap();
    assert!(tenant["status"].to_string().contains("kubectl annotate tenant acme bailey.dev/release=true"));
    assert!(may(&cluster, &["get", "pods", "-n", "argocd"]).await, "the tenant stays whole until it goes");

    ok(cluster.plane.admin(), &["annotate", "tenant", "acme", "bailey.dev/release=true"]).await;
    let gone = |list: &Value| {
        list["items"].as_array().is_some_and(|i| i.iter().all(|t| t["metadata"]["name"] != "acme"))
    };
    cluster.until(&["get", "tenants", "-o", "json"], gone).await.unwrap();
    assert!(!may(&cluster, &["get", "pods", "-n", "argocd"]).await);
    let kinds = "accessrequests,roles,rolebindings,clusterroles,clusterrolebindings,namespaces";
    // What the customer made stays: it is the customer's, and grants nothing.
    let left = ok(
        cluster.plane.admin(),
        &["get", kinds, "-A", "-l", "bailey.dev/component,bailey.dev/tenant=acme", "-o", "name"],
    )
    .await;
    assert_eq!(left, "");
    let index = ok(cluster.plane.admin(), &["get", "boundary", "installation", "-o", "json"]).await;
    assert!(!index.contains("acme"), "{index}");
    assert!(
        ok(cluster.plane.admin(), &["get", "namespace", "org-acme", "-o", "name"]).await.contains("org-acme")
    );
    let refused = installer.kubectl(&["get", "pods", "-n", "org-acme"], None).await.unwrap();
    assert!(!refused.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bailey_repairs_what_is_its_own_and_goes_without_a_trace() {
    let mut cluster = enforced().await;
    let admin = cluster.plane.admin().clone();
    // As an older version would have left them: another text, a role too many, a binding elsewhere.
    cluster.kill_operator();
    ok(
        &admin,
        &[
            "patch",
            "validatingadmissionpolicy",
            "bailey-pods",
            "--type=json",
            "-p",
            r#"[{"op":"replace","path":"/spec/failurePolicy","value":"Ignore"}]"#,
        ],
    )
    .await;
    ok(&admin, &["create", "clusterrole", "bailey:old", "--verb=get", "--resource=nodes"]).await;
    ok(&admin, &["label", "clusterrole", "bailey:old", "bailey.dev/component=grant"]).await;
    ok(&admin, &["delete", "rolebinding", "bailey:installers", "-n", "org-acme"]).await;
    ok(
        &admin,
        &["create", "rolebinding", "bailey:installers", "--clusterrole=view", "--user=x", "-n", "org-acme"],
    )
    .await;
    cluster.start_operator().await.unwrap();
    cluster
        .until(&["get", "validatingadmissionpolicy", "bailey-pods", "-o", "json"], |p| {
            p["spec"]["failurePolicy"] == "Fail"
        })
        .await
        .unwrap();
    cluster
        .until(&["get", "rolebinding", "bailey:installers", "-n", "org-acme", "-o", "json"], |b| {
            b["roleRef"]["name"] == "bailey:installers"
        })
        .await
        .unwrap();
    let roles = |list: &Value| !list.to_string().contains("bailey:old");
    cluster.until(&["get", "clusterroles", "-l", "bailey.dev/component", "-o", "json"], roles).await.unwrap();
    ok(&admin, &["delete", "validatingadmissionpolicybinding", "bailey-hidden-read"]).await;
    cluster
        .until(&["get", "validatingadmissionpolicybinding", "bailey-hidden-read", "-o", "json"], |_| true)
        .await
        .unwrap();

    ok(&admin, &["delete", "installation", "installation", "--wait=false"]).await;
    let waits = |i: &Value| i["status"].to_string().contains("tenants remain: ");
    cluster.until(&["get", "installation", "installation", "-o", "json"], waits).await.unwrap();
    ok(&admin, &["delete", "tenants", "--all"]).await;
    cluster
        .until(&["get", "installations", "-o", "json"], |l| l["items"].as_array().is_some_and(Vec::is_empty))
        .await
        .unwrap();
    let kinds = "boundaries,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,\
        mutatingadmissionpolicybindings,roles,rolebindings,clusterroles,clusterrolebindings,namespaces";
    assert_eq!(ok(&admin, &["get", kinds, "-A", "-l", "bailey.dev/component", "-o", "name"]).await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_tenant_is_named_and_the_others_go_on() {
    let mut cluster = stock().await;
    cluster.install().await.unwrap();
    let admin = cluster.plane.admin().clone();
    for (tenant, said) in [
        (r#"{"namespaces":["kube-system"]}"#, "belong to the cluster"),
        (
            r#"{"namespaces":["a"],"install":{"accounts":["b/x"]}}"#,
            "must be in one of the tenant's namespaces",
        ),
        (r#"{"namespaces":["a"],"crds":{"groups":["x.k8s.io"]}}"#, "list single kinds in crds.names"),
        (
            r#"{"namespaces":["a"],"subjects":{"viewers":{"groups":["system:masters"]}}}"#,
            "belong to Kubernetes",
        ),
        (r#"{"namespaces":["A"]}"#, "spec.namespaces[0]"),
        (r#"{"namespaces":["a"],"namespacePrefix":"kube-"}"#, "this prefix belongs to the cluster"),
    ] {
        let manifest = format!(
            r#"{{"apiVersion":"bailey.dev/v1alpha1","kind":"Tenant","metadata":{{"name":"bad"}},"spec":{tenant}}}"#
        );
        let output = admin.kubectl(&["create", "-f", "-"], Some(&manifest)).await.unwrap();
        assert!(!output.success() && output.stderr.contains(said), "{tenant}: {}", output.stderr);
    }
    let second = r#"{"apiVersion":"bailey.dev/v1alpha1","kind":"Installation","metadata":{"name":"other"},
        "spec":{"managementCluster":{"name":"x"},"platform":{"namespaces":["y"]}}}"#;
    let output = admin.kubectl(&["create", "-f", "-"], Some(second)).await.unwrap();
    assert!(output.stderr.contains("name it `installation`"), "{}", output.stderr);

    let thief = r#"{"apiVersion":"bailey.dev/v1alpha1","kind":"Tenant","metadata":{"name":"thief"},
        "spec":{"namespaces":["org-beta","org-thief"]}}"#;
    admin.kubectl(&["create", "-f", "-"], Some(thief)).await.unwrap().stdout_of_success().unwrap();
    let stalled = |t: &Value| t["status"].to_string().contains("belongs to tenant `beta`");
    cluster.until(&["get", "tenant", "thief", "-o", "json"], stalled).await.unwrap();
    let beta = ok(
        &admin,
        &["get", "namespace", "org-beta", "-o", "jsonpath={.metadata.labels.bailey\\.dev/tenant}"],
    )
    .await;
    assert_eq!(beta, "beta");
    assert!(
        !admin.kubectl(&["get", "namespace", "org-thief"], None).await.unwrap().success(),
        "half a tenant was made"
    );
    ok(&admin, &["delete", "tenant", "thief"]).await;
    a_customer_makes_namespaces_under_its_prefix(&mut cluster).await;
}

async fn a_customer_makes_namespaces_under_its_prefix(cluster: &mut ManagementCluster) {
    cluster.enforce().await.unwrap();
    let installer = cluster.installer().unwrap();
    let refused = installer.kubectl(&["create", "namespace", "other"], None).await.unwrap();
    assert!(refused.stderr.contains("Choose a name that begins with acme-"), "{}", refused.stderr);
    ok(&installer, &["create", "namespace", "acme-new"]).await;
    let deadline = Instant::now() + Duration::from_secs(20);
    while !installer.kubectl(&["get", "secrets", "-n", "acme-new"], None).await.unwrap().success() {
        assert!(Instant::now() < deadline, "the new namespace is not usable");
    }
    ok(&installer, &["delete", "namespace", "acme-new", "--wait=false"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_cannot_be_read_is_named_and_stops_nothing() {
    let mut cluster = enforced().await;
    let admin = cluster.plane.admin().clone();
    // As an older or newer version may have stored one: the schema of today would refuse it.
    let loose = r#"[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema",
        "value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}]"#;
    ok(&admin, &["patch", "crd", "tenants.bailey.dev", "--type=json", "-p", loose]).await;
    let odd = r#"{"apiVersion":"bailey.dev/v1alpha1","kind":"Tenant","metadata":{"name":"odd"},"spec":{"namespaces":5}}"#;
    let deadline = Instant::now() + Duration::from_secs(30);
    while !admin.kubectl(&["create", "-f", "-"], Some(odd)).await.unwrap().success() {
        assert!(Instant::now() < deadline, "the loose schema is not in effect");
    }
    let gamma = r#"{"apiVersion":"bailey.dev/v1alpha1","kind":"Tenant","metadata":{"name":"gamma"},
        "spec":{"namespaces":["org-gamma"],"subjects":{"viewers":{"groups":["gamma"]}}}}"#;
    admin.kubectl(&["create", "-f", "-"], Some(gamma)).await.unwrap().stdout_of_success().unwrap();
    let ready = |t: &Value| t["status"]["conditions"][0]["status"] == "True";
    cluster.until(&["get", "tenant", "gamma", "-o", "json"], ready).await.unwrap();
    let log = std::fs::read_to_string(cluster.plane.dir().join("operator.log")).unwrap();
    assert!(log.contains("Tenant odd") && log.contains("cannot be read"), "{log}");
    let kept = ok(&admin, &["get", "rolebinding", "bailey:installers", "-n", "org-acme", "-o", "name"]).await;
    assert!(kept.contains("bailey:installers"), "what cannot be read is no reason to remove anything");
}
