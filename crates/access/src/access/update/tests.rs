use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;
use roaring::RoaringBitmap;
use serde_json::{Value, json};

use crate::{
    Access, Customer, Customers, Fact, Loader, Scope, Snapshot, Subjects,
    answer::Change,
    graph::{Node, NodeId},
};

const RBAC: &str = "rbac.authorization.k8s.io";
const NAMESPACES: [&str; 2] = ["a", "b"];

/// Rules that lead on, alone or with others.
const RULES: [(&str, &str, &str); 34] = [
    ("", "secrets", "get"),
    ("", "secrets", "create"),
    ("", "secrets", "update"),
    ("", "secrets", "delete"),
    ("", "pods", "create"),
    ("", "pods/exec", "create"),
    ("", "pods/ephemeralcontainers", "patch"),
    ("", "serviceaccounts", "create"),
    ("", "serviceaccounts", "impersonate"),
    ("", "serviceaccounts/token", "create"),
    ("", "users", "impersonate"),
    ("", "groups", "impersonate"),
    ("", "nodes/proxy", "create"),
    ("apps", "deployments", "create"),
    ("authentication.k8s.io", "serviceaccounts", "impersonate:serviceaccount"),
    ("", "secrets", "impersonate-on:serviceaccount:get"),
    (RBAC, "roles", "bind"),
    (RBAC, "roles", "create"),
    (RBAC, "roles", "delete"),
    (RBAC, "roles", "escalate"),
    (RBAC, "roles", "update"),
    (RBAC, "clusterroles", "bind"),
    (RBAC, "clusterroles", "create"),
    (RBAC, "clusterroles", "delete"),
    (RBAC, "clusterroles", "escalate"),
    (RBAC, "clusterroles", "patch"),
    (RBAC, "rolebindings", "create"),
    (RBAC, "rolebindings", "patch"),
    (RBAC, "rolebindings", "update"),
    (RBAC, "clusterrolebindings", "create"),
    (RBAC, "clusterrolebindings", "patch"),
    (RBAC, "clusterrolebindings", "update"),
    ("bailey.dev", "tenants", "install"),
    ("*", "*", "*"),
];
const ROLES: [&str; 4] = ["r0", "r1", "r2", "r3"];
const BINDINGS: [&str; 4] = ["b0", "b1", "b2", "r1"];

/// An object that is put or taken away.
type Step = (Value, bool);

fn place() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![1 => Just(None), 2 => select(&NAMESPACES[..]).prop_map(Some)]
}

fn rule() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        3 => Just(Vec::new()),
        2 => select(&["r0", "r1", "b0", "x", "s", "a"][..]).prop_map(|name| vec![name]),
    ];
    (0..RULES.len(), names).prop_map(|(index, names)| {
        let (group, resource, verb) = RULES[index];
        json!({"apiGroups": [group], "resources": [resource], "verbs": [verb], "resourceNames": names})
    })
}

/// Rules that are worth something together only.
fn together() -> impl Strategy<Value = Vec<Value>> {
    let rule = |resources: &[&str], verbs: &[&str], names: &[&str]| json!({"apiGroups": [RBAC, ""], "resources": resources, "verbs": verbs, "resourceNames": names});
    let act = rule(&["serviceaccounts"], &["impersonate"], &["x"]);
    let bundles = vec![
        vec![rule(&["rolebindings"], &["patch"], &[]), rule(&["roles", "clusterroles"], &["bind"], &[])],
        vec![rule(&["rolebindings"], &["patch"], &["b0"]), rule(&["clusterroles"], &["bind"], &["r0"])],
        vec![rule(&["rolebindings"], &["create"], &[]), rule(&["clusterroles", "roles"], &["bind"], &[])],
        vec![
            rule(&["rolebindings"], &["create", "update"], &["b0"]),
            rule(&["clusterroles", "roles"], &["bind"], &["r0"]),
        ],
        vec![rule(&["clusterrolebindings"], &["update"], &[]), rule(&["clusterroles"], &["bind"], &[])],
        vec![rule(&["roles", "clusterroles"], &["update", "escalate"], &[])],
        vec![rule(&["roles", "clusterroles"], &["update", "escalate"], &["r1"])],
        vec![rule(&["roles", "clusterroles"], &["delete", "create"], &[]), act.clone()],
        vec![rule(&["roles", "clusterroles"], &["create", "bind"], &[]), act.clone()],
        vec![rule(&["rolebindings"], &["create", "patch"], &[]), act.clone()],
        vec![rule(&["rolebindings"], &["patch"], &["b0", "b1"]), act.clone()],
        vec![rule(&["clusterrolebindings"], &["patch"], &[]), act.clone()],
        vec![rule(&["roles"], &["update"], &[]), act],
        vec![
            rule(&["serviceaccounts"], &["create"], &[]),
            rule(&["serviceaccounts/token"], &["create"], &[]),
        ],
        vec![rule(&["secrets"], &["create", "get"], &[])],
    ];
    select(bundles)
}

