//! One validating rule of a Kyverno policy.

use serde_json::Value;

use super::{
    conditions::Conditions,
    exception::Exception,
    filter::Filters,
    pattern::{Outcome, compare},
    text::{Names, wildcard},
};
use crate::admission::{
    Judge, PodSecurityLevel, Sort, Verdict,
    cel::{Expressions, Term},
    loading::Loading,
    pod_security::standards,
    policy::Rules,
    request::{InNamespace, Request},
    selector::{Selector, texts},
    truth::Truth,
    view::Child,
};

/// A rule and all of its policy that decides about it.
#[derive(Debug)]
pub(super) struct Rule {
    /// For people: `ClusterPolicy NAME, rule RULE`.
    by: String,
    /// Of a `Policy`: the only namespace that it is about.
    namespace: Option<String>,
    matches: Filters,
    excluded: Filters,
    action: Action,
    preconditions: Conditions,
    body: Body,
    message: String,
    /// What makes pods and is held to this rule for pods: group and plural.
    controllers: Vec<(&'static str, &'static str)>,
    /// Whether an update may leave a violation as it is.
    allows_existing: bool,
    exceptions: Vec<Exception>,
}

/// Whether a rule refuses, by namespace.
#[derive(Debug)]
struct Action {
    enforces: bool,
    overrides: Vec<(bool, Vec<String>, Option<Selector>)>,
}

#[derive(Debug)]
enum Body {
    Patterns(Vec<Value>),
    Deny(Conditions),
    Foreach(Vec<Foreach>),
    PodSecurity { level: PodSecurityLevel, excluded: Vec<String> },
    Expressions(Rules),
    Unsupported(&'static str),
}

#[derive(Debug)]
struct Foreach {
    list: String,
    preconditions: Conditions,
    body: Body,
}

/// What Kyverno writes rules for from one for pods, with where the pod is.
const CONTROLLERS: [(&str, &str, &str); 7] = [
    ("DaemonSet", "apps", "daemonsets"),
    ("Deployment", "apps", "deployments"),
    ("Job", "batch", "jobs"),
    ("StatefulSet", "apps", "statefulsets"),
    ("ReplicaSet", "apps", "replicasets"),
    ("ReplicationController", "", "replicationcontrollers"),
    ("CronJob", "batch", "cronjobs"),
];

/// The rules of a policy that may refuse something.
pub(super) fn rules(
    policy: &Value,
    by: &str,
    namespace: Option<&str>,
    exceptions: &[Exception],
    loading: &Loading<'_>,
) -> Vec<Rule> {
    let Some(spec) = policy.get("spec").filter(|spec| spec.get("admission") != Some(&Value::Bool(false)))
    else {
        return Vec::new();
    };
    let rules = || spec.get("rules").and_then(Value::as_array).into_iter().flatten();
    let name = policy.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let filters = |rule: &Value| {
        [Filters::of_match(rule.get("match"), loading), Filters::of_exception(rule.get("exclude"), loading)]
    };
    let generates = rules()
        .any(|rule| rule.get("generate").is_some() || rule.pointer("/mutate/patchesJson6902").is_some());
    let supports = !generates && rules().flat_map(filters).all(|filters| filters.allows_controllers());
    let requested = policy
        .pointer("/metadata/annotations/pod-policies.kyverno.io~1autogen-controllers")
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty());
    let controllers = |matches: &Filters| {
        let wanted =
            |kind: &str| requested.is_none_or(|text| text.split(',').any(|entry| entry.trim() == kind));
        let made =
            CONTROLLERS.into_iter().filter(|(kind, ..)| supports && matches.is_about_pods() && wanted(kind));
        made.map(|(_, group, plural)| (group, plural)).collect()
    };
    let first_only = spec.get("applyRules").and_then(Value::as_str) == Some("One");
    let of_rule = |rule: &Value| {
        let validate = rule.get("validate").filter(|validate| validate.is_object())?;
        let action = Action::new(spec, validate);
        let rule_name = rule.get("name").and_then(Value::as_str).unwrap_or_default();
        let [matches, excluded] = filters(rule);
        action.may_enforce().then(|| Rule {
            by: format!("{by}, rule {rule_name}"),
            namespace: namespace.map(str::to_owned),
            controllers: controllers(&matches),
            matches,
            excluded,
            action,
            preconditions: preconditions(rule),
            body: if first_only && rules().count() > 1 {
                Body::Unsupported("`applyRules: One`")
            } else {
                Body::of_rule(rule, validate, &loading.expressions)
            },
            message: validate.get("message").and_then(Value::as_str).unwrap_or(rule_name).to_owned(),
            allows_existing: validate.get("allowExistingViolations") != Some(&Value::Bool(false)),
            exceptions: exceptions
                .iter()
                .filter(|e| e.is_about(namespace, name, rule_name))
                .cloned()
                .collect(),
        })
    };
    rules().filter_map(of_rule).collect()
}

