//! Conditions of Kyverno: `any` and `all` of key, operator, value (kyverno `pkg/engine/variables/operator`).

use std::borrow::Cow;

use serde_json::Value;

use super::text::{Found, Names, wildcard};
use crate::admission::truth::Truth;

/// Conditions that must hold together. Several blocks must all hold.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    blocks: Vec<Block>,
}

#[derive(Debug, Default)]
struct Block {
    any: Vec<Condition>,
    all: Vec<Condition>,
}

#[derive(Debug)]
struct Condition {
    key: Value,
    operator: String,
    value: Value,
}

impl Conditions {
    /// Reads `{any, all}`, a list of those, or a list of conditions.
    pub(super) fn new(conditions: &Value) -> Self {
        let list = |of: &Value, field: &str| -> Vec<Condition> {
            of.get(field).and_then(Value::as_array).into_iter().flatten().map(Condition::new).collect()
        };
        let block = |of: &Value| Block { any: list(of, "any"), all: list(of, "all") };
        let blocks = match conditions {
            Value::Array(items) if items.iter().any(|item| item.get("operator").is_some()) => {
                vec![Block { any: Vec::new(), all: items.iter().map(Condition::new).collect() }]
            }
            Value::Array(items) => items.iter().map(block).collect(),
            of => vec![block(of)],
        };
        Self { blocks }
    }

    pub(super) fn hold(&self, names: Names<'_>) -> Truth {
        Truth::all(self.blocks.iter().map(|block| {
            let any = match block.any.as_slice() {
                [] => Truth::True,
                any => Truth::any(any.iter().map(|condition| condition.holds(names))),
            };
            any.and(Truth::all(block.all.iter().map(|condition| condition.holds(names))))
        }))
    }
}

impl Condition {
    fn new(condition: &Value) -> Self {
        Self {
            key: condition.get("key").cloned().unwrap_or_default(),
            operator: condition.get("operator").and_then(Value::as_str).unwrap_or_default().to_owned(),
            value: condition.get("value").cloned().unwrap_or_default(),
        }
    }

    fn holds(&self, names: Names<'_>) -> Truth {
        let (Some(key), Some(value)) = (substituted(names, &self.key), substituted(names, &self.value))
        else {
            return Truth::Unknown;
        };
        match self.operator.to_lowercase().as_str() {
            "equals" | "equal" => equals(&key, &value),
            "notequals" | "notequal" => !equals(&key, &value),
            "anyin" => among(&key, &value).map_or(Truth::Unknown, |found| found.contains(&true).into()),
            "allin" => among(&key, &value).map_or(Truth::Unknown, |found| (!found.contains(&false)).into()),
            "anynotin" => among(&key, &value).map_or(Truth::Unknown, |found| found.contains(&false).into()),
            "allnotin" => among(&key, &value).map_or(Truth::Unknown, |found| (!found.contains(&true)).into()),
            // The old names differ from these for lists of keys.
            "in" if key.is_string() => {
                among(&key, &value).map_or(Truth::Unknown, |found| found.contains(&true).into())
            }
            "notin" if key.is_string() => {
                among(&key, &value).map_or(Truth::Unknown, |found| (!found.contains(&true)).into())
            }
            _ => Truth::Unknown,
        }
    }
}

/// The value with its variables replaced; none if one has no value that is known.
fn substituted<'a>(names: Names<'a>, value: &'a Value) -> Option<Cow<'a, Value>> {
    match value {
        Value::String(text) => match names.substitute(text) {
            Found::Value(value) => Some(value),
            Found::Null | Found::Unknown => None,
        },
        Value::Array(items)
            if items.iter().any(|item| item.as_str().is_some_and(|text| text.contains("{{"))) =>
        {
            let items: Option<Vec<Value>> =
                items.iter().map(|item| substituted(names, item).map(Cow::into_owned)).collect();
            items.map(|items| Cow::Owned(Value::from(items)))
        }
        value => Some(Cow::Borrowed(value)),
    }
}

fn equals(key: &Value, value: &Value) -> Truth {
    match (key, value) {
        (Value::String(key), Value::String(value)) => {
            let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
            match wildcard(value, key) {
                // Quantities and durations compare by what they are.
                false if is_number(key) && is_number(value) => Truth::Unknown,
                matches => matches.into(),
            }
        }
        (Value::Number(_), Value::String(_)) | (Value::String(_), Value::Number(_)) => Truth::Unknown,
        (Value::Null, _) => Truth::Unknown,
        (key, value) => (key == value).into(),
    }
}

/// Which of the keys are among the values; none for types that this does not compare.
fn among(key: &Value, value: &Value) -> Option<Vec<bool>> {
    let texts = |of: &Value| -> Option<Vec<String>> {
        match of {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Bool(_) | Value::Number(_) => Some(vec![of.to_string()]),
            Value::Array(items) => items
                .iter()
                .map(|item| match item {
                    Value::String(text) => Some(text.clone()),
                    Value::Bool(_) | Value::Number(_) => Some(item.to_string()),
                    _ => None,
                })
                .collect(),
            _ => None,
        }
    };
    // A string may hold a list as JSON, or a range.
    if value.as_str().is_some_and(|text| {
        text.starts_with('[') || text.contains('-') && text.starts_with(|c: char| c.is_ascii_digit())
    }) {
        return None;
    }
    let (keys, values) = (texts(key)?, texts(value)?);
    let is_among = |key: &String| values.iter().any(|value| wildcard(value, key) || wildcard(key, value));
    Some(keys.iter().map(is_among).collect())
}

#[cfg(test)]
mod tests;
