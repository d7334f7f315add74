//! The most that a tenant holds: in each of its namespaces, and in the cluster.
//!
//! The same tables make the roles of its people and bound what its apps are granted, so that an app never
//! holds more than the tenant itself.

use std::collections::{BTreeMap, BTreeSet};

use bailey_api::Enforcement;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::{Discovery, Model, Resource, ResourceScope, TenantModel};

/// Group and resource to verbs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ceiling {
    entries: BTreeMap<(String, String), BTreeSet<String>>,
}

/// Verbs of an object's life. `bind`, `escalate`, `impersonate` and the like are never part of a ceiling.
const LIFE: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const READ: [&str; 3] = ["get", "list", "watch"];

/// Namespaced kinds that fence tenants, which they may read but not write.
const FENCES: [(&str, &str); 9] = [
    ("", "resourcequotas"),
    ("", "limitranges"),
    // Addresses written by hand reach what NetworkPolicy keeps away (CVE-2021-25740).
    ("", "endpoints"),
    ("discovery.k8s.io", "endpointslices"),
    // Binding a pod chooses its node, past taints.
    ("", "bindings"),
    ("", "pods/binding"),
    ("storage.k8s.io", "csistoragecapacities"),
    // A way to mint identities (KEP-4317).
    ("certificates.k8s.io", "podcertificaterequests"),
    ("", "serviceaccounts/impersonate"),
];

/// Cluster-scoped kinds whose names and contents concern everybody and name no customer.
const HARMLESS: [(&str, &str); 10] = [
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("gateway.networking.k8s.io", "gatewayclasses"),
    ("networking.k8s.io", "ingressclasses"),
    ("node.k8s.io", "runtimeclasses"),
    ("resource.k8s.io", "deviceclasses"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("snapshot.storage.k8s.io", "volumesnapshotclasses"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattributesclasses"),
];

/// What a tenant holds in each of its namespaces.
pub fn namespace_ceiling(discovery: &Discovery, model: &Model) -> Ceiling {
    let mut ceiling = Ceiling::default();
    for resource in discovery.resources().iter().filter(|r| r.scope == ResourceScope::Namespaced) {
        let verbs: &[&str] = if is_fence(resource, model) { &READ } else { &LIFE };
        ceiling.add(&resource.group, &resource.name, supported(resource, verbs));
    }
    // A namespace is read and labelled through rights inside it; the rail `namespaces` keeps its owner.
    ceiling.add("", "namespaces", verbs(&["get", "patch", "update", "delete"]));
    ceiling
}

/// What a tenant holds in the cluster.
///
/// Writes of kinds that it shares with others are held to its own objects by rails, so they are part of it
/// only while the rails refuse.
pub fn cluster_ceiling(discovery: &Discovery, model: &Model, tenant: &TenantModel) -> Ceiling {
    let mut ceiling = Ceiling::default();
    for resource in discovery.resources().iter().filter(|r| r.scope == ResourceScope::Cluster) {
        let key = (resource.group.as_str(), resource.name.as_str());
        if HARMLESS.contains(&key) {
            ceiling.add(key.0, key.1, supported(resource, &READ));
        }
        if owns_kind(model, tenant, resource) {
            ceiling.add(key.0, key.1, supported(resource, &LIFE));
        }
    }
    ceiling.add("authentication.k8s.io", "tokenreviews", verbs(&["create"]));
    ceiling.add("authorization.k8s.io", "subjectaccessreviews", verbs(&["create"]));
    if model.installation.enforcement == Enforcement::Enforce {
        // By name only: a list would show the names of others.
        let by_name = verbs(&["get", "create", "update", "patch", "delete"]);
        ceiling.add("rbac.authorization.k8s.io", "clusterroles", by_name.clone());
        ceiling.add("rbac.authorization.k8s.io", "clusterrolebindings", by_name.clone());
        ceiling.add("apiextensions.k8s.io", "customresourcedefinitions", by_name);
        if tenant.spec.namespace_prefix.is_some() {
            ceiling.add("", "namespaces", verbs(&["create"]));
        }
    }
    ceiling
}

/// A kind of the platform that lies in a group given to the tenant stays the platform's, unless named.
fn owns_kind(model: &Model, tenant: &TenantModel, resource: &Resource) -> bool {
    let plural = resource.name.split('/').next().unwrap_or_default();
    let crd = format!("{plural}.{}", resource.group);
    let group = tenant.spec.crds.groups.iter().any(|g| g.as_str() == resource.group);
    (group && !model.platform_crds.contains(&crd)) || tenant.spec.crds.names.iter().any(|n| n.as_str() == crd)
}

fn is_fence(resource: &Resource, model: &Model) -> bool {
    let plural = resource.name.split('/').next().unwrap_or_default();
    let kind = format!("{plural}.{}", resource.group);
    resource.group == bailey_api::GROUP
        || FENCES.contains(&(resource.group.as_str(), resource.name.as_str()))
        || model.installation.protected_kinds.contains(&kind)
}

fn supported(resource: &Resource, wanted: &[&str]) -> BTreeSet<String> {
    resource.verbs.iter().filter(|v| wanted.contains(&v.as_str())).cloned().collect()
}

fn verbs(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

impl Ceiling {
    /// Adds verbs on a resource.
    pub fn add(&mut self, group: &str, resource: &str, verbs: BTreeSet<String>) {
        if !verbs.is_empty() {
            self.entries.entry((group.to_owned(), resource.to_owned())).or_default().extend(verbs);
        }
    }

    /// The verbs on a resource. `X/finalizers` is served by none, but asked for where owner references are
    /// checked (OwnerReferencesPermissionEnforcement); it goes with updating X.
    pub fn verbs(&self, group: &str, resource: &str) -> BTreeSet<String> {
        let direct = |name: &str| self.entries.get(&(group.to_owned(), name.to_owned()));
        match (direct(resource), resource.strip_suffix("/finalizers")) {
            (Some(verbs), _) => verbs.clone(),
            (None, Some(parent)) if direct(parent).is_some_and(|v| v.contains("update")) => {
                verbs(&["update"])
            }
            _ => BTreeSet::new(),
        }
    }

    /// All entries, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &BTreeSet<String>)> {
        self.entries.iter().map(|((group, resource), verbs)| (group.as_str(), resource.as_str(), verbs))
    }

    /// Keeps what `keep` says of each group, resource and verb.
    pub fn filter(&self, keep: impl Fn(&str, &str, &str) -> bool) -> Self {
        let mut kept = Self::default();
        for (group, resource, verbs) in self.iter() {
            kept.add(group, resource, verbs.iter().filter(|v| keep(group, resource, v)).cloned().collect());
        }
        kept
    }

    /// The entries as few rules of RBAC, in a stable order.
    pub fn rules(&self) -> Vec<PolicyRule> {
        let mut grouped = BTreeMap::<(&str, Vec<&str>), Vec<String>>::new();
        for (group, resource, verbs) in self.iter() {
            let key = (group, verbs.iter().map(String::as_str).collect());
            grouped.entry(key).or_default().push(resource.to_owned());
        }
        grouped
            .into_iter()
            .map(|((group, verbs), resources)| PolicyRule {
                api_groups: Some(vec![group.to_owned()]),
                resources: Some(resources),
                verbs: verbs.into_iter().map(str::to_owned).collect(),
                ..PolicyRule::default()
            })
            .collect()
    }
}
