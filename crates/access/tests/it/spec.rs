//! A small cluster: roles and bindings among namespaces, accounts and Secrets that are always there.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Value, json};

use crate::server::{RBAC, Who};

/// The namespaces that cases share.
pub const NAMESPACES: [&str; 3] = ["oracle-a", "oracle-b", "oracle-c"];
/// The namespaces where there are accounts worth having: those, and the one of the control plane.
pub const PLACES: [&str; 4] = ["oracle-a", "oracle-b", "oracle-c", "kube-system"];
/// Accounts of the control plane that are worth most.
pub const STRONG: [&str; 2] = ["namespace-controller", "clusterrole-aggregation-controller"];
/// The accounts of each, besides `default`.
pub const ACCOUNTS: [&str; 2] = ["a0", "a1"];
/// An account that bindings name and that does not exist.
pub const GHOST: &str = "ghost";
/// The Secrets of each namespace.
pub const SECRETS: [&str; 2] = ["s0", "s1"];
/// A token Secret, in some cases.
pub const TOKEN: &str = "t0";
/// A Secret, role or binding that rules name and that does not exist.
pub const ABSENT: &str = "n0";
/// A part of the names of Secrets, which some rules name as if it stood for them. It is a name, too.
pub const PART: &str = "s";
/// Users, one of them called like a group.
pub const USERS: [&str; 3] = ["ann", "bob", "dev"];
/// Groups.
pub const GROUPS: [&str; 2] = ["dev", "ops"];
/// Somebody of whom nothing but a group is known.
pub const NOBODY: &str = "oracle-nobody";
/// What all objects of cases carry.
pub const LABEL: &str = "oracle";
/// A label by which roles of cases aggregate.
pub const AGGREGATE: &str = "oracle-aggregate";

/// A case's cluster. Places are indices of [`NAMESPACES`], none for the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    pub roles: Vec<Role>,
    pub bindings: Vec<Binding>,
    /// Token Secrets, by place and account.
    pub tokens: Vec<(usize, String)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Role {
    pub place: Option<usize>,
    pub name: String,
    pub rules: Vec<Rule>,
    /// A label that others may select it by.
    pub label: Option<String>,
    /// The label by which it selects others.
    pub selects: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    pub verbs: Vec<String>,
    pub groups: Vec<String>,
    pub resources: Vec<String>,
    pub names: Vec<String>,
    pub urls: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    pub place: Option<usize>,
    pub name: String,
    /// Whether the role is a ClusterRole.
    pub cluster_role: bool,
    pub role: String,
    pub subjects: Vec<Subject>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Account(usize, String),
    User(String),
    Group(String),
}

/// A rule in one line: `rule("get,list", "", "secrets", "s0")`.
pub fn rule(verbs: &str, group: &str, resources: &str, names: &str) -> Rule {
    let list = |text: &str| text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    Rule {
        verbs: list(verbs),
        groups: group.split(',').map(str::to_owned).collect(),
        resources: list(resources),
        names: list(names),
        urls: Vec::new(),
    }
}

impl Rule {
    fn json(&self) -> Value {
        if !self.urls.is_empty() {
            return json!({"verbs": self.verbs, "nonResourceURLs": self.urls});
        }
        let mut rule = json!({"verbs": self.verbs, "apiGroups": self.groups, "resources": self.resources});
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }
}

impl Subject {
    fn json(&self) -> Value {
        let group = "rbac.authorization.k8s.io";
        match self {
            Self::Account(place, name) => {
                json!({"kind": "ServiceAccount", "namespace": NAMESPACES[*place], "name": name})
            }
            Self::User(name) => json!({"kind": "User", "apiGroup": group, "name": name}),
            Self::Group(name) => json!({"kind": "Group", "apiGroup": group, "name": name}),
        }
    }

    /// Somebody who is this subject, and as little else as can be.
    pub fn who(&self) -> Who {
        match self {
            Self::Account(place, name) => Who::account(NAMESPACES[*place], name),
            Self::User(name) if name == "system:anonymous" => Who::anonymous(),
            Self::User(name) => Who::user(name),
            Self::Group(name) if name == "system:authenticated" => Who::user(NOBODY),
            Self::Group(name) if name == "system:unauthenticated" => Who::anonymous(),
            Self::Group(name) if name.starts_with("system:serviceaccounts:") => {
                Who::in_groups(NOBODY, &[name, "system:serviceaccounts"])
            }
            Self::Group(name) => Who::in_groups(NOBODY, &[name]),
        }
    }
}

