//! Wildcards, names of kinds, and variables of Kyverno.

use std::borrow::Cow;

use serde_json::Value;

use crate::admission::{
    request::Request,
    view::{Child, View},
};

/// Whether a text matches a pattern in which `*` stands for any text and `?` for any character.
pub(super) fn wildcard(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut in_text) = (0, 0);
    // Where the last star was, and how much of the text it stands for.
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, in_text));
                at += 1;
            }
            Some(character) if *character == '?' || Some(character) == text.get(in_text) => {
                at += 1;
                in_text += 1;
            }
            _ => match star {
                Some((position, taken)) => {
                    star = Some((position, taken + 1));
                    at = position + 1;
                    in_text = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|character| *character == '*')
}

/// Whether a pattern has any.
pub(super) fn has_wildcard(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

/// A kind as policies name it: `Kind`, `version/Kind`, `group/version/Kind`, each with `/subresource` or `.subresource`
/// (`ParseKindSelector` of kyverno `pkg/utils/kube/kind.go`). The version does not matter: the API server converts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KindPattern {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) subresource: String,
}

impl KindPattern {
    pub(super) fn new(text: &str) -> Self {
        let mut parts: Vec<&str> = text.split('/').collect();
        if let Some(last) = parts.pop() {
            parts.extend(last.split('.'));
        }
        let (group, kind, subresource) = match parts.as_slice() {
            [kind] => ("*", *kind, ""),
            ["*", "*"] => ("*", "*", "*"),
            ["*", subresource] if subresource.to_lowercase() == *subresource => ("*", "*", *subresource),
            [version, kind] if is_version(version) => ("*", *kind, ""),
            [kind, subresource] => ("*", *kind, *subresource),
            [version, kind, subresource] if is_version(version) => ("*", *kind, *subresource),
            [group, _, kind] => (*group, *kind, ""),
            [group, _, kind, subresource] => (*group, *kind, *subresource),
            _ => ("", "", ""),
        };
        Self { group: group.to_owned(), kind: kind.to_owned(), subresource: subresource.to_owned() }
    }
}

fn is_version(text: &str) -> bool {
    text == "*"
        || text.strip_prefix('v').is_some_and(|rest| {
            let letters = rest.trim_matches(|c: char| c.is_ascii_digit());
            rest.starts_with(|c: char| c.is_ascii_digit()) && ["", "alpha", "beta"].contains(&letters)
        })
}

/// What variables are looked up in.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) request: &'a Request<'a>,
    /// The element of a `foreach`.
    pub(super) element: Option<View<'a>>,
}

/// The value of an expression in `{{ }}`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found<'a> {
    Value(Cow<'a, Value>),
    Null,
    /// It depends on what is not known, or cannot be evaluated.
    Unknown,
}

impl<'a> Names<'a> {
    /// Puts values in place of variables. A variable without a value makes the answer null.
    pub(super) fn substitute(&self, text: &'a str) -> Found<'a> {
        let Some(start) = text.find("{{") else { return Found::Value(Cow::Owned(Value::from(text))) };
        let mut rest = text;
        let mut whole = String::new();
        let mut next = Some(start);
        while let Some(start) = next {
            let Some((before, after)) = rest.split_at_checked(start) else { return Found::Unknown };
            let Some((expression, tail)) = after.trim_start_matches("{{").split_once("}}") else {
                return Found::Unknown;
            };
            let found = self.evaluate(expression.trim());
            if before.is_empty() && tail.is_empty() && whole.is_empty() {
                return found;
            }
            whole.push_str(before);
            match found {
                Found::Value(value) => match value.as_str() {
                    Some(text) => whole.push_str(text),
                    None => return Found::Unknown,
                },
                other => return other,
            }
            rest = tail;
            next = rest.find("{{");
        }
        whole.push_str(rest);
        Found::Value(Cow::Owned(Value::from(whole)))
    }

    /// Evaluates the part of JMESPath that policies use most: paths, and `||` with a default.
    fn evaluate(&self, expression: &'a str) -> Found<'a> {
        let mut alternatives = expression.split("||").map(str::trim).peekable();
        while let Some(alternative) = alternatives.next() {
            let value = |value: Value| Found::Value(Cow::Owned(value));
            let found = match alternative.chars().next() {
                Some('\'') => {
                    literal(alternative, '\'').map_or(Found::Unknown, |text| value(Value::from(text)))
                }
                Some('`') => literal(alternative, '`')
                    .and_then(|text| serde_json::from_str(text).ok())
                    .map_or(Found::Unknown, value),
                _ => path(alternative).map_or(Found::Unknown, |path| self.look_up(&path)),
            };
            match found {
                Found::Value(value) if alternatives.peek().is_none() || !is_falsy(&value) => {
                    return Found::Value(value);
                }
                Found::Unknown => return Found::Unknown,
                _ => {}
            }
        }
        Found::Null
    }

    fn look_up(&self, path: &[&str]) -> Found<'a> {
        let request = self.request;
        let account = || request.who.user.strip_prefix("system:serviceaccount:")?.split_once(':');
        let text = |text: &str| Found::Value(Cow::Owned(Value::from(text)));
        let child = match path {
            ["request", "object", rest @ ..] => {
                let object = if request.operation == "DELETE" { request.old_object } else { request.object };
                object.map_or(Child::Absent, |object| object.path(rest))
            }
            ["request", "oldObject", rest @ ..] => {
                request.old_object.map_or(Child::Absent, |old| old.path(rest))
            }
            ["request", "roles" | "clusterRoles", ..] => Child::Unknown,
            ["request", rest @ ..] => request.request.path(rest),
            ["element", rest @ ..] => match self.element {
                Some(element) => element.path(rest),
                None => Child::Unknown,
            },
            ["serviceAccountName"] => return account().map_or(text(""), |(_, name)| text(name)),
            ["serviceAccountNamespace"] => {
                return account().map_or(text(""), |(namespace, _)| text(namespace));
            }
            _ => Child::Unknown,
        };
        match child {
            Child::Present(view) if view.value().is_null() => Found::Null,
            Child::Present(view) if view.is_certain() => Found::Value(Cow::Borrowed(view.value())),
            Child::Absent => Found::Null,
            Child::Present(_) | Child::Unknown => Found::Unknown,
        }
    }

    /// What a list for `foreach` names: a path, without functions.
    pub(super) fn list(&self, expression: &str) -> Child<'a> {
        let object =
            if self.request.operation == "DELETE" { self.request.old_object } else { self.request.object };
        match path(expression).as_deref() {
            Some(["request", "object", rest @ ..]) => {
                object.map_or(Child::Absent, |object| object.path(rest))
            }
            Some(["element", rest @ ..]) => self.element.map_or(Child::Unknown, |element| element.path(rest)),
            _ => Child::Unknown,
        }
    }
}

fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

fn literal(text: &str, quote: char) -> Option<&str> {
    text.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| !inner.contains(quote))
}

/// `a.b."c/d"` as its parts; none for anything else.
fn path(text: &str) -> Option<Vec<&str>> {
    let mut rest = text.trim();
    let mut parts = Vec::new();
    loop {
        let (part, tail) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                rest.split_at_checked(end)?
            }
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        if tail.is_empty() {
            return Some(parts);
        }
        rest = tail.strip_prefix('.')?;
    }
}

#[cfg(test)]
mod tests;