fn rules() -> impl Strategy<Value = Vec<Value>> {
    let some = prop::collection::vec(rule(), 0..4);
    prop_oneof![2 => some, 2 => together(), 1 => (together(), together()).prop_map(|(a, b)| [a, b].concat())]
}

fn meta(namespace: Option<&str>, name: &str) -> Value {
    match namespace {
        Some(namespace) => json!({"namespace": namespace, "name": name}),
        None => json!({"name": name}),
    }
}

fn role() -> impl Strategy<Value = Value> {
    let label = prop_oneof![6 => Just(0u8), 1 => Just(1), 1 => Just(2)];
    (place(), select(&ROLES[..]), rules(), label).prop_map(|(namespace, name, rules, label)| {
        let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
        let mut role = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": meta(namespace, name),
            "rules": rules,
        });
        match (label, namespace) {
            (1, None) => role["metadata"]["labels"] = json!({"part": "yes"}),
            (2, None) => {
                let selector = json!({"matchLabels": {"part": "yes"}});
                role["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
            }
            _ => {}
        }
        role
    })
}

fn subject() -> impl Strategy<Value = Value> {
    let account = (select(&NAMESPACES[..]), select(&["x", "y", "ghost"][..])).prop_map(
        |(namespace, name)| json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}),
    );
    let user = select(&["u", "v", "w"][..]).prop_map(|name| json!({"kind": "User", "name": name}));
    let groups = ["g", "system:serviceaccounts:a", "system:serviceaccounts", "system:authenticated"];
    let group = select(groups.to_vec()).prop_map(|name| json!({"kind": "Group", "name": name}));
    prop_oneof![6 => account, 2 => user, 1 => group]
}

fn binding() -> impl Strategy<Value = Value> {
    let subjects = prop::collection::vec(subject(), 0..3);
    (place(), select(&BINDINGS[..]), any::<bool>(), select(&ROLES[..]), subjects).prop_map(
        |(namespace, name, cluster_role, role, subjects)| {
            let kind = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
            let of = if cluster_role || namespace.is_none() { "ClusterRole" } else { "Role" };
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": meta(namespace, name),
                "roleRef": {"apiGroup": RBAC, "kind": of, "name": role}, "subjects": subjects,
            })
        },
    )
}

fn account() -> impl Strategy<Value = Value> {
    (select(&NAMESPACES[..]), select(&["x", "y", "z", "default"][..])).prop_map(|(namespace, name)| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(Some(namespace), name)})
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop_oneof![4 => role(), 5 => binding(), 1 => account()]
}

fn key(object: &Value) -> (String, String, String) {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// What does not change: namespaces, Secrets, pods, and perhaps a policy that asks the authorizer.
fn fixed(with_policy: bool) -> Vec<Value> {
    let mut objects = Vec::new();
    for namespace in NAMESPACES {
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
        objects.push(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": meta(Some(namespace), "s"), "type": "Opaque",
        }));
        objects.push(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": meta(Some(namespace), "p"),
            "spec": {"serviceAccountName": "y", "containers": [{"name": "c", "image": "i"}]},
        }));
    }
    objects.push(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"namespace": "a", "name": "t", "annotations": {"kubernetes.io/service-account.name": "x"}},
    }));
    if with_policy {
        let api = "admissionregistration.k8s.io/v1";
        objects.push(json!({
            "apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["rbac.authorization.k8s.io", ""], "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"], "resources": ["rolebindings", "pods"],
                }]},
                "validations": [{"expression":
                    "authorizer.group('bailey.dev').resource('tenants').check('install').allowed()"}],
            },
        }));
        objects.push(json!({
            "apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "p"},
            "spec": {"policyName": "p", "validationActions": ["Deny"]},
        }));
    }
    objects
}

