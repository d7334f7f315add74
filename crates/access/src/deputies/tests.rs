//! Each deputy with small clusters: what it gives, and what takes it away.

mod argocd;
mod capi;
mod corpus;
mod data;
mod flux;
mod others;
mod stores;
pub(crate) mod support;

use support::{edges, lines};

const KUSTOMIZE_CONTROLLER: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: anything, namespace: gitops}
spec: {template: {spec: {serviceAccountName: applier, containers: [
  {name: manager, image: 'registry.example/mirror/fluxcd/kustomize-controller:v1.9.4', args: [--watch-all-namespaces]}]}}}
";

#[test]
fn a_controller_is_known_by_its_image_and_acts_as_the_account_of_its_workload() {
    let lines = lines(KUSTOMIZE_CONTROLLER);
    assert!(
        lines.contains(
            &"flux-kustomization: create kustomizations.kustomize.toolkit.fluxcd.io -> sa:gitops/applier"
                .to_owned()
        ),
        "{lines:#?}"
    );
}

#[test]
fn a_workload_with_the_right_name_and_another_image_is_no_controller() {
    let text = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: flux-system}
spec: {template: {spec: {serviceAccountName: kustomize-controller, containers: [{name: manager, image: nginx}]}}}
";
    assert_eq!(lines(text), Vec::<String>::new());
}

#[test]
fn a_mirror_may_put_its_project_before_the_image_name() {
    let text = KUSTOMIZE_CONTROLLER
        .replace("registry.example/mirror/fluxcd/kustomize", "gsoci.example:5000/x/fluxcd-kustomize");
    assert!(edges(&text).contains("flux-kustomization"));
}

#[test]
fn without_a_workload_the_usual_account_is_a_guess_and_everything_is_assumed() {
    let text = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: kustomize-controller, namespace: flux-system}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: team}
spec: {}
";
    let lines = lines(text);
    let wanted = "flux-kustomization: create kustomizations.kustomize.toolkit.fluxcd.io -> sa:flux-system/kustomize-controller (assumed)";
    assert!(lines.contains(&wanted.to_owned()), "{lines:#?}");
    assert!(lines.iter().all(|line| line.contains("(assumed)")), "{lines:#?}");
}

#[test]
fn objects_without_any_controller_make_findings_that_say_so() {
    let text = "
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: team}
spec: {}
";
    let (templates, _) = support::templates(text);
    let found = templates.iter().find(|template| template.edge == "flux-kustomization").expect("an edge");
    assert_eq!(found.gives, crate::Gift::Nothing);
    assert!(
        found.guard.as_ref().is_some_and(|guard| guard.contains("nothing that runs kustomize-controller"))
    );
}

#[test]
fn a_definition_alone_says_nothing_where_all_workloads_were_seen() {
    let crd = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kustomizations.kustomize.toolkit.fluxcd.io}
";
    let listed = ["deployments.apps", "statefulsets.apps", "daemonsets.apps"];
    assert!(support::lines_listed(crd, &listed).is_empty());
    assert!(!support::lines_listed(crd, &[]).is_empty());
}

#[test]
fn a_kind_that_is_not_served_gives_nothing() {
    let all = ["customresourcedefinitions.apiextensions.k8s.io"];
    assert!(support::lines_listed(KUSTOMIZE_CONTROLLER, &all).is_empty());
}

#[test]
fn who_may_only_change_objects_needs_one_to_change() {
    let listed = ["kustomizations.kustomize.toolkit.fluxcd.io"];
    let change = |lines: &[String]| {
        lines.iter().filter(|line| line.starts_with("flux-kustomization: patch")).cloned().collect::<Vec<_>>()
    };
    assert!(change(&support::lines_listed(KUSTOMIZE_CONTROLLER, &listed)).is_empty());
    let one = format!(
        "{KUSTOMIZE_CONTROLLER}---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: apps, namespace: team}}
spec: {{serviceAccountName: x}}
"
    );
    let found = change(&support::lines_listed(&one, &listed));
    assert_eq!(
        found,
        [
            "flux-kustomization: patch,update kustomizations.kustomize.toolkit.fluxcd.io -> sa:gitops/applier in team"
        ]
    );
    assert!(!change(&lines(KUSTOMIZE_CONTROLLER)).is_empty(), "not listed, so one may exist");
}
