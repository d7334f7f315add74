//! Label selectors (`k8s.io/apimachinery/pkg/labels/selector.go`).

use serde_json::Value;

use super::{truth::Truth, view::Child};

/// A label selector; the empty one matches everything.
#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    /// Not of the API; whether it matches is not known.
    Other,
}

impl Selector {
    /// Reads a `LabelSelector`; what is absent or null matches everything.
    pub(super) fn new(selector: Option<&Value>) -> Self {
        let field = |name: &str| selector.and_then(|selector| selector.get(name));
        let labels = field("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let labels = labels.map(|(key, value)| Requirement {
            key: key.clone(),
            operator: Operator::In,
            values: value.as_str().map(str::to_owned).into_iter().collect(),
        });
        let expressions = field("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        let expressions = expressions.map(|expression| Requirement {
            key: expression.get("key").and_then(Value::as_str).unwrap_or_default().to_owned(),
            operator: match expression.get("operator").and_then(Value::as_str) {
                Some("In") => Operator::In,
                Some("NotIn") => Operator::NotIn,
                Some("Exists") => Operator::Exists,
                Some("DoesNotExist") => Operator::DoesNotExist,
                _ => Operator::Other,
            },
            values: texts(expression.get("values")),
        });
        Self { requirements: labels.chain(expressions).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether it matches labels.
    pub(super) fn matches(&self, labels: Child<'_>) -> Truth {
        Truth::all(self.requirements.iter().map(|requirement| requirement.matches(labels, |a, b| a == b)))
    }

    /// The same where values may be patterns, as in Kyverno; one whose keys are patterns is not decided.
    pub(super) fn matches_patterns(&self, labels: Child<'_>, matches: fn(&str, &str) -> bool) -> Truth {
        Truth::all(self.requirements.iter().map(|requirement| {
            if requirement.key.contains(['*', '?']) {
                Truth::Unknown
            } else {
                requirement.matches(labels, matches)
            }
        }))
    }
}

impl Requirement {
    fn matches(&self, labels: Child<'_>, matches: fn(&str, &str) -> bool) -> Truth {
        let value = labels.get(&self.key);
        let is_among = |value: Option<&str>| {
            let value = value.unwrap_or_default();
            Truth::from(self.values.iter().any(|wanted| matches(wanted, value)))
        };
        match (self.operator, value) {
            (Operator::Other, _) | (_, Child::Unknown) => Truth::Unknown,
            (Operator::Exists, Child::Present(_))
            | (Operator::DoesNotExist | Operator::NotIn, Child::Absent) => Truth::True,
            (Operator::Exists | Operator::In, Child::Absent)
            | (Operator::DoesNotExist, Child::Present(_)) => Truth::False,
            (Operator::In, Child::Present(view)) => is_among(view.value().as_str()),
            (Operator::NotIn, Child::Present(view)) => !is_among(view.value().as_str()),
        }
    }
}

/// The strings of a list.
pub(super) fn texts(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
