//! What exists and a rail would look at: releases, pods, roles and bindings, and kinds that tenants installed.

use bailey_guardrails::Model;
use serde_json::{Value, json};

use super::enforce::{Existing, owner_by_mark};
use super::load::{Inputs, Unknown};
use crate::live::{Live, path, text};

/// Kinds that install something: group, plural, kind.
const RELEASES: [(&str, &str, &str); 4] = [
    ("helm.toolkit.fluxcd.io", "helmreleases", "HelmRelease"),
    ("kustomize.toolkit.fluxcd.io", "kustomizations", "Kustomization"),
    ("application.giantswarm.io", "apps", "App"),
    ("argoproj.io", "applications", "Application"),
];
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
const CRD_GROUP: &str = "apiextensions.k8s.io";

/// Everything that a rail would look at, with what could not be read.
pub async fn existing(live: &Live, inputs: &Inputs, model: &Model) -> (Vec<Existing>, Vec<Unknown>) {
    let mut found = Vec::new();
    let mut unknown = Vec::new();
    for (group, plural, kind) in RELEASES {
        let Some(version) = inputs.served.versions.get(&(group.to_owned(), plural.to_owned())) else {
            continue;
        };
        match live.list(&path(group, version, plural, None, None)).await {
            Ok(items) => found.extend(items.into_iter().map(|item| entry(group, plural, kind, item))),
            Err(error) => unknown.push(Unknown::new(format!("{plural}.{group}"), &error)),
        }
    }
    for namespace in model.tenants.values().flat_map(|tenant| &tenant.namespaces) {
        match live.list(&path("", "v1", "pods", Some(namespace.as_str()), None)).await {
            Ok(items) => {
                found.extend(items.into_iter().map(|item| entry("", "pods", "Pod", as_created(item))))
            }
            Err(error) => unknown.push(Unknown::new(format!("pods in {namespace}"), &error)),
        }
    }
    for (plural, kind) in [
        ("clusterroles", "ClusterRole"),
        ("clusterrolebindings", "ClusterRoleBinding"),
        ("roles", "Role"),
        ("rolebindings", "RoleBinding"),
    ] {
        let items = inputs.rbac_objects.get(plural).into_iter().flatten();
        let theirs = items.filter(|item| !text(item, "/metadata/name").starts_with("bailey:"));
        found.extend(theirs.map(|item| entry(RBAC_GROUP, plural, kind, item.clone())));
    }
    for crd in inputs.crds.iter().filter(|crd| owner_by_mark(crd, model).is_some()) {
        let (plural, name) = ("customresourcedefinitions", text(crd, "/metadata/name"));
        match live.get(path(CRD_GROUP, "v1", plural, None, Some(&name))).await {
            Ok(Some(item)) => found.push(entry(CRD_GROUP, plural, "CustomResourceDefinition", item)),
            Ok(None) => {}
            Err(error) => unknown.push(Unknown::new(format!("CustomResourceDefinition {name}"), &error)),
        }
    }
    (found, unknown)
}

/// A pod as it was created: its node was chosen by the scheduler.
fn as_created(mut pod: Value) -> Value {
    if let Some(spec) = pod.pointer_mut("/spec").and_then(Value::as_object_mut) {
        spec.remove("nodeName");
    }
    pod
}

/// An object of a list, whose kind is not repeated in it.
fn entry(group: &str, plural: &str, kind: &str, mut object: Value) -> Existing {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("kind".to_owned(), json!(kind));
    }
    Existing { group: group.to_owned(), resource: plural.to_owned(), object }
}
