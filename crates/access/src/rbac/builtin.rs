//! Default roles of Kubernetes, for dumps that refer to them without having them.
//!
//! Only what matters for reaching Secrets, from `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go` (1.36). An
//! API server writes missing rules of these roles back at each start, so a cluster holds at least what is here.

use crate::{RuleFact, SelectorFact, Symbols};

type Rules = &'static [(&'static [&'static str], &'static [&'static str], &'static [&'static str])];

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

const VIEW: Rules = &[
    (
        READ,
        &[""],
        &[
            "configmaps",
            "endpoints",
            "persistentvolumeclaims",
            "pods",
            "replicationcontrollers",
            "serviceaccounts",
            "services",
            "bindings",
            "events",
            "limitranges",
            "namespaces/status",
            "pods/log",
            "pods/status",
            "resourcequotas",
            "namespaces",
        ],
    ),
    (READ, &["apps"], &["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"]),
    (READ, &["batch"], &["cronjobs", "jobs"]),
    (READ, &["networking.k8s.io"], &["ingresses", "networkpolicies"]),
];

const EDIT: Rules = &[
    (
        READ,
        &[""],
        &["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"],
    ),
    (&["impersonate"], &[""], &["serviceaccounts"]),
    (WRITE, &[""], &["pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"]),
    (&["create"], &[""], &["pods/eviction", "serviceaccounts/token"]),
    (
        WRITE,
        &[""],
        &[
            "configmaps",
            "persistentvolumeclaims",
            "replicationcontrollers",
            "secrets",
            "serviceaccounts",
            "services",
            "services/proxy",
        ],
    ),
    (WRITE, &["apps"], &["daemonsets", "deployments", "replicasets", "statefulsets"]),
    (WRITE, &["batch"], &["cronjobs", "jobs"]),
    (WRITE, &["networking.k8s.io"], &["ingresses", "networkpolicies"]),
];

const ADMIN: Rules = &[
    (&["create"], &["authorization.k8s.io"], &["localsubjectaccessreviews"]),
    (READ, &["rbac.authorization.k8s.io"], &["rolebindings", "roles"]),
    (WRITE, &["rbac.authorization.k8s.io"], &["rolebindings", "roles"]),
];

const ALL: Rules = &[(&["*"], &["*"], &["*"])];

/// The default ClusterRoles that matter.
pub const NAMES: [&str; 5] = ["cluster-admin", "admin", "edit", "view", "system:kube-controller-manager"];

/// The rules of a default ClusterRole.
pub fn rules(name: &str, symbols: &mut Symbols) -> Vec<RuleFact> {
    let parts: &[Rules] = match name {
        "cluster-admin" => &[ALL],
        "admin" => &[ADMIN, EDIT, VIEW],
        "edit" => &[EDIT, VIEW],
        "view" => &[VIEW],
        "system:kube-controller-manager" => &[&[
            (&["get", "list", "watch", "create", "update", "delete"], &[""], &["secrets"]),
            (&["create"], &[""], &["serviceaccounts/token"]),
        ]],
        _ => &[],
    };
    let mut rules = Vec::new();
    for (verbs, groups, resources) in parts.iter().flat_map(|part| part.iter()) {
        let mut intern = |names: &[&str]| names.iter().map(|name| symbols.intern(name)).collect();
        rules.push(RuleFact {
            verbs: intern(verbs),
            api_groups: intern(groups),
            resources: intern(resources),
            resource_names: Vec::new(),
            non_resource_urls: Vec::new(),
        });
    }
    rules
}

/// What a default ClusterRole aggregates.
pub fn aggregation(name: &str, symbols: &Symbols) -> Vec<SelectorFact> {
    let labels: &[&str] = match name {
        "admin" => &["admin", "edit", "view"],
        "edit" => &["edit", "view"],
        "view" => &["view"],
        _ => return Vec::new(),
    };
    let selector = |role: &&str| {
        let key = symbols.find(&format!("rbac.authorization.k8s.io/aggregate-to-{role}"))?;
        Some(SelectorFact { labels: vec![(key, symbols.find("true")?)], expressions: Vec::new() })
    };
    labels.iter().filter_map(selector).collect()
}
