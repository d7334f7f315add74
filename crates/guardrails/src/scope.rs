//! What of a requested role is granted: requested rules against the ceiling of the tenant.
//!
//! Semantics of RBAC rules: k8s.io/kubernetes pkg/apis/rbac/v1/evaluation_helpers.go (`*` matches any group,
//! resource or verb; `*/SUB` matches that subresource of any resource; names only narrow).
//! INVARIANT: each requested rule appears as granted or as refused with a reason, or as both in part.

use std::collections::{BTreeMap, BTreeSet};

use bailey_api::{ApprovedRule, BindingKind, GrantScope, GrantedRule, RefusalReason, RefusedRule};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

use crate::{Ceiling, Discovery, ResourceScope};

mod refusal;

/// A role as found on the cluster, for [`requested_rules`].
#[derive(Debug, Clone, Default)]
pub struct RoleSource {
    /// Its rules now.
    pub rules: Vec<PolicyRule>,
    /// The recorded request of a scoped role.
    pub requested: Option<String>,
    /// The recorded aggregation of a scoped role.
    pub aggregation: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// The rules that a role asks for: its record if it is scoped, else what it says.
///
/// `others` are the tenant's own cluster roles, for a recorded aggregation. The error says what is unreadable.
pub fn requested_rules<'a>(
    role: &RoleSource,
    others: impl Iterator<Item = &'a RoleSource>,
) -> Result<Vec<PolicyRule>, String> {
    let Some(record) = &role.requested else { return Ok(role.rules.clone()) };
    if !role.rules.is_empty() {
        return Ok(role.rules.clone());
    }
    let unreadable = |e: serde_json::Error| format!("the recorded request is not valid JSON ({e})");
    let mut rules: Vec<PolicyRule> = serde_json::from_str(record).map_err(unreadable)?;
    if let Some(aggregation) = &role.aggregation {
        let selectors: Vec<Value> = serde_json::from_str(aggregation).map_err(unreadable)?;
        if selectors.iter().any(|s| s.get("expressions") == Some(&Value::Bool(true))) {
            return Err(
                "the aggregation selects by matchExpressions, which is not supported; use matchLabels"
                    .to_owned(),
            );
        }
        for other in others.filter(|o| selectors.iter().any(|s| selects(s, &o.labels))) {
            // A role that aggregates is not aggregated again: its own record holds what it asks for itself.
            let own = RoleSource { aggregation: None, ..other.clone() };
            rules.extend(requested_rules(&own, std::iter::empty())?);
        }
    }
    Ok(rules)
}

fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    wanted.is_some_and(|wanted| {
        !wanted.is_empty() && wanted.iter().all(|(k, v)| labels.get(k).map(String::as_str) == v.as_str())
    })
}

/// What came of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scoped {
    /// What is in effect.
    pub granted: Vec<GrantedRule>,
    /// What is not, and why.
    pub refused: Vec<RefusedRule>,
}

/// The bounds that a request is held against.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub discovery: &'a Discovery,
    pub namespace: &'a Ceiling,
    pub cluster: &'a Ceiling,
    pub kind: BindingKind,
}

/// Holds requested rules against the ceilings of the tenant, and adds what the platform approved.
pub fn scope(
    requested: &[PolicyRule],
    approved: &[ApprovedRule],
    kind: BindingKind,
    discovery: &Discovery,
    namespace: &Ceiling,
    cluster: &Ceiling,
) -> Scoped {
    let bounds = Bounds { discovery, namespace, cluster, kind };
    let mut scoped = Scoped::default();
    for (i, rule) in requested.iter().enumerate() {
        let index = i64::try_from(i).unwrap_or(i64::MAX);
        let outcome = scope_rule(rule, approved, bounds);
        scoped.granted.extend(outcome.granted_rules(index, rule));
        scoped.refused.extend(outcome.refused_rules(index, rule));
    }
    scoped
}

/// What came of one rule: per resource, which verbs.
#[derive(Default)]
struct RuleOutcome {
    granted: BTreeMap<(GrantScope, bool, String, String), BTreeSet<String>>,
    granted_urls: BTreeSet<String>,
    refused: BTreeMap<(RefusalReason, String, String), BTreeSet<String>>,
    refused_urls: BTreeSet<String>,
}

/// Paths that every authenticated identity reads anyway (ClusterRole system:discovery).
const PUBLIC_URLS: [&str; 11] = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];