impl fmt::Display for Subject {
    /// As the analyser names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(place, name) => write!(f, "sa:{}/{name}", NAMESPACES[*place]),
            Self::User(name) => {
                match name.strip_prefix("system:serviceaccount:").and_then(|n| n.split_once(':')) {
                    Some((namespace, name)) => write!(f, "sa:{namespace}/{name}"),
                    None => write!(f, "user:{name}"),
                }
            }
            Self::Group(name) => write!(f, "group:{name}"),
        }
    }
}

/// The path of a collection of RBAC objects.
pub fn rbac_path(place: Option<usize>, plural: &str) -> String {
    match place {
        None => format!("{RBAC}/cluster{plural}"),
        Some(place) => format!("{RBAC}/namespaces/{}/{plural}", NAMESPACES[place]),
    }
}

impl Spec {
    /// Its RBAC objects with the collections they go to; the first of equal names counts.
    pub fn objects(&self) -> Vec<(String, Value)> {
        let mut objects = Vec::new();
        let mut seen = BTreeSet::new();
        let version = "rbac.authorization.k8s.io/v1";
        let kind = |place: Option<usize>, kind: &str| {
            format!("{}{kind}", if place.is_none() { "Cluster" } else { "" })
        };
        for role in &self.roles {
            let path = rbac_path(role.place, "roles");
            if !seen.insert((path.clone(), role.name.clone())) {
                continue;
            }
            let rules: Vec<Value> = role.rules.iter().map(Rule::json).collect();
            let mut object = json!({"apiVersion": version, "kind": kind(role.place, "Role"),
                "metadata": {"name": role.name, "labels": {LABEL: "case"}}, "rules": rules});
            if let Some(label) = &role.label {
                object["metadata"]["labels"][label] = json!("true");
            }
            if let (Some(label), None) = (&role.selects, role.place) {
                object["aggregationRule"] =
                    json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
            }
            objects.push((path, object));
        }
        for binding in self.bindings() {
            let path = rbac_path(binding.place, "rolebindings");
            let subjects: Vec<Value> = binding.subjects.iter().map(Subject::json).collect();
            let role = if binding.cluster_role { "ClusterRole" } else { "Role" };
            objects.push((
                path,
                json!({"apiVersion": version, "kind": kind(binding.place, "RoleBinding"),
                    "metadata": {"name": binding.name, "labels": {LABEL: "case"}},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": binding.role},
                    "subjects": subjects}),
            ));
        }
        objects
    }

    /// Its bindings, the first of equal names only.
    fn bindings(&self) -> Vec<&Binding> {
        let mut seen = BTreeSet::new();
        self.bindings.iter().filter(|binding| seen.insert((binding.place, &binding.name))).collect()
    }

    /// Everybody whom the analyser may be asked about.
    pub fn subjects(&self) -> BTreeSet<Subject> {
        let mut subjects: BTreeSet<Subject> =
            self.bindings().into_iter().flat_map(|binding| binding.subjects.iter().cloned()).collect();
        for place in 0..NAMESPACES.len() {
            subjects.extend(ACCOUNTS.iter().map(|name| Subject::Account(place, (*name).to_owned())));
            subjects.insert(Subject::Account(place, "default".to_owned()));
        }
        // The same identity under two names, and accounts that nobody has yet.
        subjects.retain(|subject| match subject {
            Subject::User(name) => !name.starts_with("system:serviceaccount:"),
            Subject::Account(_, name) => name != GHOST,
            Subject::Group(_) => true,
        });
        subjects
    }

    /// Whether controllers write into roles because of it.
    pub fn aggregates(&self) -> bool {
        self.roles.iter().any(|role| role.label.is_some() || role.selects.is_some())
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, object) in self.objects() {
            let place =
                path.split("/namespaces/").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or("-");
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            write!(f, "{} {place}/{name}:", object["kind"].as_str().unwrap_or_default())?;
            if object["metadata"]["labels"].as_object().is_some_and(|labels| labels.len() > 1) {
                write!(f, " labels {}", object["metadata"]["labels"])?;
            }
            if let Some(rule) = object.get("aggregationRule") {
                write!(f, " selects {rule}")?;
            }
            for part in ["rules", "roleRef", "subjects"] {
                if let Some(value) = object.get(part) {
                    let text = value.to_string().replace(r#""apiGroup":"rbac.authorization.k8s.io","#, "");
                    write!(f, " {text}")?;
                }
            }
            writeln!(f)?;
        }
        for (place, account) in &self.tokens {
            writeln!(f, "Secret {}/{TOKEN}: token of {account}", NAMESPACES[*place])?;
        }
        Ok(())
    }
}
