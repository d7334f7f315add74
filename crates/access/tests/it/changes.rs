//! What somebody could change in roles and bindings: found by dry runs, done later for all whom it controls.

use std::collections::BTreeSet;

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::case::{Case, Object};
use crate::direct::fresh;
use crate::generate::{BINDINGS, ROLES};
use crate::server::{Answer, Request, Who};
use crate::spec::{ABSENT, AGGREGATE, LABEL, PLACES, rbac_path};

/// Roles of a stock cluster that are worth binding.
const BINDABLE: [&str; 4] = ["cluster-admin", "admin", "edit", "view"];
/// Roles of a stock cluster that somebody holds, or that others hold through aggregation.
const CHANGEABLE: [&str; 6] = [
    "view",
    "edit",
    "system:basic-user",
    "system:discovery",
    "system:aggregate-to-view",
    "system:controller:clusterrole-aggregation-controller",
];
/// A binding of a stock cluster that is worth joining.
const JOINABLE: &str = "cluster-admin";

/// A change that the server would let somebody make.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Makes a binding.
    Bind { place: Option<usize>, cluster_role: bool, role: String, by: By },
    /// Adds subjects to a binding.
    Join { path: String, put: bool },
    /// Makes a role of these rules.
    Make { place: Option<usize>, name: String, rules: String, by: By },
    /// Gives a role more rules, or others if it does not `keep` its own, or only labels.
    Widen { path: String, rules: String, put: bool, keep: bool },
    /// Deletes a role.
    Delete { path: String },
}

/// How an object is made: by POST, or where only its name is allowed, by that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    Post,
    Put(String),
    Apply(String),
}

impl By {
    /// The ways to make an object of a name.
    fn name(name: &str) -> [Self; 2] {
        [Self::Put(name.to_owned()), Self::Apply(name.to_owned())]
    }

    fn request(&self, collection: &str, body: Value) -> Request {
        match self {
            Self::Post => Request::post(collection, body),
            Self::Put(name) => Request::put(format!("{collection}/{name}"), body),
            Self::Apply(name) => Request::apply(&format!("{collection}/{name}"), body),
        }
    }
}

/// All rules at once.
const EVERYTHING: &str = r#"[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]"#;

impl Change {
    /// The analyser's edges that it may stand for, by what they begin with. Who grants may have to pass on what it holds
    /// first, so that one edge can take several changes.
    pub fn edges(&self) -> &'static [&'static str] {
        match self {
            Self::Bind { .. } | Self::Join { .. } => &["bind-", "join-", "pass-on"],
            Self::Make { .. } => &["new-", "bind-new-", "escalate-"],
            Self::Widen { .. } | Self::Delete { .. } => &["escalate-"],
        }
    }

    /// Whether it names subjects, so that it is worth doing again for more of them.
    pub fn has_subjects(&self) -> bool {
        matches!(self, Self::Bind { .. } | Self::Join { .. })
    }

    /// The place and name of the binding that it makes, where only certain names may be used.
    pub fn binding_name(&self) -> Option<(Option<usize>, String)> {
        match self {
            Self::Bind { place, by: By::Put(name) | By::Apply(name), .. } => Some((*place, name.clone())),
            _ => None,
        }
    }

    /// The object that it changes, if that exists.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Join { path, .. } | Self::Widen { path, .. } | Self::Delete { path } => Some(path),
            _ => None,
        }
    }

    /// The request that makes it; `serial` keeps names of new bindings apart.
    pub fn request(&self, case: &Case<'_>, subjects: &[Value], serial: usize) -> Option<Request> {
        match self {
            Self::Bind { place, cluster_role, role, by } => {
                let name = match by {
                    By::Post => format!("probe-{serial}"),
                    By::Put(name) | By::Apply(name) => name.clone(),
                };
                let body = binding(*place, &name, *cluster_role, role, subjects);
                Some(by.request(&rbac_path(*place, "rolebindings"), body))
            }
            Self::Join { path, put } => {
                let binding = case.objects.bindings.iter().find(|binding| binding.path == *path)?;
                let mut all = binding.body["subjects"].as_array().cloned().unwrap_or_default();
                all.extend(subjects.iter().filter(|subject| !is_in(&binding.body, subject)).cloned());
                if *put {
                    let mut body = fresh(&binding.body);
                    body["subjects"] = json!(all);
                    return Some(Request::put(path, body));
                }
                Some(Request::patch(path, json!({"subjects": all})))
            }
            Self::Make { place, name, rules, by } => {
                Some(by.request(&rbac_path(*place, "roles"), role(*place, name, rules)))
            }
            Self::Widen { path, rules, put, keep } => {
                let role = case.objects.roles.iter().find(|role| role.path == *path)?;
                Some(widen(role, rules, *put, *keep))
            }
            Self::Delete { path } => Some(Request::delete(path)),
        }
    }
}

