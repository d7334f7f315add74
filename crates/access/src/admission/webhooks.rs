//! Webhooks and Gatekeeper's constraints: whether one is asked, not what it says.
//!
//! A webhook that is asked may refuse whatever its `failurePolicy`, which is about its absence.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Judge, Sort, Verdict,
    cel::{Expression, Expressions, Term},
    kyverno,
    loading::{Loading, usual_plural},
    matching::Constraints,
    policy::boolean,
    request::{InNamespace, Request},
    selector::{Selector, texts},
    truth::Truth,
};
use crate::{ObjectFact, Symbols};

/// Everything that asks a process, apart from Kyverno and Gatekeeper where their policies are known.
pub(super) fn judges(loading: &Loading<'_>) -> Vec<Box<dyn Judge>> {
    let (cluster, symbols) = (loading.cluster, loading.symbols);
    let has_constraints = cluster.has_listed("constrainttemplates.templates.gatekeeper.sh")
        || cluster.objects_of(TEMPLATES, "ConstraintTemplate").next().is_some();
    let is_known = |configuration: &&ObjectFact| {
        let is_gatekeeper = symbols.name(configuration.name) == "gatekeeper-validating-webhook-configuration";
        (kyverno::is_own_webhook(configuration, symbols) && kyverno::is_loaded(cluster))
            || (is_gatekeeper && has_constraints)
    };
    let configurations = cluster.objects_of("admissionregistration.k8s.io", "ValidatingWebhookConfiguration");
    let webhooks =
        configurations.filter(|configuration| !is_known(configuration)).flat_map(|configuration| {
            let webhooks = configuration.body.get("webhooks").and_then(Value::as_array).into_iter().flatten();
            webhooks.filter_map(|webhook| {
                Webhook::new(symbols.name(configuration.name), webhook, &loading.expressions)
            })
        });
    let mut judges: Vec<Box<dyn Judge>> =
        webhooks.map(|webhook| Box::new(webhook) as Box<dyn Judge>).collect();
    let constraints = cluster.objects.iter().filter(|object| object.group() == CONSTRAINTS);
    let constraints = constraints.filter_map(|object| Constraint::new(object, symbols));
    judges.extend(constraints.map(|constraint| Box::new(constraint) as Box<dyn Judge>));
    judges
}

const TEMPLATES: &str = "templates.gatekeeper.sh";
const CONSTRAINTS: &str = "constraints.gatekeeper.sh";

/// One webhook of a ValidatingWebhookConfiguration.
#[derive(Debug)]
struct Webhook {
    by: String,
    constraints: Constraints,
    conditions: Vec<Arc<Expression>>,
}

impl Webhook {
    /// None for one that is never asked.
    fn new(configuration: &str, webhook: &Value, expressions: &Expressions) -> Option<Self> {
        let has_rules = webhook.get("rules").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
        let name = webhook.get("name").and_then(Value::as_str).unwrap_or_default();
        let conditions = webhook.get("matchConditions").and_then(Value::as_array).into_iter().flatten();
        let text =
            |item: &Value| item.get("expression").and_then(Value::as_str).unwrap_or_default().to_owned();
        has_rules.then(|| Self {
            by: format!("ValidatingWebhookConfiguration {configuration}, webhook {name}"),
            constraints: Constraints::new(Some(webhook)),
            conditions: conditions.map(|item| expressions.get(&text(item))).collect(),
        })
    }
}

impl Judge for Webhook {
    fn by(&self) -> &str {
        &self.by
    }

    fn may_concern(&self, sort: Sort<'_>) -> bool {
        self.constraints.may_concern(sort)
    }

    fn judge(&self, request: &Request<'_>) -> Verdict {
        if self.constraints.matches(request) == Truth::False {
            return Verdict::Passes;
        }
        let scope = request.scope(Term::Null, &[], false);
        if self.conditions.iter().any(|condition| boolean(&scope, condition) == Ok(false)) {
            return Verdict::Passes;
        }
        Verdict::Unknown("a webhook is asked, and what it says is not known".to_owned())
    }
}

/// A constraint of Gatekeeper.
#[derive(Debug)]
struct Constraint {
    by: String,
    /// Groups and kinds; none for all.
    kinds: Vec<(Vec<String>, Vec<String>)>,
    namespaces: Vec<String>,
    excluded: Vec<String>,
    labels: Selector,
    namespace_labels: Selector,
}

impl Constraint {
    /// None for one that does not refuse.
    fn new(object: &ObjectFact, symbols: &Symbols) -> Option<Self> {
        let action = object.text("/spec/enforcementAction").unwrap_or("deny");
        let field = |name: &str| object.body.pointer("/spec/match").and_then(|of| of.get(name));
        let kinds = field("kinds").and_then(Value::as_array).into_iter().flatten();
        ["deny", "scoped"].contains(&action).then(|| Self {
            by: format!("{} {}", object.kind, symbols.name(object.name)),
            kinds: kinds.map(|entry| (texts(entry.get("apiGroups")), texts(entry.get("kinds")))).collect(),
            namespaces: texts(field("namespaces")),
            excluded: texts(field("excludedNamespaces")),
            labels: Selector::new(field("labelSelector")),
            namespace_labels: Selector::new(field("namespaceSelector")),
        })
    }

    fn namespace_matches(&self, request: &Request<'_>) -> Truth {
        let Some(namespace) = request.namespace else { return Truth::True };
        // A `*` at the beginning or the end stands for anything.
        let is = |pattern: &String| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(suffix), _) => namespace.ends_with(suffix.trim_end_matches('*')),
            (None, Some(prefix)) => namespace.starts_with(prefix),
            (None, None) => pattern == namespace,
        };
        let is_meant = self.namespaces.is_empty() || self.namespaces.iter().any(is);
        let by_labels = match request.in_namespace {
            InNamespace::Known(view) => self.namespace_labels.matches(view.path(&["metadata", "labels"])),
            InNamespace::Cluster => Truth::True,
            InNamespace::NotLoaded if self.namespace_labels.is_empty() => Truth::True,
            InNamespace::NotLoaded => Truth::Unknown,
        };
        Truth::from(is_meant && !self.excluded.iter().any(is)).and(by_labels)
    }
}

impl Judge for Constraint {
    fn by(&self) -> &str {
        &self.by
    }

    fn may_concern(&self, sort: Sort<'_>) -> bool {
        let is_kind = |kind: &String| {
            kind == "*" || sort.kind == Some(kind.as_str()) || usual_plural(kind) == sort.resource
        };
        let is = |(groups, kinds): &(Vec<String>, Vec<String>)| {
            (groups.is_empty() || groups.iter().any(|group| group == "*" || group == sort.group))
                && (kinds.is_empty() || kinds.iter().any(is_kind))
        };
        ["CREATE", "UPDATE", "DELETE", "CONNECT"].contains(&sort.operation)
            && (self.kinds.is_empty() || self.kinds.iter().any(is))
    }

    fn judge(&self, request: &Request<'_>) -> Verdict {
        let labels = if request.object.is_some() { request.labels() } else { request.old_labels() };
        if self.namespace_matches(request).and(self.labels.matches(labels)) == Truth::False {
            return Verdict::Passes;
        }
        Verdict::Unknown("what Gatekeeper says is not evaluated".to_owned())
    }
}

#[cfg(test)]
mod tests;
