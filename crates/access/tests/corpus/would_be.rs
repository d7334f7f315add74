//! Pods that a workload will make once it is there: an answer about manifests takes each workload for one.

use bailey_access::{Access, Customers, Loader};

use crate::cluster::{account, binding, load, namespace, pod, role, secret};

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
    let mut loader = Loader::new(&mut after, Some("mc")).would_be_pods();
    loader.source("objects.yaml");
    loader.load_yaml(objects.join("\n---\n").as_bytes()).unwrap();
    loader.finish();
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
    let mut without_workload = app();
    without_workload.pop();
    assert_eq!(gained(&without_workload), ["sa:a/app", "sa:a/creator"]);
}

#[test]
fn whoever_only_gets_into_pods_is_answered_for_once_the_pod_is_named() {
    let with_pod: Vec<_> = app().into_iter().chain([pod("a/app-0", "app", &[])]).collect();
    assert_eq!(gained(&with_pod), ["sa:a/app", "sa:a/creator", "sa:a/debugger"]);
}

#[test]
fn whoever_only_gets_into_pods_is_answered_for_by_the_deployment() {
    assert_eq!(gained(&app()), ["sa:a/app", "sa:a/creator", "sa:a/debugger"]);
}

/// The app as another kind of workload, with what stands above its pods' template.
fn as_workload(start: &str, path: &str) -> Vec<String> {
    let spec = "{spec: {serviceAccountName: app, containers: [{name: c, image: app}]}}";
    let mut objects = app();
    objects.pop();
    objects.push(format!(
        "{{{start}, metadata: {{namespace: a, name: app}}, spec: {}}}",
        path.replace('%', spec)
    ));
    objects
}

#[test]
fn every_kind_that_makes_pods_is_taken_for_one() {
    for (start, path) in [
        ("apiVersion: apps/v1, kind: StatefulSet", "{template: %}"),
        ("apiVersion: apps/v1, kind: DaemonSet", "{template: %}"),
        ("apiVersion: apps/v1, kind: ReplicaSet", "{template: %}"),
        ("apiVersion: v1, kind: ReplicationController", "{template: %}"),
        ("apiVersion: batch/v1, kind: Job", "{template: %}"),
        ("apiVersion: batch/v1, kind: CronJob", "{jobTemplate: {spec: {template: %}}}"),
    ] {
        assert_eq!(
            gained(&as_workload(start, path)),
            ["sa:a/app", "sa:a/creator", "sa:a/debugger"],
            "{start}"
        );
    }
    let none = as_workload("apiVersion: apps/v1, kind: Deployment", "{replicas: 0, template: %}");
    assert_eq!(gained(&none), ["sa:a/app", "sa:a/creator"]);
}
