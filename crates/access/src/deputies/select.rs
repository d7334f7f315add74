//! What selects namespaces: label selectors, globs, regular expressions.

use serde_json::Value;

/// Whether a pattern with `*` for any text matches all of a text.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = text.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    text.ends_with(last)
}

/// Whether a label selector (`metav1.LabelSelector`) is empty: it says nothing about labels.
pub(super) fn is_empty(selector: &Value) -> bool {
    let empty = |field: &str| match selector.get(field) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => true,
    };
    empty("matchLabels") && empty("matchExpressions")
}

/// Whether a label selector matches labels. An empty one matches all. An unknown operator matches, so that nothing is
/// taken to be shut that may be open.
pub(super) fn labels<'l>(selector: &Value, label: impl Fn(&str) -> Option<&'l str>) -> bool {
    let equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut equal = equal.map(|(key, value)| label(key).is_some_and(|own| Some(own) == value.as_str()));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let mut expressions = expressions.map(|expression| {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let mut values = values.filter_map(Value::as_str);
        let own = label(key);
        match expression.get("operator").and_then(Value::as_str) {
            Some("In") => own.is_some_and(|own| values.any(|value| value == own)),
            Some("NotIn") => own.is_none_or(|own| !values.any(|value| value == own)),
            Some("Exists") => own.is_some(),
            Some("DoesNotExist") => own.is_none(),
            _ => true,
        }
    });
    equal.all(|matches| matches) && expressions.all(|matches| matches)
}

/// Whether a regular expression finds something in a text; none if it cannot be read.
pub(super) fn regex(pattern: &str, text: &str) -> Option<bool> {
    regex_lite::Regex::new(pattern).ok().map(|regex| regex.is_match(text))
}