fn preconditions(of: &Value) -> Conditions {
    of.get("preconditions")
        .filter(|conditions| !conditions.is_null())
        .map(Conditions::new)
        .unwrap_or_default()
}

impl Action {
    /// The action of a rule comes before that of its policy; overrides come before both.
    fn new(spec: &Value, validate: &Value) -> Self {
        let enforces = |text: Option<&Value>| {
            text.and_then(Value::as_str).is_some_and(|text| text.eq_ignore_ascii_case("enforce"))
        };
        let own = validate
            .get("failureAction")
            .filter(|action| action.as_str().is_some_and(|text| !text.is_empty()));
        let list = |of: Option<&Value>| of.and_then(Value::as_array).cloned().unwrap_or_default();
        let mut overrides = list(validate.get("failureActionOverrides"));
        if overrides.is_empty() {
            overrides = list(spec.get("validationFailureActionOverrides"));
        }
        let overrides = overrides.iter().map(|entry| {
            let selector = entry.get("namespaceSelector").filter(|selector| !selector.is_null());
            (
                enforces(entry.get("action")),
                texts(entry.get("namespaces")),
                selector.map(|s| Selector::new(Some(s))),
            )
        });
        Self {
            enforces: enforces(own.or(spec.get("validationFailureAction"))),
            overrides: overrides.collect(),
        }
    }

    fn may_enforce(&self) -> bool {
        self.enforces || self.overrides.iter().any(|(enforces, ..)| *enforces)
    }

    fn applies(&self, request: &Request<'_>) -> Truth {
        let namespace = request.namespace.unwrap_or_default();
        let mut doubt = false;
        for (enforces, namespaces, selector) in &self.overrides {
            let by_name =
                namespaces.is_empty() || namespaces.iter().any(|pattern| wildcard(pattern, namespace));
            let by_labels = match (selector, request.in_namespace) {
                (None, _) => (!namespaces.is_empty()).into(),
                (Some(selector), InNamespace::Known(view)) => {
                    selector.matches_patterns(view.path(&["metadata", "labels"]), wildcard)
                }
                (Some(_), InNamespace::NotLoaded) => Truth::Unknown,
                (Some(_), InNamespace::Cluster) => Truth::False,
            };
            match Truth::from(by_name).and(by_labels) {
                Truth::True if doubt && *enforces != self.enforces => return Truth::Unknown,
                Truth::True => return (*enforces).into(),
                Truth::Unknown => doubt |= *enforces != self.enforces,
                Truth::False => {}
            }
        }
        if doubt { Truth::Unknown } else { self.enforces.into() }
    }
}

