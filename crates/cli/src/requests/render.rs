//! Requests in the forms that people and programs read.

use bailey_api::{AccessRequest, ApprovedRule, GrantScope, READY};
use k8s_openapi::api::rbac::v1::PolicyRule;

use super::Requests;
use crate::CliError;
use crate::output::{Format, Screen, Tone, json, markdown_row, yaml};

pub(super) fn render(
    document: &Requests<'_>,
    format: Format,
    explain: bool,
    screen: &Screen,
) -> Result<String, CliError> {
    let requests = document.requests;
    Ok(match format {
        Format::Json => json(document)?,
        Format::Yaml => yaml(document)?,
        Format::Name => {
            requests.iter().map(|r| format!("accessrequest/{}/{}\n", namespace(r), name(r))).collect()
        }
        Format::Markdown => markdown(requests, explain),
        _ if explain => requests.iter().map(|r| explained(r, screen)).collect::<Vec<_>>().join("\n"),
        _ if requests.is_empty() => String::new(),
        format => table(requests, format == Format::Wide, screen),
    })
}

fn namespace(request: &AccessRequest) -> &str {
    request.metadata.namespace.as_deref().unwrap_or_default()
}

fn name(request: &AccessRequest) -> &str {
    request.metadata.name.as_deref().unwrap_or_default()
}

/// Reason and message of the Ready condition, and whether it is true.
fn status(request: &AccessRequest) -> (String, String, bool) {
    let conditions = request.status.as_ref().map(|s| s.conditions.as_slice()).unwrap_or_default();
    match conditions.iter().find(|c| c.type_ == READY) {
        Some(ready) => (ready.reason.clone(), ready.message.clone(), ready.status == "True"),
        None => ("Pending".to_owned(), "the operator has not looked at it yet".to_owned(), false),
    }
}

fn table(requests: &[AccessRequest], wide: bool, screen: &Screen) -> String {
    let row = |request: &AccessRequest| {
        let counts = request.status.clone().unwrap_or_default();
        let (reason, message, ready) = status(request);
        let tone = if !ready {
            Tone::Bad
        } else if counts.refused_count > 0 {
            Tone::Notice
        } else {
            Tone::Good
        };
        let mut row = vec![
            (namespace(request).to_owned(), None),
            (name(request).to_owned(), None),
            (request.spec.tenant.clone(), None),
            (counts.requested_count.to_string(), None),
            (counts.granted_count.to_string(), None),
            (counts.refused_count.to_string(), None),
            (reason, Some(tone)),
        ];
        if wide {
            let binding = &request.spec.binding;
            row.push((format!("{}/{}", binding.kind.as_str(), binding.name), None));
            row.push((counts.role.clone(), None));
            row.push((request.spec.approved.len().to_string(), None));
            row.push((counts.subjects.join(" "), None));
            row.push((message, None));
        }
        row
    };
    let mut header = vec!["NAMESPACE", "NAME", "TENANT", "REQUESTED", "GRANTED", "REFUSED", "STATUS"];
    if wide {
        header.extend(["BINDING", "ROLE", "APPROVED", "SUBJECTS", "MESSAGE"]);
    }
    screen.table(&header, requests.iter().map(row).collect())
}

