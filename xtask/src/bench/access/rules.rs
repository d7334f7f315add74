//! What customers' roles allow: mostly harmless things, with the dangerous ones sprinkled in.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fixed::ClusterRole;
use super::plan::{Place, STEMS};
use super::random::Random;

#[derive(Clone, Copy)]
enum Shape {
    Configuration,
    Leases,
    Custom,
    Deploy,
    NamedSecrets,
    Secrets,
    PatchSecrets,
    DeleteCollection,
    DeleteNamed,
    Exec,
    Token,
    Grant,
    Escalate,
    Impersonate,
    Ephemeral,
}

const SHAPES: &[(usize, Shape)] = &[
    (30, Shape::Configuration),
    (14, Shape::Leases),
    (14, Shape::Custom),
    (7, Shape::Deploy),
    (12, Shape::NamedSecrets),
    (7, Shape::Secrets),
    (2, Shape::PatchSecrets),
    (2, Shape::DeleteCollection),
    (1, Shape::DeleteNamed),
    (4, Shape::Exec),
    (2, Shape::Token),
    (2, Shape::Grant),
    (1, Shape::Escalate),
    (1, Shape::Impersonate),
    (1, Shape::Ephemeral),
];

/// Draws a Role of a customer's namespace: the stem of its name, and its rules. A table, so it is long.
pub fn of_role(place: &Place, random: &mut Random) -> (&'static str, Vec<Value>) {
    let shape = random.weighted(Shape::Configuration, SHAPES);
    let secret = random.pick(&place.secrets).map_or("none", |secret| secret.name.as_str());
    let account = random.pick(&place.accounts).map_or("default", String::as_str);
    match shape {
        Shape::Configuration => (
            "reader",
            vec![
                rule("", &["configmaps", "pods", "services"], &["get", "list", "watch"]),
                rule("apps", &["deployments", "statefulsets"], &["get", "list", "watch"]),
            ],
        ),
        Shape::Leases => (
            "leader",
            vec![
                rule("coordination.k8s.io", &["leases"], &["create", "get", "patch", "update"]),
                rule("", &["events"], &["create", "patch"]),
            ],
        ),
        Shape::Custom => {
            let kind = random.word(STEMS);
            let group = format!("{kind}.apps.example");
            (
                "operator",
                vec![
                    rule(&group, &["*"], &["*"]),
                    rule("", &["configmaps", "pods"], &["create", "delete", "get", "list", "watch"]),
                ],
            )
        }
        Shape::Deploy => (
            "deployer",
            vec![
                rule(
                    "apps",
                    &["deployments", "statefulsets"],
                    &["create", "delete", "get", "list", "patch", "update"],
                ),
                rule("batch", &["cronjobs", "jobs"], &["create", "delete", "get", "list"]),
            ],
        ),
        Shape::NamedSecrets => ("config", vec![named("", "secrets", &[secret], &["get", "watch"])]),
        Shape::Secrets => ("secrets", vec![rule("", &["secrets"], &["get", "list", "watch"])]),
        Shape::PatchSecrets => ("rotator", vec![rule("", &["secrets"], &["create", "patch"])]),
        Shape::DeleteCollection => {
            ("cleaner", vec![rule("", &["configmaps", "secrets"], &["deletecollection"])])
        }
        Shape::DeleteNamed => ("remover", vec![named("", "secrets", &[secret], &["delete"])]),
        Shape::Exec => (
            "debugger",
            vec![
                rule("", &["pods", "pods/log"], &["get", "list"]),
                rule("", &["pods/exec"], &["create", "get"]),
            ],
        ),
        Shape::Token => ("token", vec![named("", "serviceaccounts/token", &[account], &["create"])]),
        Shape::Grant => (
            "grantor",
            vec![
                rule("rbac.authorization.k8s.io", &["rolebindings"], &["create", "get", "list"]),
                named("rbac.authorization.k8s.io", "clusterroles", &["edit", "view"], &["bind"]),
            ],
        ),
        Shape::Escalate => (
            "author",
            vec![rule(
                "rbac.authorization.k8s.io",
                &["roles"],
                &["create", "escalate", "get", "patch", "update"],
            )],
        ),
        Shape::Impersonate => ("actor", vec![named("", "serviceaccounts", &[account], &["impersonate"])]),
        Shape::Ephemeral => (
            "inspector",
            vec![
                rule("", &["pods"], &["get", "list"]),
                rule("", &["pods/ephemeralcontainers"], &["patch", "update"]),
            ],
        ),
    }
}

type MakeRule = fn() -> Value;

/// What an app's ClusterRole may allow besides its own kinds, and how often.
const EXTRAS: &[(usize, Option<MakeRule>)] = &[
    (70, None),
    (12, Some(|| rule("", &["pods", "pods/log"], &["get", "list", "watch"]))),
    (8, Some(|| rule("apps", &["deployments"], &["create", "get", "list", "patch", "update"]))),
    (6, Some(|| rule("", &["secrets"], &["get", "list", "watch"]))),
    (2, Some(|| rule("", &["pods/exec"], &["create", "get"]))),
    (2, Some(|| rule("", &["serviceaccounts/token"], &["create"]))),
];

/// Draws a ClusterRole that a customer's app brings.
pub fn of_cluster_role(index: usize, random: &mut Random) -> ClusterRole {
    let stem = random.word(STEMS);
    let group = format!("{stem}.apps.example");
    let mut labels = BTreeMap::from([("app.kubernetes.io/name".to_owned(), stem.to_owned())]);
    // Some are for people: whoever holds `view` sees the app's kinds too.
    if index % 8 == 7 {
        labels.insert("rbac.authorization.k8s.io/aggregate-to-view".to_owned(), "true".to_owned());
        let rules = vec![rule(&group, &["*"], &["get", "list", "watch"])];
        return ClusterRole { name: format!("{stem}-view-{index}"), labels, aggregates: None, rules };
    }
    let mut rules = vec![
        rule(&group, &["*"], &["create", "delete", "get", "list", "patch", "update", "watch"]),
        rule("", &["configmaps", "namespaces", "nodes", "services"], &["get", "list", "watch"]),
    ];
    rules.extend(random.weighted(None, EXTRAS).map(|extra| extra()));
    ClusterRole { name: format!("{stem}-manager-{index}"), labels, aggregates: None, rules }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn named(group: &str, resource: &str, names: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resourceNames": names, "resources": [resource], "verbs": verbs})
}
