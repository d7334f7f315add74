//! What an app asked for and what came of it, from its AccessRequests.

use std::collections::BTreeMap;

use bailey_api::{AccessRequest, GrantScope, READY, RefusalReason, SCOPED_ROLE};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

use super::screen::{Screen, Tone};

/// How many names of a long list are shown.
const SHOWN: usize = 6;
/// What people look for first; the rest follows as it comes.
const FIRST: [&str; 10] = [
    "secrets",
    "nodes",
    "pods",
    "deployments",
    "persistentvolumes",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "clusterroles",
    "resourcequotas",
    "customresourcedefinitions",
];

/// An app's requests in numbers and names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Digest {
    pub bindings: usize,
    pub requested: i64,
    pub granted: i64,
    pub refused: i64,
    /// Roles that ask for everything.
    everything: Vec<String>,
    in_namespaces: Vec<String>,
    in_cluster: Vec<String>,
    refusals: BTreeMap<RefusalReason, Refusal>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Refusal {
    parts: usize,
    /// What is refused, or why where it is no rule.
    what: Vec<String>,
    remedies: Vec<String>,
}

impl Digest {
    /// Sums up the requests of one app.
    pub fn of(requests: &[AccessRequest]) -> Self {
        let mut digest = Self { bindings: requests.len(), ..Self::default() };
        for status in requests.iter().filter_map(|request| request.status.as_ref()) {
            digest.requested += status.requested_count;
            digest.granted += status.granted_count;
            digest.refused += status.refused_count;
            if status.requested.iter().any(is_everything) {
                add(&mut digest.everything, &status.role);
            }
            for granted in &status.granted {
                let place = match granted.scope {
                    GrantScope::Namespaces => &mut digest.in_namespaces,
                    GrantScope::Cluster => &mut digest.in_cluster,
                };
                names(&granted.rule).for_each(|name| add(place, without_subresource(name)));
            }
            for refused in &status.refused {
                let refusal = digest.refusals.entry(refused.reason).or_default();
                refusal.parts += 1;
                match &refused.rule {
                    Some(rule) => what(refused.reason, rule).for_each(|name| add(&mut refusal.what, name)),
                    None => add(&mut refusal.what, &refused.message),
                }
                add(&mut refusal.remedies, &refused.remedy);
            }
        }
        digest
    }

    /// Shows what was requested, granted and refused; `namespaces` are those of the tenant.
    pub fn show(&self, screen: &Screen, namespaces: &str) {
        let bindings = count(i64::try_from(self.bindings).unwrap_or(i64::MAX), "binding");
        screen.say(&format!("Requested: {} in {bindings}", count(self.requested, "rule")));
        if !self.everything.is_empty() {
            screen.point(
                Tone::Plain,
                &format!("{} asks for every verb on everything", self.everything.join(", ")),
            );
        }
        screen.say(&format!("Granted: {} of them, whole or in part", self.granted));
        if !self.in_namespaces.is_empty() {
            screen.point(Tone::Good, &format!("in {namespaces}: {}", shortened(&self.in_namespaces)));
        }
        if !self.in_cluster.is_empty() {
            screen.point(Tone::Good, &format!("in the whole cluster: {}", shortened(&self.in_cluster)));
        }
        if self.refused > 0 {
            screen.say(&format!("Refused: {}, with reason and remedy", count(self.refused, "part")));
        }
        for (reason, refusal) in &self.refusals {
            let Refusal { parts, what, remedies } = refusal;
            screen.point(Tone::Notice, &format!("{} ({parts}): {}", reason.as_str(), shortened(what)));
            for remedy in remedies {
                screen.remark(&format!("-> {remedy}"));
            }
        }
    }
}

/// Says whether the operator has answered every scoped binding of an app's namespace.
///
/// `objects` is a List of bindings of both kinds and of AccessRequests.
pub fn answered(objects: &Value, namespace: &str) -> bool {
    let mut asking: Vec<(String, String)> = items(objects)
        .filter(|item| item.pointer("/roleRef/name").is_some_and(|role| role == SCOPED_ROLE))
        .filter(|item| {
            let subject = text(item, "/subjects/0/namespace");
            text(item, "/metadata/namespace").or(subject).as_deref() == Some(namespace)
        })
        .filter_map(|item| Some((text(item, "/kind")?, text(item, "/metadata/name")?)))
        .collect();
    let requests = requests(objects, namespace);
    let mut ready: Vec<(String, String)> = requests
        .iter()
        .filter(|request| is_ready(request))
        .map(|request| (request.spec.binding.kind.as_str().to_owned(), request.spec.binding.name.clone()))
        .collect();
    asking.sort();
    ready.sort();
    !asking.is_empty() && asking == ready && requests.len() == ready.len()
}

/// Returns the AccessRequests of a namespace among the items of a List.
pub fn requests(objects: &Value, namespace: &str) -> Vec<AccessRequest> {
    items(objects)
        .filter(|item| text(item, "/kind").as_deref() == Some("AccessRequest"))
        .filter_map(|item| serde_json::from_value(item.clone()).ok())
        .filter(|request: &AccessRequest| request.metadata.namespace.as_deref() == Some(namespace))
        .collect()
}

fn is_ready(request: &AccessRequest) -> bool {
    request.status.as_ref().is_some_and(|status| {
        let ready = status.conditions.iter().any(|c| c.type_ == READY && c.status == "True");
        ready && status.observed_generation == request.metadata.generation
    })
}