/// One request, rule by rule.
fn explained(request: &AccessRequest, screen: &Screen) -> String {
    let state = request.status.clone().unwrap_or_default();
    let (reason, message, _) = status(request);
    let binding = &request.spec.binding;
    let mut text = screen.paint(Tone::Strong, &format!("{}/{}", namespace(request), name(request)));
    text.push('\n');
    for (label, value) in [
        ("tenant", request.spec.tenant.clone()),
        ("binding", format!("{} {}", binding.kind.as_str(), binding.name)),
        ("role", state.role.clone()),
        ("subjects", state.subjects.join(", ")),
        ("status", format!("{reason}: {message}")),
    ] {
        if !value.is_empty() {
            let wrapped = screen.wrap(12, &value);
            text.push_str(&format!("  {label:<10}{}", wrapped.trim_start()));
        }
    }
    text.push_str(&heading(screen, "Requested", state.requested.len()));
    for (index, rule) in state.requested.iter().enumerate() {
        text.push_str(&numbered(screen, index + 1, &rule_text(rule), None));
    }
    text.push_str(&heading(screen, "Granted", state.granted.len()));
    for granted in &state.granted {
        let place = match granted.scope {
            GrantScope::Namespaces => "in the tenant's namespaces",
            GrantScope::Cluster => "in the whole cluster",
        };
        let approved = if granted.approved { ", approved by the platform" } else { "" };
        let rule = format!("{}, {place}{approved} (from {})", rule_text(&granted.rule), granted.request + 1);
        text.push_str(&screen.paint(Tone::Good, &screen.wrap(4, &rule)));
    }
    text.push_str(&heading(screen, "Refused", state.refused.len()));
    for (index, refused) in state.refused.iter().enumerate() {
        let what = refused.rule.as_ref().map(|rule| format!(": {}", rule_text(rule))).unwrap_or_default();
        let from = refused.request.map(|n| format!(" (from {})", n + 1)).unwrap_or_default();
        let first = format!("{}{what}{from}", refused.reason.as_str());
        text.push_str(&numbered(screen, index + 1, &first, Some(Tone::Notice)));
        text.push_str(&screen.wrap(6, &refused.message));
        if !refused.remedy.is_empty() {
            text.push_str(&screen.arrow(6, &refused.remedy));
        }
    }
    if !request.spec.approved.is_empty() {
        text.push_str(&heading(screen, "Approved by the platform", request.spec.approved.len()));
        for (index, rule) in request.spec.approved.iter().enumerate() {
            text.push_str(&numbered(screen, index + 1, &approved_text(rule), None));
        }
    }
    text
}

fn heading(screen: &Screen, title: &str, number: usize) -> String {
    format!("\n  {}\n", screen.paint(Tone::Strong, &format!("{title} ({number})")))
}

fn numbered(screen: &Screen, number: usize, text: &str, tone: Option<Tone>) -> String {
    let wrapped = screen.wrap(6, text);
    let line = format!("{number:>4}  {}", wrapped.trim_start());
    tone.map_or(line.clone(), |tone| screen.paint(tone, &line))
}

/// A rule in words: `get, list on pods, services; deployments.apps`.
fn rule_text(rule: &PolicyRule) -> String {
    approved_text(&ApprovedRule {
        api_groups: rule.api_groups.clone().unwrap_or_default(),
        resources: rule.resources.clone().unwrap_or_default(),
        resource_names: rule.resource_names.clone().unwrap_or_default(),
        non_resource_urls: rule.non_resource_urls.clone().unwrap_or_default(),
        verbs: rule.verbs.clone(),
    })
}

/// An approval in words.
pub(super) fn approved_text(rule: &ApprovedRule) -> String {
    let verbs = rule.verbs.join(", ");
    if !rule.non_resource_urls.is_empty() {
        return format!("{verbs} on {}", rule.non_resource_urls.join(", "));
    }
    let resources = rule.resources.join(", ");
    let groups: Vec<_> =
        rule.api_groups.iter().map(|g| if g.is_empty() { "core" } else { g.as_str() }).collect();
    let of = if groups == ["core"] { String::new() } else { format!(" of {}", groups.join(", ")) };
    let named = if rule.resource_names.is_empty() {
        String::new()
    } else {
        format!(", only {}", rule.resource_names.join(", "))
    };
    format!("{verbs} on {resources}{of}{named}")
}

fn markdown(requests: &[AccessRequest], explain: bool) -> String {
    let mut text = markdown_row(&[
        "Namespace",
        "Name",
        "Tenant",
        "Binding",
        "Requested",
        "Granted",
        "Refused",
        "Status",
    ]);
    text.push_str(&markdown_row(&["---"; 8]));
    for request in requests {
        let counts = request.status.clone().unwrap_or_default();
        text.push_str(&markdown_row(&[
            namespace(request),
            name(request),
            &request.spec.tenant,
            &format!("{} {}", request.spec.binding.kind.as_str(), request.spec.binding.name),
            &counts.requested_count.to_string(),
            &counts.granted_count.to_string(),
            &counts.refused_count.to_string(),
            &status(request).0,
        ]));
    }
    for request in requests.iter().filter(|_| explain) {
        let state = request.status.clone().unwrap_or_default();
        text.push_str("\n### Refused\n\n");
        for refused in &state.refused {
            let what = refused.rule.as_ref().map(|rule| format!(" {}", rule_text(rule))).unwrap_or_default();
            text.push_str(&format!(
                "1. **{}**{what}: {} → {}\n",
                refused.reason.as_str(),
                refused.message,
                refused.remedy
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests;
