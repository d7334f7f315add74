//! Runs a validating policy offline, with kube-cel, on an object as it is.
//!
//! Offline there is no authorizer. Its checks are named by the caller as answered or not: an expression that
//! asks it is taken to be `authorized`. On a cluster the API server evaluates; this serves plans and case files.

use std::{collections::HashMap, sync::Arc};

use kube_cel::{KubeCelExt, cel};
use serde_json::Value;

use crate::{Lookup, Policy, Where};

/// A request as a policy sees it.
#[derive(Debug, Clone, Default)]
pub struct Situation {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: String,
    /// API group of the resource.
    pub group: String,
    /// Plural of the resource.
    pub resource: String,
    /// Subresource, empty for none.
    pub subresource: String,
    /// The user name.
    pub user: String,
    /// The groups.
    pub groups: Vec<String>,
    /// The namespace of the request.
    pub namespace: String,
    /// The object after the request.
    pub object: Value,
    /// The object before the request.
    pub old_object: Value,
    /// The Boundary.
    pub boundary: Value,
    /// What the authorizer answers to every check but that of the verb `develop`.
    pub authorized: bool,
    /// What the authorizer answers to the verb `develop` on the tenant.
    pub develops: bool,
}

/// What a policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evaluation {
    /// The policy does not apply.
    NotMatched,
    /// The request passes.
    Passed,
    /// The request is refused, with these messages.
    Refused(Vec<String>),
}

/// Says which expression cannot be evaluated, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy `{policy}`: cannot evaluate `{field}`: {cause}")]
pub struct EvaluationError {
    policy: String,
    field: String,
    cause: String,
}

/// Evaluates a validating policy: constraints, place, match conditions, variables, validations.
pub fn evaluate(policy: &Policy, situation: &Situation) -> Result<Evaluation, EvaluationError> {
    if !constraints_match(&policy.spec, situation) || !place_matches(policy, situation) {
        return Ok(Evaluation::NotMatched);
    }
    let mut run = Run { policy, context: context(policy, situation), variables: HashMap::new() };
    for condition in list(&policy.spec, "matchConditions") {
        if !run.boolean(&condition, "expression", situation)? {
            return Ok(Evaluation::NotMatched);
        }
    }
    run.bind_variables(situation);
    let mut messages = Vec::new();
    for validation in list(&policy.spec, "validations") {
        if !run.boolean(&validation, "expression", situation)? {
            messages.push(run.text(&validation, "messageExpression")?);
        }
    }
    Ok(if messages.is_empty() { Evaluation::Passed } else { Evaluation::Refused(messages) })
}

/// A selector of namespaces never keeps a policy from what is in the cluster scope.
fn place_matches(policy: &Policy, situation: &Situation) -> bool {
    let owner = situation.boundary.pointer("/spec/namespaces").and_then(|n| n.get(&situation.namespace));
    let owner = owner.and_then(Value::as_str);
    situation.namespace.is_empty()
        || match policy.place {
            Where::Everywhere => true,
            Where::PlatformNamespaces => owner == Some(bailey_api::PLATFORM),
            Where::TenantNamespaces => owner.is_some_and(|o| o != bailey_api::PLATFORM),
            Where::OutsideTenants => owner.is_none_or(|o| o == bailey_api::PLATFORM),
        }
}

fn list(spec: &Value, field: &str) -> Vec<Value> {
    spec.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn constraints_match(spec: &Value, situation: &Situation) -> bool {
    let full = match situation.subresource.as_str() {
        "" => situation.resource.clone(),
        sub => format!("{}/{sub}", situation.resource),
    };
    let contains = |rule: &Value, field: &str, wanted: &dyn Fn(&str) -> bool| {
        rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).any(wanted)
    };
    let rules = spec.pointer("/matchConstraints/resourceRules").and_then(Value::as_array);
    rules.into_iter().flatten().any(|rule| {
        let named = rule.get("resourceNames").and_then(Value::as_array);
        let name = situation
            .old_object
            .pointer("/metadata/name")
            .or_else(|| situation.object.pointer("/metadata/name"));
        contains(rule, "apiGroups", &|g| g == "*" || g == situation.group)
            && contains(rule, "operations", &|o| o == "*" || o == situation.operation)
            && contains(rule, "resources", &|r| {
                r == full
                    || r == "*"
                    || r.strip_suffix("/*")
                        .is_some_and(|p| p == situation.resource && !situation.subresource.is_empty())
            })
            && named.is_none_or(|names| name.is_some_and(|n| names.contains(n)))
    })
}

