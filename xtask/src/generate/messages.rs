//! What rails say: each validation evaluated on the first of its test cases that it refuses.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use bailey_guardrails::{Evaluation, Policy, PolicyKind, Situation, evaluate};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::command::root;

/// The index that the test cases are looked up in.
pub(super) struct Messages {
    boundary: Value,
}

/// What is needed of a test case; the tests know the rest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    operation: String,
    verb: Option<String>,
    user: String,
    #[serde(default)]
    groups: Vec<String>,
    resource: CaseResource,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
    #[serde(default = "yes")]
    authorized: bool,
    #[serde(default)]
    develops: bool,
    expect: String,
}

#[derive(Deserialize)]
struct CaseResource {
    group: String,
    plural: String,
    #[serde(default)]
    subresource: String,
}

fn yes() -> bool {
    true
}

impl Messages {
    /// Reads the index.
    pub(super) fn read() -> Result<Self> {
        Ok(Self { boundary: parse("boundary")? })
    }

    /// One message for each validation of a policy that a case shows offline.
    pub(super) fn of(&self, policy: &Policy) -> Result<Vec<String>> {
        if policy.kind == PolicyKind::Mutating || !root().join(path(policy.cases())).is_file() {
            return Ok(Vec::new());
        }
        let cases: Vec<Case> = parse(policy.cases())?;
        // A patch holds only what changes, and a policy sees the whole object.
        let whole = |case: &&Case| case.expect == "refused" && case.verb.as_deref() != Some("patch");
        let situations: Vec<_> =
            cases.iter().filter(whole).map(|case| case.situation(&self.boundary)).collect();
        let validations = policy.spec.get("validations").and_then(Value::as_array);
        let said = |validation: &Value| {
            let mut alone = policy.clone();
            if let Some(spec) = alone.spec.as_object_mut() {
                spec.insert("validations".to_owned(), json!([validation]));
            }
            // What kube-cel cannot evaluate is run by the tests on an API server.
            situations.iter().find_map(|situation| match evaluate(&alone, situation) {
                Ok(Evaluation::Refused(messages)) => messages.into_iter().next(),
                _ => None,
            })
        };
        Ok(validations.into_iter().flatten().filter_map(said).collect())
    }
}

fn parse<T: serde::de::DeserializeOwned>(name: &str) -> Result<T> {
    let path: PathBuf =
        ["crates", "guardrails", "policies", "cases", &format!("{name}.yaml")].iter().collect();
    let text =
        fs::read_to_string(root().join(&path)).with_context(|| format!("read `{}`", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("parse `{}`", path.display()))
}

fn path(name: &str) -> PathBuf {
    ["crates", "guardrails", "policies", "cases", &format!("{name}.yaml")].iter().collect()
}

impl Case {
    fn situation(&self, boundary: &Value) -> Situation {
        Situation {
            operation: self.operation.clone(),
            group: self.resource.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: self.resource.subresource.clone(),
            user: self.user.clone(),
            groups: self.groups.clone(),
            namespace: self.namespace.clone(),
            object: self.object.clone(),
            old_object: self.old_object.clone(),
            boundary: boundary.clone(),
            authorized: self.authorized,
            develops: self.develops,
        }
    }
}
