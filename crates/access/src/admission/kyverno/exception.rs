//! What a PolicyException of Kyverno takes out of its rules.

use serde_json::Value;

use super::{filter::Filters, text::wildcard};
use crate::admission::{loading::Loading, request::Request, selector::texts, truth::Truth};

/// An exception. Whether Kyverno looks at it (it must be switched on, for its namespace) is not known.
#[derive(Debug, Clone)]
pub(super) struct Exception {
    /// Names of policies, `NAMESPACE/NAME` for a namespaced one, with names of rules. Both may be patterns.
    rules: Vec<(String, Vec<String>)>,
    filters: std::sync::Arc<Filters>,
}

impl Exception {
    pub(super) fn new(exception: &Value, loading: &Loading<'_>) -> Self {
        let entries = exception.pointer("/spec/exceptions").and_then(Value::as_array).into_iter().flatten();
        let name =
            |entry: &Value| entry.get("policyName").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            rules: entries.map(|entry| (name(entry), texts(entry.get("ruleNames")))).collect(),
            filters: std::sync::Arc::new(Filters::of_exception(exception.pointer("/spec/match"), loading)),
        }
    }

    /// Whether it names a rule.
    pub(super) fn is_about(&self, namespace: Option<&str>, policy: &str, rule: &str) -> bool {
        let full = namespace.map_or_else(|| policy.to_owned(), |namespace| format!("{namespace}/{policy}"));
        self.rules.iter().any(|(pattern, rules)| {
            wildcard(pattern, &full)
                && rules.iter().any(|name| wildcard(name.strip_prefix("autogen-").unwrap_or(name), rule))
        })
    }

    /// Whether it could let a request through.
    pub(super) fn may_match(&self, request: &Request<'_>) -> bool {
        self.filters.matches(request) != Truth::False
    }
}
