//! Random clusters, rich in rights that lead on and in rules that look as if they did.
//!
//! Nothing here lets anybody run pods who does not hold the namespace anyway: there is no kubelet that would run them.

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::spec::{
    ABSENT, ACCOUNTS, AGGREGATE, Binding, GHOST, GROUPS, NAMESPACES, PART, Role, Rule, SECRETS, Spec,
    Subject, TOKEN, USERS,
};

/// Names of roles; Roles and ClusterRoles share them.
pub const ROLES: [&str; 4] = ["r0", "r1", "r2", "r3"];
/// Names of bindings.
pub const BINDINGS: [&str; 3] = ["b0", "b1", "b2"];
/// The groups that everybody, or every account, is in.
const IMPLICIT: [&str; 4] = [
    "system:authenticated",
    "system:serviceaccounts",
    "system:serviceaccounts:oracle-a",
    "system:unauthenticated",
];
const RBAC: &str = "rbac.authorization.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";

/// A cluster of at most eight roles and bindings. Most bindings name a role that there is.
pub fn spec() -> impl Strategy<Value = Spec> {
    let tokens = prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::collection::vec((place(), select(&ACCOUNTS[..]).prop_map(str::to_owned)), 1..3),
    ];
    let bindings = prop::collection::vec((binding(), prop::option::weighted(0.85, any::<Index>())), 3..9);
    (prop::collection::vec(role(), 3..9), bindings, tokens).prop_map(|(roles, bindings, tokens)| {
        let bindings = bindings.into_iter().map(|(binding, index)| match index {
            Some(index) => bound_to(binding, index.get(&roles)),
            None => binding,
        });
        Spec { bindings: bindings.collect(), roles, tokens }
    })
}

/// A binding to a role that exists, moved to where it is, if it is in a namespace.
fn bound_to(binding: Binding, role: &Role) -> Binding {
    let cluster_role = role.place.is_none();
    Binding { place: role.place.or(binding.place), cluster_role, role: role.name.clone(), ..binding }
}

fn place() -> impl Strategy<Value = usize> {
    0..NAMESPACES.len()
}

fn name(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(names).prop_map(str::to_owned)
}

fn role() -> impl Strategy<Value = Role> {
    let aggregation = prop_oneof![
        12 => Just((None, None)),
        1 => Just((Some(AGGREGATE.to_owned()), None)),
        1 => Just((None, Some(AGGREGATE.to_owned()))),
        1 => select(&["edit", "view"][..])
            .prop_map(|role| (Some(format!("{RBAC}/aggregate-to-{role}")), None)),
    ];
    let namespaced = (place().prop_map(Some), rules(), Just((None, None)));
    let paths = prop::collection::vec(path_rule(), 0..2);
    let cluster = (Just(None), (rules(), paths).prop_map(|(a, b)| [a, b].concat()), aggregation);
    (name(&ROLES), prop_oneof![namespaced, cluster]).prop_map(|(name, (place, rules, (label, selects)))| {
        Role {
            place,
            name,
            // A controller writes the rules of those that select others.
            rules: if selects.is_some() { Vec::new() } else { rules },
            label,
            selects,
        }
    })
}

fn binding() -> impl Strategy<Value = Binding> {
    let role = prop_oneof![
        6 => name(&ROLES).prop_map(|name| (false, name)),
        6 => name(&ROLES).prop_map(|name| (true, name)),
        1 => select(&["view", "edit", "admin"][..]).prop_map(|name| (true, name.to_owned())),
    ];
    let place = prop_oneof![3 => place().prop_map(Some), 1 => Just(None)];
    (place, name(&BINDINGS), role, prop::collection::vec(subject(), 1..3)).prop_map(
        |(place, name, (cluster_role, role), subjects)| Binding {
            place,
            name,
            cluster_role: cluster_role || place.is_none(),
            role,
            subjects,
        },
    )
}

fn subject() -> impl Strategy<Value = Subject> {
    let account = |names: &'static [&'static str]| {
        (place(), name(names)).prop_map(|(place, name)| Subject::Account(place, name))
    };
    prop_oneof![
        12 => account(&ACCOUNTS),
        2 => account(&[GHOST, "default"]),
        2 => name(&USERS).prop_map(Subject::User),
        1 => (place(), name(&ACCOUNTS)).prop_map(|(place, name)| {
            Subject::User(format!("system:serviceaccount:{}:{name}", NAMESPACES[place]))
        }),
        2 => name(&GROUPS).prop_map(Subject::Group),
        1 => name(&IMPLICIT).prop_map(Subject::Group),
    ]
}

fn some_of(all: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    subsequence(all, 1..=all.len().min(3)).prop_map(|list| list.into_iter().map(str::to_owned).collect())
}

/// Mostly no names, else one or two of these.
fn names(all: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop_oneof![
        3 => Just(Vec::new()),
        2 => subsequence(all, 1..=2).prop_map(|list| list.into_iter().map(str::to_owned).collect()),
    ]
}