fn scope_rule(rule: &PolicyRule, approved: &[ApprovedRule], bounds: Bounds<'_>) -> RuleOutcome {
    let mut outcome = RuleOutcome::default();
    for url in rule.non_resource_urls.iter().flatten() {
        let reads = rule.verbs.iter().all(|v| v == "get" || v == "head");
        let ok =
            bounds.kind == BindingKind::ClusterRoleBinding && reads && PUBLIC_URLS.contains(&url.as_str());
        if ok { &mut outcome.granted_urls } else { &mut outcome.refused_urls }.insert(url.clone());
    }
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            if group == "*" || resource.contains('*') {
                scope_pattern(&mut outcome, group, resource, &rule.verbs, bounds);
            } else {
                scope_resource(&mut outcome, group, resource, &rule.verbs, bounds);
            }
        }
    }
    approve(&mut outcome, rule, approved, bounds.discovery);
    outcome
}

fn scope_resource(outcome: &mut RuleOutcome, group: &str, name: &str, verbs: &[String], bounds: Bounds<'_>) {
    let known = bounds.discovery.find(group, name).map(|r| r.scope);
    let finalizers =
        name.strip_suffix("/finalizers").and_then(|p| bounds.discovery.find(group, p)).map(|r| r.scope);
    let Some(scope) = known.or(finalizers) else {
        return outcome.refuse(RefusalReason::NotServed, group, name, verbs.iter().cloned());
    };
    let in_namespace = bounds.namespace.verbs(group, name);
    let in_cluster = bounds.cluster.verbs(group, name);
    let wanted = expand(verbs, bounds.discovery, group, name);
    for verb in wanted {
        let clusterwide = bounds.kind == BindingKind::ClusterRoleBinding && in_cluster.contains(&verb);
        if clusterwide {
            outcome.grant(GrantScope::Cluster, group, name, &verb);
        } else if in_namespace.contains(&verb) {
            outcome.grant(GrantScope::Namespaces, group, name, &verb);
        } else {
            let reason = refusal::reason(&verb, scope, bounds.discovery.find(group, name), &in_namespace);
            outcome.refuse(reason, group, name, [verb]);
        }
    }
}

/// A pattern grants all that it matches of the ceilings; the rest is refused in one line per reason.
fn scope_pattern(
    outcome: &mut RuleOutcome,
    group: &str,
    resource: &str,
    verbs: &[String],
    bounds: Bounds<'_>,
) {
    let matches = |g: &str, r: &str| (group == "*" || group == g) && matches_resource(resource, r);
    let verb_wanted = |v: &String| verbs.iter().any(|w| w == "*" || w == v);
    for (g, r, held) in bounds.namespace.iter().filter(|(g, r, _)| matches(g, r)) {
        for verb in held.iter().filter(|v| verb_wanted(v)) {
            outcome.grant(GrantScope::Namespaces, g, r, verb);
        }
    }
    let clusterwide = bounds.kind == BindingKind::ClusterRoleBinding;
    if clusterwide {
        for (g, r, held) in bounds.cluster.iter().filter(|(g, r, _)| matches(g, r)) {
            for verb in held.iter().filter(|v| verb_wanted(v)) {
                outcome.grant(GrantScope::Cluster, g, r, verb);
            }
        }
    }
    let mut served_any = false;
    let mut verb_any = false;
    for served in bounds.discovery.resources().iter().filter(|s| matches(&s.group, &s.name)) {
        served_any = true;
        let namespaced = bounds.namespace.verbs(&served.group, &served.name);
        let cluster = bounds.cluster.verbs(&served.group, &served.name);
        for verb in served.verbs.iter().filter(|v| verb_wanted(v)) {
            verb_any = true;
            if !(namespaced.contains(verb) || clusterwide && cluster.contains(verb)) {
                let reason = refusal::reason(verb, served.scope, Some(served), &namespaced);
                outcome.refuse(reason, &served.group, &served.name, [verb.clone()]);
            }
        }
    }
    if !verb_any {
        let reason = if served_any { RefusalReason::UnknownVerb } else { RefusalReason::NotServed };
        outcome.refuse(reason, group, resource, verbs.iter().cloned());
    }
    let special = verbs.iter().filter(|v| *v == "*" || refusal::ESCALATING.contains(&v.as_str()));
    for verb in special {
        let named = if verb == "*" { "bind, escalate, impersonate" } else { verb.as_str() };
        outcome.refuse(RefusalReason::EscalatingVerb, group, resource, named.split(", ").map(str::to_owned));
    }
}

fn matches_resource(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix("*/") {
        Some(sub) => name.split_once('/').is_some_and(|(_, s)| s == sub),
        None => pattern == "*" || pattern == name,
    }
}

