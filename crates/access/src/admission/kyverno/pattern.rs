//! Patterns of Kyverno: what a resource must look like.
//!
//! Semantics: kyverno `pkg/engine/validate/validate.go`, `pkg/engine/anchor` and `pkg/engine/pattern`. Since only a part
//! of a resource may be certain, the answer is what may come out of a comparison.

use std::borrow::Cow;

use serde_json::Value;

use super::text::{Found, Names, has_wildcard, wildcard};
use crate::admission::view::{Child, View};

/// What may come out of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) pass: bool,
    pub(super) fail: bool,
    /// A condition does not hold, so that the rule says nothing.
    pub(super) skip: bool,
}

impl Outcome {
    pub(super) const PASS: Self = Self { pass: true, fail: false, skip: false };
    pub(super) const FAIL: Self = Self { pass: false, fail: true, skip: false };
    pub(super) const SKIP: Self = Self { pass: false, fail: false, skip: true };
    pub(super) const ANY: Self = Self { pass: true, fail: true, skip: true };

    fn of(passes: bool) -> Self {
        if passes { Self::PASS } else { Self::FAIL }
    }

    /// Whatever a pattern could say of something unknown.
    fn unknown(pattern: &Value) -> Self {
        Self { pass: true, fail: true, skip: has_condition(pattern) }
    }

    /// Both must pass; which is looked at first is not known.
    fn and(self, other: Self) -> Self {
        Self { pass: self.pass && other.pass, fail: self.fail || other.fail, skip: self.skip || other.skip }
    }

    /// The second counts only if the first passes.
    fn then(self, other: impl FnOnce() -> Self) -> Self {
        if self.pass { self.and(other()) } else { self }
    }

    pub(super) fn is_fail(self) -> bool {
        self == Self::FAIL
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Anchor {
    /// `(key)`
    Condition,
    /// `<(key)`
    Global,
    /// `=(key)`
    Equality,
    /// `X(key)`
    Negation,
    /// `^(key)`
    Existence,
    /// `+(key)`, of mutations.
    Addition,
}

/// The anchor of a key, and the key.
fn anchor(key: &str) -> (Option<Anchor>, &str) {
    const ANCHORS: [(&str, Anchor); 6] = [
        ("(", Anchor::Condition),
        ("<(", Anchor::Global),
        ("=(", Anchor::Equality),
        ("X(", Anchor::Negation),
        ("^(", Anchor::Existence),
        ("+(", Anchor::Addition),
    ];
    let inner = |open: &str| key.strip_prefix(open)?.strip_suffix(')');
    let found = ANCHORS.into_iter().find_map(|(open, anchor)| Some((Some(anchor), inner(open)?)));
    found.unwrap_or((None, key))
}

fn has_condition(pattern: &Value) -> bool {
    match pattern {
        Value::Object(map) => map.iter().any(|(key, value)| {
            matches!(anchor(key).0, Some(Anchor::Condition | Anchor::Global)) || has_condition(value)
        }),
        Value::Array(list) => list.iter().any(has_condition),
        _ => false,
    }
}

/// Compares what is at a place with a pattern.
pub(super) fn compare<'a>(names: Names<'a>, resource: Child<'a>, pattern: &'a Value) -> Outcome {
    match (pattern, resource) {
        (_, Child::Unknown) => Outcome::unknown(pattern),
        (Value::Object(map), Child::Present(view)) if view.value().is_object() => {
            compare_map(names, view, map)
        }
        (Value::Array(list), Child::Present(view)) if view.value().is_array() => {
            list.first().map_or(Outcome::FAIL, |first| compare_list(names, view, first))
        }
        (Value::Object(_) | Value::Array(_), _) => Outcome::FAIL,
        (pattern, Child::Present(view)) if view.value().is_array() => {
            over_items(view, |item| compare_scalar(names, item, pattern), Outcome::unknown(pattern), true)
        }
        (pattern, resource) => compare_scalar(names, resource, pattern),
    }
}

fn compare_map<'a>(names: Names<'a>, view: View<'a>, pattern: &'a serde_json::Map<String, Value>) -> Outcome {
    let part = |is_anchor: bool| {
        let entries = pattern.iter().filter(move |(key, _)| anchor(key).0.is_some() == is_anchor);
        entries
            .fold(Outcome::PASS, |outcome, (key, value)| outcome.and(compare_entry(names, view, key, value)))
    };
    part(true).then(|| part(false))
}

