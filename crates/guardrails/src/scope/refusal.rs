//! Why a part of a request is refused, in words, with the way out.

use std::collections::BTreeSet;

use bailey_api::{RefusalReason, RefusedRule};
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::{Resource, ResourceScope};

/// Verbs that reach beyond any boundary: they turn their holder into somebody else or lift RBAC's own check.
pub(super) const ESCALATING: [&str; 5] = ["bind", "escalate", "impersonate", "approve", "sign"];

/// The reason why `verb` is outside the ceilings.
pub(super) fn reason(
    verb: &str,
    scope: ResourceScope,
    resource: Option<&Resource>,
    in_namespace: &BTreeSet<String>,
) -> RefusalReason {
    let has_verb = resource.is_some_and(|r| r.verbs.iter().any(|v| v == verb));
    if ESCALATING.contains(&verb) || verb.starts_with("impersonate") {
        RefusalReason::EscalatingVerb
    } else if scope == ResourceScope::Cluster {
        RefusalReason::ClusterScoped
    } else if has_verb || (resource.is_some() && in_namespace.is_empty()) {
        RefusalReason::ProtectedKind
    } else {
        RefusalReason::UnknownVerb
    }
}

/// One refused part, in words.
pub(super) fn explain(
    request: i64,
    reason: RefusalReason,
    verbs: &[&str],
    what: &[(&str, &str)],
    asked: &PolicyRule,
) -> RefusedRule {
    let list = shorten(what);
    let verbs_text = verbs.join(", ");
    let (message, remedy) = match reason {
        RefusalReason::ClusterScoped => (
            format!("{list} belong to the whole cluster, so {verbs_text} on them reaches beyond the tenant"),
            "do without (many charts have a namespaced mode), or ask the platform to approve it".to_owned(),
        ),
        RefusalReason::ProtectedKind => (
            format!("{list} fence tenants or are written by the platform"),
            "ask the platform to approve it for your namespaces".to_owned(),
        ),
        RefusalReason::EscalatingVerb => (
            format!("{verbs_text} on {list} would make the app somebody else"),
            "none: these verbs cannot be approved; roles that the app creates are scoped in the same way"
                .to_owned(),
        ),
        RefusalReason::NotServed => (
            format!("{list}: not served by this cluster"),
            "nothing to do: it is granted by itself when its CRD is installed".to_owned(),
        ),
        RefusalReason::UnknownVerb => {
            (format!("{list} have no verb {verbs_text}"), "nothing to do: nobody can use it".to_owned())
        }
        RefusalReason::NonResourceUrl | RefusalReason::ForeignSubject | RefusalReason::Unreadable => {
            (list, String::new())
        }
    };
    let groups: BTreeSet<_> = what.iter().map(|(g, _)| (*g).to_owned()).collect();
    let resources: BTreeSet<_> = what.iter().map(|(_, r)| (*r).to_owned()).collect();
    let rule = PolicyRule {
        api_groups: Some(groups.into_iter().collect()),
        resources: Some(resources.into_iter().collect()),
        resource_names: asked.resource_names.clone().filter(|n| !n.is_empty()),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        ..PolicyRule::default()
    };
    RefusedRule { request: Some(request), rule: Some(rule), reason, message, remedy }
}

/// Refused paths, in words.
pub(super) fn explain_urls(request: i64, urls: &BTreeSet<String>, asked: &PolicyRule) -> RefusedRule {
    let list: Vec<_> = urls.iter().cloned().collect();
    RefusedRule {
        request: Some(request),
        reason: RefusalReason::NonResourceUrl,
        message: format!("{} belong to the API server, not to a namespace", list.join(", ")),
        remedy:
            "do without: discovery, version and health are open to all; or ask the platform to approve it"
                .to_owned(),
        rule: Some(PolicyRule {
            non_resource_urls: Some(list),
            verbs: asked.verbs.clone(),
            ..PolicyRule::default()
        }),
    }
}

/// The first few resources, and how many more there are.
fn shorten(what: &[(&str, &str)]) -> String {
    const SHOWN: usize = 4;
    let name = |(group, resource): &(&str, &str)| {
        if group.is_empty() { (*resource).to_owned() } else { format!("{resource}.{group}") }
    };
    let shown: Vec<_> = what.iter().take(SHOWN).map(name).collect();
    match what.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{} and {more} more", shown.join(", ")),
        _ => shown.join(", "),
    }
}