fn load(snapshot: &mut Snapshot, objects: &[Value]) {
    let mut loader = Loader::new(snapshot, Some("mc"));
    loader.source("objects.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    loader.load(list.to_string().as_bytes()).unwrap();
    loader.finish();
}

fn customers() -> Customers {
    let mut customers = Customers::default();
    let of = |namespace: &str| Customer { namespaces: vec![namespace.to_owned()], ..Customer::default() };
    customers.customers.insert("one".to_owned(), of("a"));
    customers.customers.insert("two".to_owned(), of("b"));
    customers
}

/// The widest of what anybody reaches, by names: proven, and all; and what is told of each Secret.
#[derive(Debug, PartialEq)]
struct Told {
    reached: BTreeMap<String, [BTreeSet<String>; 2]>,
    secrets: Vec<crate::answer::SecretEntry>,
    blocked: BTreeSet<String>,
    complete: bool,
}

fn told(access: &Access) -> Told {
    let explainer = access.explainer();
    let is_widest = |set: &RoaringBitmap, end: NodeId| {
        let has = |fact| access.graph.find(0, fact).is_some_and(|wider| wider != end && set.contains(wider));
        let Some((_, Node::Fact(fact))) = access.graph.node(end) else { panic!("an end is a fact") };
        match *fact {
            Fact::Secret { namespace, .. } => {
                !has(Fact::Secrets(Scope::Cluster)) && !has(Fact::Secrets(Scope::Namespace(namespace)))
            }
            Fact::Secrets(_) => !has(Fact::Secrets(Scope::Cluster)),
            Fact::Everything(_) => !has(Fact::Everything(Scope::Cluster)),
            _ => true,
        }
    };
    let mut reached = BTreeMap::new();
    for start in &access.starts {
        let told = [&access.proven, &access.all].map(|closure| {
            let set = closure.set(start.node).unwrap();
            set.iter().filter(|end| is_widest(set, *end)).map(|end| explainer.describe(end)).collect()
        });
        reached.insert(explainer.subject(start.cluster, &start.fact).unwrap(), told);
    }
    Told {
        reached,
        secrets: access.secret_entries(Subjects::All),
        blocked: access.blocked().into_iter().collect(),
        complete: access.gaps().is_empty(),
    }
}

/// What a change is said to change, but for the ways: of several equally short ones another may be told.
fn changed(before: &Access, after: &Access) -> impl PartialEq + std::fmt::Debug {
    let what_if = before.what_if(after, Vec::new());
    let ends = |changes: Vec<Change>| -> Vec<Change> {
        changes.into_iter().map(|change| Change { path: Vec::new(), ..change }).collect()
    };
    let findings: BTreeSet<String> = what_if.findings.into_iter().map(|finding| finding.id).collect();
    let resolved: BTreeSet<String> = what_if.resolved.into_iter().collect();
    (ends(what_if.gained), ends(what_if.lost), what_if.verdicts, findings, resolved)
}

fn check(start: Vec<Value>, steps: Vec<Step>, with_policy: bool) -> Result<usize, TestCaseError> {
    let mut state: BTreeMap<(String, String, String), Value> = BTreeMap::new();
    for object in start.into_iter().chain(NAMESPACES.map(|namespace| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(Some(namespace), "x")})
    })) {
        state.insert(key(&object), object);
    }
    let mut fixed_state = Snapshot::default();
    load(&mut fixed_state, &fixed(with_policy));
    let with = |state: &BTreeMap<_, Value>, base: &Snapshot| {
        let mut snapshot = base.clone();
        let objects: Vec<Value> = state.values().cloned().collect();
        load(&mut snapshot, &objects);
        let listed = ["secrets", "serviceaccounts", "namespaces"].map(str::to_owned);
        snapshot.clusters.iter_mut().for_each(|cluster| cluster.listed = listed.to_vec());
        snapshot
    };
    let mut access = Access::new(with(&state, &fixed_state), customers());
    let mut followed = 0;
    for (object, put) in steps {
        if put {
            state.insert(key(&object), object.clone());
        } else {
            state.remove(&key(&object));
        }
        // The facts of the new state, with the names of the one that is kept.
        let mut base = access.snapshot().clone();
        for cluster in &mut base.clusters {
            cluster.roles.clear();
            cluster.bindings.clear();
            cluster.service_accounts.clear();
        }
        let next = with(&state, &base);
        prop_assert!(access.changes_to(&next).is_some());
        let after = access.then(next, customers());
        followed += usize::from(after.touched_since(&access).is_some());
        let fresh = Access::new(with(&state, &fixed_state), customers());
        prop_assert_eq!(told(&after), told(&fresh), "after {} {:?}", object, put);
        prop_assert_eq!(changed(&access, &after), changed(&access, &fresh), "at {} {:?}", object, put);
        access = after;
    }
    Ok(followed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn an_updated_answer_is_that_of_a_new_one(
        start in prop::collection::vec(object(), 0..10),
        steps in prop::collection::vec((object(), prop::bool::weighted(0.7)), 1..8),
        with_policy in any::<bool>(),
    ) {
        check(start, steps, with_policy)?;
    }
}