impl Body {
    fn of_rule(rule: &Value, validate: &Value, expressions: &Expressions) -> Self {
        if let Some(cel) = validate.get("cel") {
            if cel.get("paramKind").is_some() {
                return Self::Unsupported("parameters");
            }
            let mut spec = cel.clone();
            if let Some(spec) = spec.as_object_mut() {
                let conditions = rule.get("celPreconditions").cloned().unwrap_or_default();
                spec.insert("matchConditions".to_owned(), conditions);
                let validations = spec.remove("expressions").unwrap_or_default();
                spec.insert("validations".to_owned(), validations);
            }
            return Self::Expressions(Rules::new(&spec, expressions));
        }
        if let Some(standard) = validate.get("podSecurity") {
            let excludes = standard.get("exclude").and_then(Value::as_array).into_iter().flatten();
            // What is excluded for some images is for those whoever makes the pod may choose.
            let names = excludes.filter_map(|entry| entry.get("controlName")?.as_str()).map(str::to_owned);
            return Self::PodSecurity {
                level: PodSecurityLevel::new(
                    standard.get("level").and_then(Value::as_str).unwrap_or_default(),
                ),
                excluded: names.collect(),
            };
        }
        Self::new(validate)
    }

    fn new(validate: &Value) -> Self {
        if let Some(deny) = validate.get("deny") {
            return Self::Deny(deny.get("conditions").map(Conditions::new).unwrap_or_default());
        }
        if let Some(pattern) = validate.get("pattern") {
            return Self::Patterns(vec![pattern.clone()]);
        }
        if let Some(patterns) = validate.get("anyPattern").and_then(Value::as_array) {
            return Self::Patterns(patterns.clone());
        }
        if let Some(loops) = validate.get("foreach").and_then(Value::as_array) {
            let text = |of: &Value| of.get("list").and_then(Value::as_str).unwrap_or_default().to_owned();
            let made = loops.iter().map(|of| Foreach {
                list: text(of),
                preconditions: preconditions(of),
                body: if of.get("foreach").is_some() {
                    Self::Unsupported("nested loops")
                } else {
                    Self::new(of)
                },
            });
            return Self::Foreach(made.collect());
        }
        Self::Unsupported("an assertion, a signature or another check")
    }

    /// What may come out for a request, or for one element of a list.
    fn outcome(&self, names: Names<'_>) -> Outcome {
        let request = names.request;
        match self {
            Self::Patterns(_) if request.operation == "DELETE" && names.element.is_none() => Outcome::PASS,
            Self::Patterns(patterns) => {
                let resource = names.element.or(request.object).map_or(Child::Absent, Child::Present);
                any_of(patterns.iter().map(|pattern| compare(names, resource, pattern)))
            }
            Self::Deny(conditions) => match conditions.hold(names) {
                Truth::True => Outcome::FAIL,
                Truth::False => Outcome::PASS,
                Truth::Unknown => Outcome { pass: true, fail: true, skip: false },
            },
            Self::Foreach(loops) => {
                let outcomes = loops.iter().map(|each| each.outcome(names));
                outcomes.fold(Outcome::PASS, |all, one| Outcome {
                    pass: all.pass && (one.pass || one.skip),
                    fail: all.fail || one.fail,
                    skip: false,
                })
            }
            Self::PodSecurity { .. } if request.operation == "DELETE" => Outcome::PASS,
            Self::PodSecurity { level, excluded } => {
                let violated = request.object.and_then(|pod| standards::violated(pod, *level, excluded));
                match violated {
                    None => Outcome::PASS,
                    Some((_, Truth::True)) => Outcome::FAIL,
                    Some(_) => Outcome { pass: true, fail: true, skip: false },
                }
            }
            Self::Expressions(_) | Self::Unsupported(_) => Outcome::ANY,
        }
    }
}

impl Foreach {
    fn outcome(&self, names: Names<'_>) -> Outcome {
        let list = match names.list(&self.list) {
            Child::Unknown => return Outcome::ANY,
            Child::Absent => return Outcome::SKIP,
            Child::Present(view) => view,
        };
        let mut all = Outcome { pass: true, fail: !list.is_certain(), skip: true };
        for (_, element) in list.members() {
            let names = Names { element: Some(element), ..names };
            let one = match self.preconditions.hold(names) {
                Truth::False => Outcome::SKIP,
                Truth::True => self.body.outcome(names),
                Truth::Unknown => Outcome { skip: true, ..self.body.outcome(names) },
            };
            if one.is_fail() {
                return Outcome::FAIL;
            }
            all.fail |= one.fail;
        }
        all
    }
}

