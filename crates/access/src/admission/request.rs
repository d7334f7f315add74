//! A request as policies see it, in two readings: as it is sent, and with only what is essential to it.

use std::sync::{Arc, LazyLock};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::{
    Authorizer, Check, Requester, Sort,
    cel::{Asked, Expression, Scope, Term, Why},
    truth::Truth,
    view::{Child, Parts, View},
};
use crate::{ClusterFacts, Sample, Symbols};

/// The namespaces of a cluster, as objects.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    known: FxHashMap<String, Value>,
}

/// What of a namespace is kept.
static NAMESPACE: LazyLock<Parts> =
    LazyLock::new(|| Parts::only(["/apiVersion", "/kind", "/metadata/name", "/metadata/labels"]));

impl Namespaces {
    pub(super) fn new(cluster: &ClusterFacts, symbols: &Symbols) -> Self {
        let object = |namespace: &crate::NamespaceFact| {
            let name = symbols.name(namespace.name);
            let mut labels = serde_json::Map::new();
            // The API server sets it on each namespace.
            labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
            let text = |(key, value): &(_, _)| (symbols.name(*key).to_owned(), symbols.name(*value).into());
            labels.extend(namespace.labels.iter().map(text));
            let metadata = json!({"name": name, "labels": labels});
            (name.to_owned(), json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
        };
        Self { known: cluster.namespaces.iter().map(object).collect() }
    }

    pub(super) fn get(&self, name: &str) -> Option<View<'_>> {
        self.known.get(name).map(|object| View::partial(object, &NAMESPACE))
    }

    /// Whether something holds for one of them.
    pub(super) fn any(&self, holds: impl Fn(View<'_>) -> bool) -> bool {
        self.known.values().any(|object| holds(View::partial(object, &NAMESPACE)))
    }
}

/// The namespace that a request goes to.
#[derive(Clone, Copy)]
pub(super) enum InNamespace<'a> {
    /// None: the cluster scope, or a Namespace itself.
    Cluster,
    Known(View<'a>),
    NotLoaded,
}

/// A sample with all that does not depend on the reading.
pub(super) struct Prepared<'a> {
    sample: &'a Sample,
    who: &'a Requester,
    authorizer: Option<&'a dyn Authorizer>,
    namespaces: &'a Namespaces,
    namespace: Option<&'a str>,
    name: &'a str,
    resource: &'a str,
    subresource: &'a str,
    object: Option<Value>,
    old_object: Option<Value>,
    essential: Parts,
    request: Value,
    is_typed: bool,
}

/// A request in one reading.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) operation: &'a str,
    pub(super) group: &'a str,
    /// The version of the object, if it has one.
    pub(super) version: Option<&'a str>,
    /// The plural alone.
    pub(super) resource: &'a str,
    pub(super) subresource: &'a str,
    /// Kind of the object, of the old one if there is none.
    pub(super) kind: Option<&'a str>,
    /// As admission has it: of a Namespace, its own name.
    pub(super) namespace: Option<&'a str>,
    /// None where it may be any.
    pub(super) name: Option<&'a str>,
    pub(super) who: &'a Requester,
    pub(super) authorizer: Option<&'a dyn Authorizer>,
    pub(super) object: Option<View<'a>>,
    pub(super) old_object: Option<View<'a>>,
    pub(super) request: View<'a>,
    pub(super) in_namespace: InNamespace<'a>,
    /// Whether only the essential fields are certain.
    pub(super) is_essential: bool,
}

const UNTYPED: [&str; 2] = ["/resource/version", "/kind"];
/// What of a request no sample says, and what somebody may choose, such as a dry run.
const UNSAID: [&str; 8] = [
    "/uid",
    "/dryRun",
    "/options",
    "/requestKind",
    "/requestResource",
    "/requestSubResource",
    "/userInfo/uid",
    "/userInfo/extra",
];