/// `*` stands for the verbs that the resource has.
fn expand(verbs: &[String], discovery: &Discovery, group: &str, name: &str) -> BTreeSet<String> {
    if !verbs.iter().any(|v| v == "*") {
        return verbs.iter().cloned().collect();
    }
    match discovery.find(group, name) {
        Some(resource) => resource.verbs.iter().cloned().collect(),
        None => BTreeSet::from(["update".to_owned()]),
    }
}

/// An approved rule takes effect for what was requested and refused.
fn approve(outcome: &mut RuleOutcome, rule: &PolicyRule, approved: &[ApprovedRule], discovery: &Discovery) {
    for approval in approved {
        if !approval.resource_names.is_empty()
            && rule.resource_names.as_deref().unwrap_or_default() != approval.resource_names
        {
            continue;
        }
        for group in &approval.api_groups {
            for name in &approval.resources {
                for verb in &approval.verbs {
                    let scope = match discovery.find(group, name).map(|r| r.scope) {
                        Some(ResourceScope::Namespaced) => GrantScope::Namespaces,
                        Some(ResourceScope::Cluster) => GrantScope::Cluster,
                        None => continue,
                    };
                    if outcome.unrefuse(group, name, verb) {
                        let key = (scope, true, group.clone(), name.clone());
                        outcome.granted.entry(key).or_default().insert(verb.clone());
                    }
                }
            }
        }
        for url in &approval.non_resource_urls {
            if outcome.refused_urls.remove(url) {
                outcome.granted_urls.insert(url.clone());
            }
        }
    }
}

impl RuleOutcome {
    fn grant(&mut self, scope: GrantScope, group: &str, name: &str, verb: &str) {
        let key = (scope, false, group.to_owned(), name.to_owned());
        self.granted.entry(key).or_default().insert(verb.to_owned());
    }

    fn refuse(
        &mut self,
        reason: RefusalReason,
        group: &str,
        name: &str,
        verbs: impl IntoIterator<Item = String>,
    ) {
        self.refused.entry((reason, group.to_owned(), name.to_owned())).or_default().extend(verbs);
    }

    fn unrefuse(&mut self, group: &str, name: &str, verb: &str) -> bool {
        let mut found = false;
        self.refused.retain(|(reason, g, n), verbs| {
            if g == group && n == name && *reason != RefusalReason::EscalatingVerb {
                found |= verbs.remove(verb);
            }
            !verbs.is_empty()
        });
        found
    }

    fn granted_rules(&self, request: i64, rule: &PolicyRule) -> Vec<GrantedRule> {
        let mut grouped = BTreeMap::<(GrantScope, bool, &str, Vec<&str>), Vec<String>>::new();
        for ((scope, approved, group, name), verbs) in &self.granted {
            let key = (*scope, *approved, group.as_str(), verbs.iter().map(String::as_str).collect());
            grouped.entry(key).or_default().push(name.clone());
        }
        let names = rule.resource_names.clone().filter(|n| !n.is_empty());
        let mut rules: Vec<_> = grouped
            .into_iter()
            .map(|((scope, approved, group, verbs), resources)| GrantedRule {
                request,
                scope,
                approved,
                rule: PolicyRule {
                    api_groups: Some(vec![group.to_owned()]),
                    resources: Some(resources),
                    resource_names: names.clone(),
                    verbs: verbs.into_iter().map(str::to_owned).collect(),
                    ..PolicyRule::default()
                },
            })
            .collect();
        if !self.granted_urls.is_empty() {
            rules.push(GrantedRule {
                request,
                scope: GrantScope::Cluster,
                approved: false,
                rule: PolicyRule {
                    non_resource_urls: Some(self.granted_urls.iter().cloned().collect()),
                    verbs: rule.verbs.clone(),
                    ..PolicyRule::default()
                },
            });
        }
        rules
    }

    fn refused_rules(&self, request: i64, rule: &PolicyRule) -> Vec<RefusedRule> {
        let mut by_reason = BTreeMap::<(RefusalReason, Vec<&str>), Vec<(&str, &str)>>::new();
        for ((reason, group, name), verbs) in &self.refused {
            let key = (*reason, verbs.iter().map(String::as_str).collect());
            by_reason.entry(key).or_default().push((group, name));
        }
        let mut refused: Vec<_> = by_reason
            .into_iter()
            .map(|((reason, verbs), what)| refusal::explain(request, reason, &verbs, &what, rule))
            .collect();
        if !self.refused_urls.is_empty() {
            refused.push(refusal::explain_urls(request, &self.refused_urls, rule));
        }
        refused
    }
}

#[cfg(test)]
mod tests;
