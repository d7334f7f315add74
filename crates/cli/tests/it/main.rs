//! The verbs against a real API server.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy knows test functions, not the functions that they call"
)]

use std::path::{Path, PathBuf};

use bailey_cli::output::Output;
use bailey_cli::{Cli, CliError, Command, Exit, answer};
use bailey_testkit::{Access, ControlPlane, Options};
use clap::Parser as _;
use serde_json::{Value, json};

const INSTALLATION: &str = "\
apiVersion: bailey.dev/v1alpha1
kind: Installation
metadata: {name: installation}
spec:
  managementCluster: {name: harbour}
  platform: {namespaces: [platform-flux]}
";
const TENANT: &str = "\
apiVersion: bailey.dev/v1alpha1
kind: Tenant
metadata: {name: acme}
spec:
  namespaces: [org-acme]
  subjects: {installers: {groups: ['customer:acme-admins']}}
";

/// One control plane serves all claims, in the order in which an administrator meets them.
#[tokio::test]
async fn the_verbs_work_on_a_cluster_from_its_first_day() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (installation, tenant) = (folder.path().join("installation.yaml"), folder.path().join("tenant.yaml"));
    std::fs::write(&installation, INSTALLATION).unwrap();
    std::fs::write(&tenant, TENANT).unwrap();

    without_an_installation_there_is_nothing_to_plan(&plane).await;
    files_are_planned_before_anything_is_installed(&plane, folder.path()).await;
    the_crds_are_accepted(&plane).await;
    a_tenant_that_its_kind_refuses_is_named(&plane, &installation).await;
    what_a_user_may_not_read_is_named(&plane, folder.path()).await;
    whoever_may_not_impersonate_is_told_before_anything_is_sent(&plane, &installation, &tenant).await;
    a_request_is_listed_approved_and_taken_back(&plane).await;
}

async fn call(access: &Access, arguments: &[&str]) -> Result<Output, CliError> {
    let kubeconfig = access.kubeconfig_path();
    let common = ["bailey", "--kubeconfig", kubeconfig.to_str().unwrap(), "--color", "never"];
    let cli = Cli::try_parse_from(common.iter().chain(arguments)).unwrap();
    match &cli.command {
        Command::Verb(verb) => answer(&cli.global, verb).await,
        Command::Operator(_)
        | Command::Auditor(_)
        | Command::Cache(_)
        | Command::Gateway(_)
        | Command::Agent(_)
        | Command::Issuer(_) => {
            unreachable!("no verb is a role")
        }
    }
}

async fn without_an_installation_there_is_nothing_to_plan(plane: &ControlPlane) {
    let error = call(plane.admin(), &["plan"]).await.unwrap_err();
    assert_eq!(error.exit(), Exit::Usage);
    assert!(error.to_string().contains("give one with -f FILE"), "{error}");

    let nowhere = ["plan", "--context", "nowhere"];
    let error = call(plane.admin(), &nowhere).await.unwrap_err();
    assert_eq!(error.exit(), Exit::Usage, "{error}");
    assert!(error.to_string().contains("with context `nowhere`"), "{error}");
}

async fn files_are_planned_before_anything_is_installed(plane: &ControlPlane, folder: &Path) {
    let output = call(plane.admin(), &["plan", "-f", folder.to_str().unwrap(), "-o", "json"]).await.unwrap();
    assert_eq!(output.exit, Exit::Findings, "{}", output.text);
    let plan: Value = serde_json::from_str(&output.text).unwrap();
    assert_eq!((&plan["schema"], &plan["complete"]), (&json!("bailey.plan/v1"), &json!(true)), "{plan}");
    let created: Vec<_> = plan["changes"].as_array().unwrap().iter().map(|c| &c["action"]).collect();
    assert!(created.len() > 20 && created.iter().all(|action| *action == "create"), "{plan}");
    assert!(output.text.contains("\"org-acme\""), "{plan}");
}

