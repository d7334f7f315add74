//! Pods that a workload will make once it is there. No fact stands for them: an answer about manifests knows the account
//! of a workload and the ways to become it, and no way through its pods.

use bailey_access::{Access, Customers};

use crate::cluster::{account, binding, load, load_into, namespace, pod, role, secret};

const TENANTS: &str = "customers: {acme: {namespaces: [a]}}\nplatform: {rest: true}";

/// Accounts of a customer: one that may create pods, one that may only run commands in them.
fn before() -> Vec<String> {
    vec![
        namespace("a"),
        secret("platform/s"),
        account("a/creator"),
        account("a/debugger"),
        role("a/create", &["create pods"]),
        role("a/exec", &["create pods/exec"]),
        binding("a/create", "Role create", &["sa:a/creator"]),
        binding("a/exec", "Role exec", &["sa:a/debugger"]),
    ]
}

/// An app whose account reads every Secret.
fn app() -> Vec<String> {
    vec![
        account("a/app"),
        role("app", &["get secrets"]),
        binding("app", "ClusterRole app", &["sa:a/app"]),
        "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: a, name: app}, spec: {selector: {matchLabels: {app: app}}, \
         template: {metadata: {labels: {app: app}}, spec: {serviceAccountName: app, containers: [{name: c, image: app}]}}}}"
            .to_owned(),
    ]
}

/// Who would newly reach the platform's Secret with these objects.
fn gained(objects: &[String]) -> Vec<String> {
    let customers = || -> Customers { Customers::from_file(TENANTS, "tenants.yaml").unwrap().customers };
    let snapshot = load(&before());
    let mut after = snapshot.clone();
    load_into(&mut after, "mc", objects);
    assert_eq!(after.gaps, []);
    let (before, after) = (Access::new(snapshot, customers()), Access::new(after, customers()));
    let what_if = before.what_if(&after, Vec::new());
    let mut subjects: Vec<_> = what_if.gained.into_iter().map(|change| change.subject).collect();
    subjects.retain(|subject| subject.starts_with("sa:"));
    subjects.sort();
    subjects
}

#[test]
fn whoever_creates_pods_acts_as_the_account_of_an_app_before_it_runs() {
    assert_eq!(gained(&app()), ["sa:a/app", "sa:a/creator"]);
}

#[test]
fn whoever_only_gets_into_pods_is_answered_for_once_the_pod_is_named() {
    let with_pod: Vec<_> = app().into_iter().chain([pod("a/app-0", "app", &[])]).collect();
    assert_eq!(gained(&with_pod), ["sa:a/app", "sa:a/creator", "sa:a/debugger"]);
}

#[test]
#[ignore = "known limit: no fact stands for the pods that a Deployment of a manifest will make"]
fn whoever_only_gets_into_pods_is_answered_for_by_the_deployment() {
    assert_eq!(gained(&app()), ["sa:a/app", "sa:a/creator", "sa:a/debugger"]);
}
