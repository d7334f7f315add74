//! A policy's cases: requests, and what the policy says of them. Read from `policies/cases`.
#![allow(dead_code, reason = "the two harnesses that share this use different parts of it")]

use std::{fs, path::PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{Policy, Situation, policies};

/// One request and the expected answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub operation: String,
    /// `patch` or `deletecollection` where the request is not the usual one of its operation.
    pub verb: Option<String>,
    pub user: String,
    #[serde(default)]
    pub groups: Vec<String>,
    pub resource: CaseResource,
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub object: Value,
    #[serde(default)]
    pub old_object: Value,
    /// What the authorizer answers to the policy.
    #[serde(default = "yes")]
    pub authorized: bool,
    /// Whether the user develops for the tenant: holds the verb `develop` on it.
    #[serde(default)]
    pub develops: bool,
    pub expect: Expect,
    /// Part of the message of a refusal.
    pub message: Option<String>,
    /// Part of the object after a mutation; null stands for absent.
    #[serde(default)]
    pub becomes: Value,
    /// Why the case runs on an API server only.
    pub offline: Option<Unsupported>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseResource {
    pub group: String,
    pub plural: String,
    #[serde(default)]
    pub subresource: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unsupported {
    pub unsupported: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    Passed,
    Refused,
    NotMatched,
    /// Of a mutating policy: accepted, with what `becomes` says.
    Mutated,
}

fn yes() -> bool {
    true
}

fn read(name: &str) -> Option<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("policies/cases");
    fs::read_to_string(folder.join(format!("{name}.yaml"))).ok()
}

/// The index that all cases are looked up in.
pub fn boundary() -> Value {
    serde_saphyr::from_str(&read("boundary").unwrap()).unwrap()
}

/// The cases of a policy; of half a policy, those of its half.
pub fn cases(policy: &Policy) -> Vec<Case> {
    let text = read(policy.cases()).unwrap_or_else(|| panic!("policy `{}` has no cases", policy.name));
    let mut cases: Vec<Case> =
        serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("cases of `{}`: {e}", policy.name));
    if policies().unwrap().iter().filter(|p| p.cases() == policy.cases()).count() > 1 {
        cases.retain(|case| case.namespace.is_empty() == (policy.name != policy.cases()));
    }
    cases
}

impl Case {
    /// The name of the object.
    pub fn object_name(&self) -> &str {
        let name = |object: &Value| object.pointer("/metadata/name").is_some();
        let object = if name(&self.old_object) { &self.old_object } else { &self.object };
        object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
    }

    /// The request as a policy sees it.
    pub fn situation(&self, boundary: &Value) -> Situation {
        Situation {
            operation: self.operation.clone(),
            group: self.resource.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: self.resource.subresource.clone(),
            user: self.user.clone(),
            groups: self.groups.clone(),
            namespace: self.namespace.clone(),
            object: match self.verb.as_deref() {
                Some("patch") => merged(&self.old_object, &self.object),
                _ => self.object.clone(),
            },
            old_object: self.old_object.clone(),
            boundary: boundary.clone(),
            authorized: self.authorized,
            develops: self.develops,
        }
    }
}

/// A merge patch of RFC 7396.
fn merged(old: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut object = old.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        if value.is_null() {
            object.remove(name);
        } else {
            let old = object.get(name).cloned().unwrap_or_default();
            object.insert(name.clone(), merged(&old, value));
        }
    }
    Value::Object(object)
}