fn is_in(binding: &Value, subject: &Value) -> bool {
    let same = |a: &Value, b: &Value| {
        ["kind", "namespace", "name"].iter().all(|field| a.get(*field) == b.get(*field))
    };
    binding["subjects"].as_array().into_iter().flatten().any(|other| same(other, subject))
}

fn binding(place: Option<usize>, name: &str, cluster_role: bool, role: &str, subjects: &[Value]) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": if place.is_none() { "ClusterRoleBinding" } else { "RoleBinding" },
        "metadata": {"name": name, "labels": {LABEL: "probe"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
            "kind": if cluster_role { "ClusterRole" } else { "Role" }, "name": role},
        "subjects": subjects})
}

/// Labels by which any role aggregates.
fn labels() -> Value {
    let mut labels = json!({LABEL: "probe", AGGREGATE: "true"});
    for role in ["admin", "edit", "view"] {
        labels[format!("rbac.authorization.k8s.io/aggregate-to-{role}")] = json!("true");
    }
    labels
}

fn role(place: Option<usize>, name: &str, rules: &str) -> Value {
    let kind = if place.is_none() { "ClusterRole" } else { "Role" };
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": {"name": name, "labels": labels()}, "rules": parse(rules)})
}

/// New rules before those that are there; with none, labels only.
fn widen(role: &Object, rules: &str, put: bool, keep: bool) -> Request {
    let mut added = parse(rules).as_array().cloned().unwrap_or_default();
    let widened = !added.is_empty();
    if keep || !widened {
        added.extend(role.body["rules"].as_array().into_iter().flatten().cloned());
    }
    let mut kept = labels();
    if !role.is_of_case() {
        kept.as_object_mut().map(|labels| labels.remove(LABEL));
    }
    if put {
        let mut body = fresh(&role.body);
        if let (Some(labels), Some(all)) = (kept.as_object(), body["metadata"]["labels"].as_object_mut()) {
            all.extend(labels.clone());
        }
        if widened {
            body["rules"] = json!(added);
            body.as_object_mut().map(|body| body.remove("aggregationRule"));
        }
        return Request::put(&role.path, body);
    }
    let mut body = json!({"metadata": {"labels": kept}});
    if widened {
        body["rules"] = json!(added);
        body["aggregationRule"] = Value::Null;
    }
    Request::patch(&role.path, body)
}

fn parse(rules: &str) -> Value {
    serde_json::from_str(rules).unwrap_or(Value::Null)
}

/// Everything that somebody could change, but in places where it can grant itself everything anyway.
pub async fn possible(case: &Case<'_>, who: &Who, owned: &BTreeSet<Option<usize>>) -> Result<Vec<Change>> {
    let attempts = Attempts { case, who };
    let places: Vec<Option<usize>> =
        [None, Some(0), Some(1), Some(2)].into_iter().filter(|place| !owned.contains(place)).collect();
    let roles = case.objects.roles.iter().filter(|role| places.contains(&role.place));
    let bindings = case.objects.bindings.iter().filter(|binding| places.contains(&binding.place));
    let (bound, made, joined, changed) = futures::try_join!(
        try_join_all(places.iter().map(|place| attempts.bindings(*place))),
        try_join_all(places.iter().map(|place| attempts.new_roles(*place))),
        try_join_all(bindings.map(|binding| attempts.join(binding))),
        try_join_all(roles.map(|role| attempts.role(role))),
    )?;
    Ok([bound, made, joined, changed].concat().concat())
}

/// Tries changes as dry runs.
struct Attempts<'a> {
    case: &'a Case<'a>,
    who: &'a Who,
}

/// What the server let pass of some changes, and whether it refuses them whatever they ask for.
#[derive(Default)]
struct Attempted {
    passed: Vec<Change>,
    refused: bool,
}