async fn the_crds_are_accepted(plane: &ControlPlane) {
    let crds = call(plane.admin(), &["crds"]).await.unwrap().text;
    let apply = ["apply", "--server-side", "-f", "-"];
    plane.admin().kubectl(&apply, Some(&crds)).await.unwrap().stdout_of_success().unwrap();
    let wait = ["wait", "--for=condition=Established", "--timeout=30s", "-f", "-"];
    plane.admin().kubectl(&wait, Some(&crds)).await.unwrap().stdout_of_success().unwrap();
    let install = call(plane.admin(), &["install", "--image", "r.example/bailey:1"]).await.unwrap().text;
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: bailey-system\n";
    plane.admin().kubectl(&apply, Some(namespace)).await.unwrap().stdout_of_success().unwrap();
    let dry_run = ["apply", "--server-side", "--dry-run=server", "-f", "-"];
    plane.admin().kubectl(&dry_run, Some(&install)).await.unwrap().stdout_of_success().unwrap();
}

async fn a_tenant_that_its_kind_refuses_is_named(plane: &ControlPlane, installation: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let bad: PathBuf = folder.path().join("bad.yaml");
    std::fs::write(&bad, TENANT.replace("org-acme", "kube-system")).unwrap();
    let files = ["plan", "-f", installation.to_str().unwrap(), "-f", bad.to_str().unwrap()];
    let error = call(plane.admin(), &files).await.unwrap_err();
    assert_eq!(error.exit(), Exit::Usage);
    let text = error.to_string();
    assert!(
        text.contains("Tenant acme in `") && text.contains("give the tenant namespaces of its own"),
        "{text}"
    );
}

async fn what_a_user_may_not_read_is_named(plane: &ControlPlane, folder: &Path) {
    let jane = plane.user("jane", &[]).unwrap();
    let output = call(&jane, &["plan", "-f", folder.to_str().unwrap(), "-o", "json"]).await.unwrap();
    assert_eq!(output.exit, Exit::Incomplete, "{}", output.text);
    let plan: Value = serde_json::from_str(&output.text).unwrap();
    let unknown: Vec<_> =
        plan["unknown"].as_array().unwrap().iter().map(|u| u["what"].as_str().unwrap()).collect();
    assert!(unknown.contains(&"rolebindings") && unknown.contains(&"namespaces"), "{unknown:?}");
    let error = call(&jane, &["requests"]).await.unwrap_err();
    assert_eq!(error.exit(), Exit::Incomplete);
    assert!(error.to_string().contains("jane"), "{error}");
}

async fn whoever_may_not_impersonate_is_told_before_anything_is_sent(
    plane: &ControlPlane,
    installation: &Path,
    tenant: &Path,
) {
    let error = call(plane.admin(), &["verify", "--as-tenant", "acme"]).await.unwrap_err();
    assert_eq!(error.exit(), Exit::Usage, "{error}");
    for file in [installation, tenant] {
        let apply = ["apply", "--server-side", "-f", file.to_str().unwrap()];
        plane.admin().kubectl(&apply, None).await.unwrap().stdout_of_success().unwrap();
    }
    for role in ["--clusterrole=view", "--clusterrole=looks"] {
        let name = role.trim_start_matches("--clusterrole=");
        let bind = ["create", "clusterrolebinding", name, role, "--user=jane"];
        plane.admin().kubectl(&bind, None).await.unwrap().stdout_of_success().unwrap();
    }
    let resources = "--resource=installations.bailey.dev,tenants.bailey.dev,clusterroles.rbac.authorization.k8s.io,secrets";
    let role = ["create", "clusterrole", "looks", "--verb=get,list", resources];
    plane.admin().kubectl(&role, None).await.unwrap().stdout_of_success().unwrap();
    let jane = plane.user("jane", &[]).unwrap();
    let error = call(&jane, &["verify", "--as-tenant", "acme"]).await.unwrap_err();
    assert_eq!(error.exit(), Exit::Incomplete);
    assert!(error.to_string().contains("the right to impersonate"), "{error}");
    let error = call(plane.admin(), &["verify", "--as-tenant", "nobody"]).await.unwrap_err();
    assert!(error.to_string().contains("Tenants of this cluster: acme"), "{error}");

    let output = call(plane.admin(), &["verify", "--as-tenant", "acme", "-o", "json"]).await.unwrap();
    let verification: Value = serde_json::from_str(&output.text).unwrap();
    assert_eq!(verification["targets"]["installer"], "group:customer:acme-admins");
    assert_eq!(verification["counts"]["succeeded"], 0, "acme holds nothing yet: {}", output.text);
}