fn context(policy: &Policy, situation: &Situation) -> cel::Context<'static> {
    let name = [&situation.object, &situation.old_object]
        .iter()
        .find_map(|o| o.pointer("/metadata/name").and_then(Value::as_str))
        .unwrap_or_default();
    let mut request = serde_json::json!({
        "operation": situation.operation,
        "resource": {"group": situation.group, "resource": situation.resource},
        "userInfo": {"username": situation.user, "groups": situation.groups},
    });
    // As on the API server, what is empty is absent.
    let optional =
        [("name", name), ("namespace", &situation.namespace), ("subResource", &situation.subresource)];
    for (field, value) in optional.into_iter().filter(|(_, value)| !value.is_empty()) {
        if let Some(request) = request.as_object_mut() {
            request.insert(field.to_owned(), Value::from(value));
        }
    }
    let mut context = cel::Context::default().with_all();
    // Without types to check, this changes nothing.
    context.add_function("dyn", |value: cel::Value| Ok::<_, cel::ExecutionError>(value));
    let (object, old_object) = (decoded(&situation.object), decoded(&situation.old_object));
    for (name, value) in [
        ("request", &request),
        ("object", &object),
        ("oldObject", &old_object),
        ("params", &params(policy, situation)),
        ("namespaceObject", &namespace_object(situation)),
    ] {
        // Values that came from JSON always convert.
        let _ = context.add_variable(name, value);
    }
    context
}

/// What the policy looks up, made from the Boundary.
fn params(policy: &Policy, situation: &Situation) -> Value {
    if policy.lookup != Lookup::Platform {
        return situation.boundary.clone();
    }
    let names = |kind: &str| -> Vec<&str> {
        let owners = situation.boundary.pointer(&format!("/spec/{kind}")).and_then(Value::as_object);
        let of_platform = owners.into_iter().flatten().filter(|(_, owner)| *owner == bailey_api::PLATFORM);
        of_platform.map(|(name, _)| name.as_str()).collect()
    };
    serde_json::json!({ "rules": [{ "resourceNames": names("users") }, { "resourceNames": names("groups") }] })
}

fn namespace_object(situation: &Situation) -> Value {
    let owner = situation.boundary.pointer("/spec/namespaces").and_then(|n| n.get(&situation.namespace));
    let tenant = owner.and_then(Value::as_str).filter(|owner| *owner != bailey_api::PLATFORM);
    let mut labels = serde_json::Map::new();
    labels.extend(tenant.map(|t| (bailey_api::TENANT_LABEL.to_owned(), Value::from(t))));
    serde_json::json!({ "metadata": { "name": situation.namespace, "labels": labels } })
}

/// As on the API server, null labels and annotations are absent.
fn decoded(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, value| !value.is_null());
    }
    object
}

struct Run<'a> {
    policy: &'a Policy,
    context: cel::Context<'static>,
    variables: HashMap<cel::objects::Key, cel::Value>,
}

impl Run<'_> {
    fn boolean(&self, item: &Value, field: &str, situation: &Situation) -> Result<bool, EvaluationError> {
        match self.run(item, field, situation)? {
            cel::Value::Bool(answer) => Ok(answer),
            other => Err(self.error(item, format!("answered {other:?} instead of a boolean"))),
        }
    }

    fn text(&self, item: &Value, field: &str) -> Result<String, EvaluationError> {
        match self.run(item, field, &Situation::default())? {
            cel::Value::String(text) => Ok(text.to_string()),
            other => Err(self.error(item, format!("answered {other:?} instead of a string"))),
        }
    }

    /// Variables are evaluated in order, as each may use those before it; one that fails is left unbound, as
    /// on the API server, where only its use fails.
    fn bind_variables(&mut self, situation: &Situation) {
        for variable in list(&self.policy.spec, "variables") {
            let name = variable.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let Ok(value) = self.run(&variable, "expression", situation) {
                self.variables.insert(name.into(), value);
                let bound = cel::objects::Map { map: Arc::new(self.variables.clone()) };
                self.context.add_variable_from_value("variables", cel::Value::Map(bound));
            }
        }
    }

    fn run(&self, item: &Value, field: &str, situation: &Situation) -> Result<cel::Value, EvaluationError> {
        let text = item.get(field).and_then(Value::as_str).unwrap_or_default();
        let text = answer_authorizer(text, situation);
        let program = cel::Program::compile(&text).map_err(|e| self.error(item, e.to_string()))?;
        program.execute(&self.context).map_err(|e| self.error(item, e.to_string()))
    }

    fn error(&self, item: &Value, cause: String) -> EvaluationError {
        let field =
            item.get("name").or_else(|| item.get("expression")).and_then(Value::as_str).unwrap_or_default();
        EvaluationError { policy: self.policy.name.clone(), field: field.to_owned(), cause }
    }
}

/// Puts the answer where an expression asks the authorizer: from `authorizer` to `.allowed()`.
fn answer_authorizer(text: &str, situation: &Situation) -> String {
    const END: &str = ".allowed()";
    let mut rest = text;
    let mut answered = String::new();
    while let Some(start) = rest.find("authorizer.") {
        let Some(end) = rest.get(start..).and_then(|tail| tail.find(END)) else { break };
        answered.push_str(rest.get(..start).unwrap_or_default());
        let check = rest.get(start..start + end).unwrap_or_default();
        let answer =
            if check.ends_with(".check('develop')") { situation.develops } else { situation.authorized };
        answered.push_str(if answer { "true" } else { "false" });
        rest = rest.get(start + end + END.len()..).unwrap_or_default();
    }
    answered.push_str(rest);
    answered
}

#[cfg(test)]
mod tests;