fn on(
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
    named: &'static [&'static str],
) -> BoxedStrategy<Rule> {
    (some_of(verbs), select(resources), names(named))
        .prop_map(move |(verbs, resource, names)| Rule {
            verbs,
            groups: vec![group.to_owned()],
            resources: vec![resource.to_owned()],
            names,
            urls: Vec::new(),
        })
        .boxed()
}

const WRITE: [&str; 4] = ["create", "update", "patch", "delete"];
const SECRET_NAMES: [&str; 4] = [SECRETS[0], SECRETS[1], TOKEN, ABSENT];
const ROLE_NAMES: [&str; 5] = ["r0", "r1", "r2", "edit", ABSENT];
const BINDING_NAMES: [&str; 3] = ["b0", "b1", ABSENT];
const ACCOUNT_NAMES: [&str; 4] = ["a0", "a1", "default", GHOST];

fn rule() -> BoxedStrategy<Rule> {
    prop_oneof![
        5 => on(&["get", "list", "watch"], "", &["secrets"], &SECRET_NAMES),
        5 => on(&["patch", "delete", "deletecollection", "update"], "", &["secrets"], &SECRET_NAMES),
        3 => on(&["create"], "", &["secrets"], &SECRET_NAMES),
        4 => on(&["create"], "", &["serviceaccounts/token", "*/token"], &ACCOUNT_NAMES),
        2 => on(&["create", "get"], "", &["serviceaccounts"], &ACCOUNT_NAMES),
        4 => on(&["impersonate"], "", &["serviceaccounts"], &ACCOUNT_NAMES),
        3 => on(&["impersonate"], "", &["users"], &USERS),
        3 => on(&["impersonate"], "", &["groups"], &["dev", "ops", "system:masters"]),
        4 => on(&WRITE, RBAC, &["rolebindings"], &BINDING_NAMES),
        2 => on(&WRITE, RBAC, &["clusterrolebindings"], &BINDING_NAMES),
        4 => on(&["bind"], RBAC, &["clusterroles", "roles"], &ROLE_NAMES),
        4 => on(&WRITE, RBAC, &["roles", "clusterroles"], &ROLE_NAMES),
        3 => on(&["escalate"], RBAC, &["roles", "clusterroles"], &ROLE_NAMES),
        1 => certificates(),
        1 => whom(),
        1 => what_for(),
        2 => decoy(),
        1 => wide(),
    ]
    .boxed()
}

/// Rules of a role: some on their own, some that are worth something together.
fn rules() -> BoxedStrategy<Vec<Rule>> {
    let pair = |a: BoxedStrategy<Rule>, b: BoxedStrategy<Rule>| (a, b).prop_map(|(a, b)| vec![a, b]).boxed();
    let one = |a: BoxedStrategy<Rule>| a.prop_map(|rule| vec![rule]).boxed();
    let part = prop_oneof![
        6 => one(rule()),
        1 => pair(
            on(&["create", "update", "patch"], RBAC, &["rolebindings"], &BINDING_NAMES),
            on(&["bind"], RBAC, &["clusterroles", "roles"], &ROLE_NAMES),
        ),
        1 => pair(
            on(&["create", "update", "patch"], RBAC, &["clusterrolebindings"], &BINDING_NAMES),
            on(&["bind"], RBAC, &["clusterroles"], &ROLE_NAMES),
        ),
        1 => pair(
            on(&WRITE, RBAC, &["roles", "clusterroles"], &ROLE_NAMES),
            on(&["escalate"], RBAC, &["roles", "clusterroles"], &ROLE_NAMES),
        ),
        1 => pair(
            on(&["create", "patch", "delete"], "", &["secrets"], &SECRET_NAMES),
            on(&["get", "list", "patch"], "", &["secrets"], &SECRET_NAMES),
        ),
        2 => pair(whom(), what_for()),
        1 => pair(
            on(&["create"], "", &["serviceaccounts"], &ACCOUNT_NAMES),
            on(&["create"], "", &["serviceaccounts/token"], &ACCOUNT_NAMES),
        ),
        1 => pair(
            on(&["impersonate"], "", &["users", "serviceaccounts"], &["ann", "a0", "bob"]),
            on(&["impersonate"], "", &["groups"], &["dev", "ops", "system:masters"]),
        ),
    ];
    prop::collection::vec(part, 1..3).prop_map(|parts| parts.concat()).boxed()
}

/// Whom somebody may act as by constrained impersonation.
fn whom() -> BoxedStrategy<Rule> {
    let group = "authentication.k8s.io";
    prop_oneof![
        2 => on(&["impersonate:serviceaccount"], group, &["serviceaccounts"], &ACCOUNT_NAMES),
        1 => on(&["impersonate:user-info"], group, &["users"], &USERS),
        1 => on(&["impersonate:user-info"], group, &["users", "groups"], &["dev", "bob"]),
    ]
    .boxed()
}

