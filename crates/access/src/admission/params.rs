//! Objects that a policy looks up: `paramKind` and `paramRef` (KEP-3488).

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{
    loading::Loading,
    request::Request,
    selector::Selector,
    truth::Truth,
    view::{Parts, View},
};
use crate::{RoleFact, Symbols};

/// All loaded objects of the kind of a policy's parameters.
#[derive(Debug)]
pub(super) struct Params {
    objects: Vec<Param>,
    /// Whether an object that is not here does not exist.
    is_complete: bool,
    kind: String,
}

#[derive(Debug)]
pub(super) struct Param {
    /// Empty in the cluster scope.
    namespace: String,
    name: String,
    value: Value,
    is_role: bool,
}

/// What is known of a role.
static ROLE: LazyLock<Parts> = LazyLock::new(|| {
    Parts::only([
        "/apiVersion",
        "/kind",
        "/metadata/name",
        "/metadata/namespace",
        "/metadata/labels",
        "/rules",
    ])
});

impl Param {
    pub(super) fn view(&self) -> View<'_> {
        if self.is_role { View::partial(&self.value, &ROLE) } else { View::certain(&self.value) }
    }
}

/// Which parameters a binding refers to.
#[derive(Debug)]
pub(super) struct ParamRef {
    name: Option<String>,
    namespace: Option<String>,
    selector: Selector,
    denies_without: bool,
}

/// What a reference leads to.
pub(super) enum Found<'a> {
    /// The policy is evaluated with each; never empty.
    Objects(Vec<&'a Param>),
    /// There is none, and the binding refuses without.
    Refuses,
    /// There is none, and the binding does nothing without.
    Nothing,
    Unknown(String),
}

impl Params {
    /// Collects the objects of a `paramKind`: those of these names, or all.
    pub(super) fn new(loading: &Loading<'_>, param_kind: &Value, names: Option<&[String]>) -> Self {
        let text = |field: &str| param_kind.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (cluster, symbols) = (loading.cluster, loading.symbols);
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let plural = loading.plural(Some(group), kind);
        let full = if group.is_empty() { plural } else { format!("{plural}.{group}") };
        let is_role = group == "rbac.authorization.k8s.io" && ["ClusterRole", "Role"].contains(&kind);
        let is_wanted =
            |name| names.is_none_or(|names| names.iter().any(|wanted| wanted == symbols.name(name)));
        let objects = if is_role {
            let of_kind = |role: &&RoleFact| role.namespace.is_some() == (kind == "Role");
            cluster
                .roles
                .iter()
                .filter(of_kind)
                .filter(|role| is_wanted(role.name))
                .map(|fact| role(fact, kind, symbols))
                .collect()
        } else {
            let param = |object: &crate::ObjectFact| Param {
                namespace: symbols.name(object.namespace).to_owned(),
                name: symbols.name(object.name).to_owned(),
                value: object.body.clone(),
                is_role: false,
            };
            cluster.objects_of(group, kind).filter(|object| is_wanted(object.name)).map(param).collect()
        };
        Self { objects, is_complete: cluster.has_listed(&full), kind: kind.to_owned() }
    }

    /// Finds what a binding refers to, for a request.
    pub(super) fn find<'a>(&'a self, reference: &ParamRef, request: &Request<'_>) -> Found<'a> {
        let namespace = reference.namespace.as_deref().or(request.namespace).unwrap_or_default();
        let mut unsure = false;
        let mut found = Vec::new();
        for param in self.objects.iter() {
            let in_place = param.namespace.is_empty() || param.namespace == namespace;
            let matches = match &reference.name {
                Some(name) => Truth::from(param.name == *name),
                None => reference.selector.matches(param.view().path(&["metadata", "labels"])),
            };
            match matches.and(in_place.into()) {
                Truth::True => found.push(param),
                Truth::Unknown => unsure = true,
                Truth::False => {}
            }
        }
        if unsure {
            return Found::Unknown(format!("which {} it takes is not known", self.kind));
        }
        match (found.is_empty(), self.is_complete, reference.denies_without) {
            (false, ..) => Found::Objects(found),
            (true, false, _) => Found::Unknown(format!(
                "its parameter, {} `{}`, was not loaded",
                self.kind,
                reference.name.as_deref().unwrap_or("by labels")
            )),
            (true, true, true) => Found::Refuses,
            (true, true, false) => Found::Nothing,
        }
    }
}

impl ParamRef {
    /// The one name that it asks for.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) fn new(reference: &Value) -> Self {
        let text = |field: &str| {
            reference.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Self {
            name: text("name"),
            namespace: text("namespace"),
            selector: Selector::new(reference.get("selector")),
            denies_without: text("parameterNotFoundAction").as_deref() == Some("Deny"),
        }
    }
}

fn role(fact: &RoleFact, kind: &str, symbols: &Symbols) -> Param {
    let names =
        |list: &[crate::Symbol]| -> Vec<&str> { list.iter().map(|name| symbols.name(*name)).collect() };
    let rule = |rule: &crate::RuleFact| {
        let lists = [
            ("verbs", &rule.verbs),
            ("apiGroups", &rule.api_groups),
            ("resources", &rule.resources),
            ("resourceNames", &rule.resource_names),
            ("nonResourceURLs", &rule.non_resource_urls),
        ];
        // As on the API server, an empty list is absent.
        let kept = lists.iter().filter(|(field, list)| *field == "verbs" || !list.is_empty());
        kept.map(|(field, list)| ((*field).to_owned(), json!(names(list)))).collect::<serde_json::Map<_, _>>()
    };
    let labels: serde_json::Map<_, _> = fact
        .labels
        .iter()
        .map(|(key, value)| (symbols.name(*key).to_owned(), symbols.name(*value).into()))
        .collect();
    let name = symbols.name(fact.name).to_owned();
    let namespace = fact.namespace.map(|namespace| symbols.name(namespace).to_owned()).unwrap_or_default();
    let mut metadata = json!({"name": name});
    if let Some(metadata) = metadata.as_object_mut() {
        if !labels.is_empty() {
            metadata.insert("labels".to_owned(), labels.into());
        }
        if !namespace.is_empty() {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
    }
    let value = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": fact.rules.iter().map(rule).collect::<Vec<_>>(),
    });
    Param { namespace, name, value, is_role: true }
}
