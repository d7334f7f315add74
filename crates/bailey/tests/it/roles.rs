//! Who may install on the management cluster, who on workload clusters only: for people and for GitOps alike.

use bailey_testkit::{Access, ManagementCluster};

use crate::enforced;

const CONTROL: &str = "control";
const INSTALL: &str = "install";
const REMOTE: &str = "remote";

/// A HelmRelease of a kind: for a workload cluster, as a control account, or as an install account.
fn release(kind: &str, name: &str) -> String {
    let target = match kind {
        REMOTE => r#""kubeConfig":{"secretRef":{"name":"prod-kubeconfig"}}"#,
        CONTROL => r#""serviceAccountName":"automation""#,
        _ => r#""serviceAccountName":"installer""#,
    };
    format!(
        r#"{{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{{"name":"{name}","namespace":"org-acme"}},
           "spec":{{"interval":"5m","chartRef":{{"kind":"OCIRepository","name":"app"}},{target}}}}}"#
    )
}

async fn create(as_who: &Access, manifest: &str) -> Result<(), String> {
    let output = as_who.kubectl(&["create", "-f", "-"], Some(manifest)).await.unwrap();
    if output.success() { Ok(()) } else { Err(output.stderr) }
}

async fn account(cluster: &ManagementCluster, name: &str) -> Access {
    let create = ["create", "serviceaccount", name, "-n", "org-acme"];
    let _exists_already = cluster.plane.admin().kubectl(&create, None).await.unwrap();
    cluster.plane.service_account("org-acme", name).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installing_on_the_management_cluster_takes_the_verb_for_people_and_gitops_alike() {
    let mut cluster = enforced().await;
    let developers =
        [("person", cluster.developer().unwrap()), ("gitops", account(&cluster, "automation").await)];
    let installers =
        [("person", cluster.installer().unwrap()), ("gitops", account(&cluster, "gitops").await)];

    for (n, (what, developer)) in developers.iter().enumerate() {
        create(developer, &release(REMOTE, &format!("remote-{n}")))
            .await
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        create(developer, &release(CONTROL, &format!("control-{n}")))
            .await
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        let refusal = create(developer, &release(INSTALL, &format!("install-{n}"))).await.unwrap_err();
        for part in [
            "rail install-target",
            "subjects.installers of Tenant acme",
            "kubectl auth can-i install tenants.bailey.dev/acme",
        ] {
            assert!(refusal.contains(part), "{what}: {refusal}");
        }
    }
    for (n, (what, installer)) in installers.iter().enumerate() {
        create(installer, &release(INSTALL, &format!("app-{n}")))
            .await
            .unwrap_or_else(|e| panic!("{what}: {e}"));
    }

    // A cluster definition and what is installed on it go in one commit, before the cluster exists.
    let together = format!(
        "{}\n---\n{}\n---\n{}",
        r#"{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"new","namespace":"org-acme"},"spec":{}}"#,
        release(REMOTE, "new-app").replace("prod-kubeconfig", "new-kubeconfig"),
        release(CONTROL, "new-cluster"),
    );
    create(&developers[1].1, &together).await.unwrap();

    what_an_installer_wrote_stays(&installers[0].1, &developers[0].1).await;
    what_a_developer_cannot_reach(&cluster, &developers[0].1).await;
    workload_clusters_only(&mut cluster, &installers[0].1).await;
}

/// A developer cannot change what is installed here through what the release is made of, nor take it away.
async fn what_an_installer_wrote_stays(installer: &Access, developer: &Access) {
    let source = r#"{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"GitRepository","metadata":{"name":"NAME","namespace":"org-acme"},
        "spec":{"interval":"5m","url":"https://git.example/app"}}"#;
    create(installer, &source.replace("NAME", "app")).await.unwrap();
    create(developer, &source.replace("NAME", "own")).await.unwrap();
    let elsewhere = r#"{"spec":{"url":"https://git.example/other"}}"#;
    let patch = |name: &'static str| {
        ["patch", "gitrepository", name, "-n", "org-acme", "--type=merge", "-p", elsewhere]
    };
    let refused = developer.kubectl(&patch("app"), None).await.unwrap();
    assert!(refused.stderr.contains("was written by an installer"), "{}", refused.stderr);
    developer.kubectl(&patch("own"), None).await.unwrap().stdout_of_success().unwrap();
    installer.kubectl(&patch("app"), None).await.unwrap().stdout_of_success().unwrap();
    let refused =
        developer.kubectl(&["delete", "helmrelease", "app-0", "-n", "org-acme"], None).await.unwrap();
    assert!(refused.stderr.contains("may not uninstall it"), "{}", refused.stderr);
    developer
        .kubectl(&["delete", "helmrelease", "remote-0", "-n", "org-acme"], None)
        .await
        .unwrap()
        .stdout_of_success()
        .unwrap();
}

/// A developer cannot become an installer through what lies in the namespace.
async fn what_a_developer_cannot_reach(cluster: &ManagementCluster, developer: &Access) {
    for question in [
        &["get", "secrets"][..],
        &["create", "secrets"],
        &["create", "serviceaccounts/token"],
        &["create", "pods"],
        &["create", "pods/exec"],
        &["create", "deployments.apps"],
        &["create", "rolebindings"],
        &["patch", "accessrequests.bailey.dev"],
    ] {
        let output = developer
            .kubectl(&[&["auth", "can-i", "-n", "org-acme"], question].concat(), None)
            .await
            .unwrap();
        assert_eq!(output.stdout.trim(), "no", "{question:?}");
    }
    let reader = cluster.plane.user("rita@acme.example", &["customer:acme-readers"]).unwrap();
    for (answer, question) in
        [("yes", ["list", "pods"]), ("no", ["list", "secrets"]), ("no", ["create", "configmaps"])]
    {
        let output = reader
            .kubectl(&[&["auth", "can-i", "-n", "org-acme"], &question[..]].concat(), None)
            .await
            .unwrap();
        assert_eq!(output.stdout.trim(), answer, "{question:?}");
    }
}

/// With `install.target: WorkloadClusters`, nobody of the tenant installs here, and clusters are still made.
async fn workload_clusters_only(cluster: &mut ManagementCluster, installer: &Access) {
    let patch = [
        "patch",
        "tenant",
        "acme",
        "--type=merge",
        "-p",
        r#"{"spec":{"install":{"target":"WorkloadClusters"}}}"#,
    ];
    cluster.plane.admin().kubectl(&patch, None).await.unwrap().stdout_of_success().unwrap();
    let without = |role: &serde_json::Value| !role["rules"].to_string().contains("\"install\"");
    cluster.until(&["get", "clusterrole", "bailey:tenant:acme", "-o", "json"], without).await.unwrap();
    let refusal = create(installer, &release(INSTALL, "late")).await.unwrap_err();
    assert!(refusal.contains("rail install-target"), "{refusal}");
    create(installer, &release(CONTROL, "late-cluster")).await.unwrap();
}
