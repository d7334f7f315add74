//! Which requests a rule of Kyverno is about: `match` and `exclude`.
//!
//! Semantics: kyverno `pkg/engine/utils/match.go`. Which roles somebody has by bindings is not looked at.

use serde_json::Value;

use super::text::{KindPattern, has_wildcard, wildcard};
use crate::admission::{
    Sort,
    loading::Loading,
    request::{InNamespace, Request},
    selector::{Selector, texts},
    truth::Truth,
    view::Child,
};

/// `match` or `exclude`.
#[derive(Debug, Default)]
pub(super) struct Filters {
    any: Vec<Filter>,
    all: Vec<Filter>,
}

#[derive(Debug)]
struct Filter {
    kinds: Vec<Kind>,
    names: Vec<String>,
    namespaces: Vec<String>,
    operations: Vec<String>,
    selector: Option<Selector>,
    namespace_selector: Option<Selector>,
    has_annotations: bool,
    subjects: Vec<Subject>,
    has_roles: bool,
    is_empty: bool,
}

#[derive(Debug)]
struct Kind {
    pattern: KindPattern,
    /// Of a kind without wildcards.
    plural: Option<String>,
    subresources: Subresources,
}

/// Whether a kind without a subresource is meant with all of them. Where Kyverno is asked about what a rule matches, it
/// is not; in exclusions that depends on its version. Ephemeral containers belong to the pod in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subresources {
    NotMeant,
    MayBeMeant,
}

#[derive(Debug)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Filters {
    /// Reads `match`.
    pub(super) fn of_match(spec: Option<&Value>, loading: &Loading<'_>) -> Self {
        Self::new(spec, loading, Subresources::NotMeant)
    }

    /// Reads `exclude`, or `match` of an exception.
    pub(super) fn of_exception(spec: Option<&Value>, loading: &Loading<'_>) -> Self {
        Self::new(spec, loading, Subresources::MayBeMeant)
    }

    fn new(spec: Option<&Value>, loading: &Loading<'_>, subresources: Subresources) -> Self {
        let Some(spec) = spec else { return Self::default() };
        let list = |field: &str| -> Vec<Filter> {
            let filters = spec.get(field).and_then(Value::as_array).into_iter().flatten();
            filters.map(|filter| Filter::new(filter, loading, subresources)).collect()
        };
        let (mut any, all) = (list("any"), list("all"));
        if any.is_empty() && all.is_empty() {
            let old = Filter::new(spec, loading, subresources);
            any.extend((!old.is_empty).then_some(old));
        }
        Self { any, all }
    }

    /// Whether a request is meant; false for no filters.
    pub(super) fn matches(&self, request: &Request<'_>) -> Truth {
        if self.any.is_empty() {
            let all = Truth::all(self.all.iter().map(|filter| filter.matches(request)));
            return if self.all.is_empty() { Truth::False } else { all };
        }
        Truth::any(self.any.iter().map(|filter| filter.matches(request)))
    }

    /// Whether any request of this kind could be meant.
    pub(super) fn may_concern(&self, sort: Sort<'_>) -> bool {
        let concerns =
            |filter: &Filter| filter.kinds.is_empty() || filter.kinds.iter().any(|kind| kind.may_be(sort));
        self.any.iter().any(concerns)
            || (self.any.is_empty() && !self.all.is_empty() && self.all.iter().all(concerns))
    }

    fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.any.iter().chain(&self.all)
    }

    /// Whether Kyverno would write a rule for what makes pods from one for pods (`CanAutoGen`).
    pub(super) fn allows_controllers(&self) -> bool {
        self.filters().all(|filter| {
            let only_pods =
                filter.kinds.len() == 1 || filter.kinds.iter().all(|kind| kind.pattern.kind != "Pod");
            only_pods && filter.names.is_empty() && filter.selector.is_none() && !filter.has_annotations
        })
    }

    /// Whether some filter is about pods.
    pub(super) fn is_about_pods(&self) -> bool {
        self.filters().any(|filter| {
            filter.kinds.iter().any(|kind| kind.pattern.kind == "Pod" && kind.pattern.subresource.is_empty())
        })
    }
}