impl Attempts<'_> {
    async fn answer(&self, change: &Change) -> Result<Answer> {
        let request = change.request(self.case, &[self.who.subject()], 0);
        match request {
            Some(request) => self.case.server.ask(self.who, &request.dry()).await,
            None => Ok(Answer { status: 404, text: String::new() }),
        }
    }

    /// Tries changes that differ only in what they ask for, unless the first is refused whatever that is.
    async fn attempt(&self, changes: impl IntoIterator<Item = Change>) -> Result<Attempted> {
        let mut attempted = Attempted::default();
        for change in changes {
            let answer = self.answer(&change).await?;
            attempted.refused |= answer.is_unauthorized();
            if attempted.refused {
                break;
            }
            if answer.ok() {
                attempted.passed.push(change);
            }
        }
        Ok(attempted)
    }

    async fn bindings(&self, place: Option<usize>) -> Result<Vec<Change>> {
        let roles = self.bindable(place);
        let bind = |by: By| {
            roles.clone().into_iter().map(move |(cluster_role, role)| Change::Bind {
                place,
                cluster_role,
                role,
                by: by.clone(),
            })
        };
        let posted = self.attempt(bind(By::Post)).await?;
        let mut found = posted.passed;
        if posted.refused {
            for name in BINDINGS.iter().chain(&[ABSENT]) {
                let taken = self.case.objects.bindings.iter().any(|b| b.place == place && b.name == **name);
                for by in By::name(name).into_iter().filter(|_| !taken) {
                    found.extend(self.attempt(bind(by)).await?.passed);
                }
            }
        }
        Ok(found)
    }

    fn bindable(&self, place: Option<usize>) -> Vec<(bool, String)> {
        let of_case = self.case.objects.roles.iter().filter(|role| role.place.is_none() && role.is_of_case());
        let mut roles: Vec<(bool, String)> = BINDABLE.iter().map(|name| (true, (*name).to_owned())).collect();
        roles.extend(of_case.map(|role| (true, role.name.clone())));
        if place.is_some() {
            let here = self.case.objects.roles.iter().filter(|role| role.place == place);
            roles.extend(here.map(|role| (false, role.name.clone())));
        }
        roles
    }

    async fn join(&self, binding: &Object) -> Result<Vec<Change>> {
        let known = binding.is_of_case() || binding.place.is_some() || binding.name == JOINABLE;
        if !known || binding.name.starts_with("probe-") {
            return Ok(Vec::new());
        }
        let join = |put| Change::Join { path: binding.path.clone(), put };
        let patched = self.attempt([join(false)]).await?;
        if patched.refused { Ok(self.attempt([join(true)]).await?.passed) } else { Ok(patched.passed) }
    }

    async fn role(&self, role: &Object) -> Result<Vec<Change>> {
        if !(role.place.is_some() || role.is_of_case() || CHANGEABLE.contains(&role.name.as_str())) {
            return Ok(Vec::new());
        }
        let change = |rules: &str, put, keep| {
            let (path, rules) = (role.path.clone(), rules.to_owned());
            Change::Widen { path, rules, put, keep }
        };
        let mut found = Vec::new();
        for put in [false, true] {
            let widened = self.attempt([change(EVERYTHING, put, true)]).await?;
            if widened.refused {
                continue;
            }
            if widened.passed.is_empty() {
                for keep in [true, false] {
                    let held = self.held(|rule| change(rule, put, keep)).await?;
                    let passed = self.attempt([change(&held, put, keep)]).await?.passed;
                    found.extend(passed);
                }
            }
            found.extend(widened.passed);
            break;
        }
        if role.is_of_case() {
            let delete = Change::Delete { path: role.path.clone() };
            found.extend(self.attempt([delete]).await?.passed);
        }
        Ok(found)
    }

    async fn new_roles(&self, place: Option<usize>) -> Result<Vec<Change>> {
        let roles = &self.case.objects.roles;
        let taken = |name: &str| roles.iter().any(|role| role.place == place && role.name == name);
        let make = |name: &str, rules: &str, by: By| Change::Make {
            place,
            name: name.to_owned(),
            rules: rules.to_owned(),
            by,
        };
        // Under a name of their own, for roles that exist: they are made again once somebody has deleted them.
        let posted = self.attempt([make("probe", EVERYTHING, By::Post)]).await?;
        let mut found = posted.passed;
        let ways: &[By] = if posted.refused { &[] } else { &[By::Post] };
        for name in ROLES.iter().chain(&[ABSENT]).filter(|name| !taken(name)) {
            for by in ways.iter().cloned().chain(By::name(name)) {
                let widest = self.attempt([make(name, EVERYTHING, by.clone())]).await?;
                if widest.refused {
                    continue;
                }
                if !widest.passed.is_empty() {
                    found.extend(widest.passed);
                    break;
                }
                let held = self.held(|rule| make(name, rule, by.clone())).await?;
                found.extend(self.attempt([make(name, &held, by)]).await?.passed);
            }
        }
        Ok(found)
    }

    /// All rules of the case, one by one, that this one may write; together it may, too.
    async fn held(&self, change: impl Fn(&str) -> Change) -> Result<String> {
        let of_case = self.case.objects.roles.iter().filter(|role| role.is_of_case());
        let rules: BTreeSet<String> = of_case
            .flat_map(|role| role.body["rules"].as_array().into_iter().flatten())
            .map(Value::to_string)
            .collect();
        let mut held = Vec::new();
        for rule in rules {
            // A Role takes no paths; that is refused for its own reason.
            if self.answer(&change(&format!("[{rule}]"))).await?.ok() {
                held.push(rule);
            }
        }
        Ok(format!("[{}]", held.join(",")))
    }
}

/// Whether a change makes a role anew with all rules, in a place where another one may be deleted.
pub fn remakes(change: &Change, deleted: &str) -> Option<Change> {
    let Change::Make { place, rules, by: By::Post, .. } = change else { return None };
    let path = rbac_path(*place, "roles");
    let name = deleted.strip_prefix(&format!("{path}/"))?;
    (rules == EVERYTHING).then(|| Change::Make {
        place: *place,
        name: name.to_owned(),
        rules: rules.clone(),
        by: By::Post,
    })
}

/// The place of a namespace.
pub fn place_of(namespace: &str) -> Option<usize> {
    PLACES.iter().position(|name| *name == namespace)
}