/// By whether the object has a kind, and whether the name may be any.
static REQUEST: LazyLock<[[Parts; 2]; 2]> = LazyLock::new(|| {
    let parts = |typed: bool, any_name: bool| {
        let more = UNTYPED.iter().filter(|_| !typed).chain(["/name"].iter().filter(|_| any_name));
        Parts::except(UNSAID.iter().chain(more).copied())
    };
    [[parts(false, false), parts(false, true)], [parts(true, false), parts(true, true)]]
});

impl<'a> Prepared<'a> {
    pub(super) fn new(
        sample: &'a Sample,
        who: &'a Requester,
        namespaces: &'a Namespaces,
        namespace: Option<&'a str>,
        name: &'a str,
        authorizer: Option<&'a dyn Authorizer>,
    ) -> Self {
        let (resource, subresource) = sample.resource.split_once('/').unwrap_or((&sample.resource, ""));
        let is_namespace = resource == "namespaces" && sample.group.is_empty();
        let inside = namespace.filter(|_| !is_namespace);
        let named = |object: &Value| completed(object, inside, name, !subresource.is_empty());
        let (object, old_object) = (named(&sample.object), named(&sample.old_object));
        let namespace = if is_namespace { Some(name).filter(|name| !name.is_empty()) } else { namespace };
        let typed = type_of(object.as_ref().or(old_object.as_ref()));
        let mut request = json!({
            "operation": sample.operation,
            "resource": {"group": sample.group, "resource": resource},
            "userInfo": {"username": who.user, "groups": who.groups},
        });
        if let (Some((version, kind)), Some(map)) = (typed, request.as_object_mut()) {
            map.insert("kind".to_owned(), json!({"group": sample.group, "version": version, "kind": kind}));
            map.insert(
                "resource".to_owned(),
                json!({"group": sample.group, "version": version, "resource": resource}),
            );
        }
        // As on the API server, what is empty is absent.
        let texts =
            [("name", name), ("namespace", namespace.unwrap_or_default()), ("subResource", subresource)];
        if let Some(map) = request.as_object_mut() {
            map.extend(
                texts
                    .iter()
                    .filter(|(_, text)| !text.is_empty())
                    .map(|(key, text)| ((*key).to_owned(), json!(text))),
            );
        }
        let any_name = sample.operation == "CREATE" && name.is_empty();
        let given = ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"];
        let given = given.into_iter().filter(|pointer| !any_name || *pointer != "/metadata/name");
        let essential = Parts::only(given.chain(sample.essential.iter().map(String::as_str)));
        let is_typed = typed.is_some();
        Self {
            sample,
            who,
            authorizer,
            namespaces,
            namespace,
            name,
            resource,
            subresource,
            object,
            old_object,
            essential,
            request,
            is_typed,
        }
    }

    /// The request with every field of the sample.
    pub(super) fn as_sent(&self) -> Request<'_> {
        self.reading(false)
    }

    /// The request with only what each request that uses the edge has.
    pub(super) fn as_essential(&self) -> Request<'_> {
        self.reading(true)
    }

    fn reading(&self, is_essential: bool) -> Request<'_> {
        let (typed, any_name) = (self.is_typed, is_essential && self.any_name());
        let [untyped_parts, typed_parts] = &*REQUEST;
        let [named, unnamed] = if typed { typed_parts } else { untyped_parts };
        let typed = type_of(self.object.as_ref().or(self.old_object.as_ref()));
        let is_namespace = self.resource == "namespaces" && self.sample.group.is_empty();
        Request {
            operation: self.sample.operation,
            group: &self.sample.group,
            version: typed.map(|(version, _)| version),
            resource: self.resource,
            subresource: self.subresource,
            kind: typed.map(|(_, kind)| kind),
            namespace: self.namespace,
            name: Some(self.name).filter(|_| !any_name),
            who: self.who,
            authorizer: self.authorizer,
            object: self.object.as_ref().map(|object| {
                if is_essential { View::partial(object, &self.essential) } else { View::certain(object) }
            }),
            old_object: self.old_object.as_ref().map(View::certain),
            request: View::partial(&self.request, if any_name { unnamed } else { named }),
            in_namespace: match self.namespace.filter(|_| !is_namespace) {
                None => InNamespace::Cluster,
                Some(name) => self.namespaces.get(name).map_or(InNamespace::NotLoaded, InNamespace::Known),
            },
            is_essential,
        }
    }

    fn any_name(&self) -> bool {
        self.sample.operation == "CREATE" && self.name.is_empty()
    }
}

