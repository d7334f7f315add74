//! Which requests a policy, a binding or a webhook is asked about.
//!
//! Semantics: `k8s.io/apiserver/pkg/admission/plugin/policy/matching` and `plugin/webhook/predicates`. Versions of the
//! API are looked at only with `matchPolicy: Exact`; a kind that is served by several groups is not.

use serde_json::Value;

use super::{
    Sort,
    request::{InNamespace, Request},
    selector::{Selector, texts},
    truth::Truth,
    view::Child,
};

/// `matchConstraints` of a policy, `matchResources` of a binding, or what a webhook matches.
#[derive(Debug)]
pub(super) struct Constraints {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    namespaces: Selector,
    objects: Selector,
    is_exact: bool,
}

#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    names: Vec<String>,
    scope: Option<String>,
}

/// Groups of which each API server has had one version for years.
const ONE_VERSION: [(&str, &str); 4] =
    [("", "v1"), ("apps", "v1"), ("batch", "v1"), ("rbac.authorization.k8s.io", "v1")];

impl Constraints {
    /// Reads `MatchResources`. A webhook has its rules under `rules` and excludes none.
    pub(super) fn new(spec: Option<&Value>) -> Self {
        let field = |name: &str| spec.and_then(|spec| spec.get(name));
        let rules = |name: &str| -> Vec<Rule> {
            field(name).and_then(Value::as_array).into_iter().flatten().map(Rule::new).collect()
        };
        let mut resource_rules = rules("resourceRules");
        resource_rules.extend(rules("rules"));
        Self {
            rules: resource_rules,
            excluded: rules("excludeResourceRules"),
            namespaces: Selector::new(field("namespaceSelector")),
            objects: Selector::new(field("objectSelector")),
            is_exact: field("matchPolicy").and_then(Value::as_str) == Some("Exact"),
        }
    }

    /// Whether any request of this kind could match, by the rules alone.
    pub(super) fn may_concern(&self, sort: Sort<'_>) -> bool {
        self.rules.is_empty() || self.rules.iter().any(|rule| rule.concerns(sort))
    }

    /// Whether a request matches.
    pub(super) fn matches(&self, request: &Request<'_>) -> Truth {
        if is_exempt(request) {
            return Truth::False;
        }
        let rules = if self.rules.is_empty() {
            Truth::True
        } else {
            Truth::any(self.rules.iter().map(|rule| rule.matches(request, self.is_exact)))
        };
        if rules == Truth::False {
            return Truth::False;
        }
        let excluded = Truth::any(self.excluded.iter().map(|rule| rule.matches(request, self.is_exact)));
        Truth::all([rules, !excluded, self.namespace_matches(request), self.object_matches(request)])
    }

    fn namespace_matches(&self, request: &Request<'_>) -> Truth {
        if self.namespaces.is_empty() {
            return Truth::True;
        }
        // A Namespace that is written is matched by its own labels, as they will be.
        if request.resource == "namespaces" && request.group.is_empty() {
            return if ["CREATE", "UPDATE"].contains(&request.operation) && request.subresource.is_empty() {
                self.namespaces.matches(request.labels())
            } else {
                self.namespaces.matches(request.old_labels())
            };
        }
        match request.in_namespace {
            InNamespace::Cluster => Truth::True,
            InNamespace::Known(namespace) => self.namespaces.matches(namespace.path(&["metadata", "labels"])),
            InNamespace::NotLoaded => Truth::Unknown,
        }
    }

    fn object_matches(&self, request: &Request<'_>) -> Truth {
        if self.objects.is_empty() {
            return Truth::True;
        }
        let matches = |exists: bool, labels: Child<'_>| {
            if exists { self.objects.matches(labels) } else { Truth::False }
        };
        matches(request.object.is_some(), request.labels())
            .or(matches(request.old_object.is_some(), request.old_labels()))
    }
}

impl Rule {
    fn new(rule: &Value) -> Self {
        let list = |name: &str| texts(rule.get(name));
        Self {
            operations: list("operations"),
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: list("resources")
                .iter()
                .map(|full| full.split_once('/').unwrap_or((full, "")))
                .map(|(resource, subresource)| (resource.to_owned(), subresource.to_owned()))
                .collect(),
            names: list("resourceNames"),
            scope: rule.get("scope").and_then(Value::as_str).map(str::to_owned),
        }
    }

    fn concerns(&self, sort: Sort<'_>) -> bool {
        has(&self.operations, sort.operation)
            && has(&self.groups, sort.group)
            && self.resources.iter().any(|(wanted, sub)| {
                (wanted == "*" || wanted == sort.resource) && (sub == "*" || sub == sort.subresource)
            })
    }

    fn matches(&self, request: &Request<'_>, is_exact: bool) -> Truth {
        if !self.concerns(request.sort()) {
            return Truth::False;
        }
        let is_namespace = request.resource == "namespaces" && request.group.is_empty();
        let in_cluster = is_namespace || request.namespace.is_none();
        let scope = match self.scope.as_deref() {
            None | Some("*") => true,
            Some("Namespaced") => !in_cluster,
            Some("Cluster") => in_cluster,
            Some(_) => false,
        };
        let names = if self.names.is_empty() {
            Truth::True
        } else {
            request.is_named(|name| self.names.iter().any(|wanted| wanted == name))
        };
        Truth::all([scope.into(), names, self.version_matches(request, is_exact)])
    }

    /// With `Exact`, whoever sends another version of the API is not asked about.
    fn version_matches(&self, request: &Request<'_>, is_exact: bool) -> Truth {
        if !is_exact || self.versions.iter().any(|version| version == "*") {
            return Truth::True;
        }
        let served =
            ONE_VERSION.iter().find(|(group, _)| *group == request.group).map(|(_, version)| *version);
        match served.or(request.version.filter(|_| !request.is_essential)) {
            Some(version) => has(&self.versions, version).into(),
            None => Truth::Unknown,
        }
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == wanted)
}

/// Admission is not asked about what configures it.
fn is_exempt(request: &Request<'_>) -> bool {
    const KINDS: [&str; 6] = [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ];
    request.group == "admissionregistration.k8s.io" && KINDS.contains(&request.resource)
}

#[cfg(test)]
mod tests;