fn compare_entry<'a>(names: Names<'a>, view: View<'a>, key: &'a str, pattern: &'a Value) -> Outcome {
    let (anchor, name) = anchor(key);
    if has_wildcard(name) {
        return Outcome::ANY;
    }
    let child = view.get(name);
    let as_condition =
        |outcome: Outcome| Outcome { pass: outcome.pass, fail: false, skip: outcome.fail || outcome.skip };
    match (anchor, child) {
        (Some(Anchor::Condition), Child::Absent) => Outcome::SKIP,
        (Some(Anchor::Condition | Anchor::Global), Child::Unknown) => {
            Outcome { pass: true, fail: false, skip: true }
        }
        (Some(Anchor::Condition | Anchor::Global), Child::Present(_)) => {
            as_condition(compare(names, child, pattern))
        }
        (Some(Anchor::Global | Anchor::Equality | Anchor::Existence | Anchor::Negation), Child::Absent) => {
            Outcome::PASS
        }
        (Some(Anchor::Negation), Child::Present(_)) => Outcome::FAIL,
        (Some(Anchor::Negation), Child::Unknown) => Outcome { pass: true, fail: true, skip: false },
        (Some(Anchor::Existence), child) => compare_existence(names, child, pattern),
        (Some(Anchor::Addition), _) => Outcome::ANY,
        (None, child) if pattern == "*" => match child {
            Child::Present(view) => Outcome::of(!view.value().is_null()),
            Child::Absent => Outcome::FAIL,
            Child::Unknown => Outcome { pass: true, fail: true, skip: false },
        },
        (Some(Anchor::Equality) | None, child) => compare(names, child, pattern),
    }
}

/// Each pattern of the list must be met by some item.
fn compare_existence<'a>(names: Names<'a>, child: Child<'a>, pattern: &'a Value) -> Outcome {
    let (Some(patterns), Child::Present(view)) = (pattern.as_array(), child) else {
        return if matches!(child, Child::Unknown) { Outcome::unknown(pattern) } else { Outcome::FAIL };
    };
    if !view.value().is_array() {
        return Outcome::FAIL;
    }
    let met = |pattern: &'a Value| {
        let outcomes = items(view).map(|item| compare(names, item, pattern));
        let (mut pass, mut fail) = (!view.is_certain(), true);
        for outcome in outcomes {
            pass |= outcome.pass;
            fail &= outcome.fail || outcome.skip;
        }
        Outcome { pass, fail, skip: false }
    };
    patterns.iter().map(met).fold(Outcome::PASS, Outcome::and)
}

fn compare_list<'a>(names: Names<'a>, view: View<'a>, pattern: &'a Value) -> Outcome {
    match pattern {
        Value::Object(_) => {
            over_items(view, |item| compare(names, item, pattern), Outcome::unknown(pattern), false)
        }
        Value::Array(_) => Outcome::ANY,
        scalar => {
            over_items(view, |item| compare_scalar(names, item, scalar), Outcome::unknown(scalar), true)
        }
    }
}

fn items<'a>(view: View<'a>) -> impl Iterator<Item = Child<'a>> {
    let count = view.value().as_array().map_or(0, Vec::len);
    (0..count).map(move |index| view.get(&index.to_string()))
}

/// Every item must pass or be skipped. `further`: what an item that is not known may say.
fn over_items<'a>(
    view: View<'a>,
    mut compare: impl FnMut(Child<'a>) -> Outcome,
    further: Outcome,
    is_scalar: bool,
) -> Outcome {
    let mut all: Vec<Outcome> = items(view).map(&mut compare).collect();
    if all.iter().any(|outcome| outcome.is_fail()) {
        return Outcome::FAIL;
    }
    if !view.is_certain() {
        all.push(further);
    }
    let may_all_stand = all.iter().all(|outcome| outcome.pass || outcome.skip);
    let pass = may_all_stand && (is_scalar || all.is_empty() || all.iter().any(|outcome| outcome.pass));
    let fail = all.iter().any(|outcome| outcome.fail);
    let skip = !all.is_empty() && all.iter().all(|outcome| outcome.skip);
    Outcome { pass, fail, skip }
}

