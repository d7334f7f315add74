//! Which kinds are read, and how much of each. A kind that is not here is counted and passed over.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::shape::{COMPOSITE_DEFINITION, DEFINITION, DESIRED, EXISTENCE, FLUX, Shape, WHOLE};
use crate::deputies;

/// What is made of an object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Route {
    /// A fact of its own type.
    Namespace,
    ServiceAccount,
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
    Secret,
    Pod,
    Node,
    /// A ConfigMap: that it exists, if its name is one that somebody trusts, and settings of controllers in it.
    ConfigMap,
    /// A Deployment, DaemonSet or StatefulSet.
    Workload,
    /// A PersistentVolume, if it is a folder of a node.
    Volume,
    /// An object, in a shape.
    Object(&'static Shape),
    /// An object of a kind that nobody here knows: kept if it is a managed resource of Crossplane.
    Unknown,
    /// Counted only.
    Nothing,
}

/// Kinds whose names in the API are known here: group, kind, plural, whether it is namespaced.
const BUILT_IN: [(&str, &str, &str, bool); 19] = [
    ("", "Namespace", "namespaces", false),
    ("", "Node", "nodes", false),
    ("", "Pod", "pods", true),
    ("", "Secret", "secrets", true),
    ("", "ServiceAccount", "serviceaccounts", true),
    ("", "ConfigMap", "configmaps", true),
    ("", "PersistentVolume", "persistentvolumes", false),
    ("", "Endpoints", "endpoints", true),
    ("apps", "DaemonSet", "daemonsets", true),
    ("apps", "Deployment", "deployments", true),
    ("apps", "StatefulSet", "statefulsets", true),
    (RBAC, "ClusterRole", "clusterroles", false),
    (RBAC, "ClusterRoleBinding", "clusterrolebindings", false),
    (RBAC, "Role", "roles", true),
    (RBAC, "RoleBinding", "rolebindings", true),
    ("kyverno.io", "ClusterPolicy", "clusterpolicies", false),
    ("kyverno.io", "Policy", "policies", true),
    ("application.giantswarm.io", "App", "apps", true),
    ("cluster.x-k8s.io", "Cluster", "clusters", true),
];

const RBAC: &str = "rbac.authorization.k8s.io";

/// ConfigMaps that decide whom an API server, a node or a resolver trusts.
pub(super) const TRUSTED_CONFIG_MAPS: [&str; 4] =
    ["aws-auth", "coredns", "extension-apiserver-authentication", "kubeadm-config"];

/// ConfigMaps in which controllers look for settings by name.
pub(super) const SETTING_CONFIG_MAPS: [&str; 2] = ["argocd-cm", "argocd-cmd-params-cm"];

/// Whether a ConfigMap of this name is one in which controllers look for settings, so that it is worth reading.
pub fn has_settings(name: &str) -> bool {
    SETTING_CONFIG_MAPS.contains(&name)
}

/// The group of an `apiVersion`, empty for core.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// What is made of objects of a kind.
pub(super) fn route(group: &str, kind: &str) -> Route {
    match (group, kind) {
        ("", "Namespace") => Route::Namespace,
        ("", "ServiceAccount") => Route::ServiceAccount,
        ("", "Secret") => Route::Secret,
        ("", "Pod") => Route::Pod,
        ("", "Node") => Route::Node,
        ("", "ConfigMap") => Route::ConfigMap,
        ("", "PersistentVolume") => Route::Volume,
        (RBAC, "Role") => Route::Role,
        (RBAC, "ClusterRole") => Route::ClusterRole,
        (RBAC, "RoleBinding") => Route::RoleBinding,
        (RBAC, "ClusterRoleBinding") => Route::ClusterRoleBinding,
        ("apps", "Deployment" | "DaemonSet" | "StatefulSet") => Route::Workload,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Route::Object(&DEFINITION),
        ("apiextensions.crossplane.io", "CompositeResourceDefinition") => {
            Route::Object(&COMPOSITE_DEFINITION)
        }
        // Records of work, in thousands, from which nothing follows.
        ("kyverno.io", "UpdateRequest" | "AdmissionReport" | "BackgroundScanReport")
        | ("application.giantswarm.io", "AppCatalogEntry")
        | (_, "ProviderConfigUsage" | "ClusterProviderConfigUsage") => Route::Nothing,
        ("monitoring.coreos.com", "PrometheusRule") => Route::Object(&EXISTENCE),
        ("argoproj.io", "Application" | "ApplicationSet" | "AppProject") => Route::Object(&DESIRED),
        ("capsule.clastix.io", "Tenant")
        | ("kamaji.clastix.io", "TenantControlPlane")
        | ("olm.operatorframework.io", "ClusterExtension")
        | ("operators.coreos.com", "OperatorGroup") => Route::Object(&WHOLE),
        (_, "ProviderConfig" | "ClusterProviderConfig") => Route::Object(&WHOLE),
        _ => match by_group(group) {
            // What deputies need of the others is that there are some.
            Route::Unknown if deputies::names(group, kind) => Route::Object(&EXISTENCE),
            route => route,
        },
    }
}