async fn a_request_is_listed_approved_and_taken_back(plane: &ControlPlane) {
    let admin = plane.admin();
    let json_type = Some("application/json");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "org-acme"}});
    admin.send("POST", "/api/v1/namespaces", json_type, Some(&namespace.to_string())).await.unwrap();
    let path = "/apis/bailey.dev/v1alpha1/namespaces/org-acme/accessrequests";
    let request = json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "AccessRequest",
        "metadata": {"name": "clusterrolebinding.loki"},
        "spec": {"tenant": "acme", "binding": {"kind": "ClusterRoleBinding", "name": "loki"}},
    });
    let (status, body) = admin.send("POST", path, json_type, Some(&request.to_string())).await.unwrap();
    assert_eq!(status, 201, "{body}");
    let state = json!({"status": {
        "refusedCount": 1,
        "refused": [{"request": 0, "reason": "ClusterScoped", "message": "nodes are the cluster's", "remedy": "ask",
            "rule": {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}}],
    }});
    let merge = Some("application/merge-patch+json");
    let target = format!("{path}/clusterrolebinding.loki/status");
    let (status, body) = admin.send("PATCH", &target, merge, Some(&state.to_string())).await.unwrap();
    assert_eq!(status, 200, "{body}");

    let listed = call(admin, &["requests"]).await.unwrap();
    assert_eq!(listed.exit, Exit::Clean);
    assert!(listed.text.contains("clusterrolebinding.loki"), "{}", listed.text);
    assert_eq!(call(admin, &["requests", "--fail-on-refused"]).await.unwrap().exit, Exit::Findings);
    let explained = call(admin, &["requests", "clusterrolebinding.loki", "-n", "org-acme"]).await.unwrap();
    assert!(explained.text.contains("   1  ClusterScoped: get, list on nodes"), "{}", explained.text);

    let name = ["clusterrolebinding.loki", "-n", "org-acme"];
    let approve = |rest: &[&'static str]| [&["requests", "approve"], &name[..], rest].concat();
    let tried = call(admin, &approve(&["--all", "--dry-run"])).await.unwrap();
    assert!(tried.text.contains("would approve 1 rule"), "{}", tried.text);
    assert_eq!(approved(admin, path).await, Value::Null);
    let done = call(admin, &approve(&["--resource", "nodes", "--verb", "get"])).await.unwrap();
    assert!(done.text.contains("approved 1 rule\n  get on nodes"), "{}", done.text);
    assert_eq!(approved(admin, path).await[0]["verbs"], json!(["get"]));
    let again = call(admin, &approve(&["--resource", "nodes", "--verb", "get"])).await.unwrap();
    assert!(again.text.contains("nothing to change"), "{}", again.text);
    let revoked = call(admin, &[&["requests", "revoke"], &name[..], &["--all"]].concat()).await.unwrap();
    assert!(revoked.text.contains("revoked 1 rule"), "{}", revoked.text);
    assert_eq!(approved(admin, path).await.as_array().map_or(0, Vec::len), 0);
}

async fn approved(admin: &Access, path: &str) -> Value {
    let (_, body) = admin.send("GET", &format!("{path}/clusterrolebinding.loki"), None, None).await.unwrap();
    serde_json::from_str::<Value>(&body).unwrap()["spec"]["approved"].clone()
}