fn items(objects: &Value) -> impl Iterator<Item = &Value> {
    objects.get("items").and_then(Value::as_array).into_iter().flatten()
}

fn text(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

fn is_everything(rule: &PolicyRule) -> bool {
    let star = |list: &Option<Vec<String>>| list.iter().flatten().any(|entry| entry == "*");
    star(&rule.api_groups) && star(&rule.resources) && rule.verbs.iter().any(|verb| verb == "*")
}

/// The verbs are what matters where a verb is the reason, and the resources elsewhere.
fn what(reason: RefusalReason, rule: &PolicyRule) -> Box<dyn Iterator<Item = &str> + '_> {
    match reason {
        RefusalReason::EscalatingVerb => Box::new(rule.verbs.iter().map(String::as_str)),
        _ => Box::new(names(rule)),
    }
}

/// Returns resources, or paths.
fn names(rule: &PolicyRule) -> impl Iterator<Item = &str> {
    let resources = rule.resources.iter().flatten();
    resources.chain(rule.non_resource_urls.iter().flatten()).map(String::as_str)
}

fn without_subresource(resource: &str) -> &str {
    resource.split_once('/').map_or(resource, |(name, _)| name)
}

fn add(list: &mut Vec<String>, entry: &str) {
    if !list.iter().any(|present| present == entry) {
        list.push(entry.to_owned());
    }
}

fn shortened(list: &[String]) -> String {
    let mut ordered: Vec<&str> = list.iter().map(String::as_str).collect();
    ordered.sort_by_key(|name| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
    let shown: Vec<&str> = ordered.iter().take(SHOWN).copied().collect();
    match list.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `1 rule`, `2 rules`.
fn count(number: i64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(name: &str, ready: &str) -> Value {
        json!({
            "apiVersion": "bailey.dev/v1alpha1", "kind": "AccessRequest",
            "metadata": {"name": format!("rolebinding.{name}"), "namespace": "argocd", "generation": 1},
            "spec": {"tenant": "acme", "binding": {"kind": "RoleBinding", "name": name}},
            "status": {
                "observedGeneration": 1,
                "conditions": [{"type": "Ready", "status": ready, "reason": "Granted", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                "role": "ClusterRole/server", "requestedCount": 2, "grantedCount": 1, "refusedCount": 2,
                "requested": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
                "granted": [{"request": 0, "scope": "Namespaces",
                    "rule": {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"]}}],
                "refused": [
                    {"request": 0, "reason": "ClusterScoped", "message": "m", "remedy": "do without",
                        "rule": {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}},
                    {"request": 0, "reason": "EscalatingVerb", "message": "m", "remedy": "none",
                        "rule": {"apiGroups": ["*"], "resources": ["*"], "verbs": ["bind"]}},
                    {"reason": "ForeignSubject", "message": "not yours", "remedy": "bind another"}
                ]
            }
        })
    }

    fn binding(name: &str, role: &str) -> Value {
        json!({"kind": "RoleBinding", "metadata": {"name": name, "namespace": "argocd"}, "roleRef": {"name": role}})
    }

    #[test]
    fn a_digest_sums_up_and_names_each_thing_once() {
        let list = json!({"items": [request("a", "True"), request("b", "True")]});
        let digest = Digest::of(&requests(&list, "argocd"));
        assert_eq!((digest.bindings, digest.requested, digest.granted, digest.refused), (2, 4, 2, 4));
        assert_eq!(digest.everything, ["ClusterRole/server"]);
        assert_eq!(digest.in_namespaces, ["pods"]);
        assert_eq!(digest.refusals[&RefusalReason::ClusterScoped].what, ["nodes"]);
        assert_eq!(digest.refusals[&RefusalReason::EscalatingVerb].what, ["bind"]);
        assert_eq!(digest.refusals[&RefusalReason::ForeignSubject].what, ["not yours"]);
        assert_eq!(Digest::of(&requests(&list, "org-acme")), Digest::default());
    }

    #[test]
    fn an_app_is_answered_when_each_scoped_binding_has_a_ready_request() {
        let scoped = || binding("a", SCOPED_ROLE);
        assert!(answered(
            &json!({"items": [scoped(), binding("x", "view"), request("a", "True")]}),
            "argocd"
        ));
        assert!(!answered(&json!({"items": [scoped(), request("a", "False")]}), "argocd"));
        assert!(!answered(&json!({"items": [scoped()]}), "argocd"));
        assert!(!answered(
            &json!({"items": [scoped(), binding("b", SCOPED_ROLE), request("a", "True")]}),
            "argocd"
        ));
        assert!(!answered(&json!({"items": []}), "argocd"));
    }

    #[test]
    fn long_lists_say_how_much_they_leave_out() {
        let list: Vec<String> = (0..8).map(|n| n.to_string()).collect();
        assert_eq!(shortened(&list), "0, 1, 2, 3, 4, 5 and 2 more");
        assert_eq!(shortened(&list[..2]), "0, 1");
        let known = ["apiservices", "nodes", "secrets"].map(str::to_owned);
        assert_eq!(shortened(&known), "secrets, nodes, apiservices");
        assert_eq!((count(1, "part"), count(0, "part")), ("1 part".to_owned(), "0 parts".to_owned()));
    }
}