/// What for.
fn what_for() -> BoxedStrategy<Rule> {
    let of_account =
        ["get", "list", "create", "patch"].map(|verb| format!("impersonate-on:serviceaccount:{verb}"));
    let of_user = ["get", "list", "create", "patch"].map(|verb| format!("impersonate-on:user-info:{verb}"));
    let resources =
        [("", "secrets"), ("", "secrets"), ("", "serviceaccounts/token"), (RBAC, "rolebindings"), ("", "*")];
    let verbs = prop_oneof![
        2 => prop::sample::subsequence(of_account.to_vec(), 1..=3),
        1 => prop::sample::subsequence(of_user.to_vec(), 1..=3),
    ];
    (verbs, select(resources.to_vec()), names(&SECRET_NAMES))
        .prop_map(|(verbs, (group, resource), names)| Rule {
            verbs,
            groups: vec![group.to_owned()],
            resources: vec![resource.to_owned()],
            names: if resource == "secrets" { names } else { Vec::new() },
            urls: Vec::new(),
        })
        .boxed()
}

fn certificates() -> BoxedStrategy<Rule> {
    let signer = "kubernetes.io/kube-apiserver-client";
    prop_oneof![
        on(&["create"], CERTIFICATES, &["certificatesigningrequests"], &[ABSENT, "n1"]),
        on(&["update", "patch"], CERTIFICATES, &["certificatesigningrequests/approval"], &[ABSENT, "n1"]),
        on(&["approve"], CERTIFICATES, &["signers"], &["kubernetes.io/*", ABSENT]),
        Just(Rule {
            verbs: ["create", "update", "approve"].map(str::to_owned).to_vec(),
            groups: vec![CERTIFICATES.to_owned()],
            resources: ["certificatesigningrequests", "certificatesigningrequests/approval", "signers"]
                .map(str::to_owned)
                .to_vec(),
            names: Vec::new(),
            urls: Vec::new(),
        }),
        Just(Rule {
            verbs: vec!["approve".to_owned()],
            groups: vec![CERTIFICATES.to_owned()],
            resources: vec!["signers".to_owned()],
            names: vec![signer.to_owned()],
            urls: Vec::new(),
        }),
    ]
    .boxed()
}

/// Rules that allow nothing of what they seem to.
fn decoy() -> BoxedStrategy<Rule> {
    let read = ["get", "list", "watch", "patch"];
    let strings = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let decoys = [
        ("", "secrets/*", ""),
        ("", "secrets/status", ""),
        ("", "*/secrets", ""),
        ("", "*/*", ""),
        ("", "Secrets", ""),
        ("", "secret", ""),
        ("v1", "secrets", ""),
        ("secrets.example", "secrets", ""),
        ("secrets.example", "*", ""),
        ("", "secrets", "*"),
        ("", "secrets", PART),
        ("", "serviceaccounts/*", ""),
        (RBAC, "rolebindings/status", ""),
    ];
    let decoy = select(decoys.to_vec()).prop_map(move |(group, resource, name)| Rule {
        verbs: strings(&read),
        groups: strings(&[group]),
        resources: strings(&[resource]),
        names: if name.is_empty() { Vec::new() } else { strings(&[name]) },
        urls: Vec::new(),
    });
    let others = prop_oneof![
        on(&["bind", "escalate"], RBAC, &["rolebindings", "clusterrolebindings"], &ROLE_NAMES),
        on(&["impersonate"], "", &["userextras", "uids"], &[ABSENT, "n1"]),
        on(&["create"], "", &["serviceaccounts/*", "tokens"], &ACCOUNT_NAMES),
        on(&["impersonate"], RBAC, &["users", "groups"], &USERS),
    ];
    prop_oneof![decoy, others].boxed()
}

/// Wildcards.
fn wide() -> BoxedStrategy<Rule> {
    let stars = |verbs: &[&str], groups: &[&str], resources: &[&str]| Rule {
        verbs: verbs.iter().map(ToString::to_string).collect(),
        groups: groups.iter().map(ToString::to_string).collect(),
        resources: resources.iter().map(ToString::to_string).collect(),
        names: Vec::new(),
        urls: Vec::new(),
    };
    select(vec![
        stars(&["*"], &["*"], &["*"]),
        stars(&["get", "list"], &["*"], &["*"]),
        stars(&["*"], &[""], &["secrets"]),
        stars(&["*"], &["*"], &["secrets"]),
        stars(&["*"], &[RBAC], &["*"]),
        stars(&["*"], &["", "secrets.example"], &["serviceaccounts", "serviceaccounts/token"]),
        stars(&["impersonate"], &["*"], &["*"]),
        stars(&["bind", "escalate", "create", "patch"], &[RBAC], &["*"]),
    ])
    .boxed()
}

/// Rules for paths, which lead to no Secret.
fn path_rule() -> BoxedStrategy<Rule> {
    (some_of(&["get", "post", "*"]), some_of(&["/metrics", "/api/*", "/healthz*", "*", "/logs/", "/a*b"]))
        .prop_map(|(verbs, urls)| Rule { verbs, urls, ..Rule::default() })
        .boxed()
}