/// Whether anything is kept of objects of a kind, so that it is worth listing. Kinds of unknown groups are not, though
/// a dump may hold some that are.
pub fn keeps(group: &str, kind: &str) -> bool {
    !matches!(route(group, kind), Route::Nothing | Route::Unknown)
}

fn by_group(group: &str) -> Route {
    let within =
        |domain: &str| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    match group {
        "admissionregistration.k8s.io"
        | "apiregistration.k8s.io"
        | "application.giantswarm.io"
        | "auth.giantswarm.io"
        | "bailey.dev"
        | "cert-manager.io"
        | "konfigure.giantswarm.io"
        | "kyverno.io"
        | "monitoring.coreos.com"
        | "policies.kyverno.io"
        | "security.giantswarm.io"
        | "velero.io" => Route::Object(&WHOLE),
        "constraints.gatekeeper.sh" | "templates.gatekeeper.sh" => Route::Object(&EXISTENCE),
        _ if ["fluxcd.controlplane.io", "fluxcd.io"].into_iter().any(within) => Route::Object(&FLUX),
        _ if ["cluster.x-k8s.io", "crossplane.io", "external-secrets.io"].into_iter().any(within) => {
            Route::Object(&WHOLE)
        }
        "" | "apps" | "batch" | "events.k8s.io" | "coordination.k8s.io" | "discovery.k8s.io" => {
            Route::Nothing
        }
        _ => Route::Unknown,
    }
}

/// Whether objects of a kind are in namespaces, where that is known without the cluster.
pub(super) fn is_namespaced(group: &str, kind: &str) -> Option<bool> {
    let known = BUILT_IN.iter().find(|(g, k, ..)| *g == group && *k == kind);
    known.map(|(.., namespaced)| *namespaced)
}

/// `plural.group` of a kind as a cluster without CustomResourceDefinitions at hand would call it: by the same rules as
/// `meta.UnsafeGuessKindToResource` of k8s.io/apimachinery.
pub(super) fn resource_name(group: &str, kind: &str) -> String {
    let known = BUILT_IN.iter().find(|(g, k, ..)| *g == group && *k == kind);
    let plural = known.map_or_else(|| guess_plural(kind), |(_, _, plural, _)| (*plural).to_owned());
    if group.is_empty() { plural } else { format!("{plural}.{group}") }
}

fn guess_plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    }
}

/// The kind that a file or an address is about, by its last part: `secrets.json`, `/api/v1/pods?limit=500`. Only for
/// kinds of which there are lists that do not say it themselves.
pub(super) fn expected(source: &str) -> Option<(&'static str, &'static str)> {
    let path = source.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = last.split('.').next().unwrap_or_default();
    let (group, kind, ..) = BUILT_IN.iter().find(|(.., plural, _)| *plural == stem)?;
    match *group {
        "" => Some(("v1", kind)),
        RBAC => Some(("rbac.authorization.k8s.io/v1", kind)),
        "apps" => Some(("apps/v1", kind)),
        _ => None,
    }
}

/// A kind that was met.
#[derive(Debug)]
pub(super) struct Met {
    /// `apiVersion`.
    pub(super) api_version: String,
    /// `kind`.
    pub(super) kind: String,
    /// What is made of its objects.
    pub(super) route: Route,
    /// How many objects of it there were.
    pub(super) count: u64,
    /// Whether the list that is being read is about it.
    pub(super) is_in_list: bool,
    /// Whether a list of it was read to its end.
    pub(super) is_listed: bool,
    /// Whether an object of it could not be read.
    pub(super) is_spoilt: bool,
    /// The source in which a list of it broke off with a `continue`.
    pub(super) broken_off: Option<String>,
}

/// All kinds that were met.
#[derive(Debug)]
pub(super) struct Kinds {
    /// The kind of the object before: objects mostly come sorted by kind.
    current: Met,
    others: BTreeMap<(String, String), Met>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self { current: Met::new("", ""), others: BTreeMap::new() }
    }
}

impl Kinds {
    /// The entry of a kind.
    pub(super) fn of(&mut self, api_version: &str, kind: &str) -> &mut Met {
        if self.current.kind != kind || self.current.api_version != api_version {
            let name = (api_version.to_owned(), kind.to_owned());
            let next = self.others.remove(&name).unwrap_or_else(|| Met::new(api_version, kind));
            let before = std::mem::replace(&mut self.current, next);
            self.others.insert((before.api_version.clone(), before.kind.clone()), before);
        }
        &mut self.current
    }

    /// All that were met, by `apiVersion` and kind.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Met> {
        // Puts the current one where it belongs; no kind is nameless.
        self.of("", "");
        self.others.values_mut()
    }

    /// How many objects of each `apiVersion` and kind there were; 0 where there was but an empty list.
    pub(super) fn counts(&self) -> BTreeMap<(String, String), u64> {
        let all = self.others.values().chain([&self.current]);
        let all = all.filter(|met| met.count > 0 || met.is_listed);
        all.map(|met| ((met.api_version.clone(), met.kind.clone()), met.count)).collect()
    }
}

impl Met {
    fn new(api_version: &str, kind: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            route: route(group_of(api_version), kind),
            count: 0,
            is_in_list: false,
            is_listed: false,
            is_spoilt: false,
            broken_off: None,
        }
    }
}