/// Version and kind of an object.
fn type_of(object: Option<&Value>) -> Option<(&str, &str)> {
    let object = object?;
    let api_version = object.get("apiVersion")?.as_str()?;
    let version = api_version.split_once('/').map_or(api_version, |(_, version)| version);
    Some((version, object.get("kind")?.as_str()?))
}

/// The object with the name and namespace of the request, as the API server completes it. As there, null labels and
/// annotations are absent. None for null.
fn completed(object: &Value, namespace: Option<&str>, name: &str, is_subresource: bool) -> Option<Value> {
    let Value::Object(map) = object else { return None };
    let mut map = map.clone();
    if !is_subresource || map.contains_key("metadata") {
        let metadata = map.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.retain(|_, value| !value.is_null());
            if !name.is_empty() {
                metadata.insert("name".to_owned(), name.into());
            }
            if let Some(namespace) = namespace {
                metadata.insert("namespace".to_owned(), namespace.into());
            }
        }
    }
    Some(Value::Object(map))
}

impl<'a> Request<'a> {
    /// What kind of request it is.
    pub(super) fn sort(&self) -> Sort<'a> {
        Sort {
            operation: self.operation,
            group: self.group,
            resource: self.resource,
            subresource: self.subresource,
            kind: self.kind,
        }
    }

    /// What expressions see, without variables. `params` is null for a policy without.
    pub(super) fn scope(
        &self,
        params: Term<'a>,
        variables: &'a [(String, Arc<Expression>)],
        errors_refuse: bool,
    ) -> Scope<'a> {
        let term = |view: Option<View<'a>>| view.map_or(Term::Null, Term::of);
        let namespace_object = match self.in_namespace {
            InNamespace::Cluster => Term::Null,
            InNamespace::Known(view) => Term::of(view),
            InNamespace::NotLoaded => Term::Unknown(Why::NotLoaded("the namespace")),
        };
        let roots = vec![
            ("object", term(self.object)),
            ("oldObject", term(self.old_object)),
            ("request", Term::of(self.request)),
            ("params", params),
            ("namespaceObject", namespace_object),
        ];
        let asked = Asked { who: self.who, authorizer: self.authorizer };
        let mut scope = Scope::new(roots, Some(asked), variables, errors_refuse);
        scope.request_resource = Check {
            group: self.group.to_owned(),
            resource: self.resource.to_owned(),
            subresource: self.subresource.to_owned(),
            namespace: self.namespace.unwrap_or_default().to_owned(),
            name: self.name.unwrap_or_default().to_owned(),
            ..Check::default()
        };
        scope
    }

    /// Whether the name is one of these.
    pub(super) fn is_named(&self, matches: impl Fn(&str) -> bool) -> Truth {
        self.name.map_or(Truth::Unknown, |name| matches(name).into())
    }

    /// The labels of the object after the request; absent if there is none.
    pub(super) fn labels(&self) -> Child<'a> {
        labels_of(self.object)
    }

    /// The labels of the object before the request.
    pub(super) fn old_labels(&self) -> Child<'a> {
        labels_of(self.old_object)
    }
}

fn labels_of(object: Option<View<'_>>) -> Child<'_> {
    object.map_or(Child::Absent, |object| object.path(&["metadata", "labels"]))
}