fn compare_scalar<'a>(names: Names<'a>, resource: Child<'a>, pattern: &'a Value) -> Outcome {
    let value = match resource {
        Child::Unknown => return Outcome::unknown(pattern),
        Child::Present(view) => Some(view.value()).filter(|value| !value.is_null()),
        Child::Absent => None,
    };
    let pattern = match pattern.as_str().map(|text| names.substitute(text)) {
        None => Cow::Borrowed(pattern),
        Some(Found::Value(pattern)) => pattern,
        // A variable without a value is an error of the rule.
        Some(Found::Null | Found::Unknown) => return Outcome::ANY,
    };
    scalar_matches(value, &pattern).map_or(Outcome { pass: true, fail: true, skip: false }, Outcome::of)
}

/// Whether a value is as a scalar pattern says; none where that is not decided here.
pub(super) fn scalar_matches(value: Option<&Value>, pattern: &Value) -> Option<bool> {
    match pattern {
        Value::Bool(_) => Some(value == Some(pattern)),
        Value::Null => Some(match value {
            None => true,
            Some(Value::Bool(value)) => !value,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Number(number)) => number.as_f64() == Some(0.0),
            Some(_) => false,
        }),
        Value::Number(number) => {
            let wanted = number.as_f64();
            Some(match value {
                Some(Value::Number(number)) => number.as_f64() == wanted,
                Some(Value::String(text)) => text.parse().ok() == wanted,
                _ => false,
            })
        }
        Value::String(pattern) => text_matches(value, pattern),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// `a | b & !c`, with comparisons and wildcards.
fn text_matches(value: Option<&Value>, pattern: &str) -> Option<bool> {
    if value.and_then(Value::as_str) == Some(pattern) {
        return Some(true);
    }
    let mut undecided = false;
    for alternative in pattern.split('|') {
        let parts: Vec<_> = alternative.split('&').map(|part| part_matches(value, part.trim())).collect();
        if parts.iter().all(|part| *part == Some(true)) {
            return Some(true);
        }
        undecided |= !parts.contains(&Some(false));
    }
    (!undecided).then_some(false)
}

fn part_matches(value: Option<&Value>, part: &str) -> Option<bool> {
    const OPERATORS: [&str; 5] = [">=", "<=", ">", "<", "!"];
    let operator = OPERATORS.into_iter().find(|operator| part.len() >= 2 && part.starts_with(operator));
    let wanted = part.strip_prefix(operator.unwrap_or_default()).unwrap_or(part).trim();
    if is_range(wanted) {
        return None;
    }
    let text = match value {
        None => None,
        Some(Value::String(text)) => Some(Cow::Borrowed(text.as_str())),
        Some(Value::Bool(value)) => Some(Cow::Owned(value.to_string())),
        Some(Value::Number(number)) if number.is_f64() => return None,
        Some(Value::Number(number)) => Some(Cow::Owned(number.to_string())),
        Some(_) => return Some(false),
    };
    // Quantities and durations compare by what they are; null is zero.
    if starts_like_number(wanted) {
        let number =
            if value.is_none() { Some(0.0) } else { text.as_ref().and_then(|text| text.parse::<f64>().ok()) };
        let same_kind = number.is_some() || text.as_deref().is_some_and(starts_like_number);
        match (number, wanted.parse::<f64>().ok()) {
            (Some(number), Some(wanted)) => {
                return Some(match operator {
                    None => number == wanted,
                    Some("!") => number != wanted,
                    Some(">=") => number >= wanted,
                    Some("<=") => number <= wanted,
                    Some(">") => number > wanted,
                    _ => number < wanted,
                });
            }
            _ if same_kind && text.as_deref() != Some(wanted) => return None,
            _ => {}
        }
    }
    let Some(text) = text else { return Some(false) };
    Some(match operator {
        None => wildcard(wanted, &text),
        Some("!") => !wildcard(wanted, &text),
        Some(_) => false,
    })
}

fn starts_like_number(text: &str) -> bool {
    text.trim_start_matches(['+', '-', '.']).starts_with(|c: char| c.is_ascii_digit())
}

/// `1-10` or `1!-10`.
fn is_range(text: &str) -> bool {
    let dash = text.get(1..).and_then(|tail| tail.find('-')).map(|at| at + 1);
    let Some((left, right)) = dash.and_then(|at| text.split_at_checked(at)) else { return false };
    starts_like_number(left) && starts_like_number(right.trim_start_matches('-'))
}

#[cfg(test)]
mod tests;
