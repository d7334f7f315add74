//! ValidatingAdmissionPolicies and what else is written like them.
//!
//! Semantics: `k8s.io/apiserver/pkg/admission/plugin/policy/validating` (validator.go, dispatcher.go). A false match
//! condition keeps a policy out, whatever the others are; an error of any expression leaves the answer open, although
//! the API server would refuse with `failurePolicy: Fail`: our object has no defaulted fields, and its would have.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Judge, Sort, Verdict,
    cel::{Expression, Expressions, Fault, Scope, Term},
    loading::Loading,
    matching::Constraints,
    params::{Found, ParamRef, Params},
    request::Request,
    truth::Truth,
};
use crate::ObjectFact;

/// A policy with the bindings that make it refuse.
#[derive(Debug)]
pub(super) struct Policy {
    /// For people: `ValidatingAdmissionPolicy NAME`.
    by: String,
    constraints: Constraints,
    rules: Rules,
    params: Option<Params>,
    bindings: Vec<Binding>,
}

/// The expressions of a policy.
#[derive(Debug)]
pub(super) struct Rules {
    conditions: Vec<Arc<Expression>>,
    variables: Vec<(String, Arc<Expression>)>,
    validations: Vec<Validation>,
    errors_refuse: bool,
}

#[derive(Debug)]
struct Validation {
    expression: Arc<Expression>,
    message: String,
    message_expression: Option<Arc<Expression>>,
}

#[derive(Debug)]
struct Binding {
    constraints: Constraints,
    reference: Option<ParamRef>,
}

const GROUP: &str = "admissionregistration.k8s.io";

/// All policies that some binding makes refuse.
pub(super) fn policies(loading: &Loading<'_>) -> Vec<Policy> {
    let (cluster, symbols) = (loading.cluster, loading.symbols);
    let bindings: Vec<_> =
        cluster.objects_of(GROUP, "ValidatingAdmissionPolicyBinding").filter(denies).collect();
    let policies = cluster.objects_of(GROUP, "ValidatingAdmissionPolicy").filter_map(|policy| {
        let name = symbols.name(policy.name);
        let of_policy = bindings.iter().filter(|binding| binding.text("/spec/policyName") == Some(name));
        let bindings: Vec<_> = of_policy.map(|binding| Binding::new(binding.body.get("spec"))).collect();
        let spec = policy.body.get("spec").filter(|_| !bindings.is_empty())?;
        let references = bindings.iter().filter_map(|binding| binding.reference.as_ref());
        let names: Option<Vec<String>> =
            references.map(|reference| reference.name().map(str::to_owned)).collect();
        let param_kind = spec.get("paramKind").filter(|kind| kind.is_object());
        Some(Policy {
            by: format!("ValidatingAdmissionPolicy {name}"),
            constraints: Constraints::new(spec.get("matchConstraints")),
            rules: Rules::new(spec, &loading.expressions),
            params: param_kind.map(|kind| Params::new(loading, kind, names.as_deref())),
            bindings,
        })
    });
    policies.collect()
}

fn denies(binding: &&ObjectFact) -> bool {
    let actions = binding.body.pointer("/spec/validationActions").and_then(Value::as_array);
    actions.into_iter().flatten().any(|action| action == "Deny")
}

impl Binding {
    fn new(spec: Option<&Value>) -> Self {
        Self {
            constraints: Constraints::new(spec.and_then(|spec| spec.get("matchResources"))),
            reference: spec
                .and_then(|spec| spec.get("paramRef"))
                .filter(|r| r.is_object())
                .map(ParamRef::new),
        }
    }
}

impl Policy {
    /// One without bindings or parameters, written in the same language.
    pub(super) fn unbound(by: String, spec: &Value, expressions: &Expressions) -> Self {
        Self {
            by,
            constraints: Constraints::new(spec.get("matchConstraints")),
            rules: Rules::new(spec, expressions),
            params: None,
            bindings: vec![Binding { constraints: Constraints::new(None), reference: None }],
        }
    }
}

impl Judge for Policy {
    fn by(&self) -> &str {
        &self.by
    }

    fn may_concern(&self, sort: Sort<'_>) -> bool {
        self.constraints.may_concern(sort)
    }

