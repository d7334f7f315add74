//! Argo CD: projects, namespaces, impersonation.

use super::support::{edges, lines_of};

const CONTROLLER: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: x, namespace: cd}
spec: {template: {spec: {serviceAccountName: applier, containers: [
  {name: main, image: 'quay.io/argoproj/argocd:v3.5.1', args: [/usr/local/bin/argocd-application-controller],
   env: [{name: ARGOCD_APPLICATION_NAMESPACES, valueFrom: {configMapKeyRef: {name: argocd-cmd-params-cm, key: application.namespaces}}}]}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: cd}
data: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cmd-params-cm, namespace: cd}
data: {}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-b}
---
apiVersion: v1
kind: Namespace
metadata: {name: cd}
";
const OPEN: &str = "---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: cd}
spec:
  sourceRepos: ['*']
  destinations: [{namespace: '*', server: '*'}]
  clusterResourceWhitelist: [{group: '*', kind: '*'}]
";
const NARROW: &str = "---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: cd}
spec: {destinations: [{namespace: team-a, server: 'https://kubernetes.default.svc'}]}
";

#[test]
fn an_application_acts_as_the_controller_where_the_project_is_open() {
    let found = lines_of(&format!("{CONTROLLER}{OPEN}"), "argocd-application");
    assert_eq!(
        found,
        [
            "argocd-application: create applications.argoproj.io -> sa:cd/applier in cd",
            "argocd-application: patch,update applications.argoproj.io -> sa:cd/applier in cd",
        ]
    );
}

#[test]
fn a_narrow_project_lets_through_what_can_be_done_in_its_namespaces() {
    let found = lines_of(&format!("{CONTROLLER}{NARROW}"), "argocd-application");
    assert!(found.iter().all(|line| line.ends_with("-> everything:team-a in cd")), "{found:?}");
    let none = NARROW.replace("https://kubernetes.default.svc", "https://elsewhere.example");
    assert!(lines_of(&format!("{CONTROLLER}{none}"), "argocd-application").is_empty());
}

#[test]
fn denied_destinations_are_left_out() {
    let project = OPEN.replace(
        "[{namespace: '*', server: '*'}]",
        "[{namespace: '*', server: '*'}, {namespace: '!cd', server: '*'}]",
    );
    let found = lines_of(&format!("{CONTROLLER}{project}"), "argocd-application");
    assert!(found.iter().any(|line| line.contains("everything:team-a")), "{found:?}");
    assert!(!found.iter().any(|line| line.contains("everything:cd")), "{found:?}");
}

#[test]
fn without_a_project_the_one_that_argo_cd_makes_is_assumed() {
    let found = lines_of(CONTROLLER, "argocd-application");
    assert!(
        !found.is_empty() && found.iter().all(|line| line.contains("sa:cd/applier (assumed)")),
        "{found:?}"
    );
}

#[test]
fn applications_count_in_namespaces_that_both_the_controller_and_the_project_name() {
    let project = OPEN.replace("spec:", "spec:\n  sourceNamespaces: [team-*]");
    let closed = lines_of(&format!("{CONTROLLER}{project}"), "argocd-application");
    assert!(closed.iter().all(|line| line.ends_with("in cd")), "{closed:?}");
    let params = CONTROLLER.replace(
        "name: argocd-cmd-params-cm, namespace: cd}\ndata: {}",
        "name: argocd-cmd-params-cm, namespace: cd}\ndata: {application.namespaces: 'team-a, other'}",
    );
    let open = lines_of(&format!("{params}{project}"), "argocd-application");
    assert!(
        open.contains(
            &"argocd-application: create applications.argoproj.io -> sa:cd/applier in team-a".to_owned()
        ),
        "{open:?}"
    );
    assert!(!open.iter().any(|line| line.contains("team-b")), "{open:?}");
}

#[test]
fn namespaces_that_could_not_be_read_are_assumed_and_the_own_one_is_not() {
    let project = OPEN.replace("spec:", "spec:\n  sourceNamespaces: [team-*]");
    let unread = CONTROLLER.replace(
        "name: argocd-cmd-params-cm, namespace: cd}\ndata: {}",
        "name: others, namespace: cd}\ndata: {}",
    );
    let found = lines_of(&format!("{unread}{project}"), "argocd-application");
    assert!(
        found.contains(
            &"argocd-application: create applications.argoproj.io -> sa:cd/applier in cd".to_owned()
        ),
        "{found:?}"
    );
    assert!(found.contains(&"argocd-application: create applications.argoproj.io -> sa:cd/applier (assumed) in team-a,team-b".to_owned()), "{found:?}");
}

#[test]
fn with_impersonation_a_project_says_as_whom() {
    let on = CONTROLLER.replace(
        "name: argocd-cm, namespace: cd}\ndata: {}",
        "name: argocd-cm, namespace: cd}\ndata: {application.sync.impersonation.enabled: 'true'}",
    );
    let project = NARROW.replace("spec: {", "spec: {destinationServiceAccounts: [{server: '*', namespace: team-*, defaultServiceAccount: deployer}, {server: '*', namespace: x, defaultServiceAccount: 'ops:applier'}], ");
    let found = lines_of(&format!("{on}{project}"), "argocd-application");
    let gifts: std::collections::BTreeSet<&str> =
        found.iter().filter_map(|line| line.split(" -> ").nth(1)).collect();
    assert_eq!(
        gifts,
        ["sa:ops/applier in cd", "sa:team-a/deployer in cd", "sa:team-b/deployer in cd"].into()
    );
    assert!(!edges(&format!("{on}{project}")).contains("argocd-application-project"));
}

#[test]
fn who_writes_projects_too_is_bound_by_none() {
    let found = lines_of(&format!("{CONTROLLER}{NARROW}"), "argocd-application-project");
    assert!(
        found.contains(
            &"argocd-application-project: create appprojects.argoproj.io and create,patch,update applications.argoproj.io -> sa:cd/applier in cd".to_owned()
        ),
        "{found:?}"
    );
}

#[test]
fn who_decides_what_a_repository_delivers_acts_as_the_controller() {
    let text = format!(
        "{CONTROLLER}{OPEN}---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: app, namespace: cd}}
spec: {{project: default, source: {{repoURL: 'git@git.acme.example:platform/app.git'}}, destination: {{name: in-cluster}}}}
"
    );
    assert_eq!(
        lines_of(&text, "argocd-source"),
        ["argocd-source: source:git.acme.example/platform/app -> sa:cd/applier"]
    );
}

#[test]
fn an_application_for_another_cluster_acts_there() {
    let text = format!(
        "{CONTROLLER}{OPEN}---
apiVersion: v1
kind: Secret
metadata: {{name: prod-login, namespace: cd, labels: {{argocd.argoproj.io/secret-type: cluster, cluster.x-k8s.io/cluster-name: prod}}}}
type: Opaque
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: app, namespace: cd}}
spec: {{project: default, source: {{repoURL: 'https://git.example/app'}}, destination: {{name: prod}}}}
"
    );
    assert_eq!(
        lines_of(&text, "argocd-source"),
        ["argocd-source: source:git.example/app -> cluster:cd/prod"]
    );
    assert_eq!(
        lines_of(&text, "argocd-cluster-secret"),
        ["argocd-cluster-secret: secret:cd/prod-login -> cluster:cd/prod"]
    );
}

#[test]
fn application_sets_need_their_controller() {
    assert!(!edges(&format!("{CONTROLLER}{OPEN}")).contains("argocd-application-set"));
    let with = CONTROLLER.replacen("---", "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: sets, namespace: cd}
spec: {template: {spec: {serviceAccountName: sets, containers: [
  {name: main, image: 'quay.io/argoproj/argocd:v3.5.1', args: [/usr/local/bin/argocd-applicationset-controller]}]}}}
---", 1);
    assert!(edges(&format!("{with}{OPEN}")).contains("argocd-application-set"));
}

#[test]
fn argo_cds_own_secrets_make_one_its_administrator() {
    let text = format!(
        "{CONTROLLER}{OPEN}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: argocd-initial-admin-secret, namespace: cd}}\ntype: Opaque\n"
    );
    assert_eq!(
        lines_of(&text, "argocd-admin-secret"),
        ["argocd-admin-secret: secret:cd/argocd-initial-admin-secret -> sa:cd/applier (assumed)"]
    );
}
