//! Each direct right, as the analyser's RBAC and as the server's authorizers decide it.

use std::collections::BTreeSet;

use anyhow::Result;
use bailey_access::rbac::{Rbac, Request};
use bailey_access::{Identity, Snapshot, SubjectKind, Symbol, Symbols};
use futures::StreamExt as _;
use proptest::sample::select;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::server::{AT_ONCE, Server, Who};
use crate::spec::{NAMESPACES, Spec};

/// A question to the authorizer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    Resource { verb: String, group: String, resource: String, namespace: String, name: String },
    Path { verb: String, path: String },
}

const VERBS: [&str; 17] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "impersonate",
    "bind",
    "escalate",
    "approve",
    "use",
    "impersonate:serviceaccount",
    "GET",
    "*",
    "post",
];
const RESOURCES: [(&str, &str); 24] = [
    ("", "secrets"),
    ("", "secrets/status"),
    ("", "Secrets"),
    ("secrets.example", "secrets"),
    ("v1", "secrets"),
    ("*", "secrets"),
    ("", "*"),
    ("", "pods"),
    ("", "pods/exec"),
    ("", "pods/*"),
    ("", "serviceaccounts"),
    ("", "serviceaccounts/token"),
    ("", "configmaps"),
    ("", "namespaces"),
    ("", "users"),
    ("", "groups"),
    ("apps", "deployments"),
    ("apps", "deployments/scale"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("certificates.k8s.io", "certificatesigningrequests/approval"),
    ("certificates.k8s.io", "signers"),
];
const NAMES: [&str; 12] =
    ["", "", "s0", "s1", "t0", "a0", "n0", "r0", "b0", "*", "ann", "kubernetes.io/kube-apiserver-client"];
const PATHS: [&str; 12] = [
    "/metrics",
    "/metrics/",
    "/api",
    "/api/",
    "/api/v1",
    "/healthz",
    "/healthz/etcd",
    "/logs/",
    "/",
    "/a*b",
    "/axb",
    "/version",
];

/// Random questions, of which a good part concerns what the case's own rules name.
pub fn checks(spec: &Spec, count: usize, runner: &mut TestRunner) -> BTreeSet<Check> {
    let mut places: Vec<&str> = NAMESPACES.to_vec();
    places.extend(["", "kube-system", "oracle-none"]);
    let rules: Vec<_> = spec.roles.iter().flat_map(|role| &role.rules).cloned().collect();
    let pick = |runner: &mut TestRunner, list: &[String]| -> Option<String> {
        (!list.is_empty()).then(|| draw(select(list.to_vec()), runner))
    };
    let mut checks = BTreeSet::new();
    for index in 0..count {
        let (group, resource) = draw(select(RESOURCES.to_vec()), runner);
        let mut verb = draw(select(VERBS.to_vec()), runner).to_owned();
        let (mut group, mut resource) = (group.to_owned(), resource.to_owned());
        let mut name = draw(select(NAMES.to_vec()), runner).to_owned();
        if index % 8 == 0 {
            checks.insert(Check::Path { verb, path: draw(select(PATHS.to_vec()), runner).to_owned() });
            continue;
        }
        if !rules.is_empty() && index % 3 != 0 {
            let rule = draw(select(rules.clone()), runner);
            verb = pick(runner, &rule.verbs).unwrap_or(verb);
            if index % 5 != 0 {
                group = pick(runner, &rule.groups).unwrap_or(group);
                resource = pick(runner, &rule.resources).unwrap_or(resource);
                name = pick(runner, &rule.names).unwrap_or(name);
            }
        }
        let namespace = draw(select(places.clone()), runner).to_owned();
        checks.insert(Check::Resource { verb, group, resource, namespace, name });
    }
    checks
}

fn draw<T: Clone + std::fmt::Debug + 'static>(
    from: proptest::sample::Select<T>,
    runner: &mut TestRunner,
) -> T {
    from.new_tree(runner).unwrap().current()
}

impl Check {
    fn attributes(&self) -> Value {
        match self {
            Self::Path { verb, path } => json!({"verb": verb, "path": path}),
            Self::Resource { verb, group, resource, namespace, name } => {
                let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                json!({"verb": verb, "group": group, "resource": resource, "subresource": subresource,
                    "namespace": namespace, "name": name})
            }
        }
    }

    fn analysed(&self, rbac: &Rbac, snapshot: &mut Snapshot, who: &[Identity]) -> bool {
        let symbols = &mut snapshot.symbols;
        match self {
            Self::Path { verb, path } => {
                let verb = symbols.intern(verb);
                rbac.allows_path(&snapshot.clusters[0], symbols, who, verb, path)
            }
            Self::Resource { verb, group, resource, namespace, name } => {
                let request = Request::new(symbols, verb, group, resource, namespace, name);
                rbac.allows(&snapshot.clusters[0], who, &request).is_some()
            }
        }
    }
}

fn identities(who: &Who, symbols: &mut Symbols) -> Vec<Identity> {
    let groups = who.all_groups();
    let mut identities: Vec<Identity> = groups
        .iter()
        .map(|group| Identity {
            kind: SubjectKind::Group,
            namespace: Symbol::EMPTY,
            name: symbols.intern(group),
        })
        .collect();
    identities.push(match who.as_account() {
        Some((namespace, name)) => Identity {
            kind: SubjectKind::ServiceAccount,
            namespace: symbols.intern(namespace),
            name: symbols.intern(name),
        },
        None => {
            Identity { kind: SubjectKind::User, namespace: Symbol::EMPTY, name: symbols.intern(&who.user) }
        }
    });
    identities
}

/// Compares every right of everybody; says where they differ, and how many were compared.
pub async fn compare(
    server: &Server,
    mut snapshot: Snapshot,
    all: &[Who],
    checks: &BTreeSet<Check>,
) -> Result<(Vec<String>, usize)> {
    let cluster = snapshot.clusters[0].clone();
    let rbac = Rbac::new(&cluster, &mut snapshot.symbols);
    let pairs: Vec<(&Who, &Check)> =
        all.iter().flat_map(|who| checks.iter().map(move |check| (who, check))).collect();
    let asked = futures::stream::iter(&pairs)
        .map(|(who, check)| async move { server.is_allowed(who, &check.attributes()).await })
        .buffered(AT_ONCE);
    let answers: Vec<Result<bool>> = asked.collect().await;
    let mut wrong = Vec::new();
    for ((who, check), answer) in pairs.iter().zip(answers) {
        let answer = answer?;
        let who_all = identities(who, &mut snapshot.symbols);
        let analysed = check.analysed(&rbac, &mut snapshot, &who_all);
        if analysed != answer {
            wrong.push(format!("right of {}: {check:?}: server {answer}, analyser {analysed}", who.user));
        }
    }
    Ok((wrong, pairs.len()))
}