impl Filter {
    fn new(filter: &Value, loading: &Loading<'_>, subresources: Subresources) -> Self {
        let resources = filter.get("resources");
        let field = |name: &str| resources.and_then(|resources| resources.get(name));
        let mut names = texts(field("names"));
        names
            .extend(field("name").and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned));
        let selector = |name: &str| field(name).filter(|s| !s.is_null()).map(|s| Selector::new(Some(s)));
        let subjects =
            filter.get("subjects").and_then(Value::as_array).into_iter().flatten().map(Subject::new);
        let has = |of: Option<&Value>| match of {
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Object(map)) => !map.is_empty(),
            _ => false,
        };
        let mut made = Self {
            kinds: texts(field("kinds")).iter().map(|kind| Kind::new(kind, loading, subresources)).collect(),
            names,
            namespaces: texts(field("namespaces")),
            operations: texts(field("operations")),
            selector: selector("selector"),
            namespace_selector: selector("namespaceSelector"),
            has_annotations: has(field("annotations")),
            subjects: subjects.collect(),
            has_roles: has(filter.get("roles")) || has(filter.get("clusterRoles")),
            is_empty: false,
        };
        made.is_empty = !has(resources) && made.subjects.is_empty() && !made.has_roles;
        made
    }

    fn matches(&self, request: &Request<'_>) -> Truth {
        if self.is_empty {
            return Truth::False;
        }
        let or_all = |is_empty: bool, truth: &dyn Fn() -> Truth| if is_empty { Truth::True } else { truth() };
        let labels = if request.object.is_some() { request.labels() } else { request.old_labels() };
        Truth::all([
            or_all(self.kinds.is_empty(), &|| {
                Truth::any(self.kinds.iter().map(|kind| kind.matches(request)))
            }),
            or_all(self.operations.is_empty(), &|| {
                self.operations.iter().any(|o| o == request.operation).into()
            }),
            or_all(self.namespaces.is_empty(), &|| {
                let namespace = request.namespace.unwrap_or_default();
                self.namespaces.iter().any(|pattern| wildcard(pattern, namespace)).into()
            }),
            or_all(self.names.is_empty(), &|| {
                request.is_named(|name| self.names.iter().any(|pattern| wildcard(pattern, name)))
            }),
            self.selector.as_ref().map_or(Truth::True, |s| s.matches_patterns(labels, wildcard)),
            self.namespace_matches(request),
            if self.has_annotations { Truth::Unknown } else { Truth::True },
            self.user_matches(request),
        ])
    }

    fn namespace_matches(&self, request: &Request<'_>) -> Truth {
        let Some(selector) = &self.namespace_selector else { return Truth::True };
        match request.in_namespace {
            InNamespace::Known(namespace) => {
                selector.matches_patterns(namespace.path(&["metadata", "labels"]), wildcard)
            }
            InNamespace::Cluster if request.resource == "namespaces" => Truth::True,
            InNamespace::Cluster => selector.matches_patterns(Child::Absent, wildcard),
            InNamespace::NotLoaded => Truth::Unknown,
        }
    }

    fn user_matches(&self, request: &Request<'_>) -> Truth {
        let subjects = Truth::from(self.subjects.iter().any(|subject| subject.is(request)));
        match (self.has_roles, self.subjects.is_empty()) {
            (true, _) => Truth::Unknown,
            (false, true) => Truth::True,
            (false, false) => subjects,
        }
    }
}

impl Kind {
    fn new(text: &str, loading: &Loading<'_>, subresources: Subresources) -> Self {
        let pattern = KindPattern::new(text);
        let group = Some(pattern.group.as_str()).filter(|group| !has_wildcard(group));
        let plural = (!has_wildcard(&pattern.kind)).then(|| loading.plural(group, &pattern.kind));
        Self { pattern, plural, subresources }
    }

    fn may_be(&self, sort: Sort<'_>) -> bool {
        self.is(sort) != Truth::False
    }

    fn matches(&self, request: &Request<'_>) -> Truth {
        self.is(request.sort())
    }

    /// The kind of an object says more than a guessed plural.
    fn is(&self, sort: Sort<'_>) -> Truth {
        let by_kind =
            sort.kind.filter(|_| sort.subresource.is_empty()).map(|kind| wildcard(&self.pattern.kind, kind));
        let of_kind = match (by_kind, &self.plural) {
            (Some(is), _) => is.into(),
            (None, Some(plural)) => Truth::from(plural == sort.resource),
            (None, None) if self.pattern.kind == "*" => Truth::True,
            (None, None) => Truth::Unknown,
        };
        let of_subresource = match (self.pattern.subresource.as_str(), sort.subresource) {
            ("", "") => Truth::True,
            ("", "ephemeralcontainers") if self.pattern.kind == "Pod" => Truth::True,
            ("", _) if self.subresources == Subresources::NotMeant => Truth::False,
            ("", _) => Truth::Unknown,
            (pattern, subresource) => wildcard(pattern, subresource).into(),
        };
        Truth::all([wildcard(&self.pattern.group, sort.group).into(), of_kind, of_subresource])
    }
}

impl Subject {
    fn new(subject: &Value) -> Self {
        let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { kind: text("kind"), name: text("name"), namespace: text("namespace") }
    }

    fn is(&self, request: &Request<'_>) -> bool {
        match self.kind.as_str() {
            "User" => wildcard(&self.name, &request.who.user),
            "Group" => request.who.groups.iter().any(|group| wildcard(&self.name, group)),
            "ServiceAccount" => {
                let name = format!("system:serviceaccount:{}:{}", self.namespace, self.name);
                wildcard(&name, &request.who.user)
            }
            _ => false,
        }
    }
}