/// Passes if one passes, fails if one fails and none passes, is skipped if all are.
fn any_of(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let outcomes: Vec<_> = outcomes.collect();
    Outcome {
        pass: outcomes.iter().any(|outcome| outcome.pass),
        fail: outcomes.iter().all(|o| o.fail || o.skip) && outcomes.iter().any(|outcome| outcome.fail),
        skip: !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.skip),
    }
}

impl Judge for Rule {
    fn by(&self) -> &str {
        &self.by
    }

    fn may_concern(&self, sort: Sort<'_>) -> bool {
        self.matches.may_concern(sort) || self.is_controller(sort)
    }

    fn judge(&self, request: &Request<'_>) -> Verdict {
        if !self.is_controller(request.sort()) {
            return self.judge_as_it_is(request);
        }
        // What it says of pods it says of the pods that this makes.
        let path = template_of(request.resource);
        match request.object.map_or(Child::Absent, |object| object.path(path)) {
            Child::Absent => Verdict::Passes,
            Child::Unknown => Verdict::Unknown("its pods are not known".to_owned()),
            Child::Present(pod) => self.judge_as_it_is(&Request {
                group: "",
                resource: "pods",
                kind: Some("Pod"),
                object: Some(pod),
                old_object: request.old_object.and_then(|old| old.path(path).present()),
                ..*request
            }),
        }
    }
}

fn template_of(resource: &str) -> &'static [&'static str] {
    if resource == "cronjobs" { &["spec", "jobTemplate", "spec", "template"] } else { &["spec", "template"] }
}

impl Rule {
    fn is_controller(&self, sort: Sort<'_>) -> bool {
        sort.subresource.is_empty() && self.controllers.contains(&(sort.group, sort.resource))
    }

    fn judge_as_it_is(&self, request: &Request<'_>) -> Verdict {
        if self.namespace.is_some() && self.namespace.as_deref() != request.namespace {
            return Verdict::Passes;
        }
        let names = Names { request, element: None };
        let applies = Truth::all([
            self.matches.matches(request),
            !self.excluded.matches(request),
            self.action.applies(request),
            self.preconditions.hold(names),
        ]);
        if applies == Truth::False {
            return Verdict::Passes;
        }
        let verdict = match &self.body {
            Body::Expressions(rules) => rules.judge(request, Term::Null),
            Body::Unsupported(what) => Verdict::Unknown(format!("it takes {what}, which is not evaluated")),
            body => match body.outcome(names) {
                Outcome { fail: false, .. } => Verdict::Passes,
                outcome if outcome.is_fail() => Verdict::Denied(self.message.clone()),
                _ => Verdict::Unknown(
                    "it depends on fields that such a request may have with any value, or on what Kyverno looks up"
                        .to_owned(),
                ),
            },
        };
        let verdict = if applies == Truth::True { verdict } else { verdict.doubted() };
        match verdict {
            Verdict::Denied(_) if self.violated_before(request) => Verdict::Unknown(
                "Kyverno lets an update through that leaves a violation as it was".to_owned(),
            ),
            Verdict::Denied(_) if self.exceptions.iter().any(|e| e.may_match(request)) => {
                Verdict::Unknown("a PolicyException may let it through".to_owned())
            }
            verdict => verdict,
        }
    }

    /// Whether the object may have violated the rule before an update, which is then let through.
    fn violated_before(&self, request: &Request<'_>) -> bool {
        if request.operation != "UPDATE" || !self.allows_existing || matches!(self.body, Body::Deny(_)) {
            return false;
        }
        let Some(old) = request.old_object else { return true };
        let before = Request { object: Some(old), ..*request };
        match &self.body {
            Body::Expressions(rules) => rules.judge(&before, Term::Null) != Verdict::Passes,
            body => body.outcome(Names { request: &before, element: None }).fail,
        }
    }
}
