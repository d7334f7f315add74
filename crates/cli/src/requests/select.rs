//! Which refused parts can be approved, and which approvals are taken back. Decides, and writes nothing.

use bailey_api::{AccessRequest, ApprovedRule, RefusalReason, RefusedRule};
use k8s_openapi::api::rbac::v1::PolicyRule;

/// What is to be approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All that can be.
    All,
    /// Refused parts by number, from 1.
    Parts(Vec<usize>),
    /// A resource as `RESOURCE.GROUP`, with these verbs or all.
    Resource { resource: String, verbs: Vec<String> },
}

/// What to add, and what not and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    pub add: Vec<ApprovedRule>,
    pub skipped: Vec<Skipped>,
}

/// A refused part that is not approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its number, from 1, where it is a refused part.
    pub number: Option<usize>,
    pub why: String,
    /// Whether nothing is missing because of it.
    pub harmless: bool,
}

/// The approvals that a selection adds.
pub fn approve(request: &AccessRequest, selection: &Selection) -> Result<Choice, String> {
    let refused = request.status.as_ref().map(|status| status.refused.as_slice()).unwrap_or_default();
    let mut choice = Choice::default();
    if let Selection::Parts(numbers) = selection
        && let Some(number) = numbers.iter().find(|n| **n > refused.len())
    {
        return Err(format!("there is no refused part {number}; the request has {}", refused.len()));
    }
    let mut matched = false;
    for (number, part) in refused.iter().enumerate().map(|(i, part)| (i + 1, part)) {
        let narrowed = match selection {
            Selection::All => part.rule.clone(),
            Selection::Parts(numbers) if numbers.contains(&number) => part.rule.clone(),
            Selection::Parts(_) => continue,
            Selection::Resource { resource, verbs } => match narrow(part, resource, verbs) {
                Some(rule) => Some(rule),
                None => continue,
            },
        };
        matched = true;
        match possible(part, narrowed) {
            Ok(rule) if request.spec.approved.contains(&rule) || choice.add.contains(&rule) => {
                choice.skipped.push(Skipped {
                    number: Some(number),
                    why: "approved already".to_owned(),
                    harmless: true,
                });
            }
            Ok(rule) => choice.add.push(rule),
            Err(why) => {
                let harmless = matches!(part.reason, RefusalReason::NotServed | RefusalReason::UnknownVerb);
                choice.skipped.push(Skipped { number: Some(number), why, harmless });
            }
        }
    }
    match selection {
        Selection::Resource { resource, verbs } if !matched && is_approved(request, resource, verbs) => {
            let why = "approved already".to_owned();
            Ok(Choice { add: Vec::new(), skipped: vec![Skipped { number: None, why, harmless: true }] })
        }
        Selection::Resource { resource, verbs } if !matched => {
            let verbs = if verbs.is_empty() { String::new() } else { format!("{} on ", verbs.join(", ")) };
            Err(format!(
                "{verbs}`{resource}` is not refused; see the refused parts with: bailey requests NAME"
            ))
        }
        _ => Ok(choice),
    }
}

/// Whether an approval already names this resource with all of these verbs.
fn is_approved(request: &AccessRequest, resource: &str, verbs: &[String]) -> bool {
    request.spec.approved.iter().any(|rule| {
        let named = |group: &String| rule.resources.iter().any(|name| is_named(group, name, resource));
        rule.api_groups.iter().any(named) && verbs.iter().all(|verb| rule.verbs.contains(verb))
    })
}

/// Whether a group and a resource are meant by `RESOURCE.GROUP`.
fn is_named(group: &str, name: &str, wanted: &str) -> bool {
    if group.is_empty() { name == wanted } else { format!("{name}.{group}") == wanted }
}

/// What of a refused part concerns one resource and these verbs.
fn narrow(part: &RefusedRule, resource: &str, verbs: &[String]) -> Option<PolicyRule> {
    let rule = part.rule.as_ref()?;
    let mut pairs = rule
        .api_groups
        .iter()
        .flatten()
        .flat_map(|group| rule.resources.iter().flatten().map(move |resource| (group, resource)));
    let (group, name) = pairs.find(|(group, name)| is_named(group, name, resource))?;
    let kept: Vec<_> = rule.verbs.iter().filter(|v| verbs.is_empty() || verbs.contains(v)).cloned().collect();
    (!kept.is_empty()).then(|| PolicyRule {
        api_groups: Some(vec![group.clone()]),
        resources: Some(vec![name.clone()]),
        resource_names: rule.resource_names.clone(),
        verbs: kept,
        ..PolicyRule::default()
    })
}

/// The approval of a refused part, or why there is none.
fn possible(part: &RefusedRule, rule: Option<PolicyRule>) -> Result<ApprovedRule, String> {
    let rule = match (part.reason, rule) {
        (
            RefusalReason::ClusterScoped | RefusalReason::ProtectedKind | RefusalReason::NonResourceUrl,
            Some(rule),
        ) => rule,
        _ => return Err(format!("{}: {}", part.message, part.remedy)),
    };
    let list = |names: &Option<Vec<String>>| names.clone().unwrap_or_default();
    let (groups, resources) = (list(&rule.api_groups), list(&rule.resources));
    let is_pattern = |names: &[String]| names.iter().any(|name| name == "*");
    if is_pattern(&groups) || is_pattern(&resources) || is_pattern(&rule.verbs) {
        return Err(
            "asks for `*`, which cannot be approved; approve single resources with --resource and --verb"
                .to_owned(),
        );
    }
    Ok(ApprovedRule {
        api_groups: groups,
        resources,
        resource_names: list(&rule.resource_names),
        non_resource_urls: list(&rule.non_resource_urls),
        verbs: rule.verbs,
    })
}

/// What stays approved, and what is taken back: the approvals of these numbers, or all.
pub fn revoke(
    request: &AccessRequest,
    numbers: Option<&[usize]>,
) -> Result<(Vec<ApprovedRule>, Vec<ApprovedRule>), String> {
    let approved = &request.spec.approved;
    if let Some(number) = numbers.and_then(|numbers| numbers.iter().find(|n| **n > approved.len())) {
        return Err(format!("there is no approval {number}; the request has {}", approved.len()));
    }
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    for (number, rule) in approved.iter().enumerate().map(|(i, rule)| (i + 1, rule.clone())) {
        if numbers.is_none_or(|numbers| numbers.contains(&number)) {
            removed.push(rule)
        } else {
            kept.push(rule)
        }
    }
    Ok((kept, removed))
}

#[cfg(test)]
mod tests;