    fn judge(&self, request: &Request<'_>) -> Verdict {
        let matches = self.constraints.matches(request);
        if matches == Truth::False {
            return Verdict::Passes;
        }
        let mut verdict = Verdict::Passes;
        for binding in &self.bindings {
            let matches = matches.and(binding.constraints.matches(request));
            if matches != Truth::False {
                let of_binding = self.bound(binding, request);
                verdict =
                    verdict.worse(if matches == Truth::True { of_binding } else { of_binding.doubted() });
            }
        }
        verdict
    }
}

impl Policy {
    fn bound(&self, binding: &Binding, request: &Request<'_>) -> Verdict {
        let (Some(params), Some(reference)) = (&self.params, &binding.reference) else {
            return self.rules.judge(request, Term::Null);
        };
        match params.find(reference, request) {
            Found::Objects(objects) => {
                let verdicts = objects.iter().map(|param| self.rules.judge(request, Term::of(param.view())));
                verdicts.fold(Verdict::Passes, Verdict::worse)
            }
            Found::Refuses if self.rules.errors_refuse => {
                Verdict::Denied("the parameter of its binding does not exist".to_owned())
            }
            Found::Refuses | Found::Nothing => Verdict::Passes,
            Found::Unknown(why) => Verdict::Unknown(why),
        }
    }
}

impl Rules {
    /// Reads `matchConditions`, `variables`, `validations` and `failurePolicy`.
    pub(super) fn new(spec: &Value, expressions: &Expressions) -> Self {
        let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
        let text = |item: &Value, field: &str| {
            item.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Self {
            conditions: list("matchConditions")
                .map(|item| expressions.get(&text(item, "expression")))
                .collect(),
            variables: list("variables")
                .map(|item| (text(item, "name"), expressions.get(&text(item, "expression"))))
                .collect(),
            validations: list("validations").map(|item| Validation::new(item, expressions)).collect(),
            errors_refuse: spec.get("failurePolicy").and_then(Value::as_str) != Some("Ignore"),
        }
    }

    /// What they say of a request, with one parameter.
    pub(super) fn judge<'a>(&'a self, request: &Request<'a>, params: Term<'a>) -> Verdict {
        // Of the sample itself an answer must be exact, since the request passes by it.
        let errors_refuse = self.errors_refuse && request.is_essential;
        let scope = request.scope(params, &self.variables, errors_refuse);
        let mut doubt = None;
        for condition in &self.conditions {
            match boolean(&scope, condition) {
                Ok(true) => {}
                Ok(false) => return Verdict::Passes,
                Err(why) => doubt = doubt.or(Some(why)),
            }
        }
        let mut verdict = Verdict::Passes;
        for validation in &self.validations {
            verdict = verdict.worse(match boolean(&scope, &validation.expression) {
                Ok(true) => Verdict::Passes,
                Ok(false) => Verdict::Denied(validation.said(&scope)),
                Err(why) => Verdict::Unknown(why),
            });
            if matches!(verdict, Verdict::Denied(_)) {
                break;
            }
        }
        match (verdict, doubt) {
            (Verdict::Passes, _) => Verdict::Passes,
            (_, Some(why)) => Verdict::Unknown(why),
            (verdict, None) => verdict,
        }
    }
}

impl Validation {
    fn new(item: &Value, expressions: &Expressions) -> Self {
        let text =
            |field: &str| item.get(field).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let expression = text("expression").unwrap_or_default();
        Self {
            expression: expressions.get(expression),
            message: text("message")
                .map_or_else(|| format!("failed expression: {expression}"), str::to_owned),
            message_expression: text("messageExpression").map(|text| expressions.get(text)),
        }
    }

    fn said<'a>(&'a self, scope: &Scope<'a>) -> String {
        let said = self.message_expression.as_ref().and_then(|expression| scope.evaluate(expression).ok());
        let said = said.as_ref().and_then(Term::as_text).filter(|text| !text.trim().is_empty());
        said.unwrap_or(&self.message).to_owned()
    }
}

/// The truth of an expression, else why there is none.
pub(super) fn boolean<'a>(scope: &Scope<'a>, expression: &'a Expression) -> Result<bool, String> {
    match scope.evaluate(expression) {
        Ok(Term::Bool(answer)) => Ok(answer),
        Ok(Term::Unknown(why)) => Err(why.to_string()),
        Ok(_) => Err("an expression has no truth value".to_owned()),
        Err(fault) => Err(error(&fault)),
    }
}

fn error(fault: &Fault) -> String {
    format!("an expression fails on the object as it was sent: {fault}")
}

#[cfg(test)]
mod tests;
