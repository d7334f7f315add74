//! Sends each case as a real request and compares the answer with the case, and with the offline evaluation.

use anyhow::{Result, bail, ensure};
use bailey_guardrails::{Evaluation, Policy, PolicyKind, evaluate};
use serde_json::{Value, json};

use crate::{
    case::{self, Case, Expect},
    cluster::{Answer, Cluster, DEVELOPER, EVERYTHING, Request, UNAUTHORIZED, until},
};

/// Waits until each policy acts as it is bound now, as seen by one of its cases. A server takes up a changed
/// binding late, so a policy that warns from now on may still deny for some seconds.
pub async fn all_are_active(cluster: &Cluster, policies: &[Policy]) -> Result<()> {
    for policy in policies {
        let cases = case::cases(policy);
        let acts = |case: &&Case| matches!(case.expect, Expect::Refused | Expect::Mutated);
        let probe = cases.iter().find(acts).unwrap_or_else(|| panic!("{}: no case acts", policy.name));
        let mut last = None;
        let active = until(&policy.name, async || {
            last = run_one(cluster, policy, probe).await?;
            Ok(last.is_none().then_some(()))
        })
        .await;
        if active.is_err() {
            bail!("{}: {}: {}", policy.name, probe.name, last.unwrap_or_default());
        }
    }
    Ok(())
}

/// Runs every case, and says which went wrong.
pub async fn run(cluster: &Cluster, policies: &[Policy]) -> Result<Vec<String>> {
    let (mut count, mut wrong) = (0, Vec::new());
    for policy in policies {
        for case in case::cases(policy) {
            count += 1;
            let fault = run_one(cluster, policy, &case).await?;
            wrong.extend(fault.map(|fault| format!("{}: {}: {fault}", policy.name, case.name)));
        }
    }
    println!("{count} cases on a real API server");
    Ok(wrong)
}

/// Sets up what the case needs, sends it, takes it away again, and says what is wrong.
async fn run_one(cluster: &Cluster, policy: &Policy, case: &Case) -> Result<Option<String>> {
    let made = if case.old_object.is_null() { Ok(false) } else { make_old(cluster, case).await };
    let made = match made {
        Ok(made) => made,
        Err(error) => return Ok(Some(format!("{error:#}"))),
    };
    // Controllers change what is new, a custom kind above all.
    let answer = until("an answer", async || {
        let answer = send(cluster, case).await?;
        Ok((!answer.message().contains("the object has been modified")).then_some(answer))
    })
    .await?;
    if made {
        take_away(cluster, case).await?;
    }
    Ok(judge(cluster, policy, case, &answer))
}

/// Makes the object that a case changes; false where it is there already.
async fn make_old(cluster: &Cluster, case: &Case) -> Result<bool> {
    let path = object_path(case, &case.old_object, "");
    if cluster.send(Request { method: "GET", path, ..Request::default() }).await?.ok() {
        return Ok(false);
    }
    let answer = cluster
        .send(Request {
            method: "POST",
            path: collection_path(case, &case.old_object),
            body: Some(&case.old_object),
            ..Request::default()
        })
        .await?;
    ensure!(answer.ok(), "make the old object: {}", answer.message());
    Ok(true)
}

/// Deletes what a case changed and waits until it is gone. A namespace goes slowly, so it stays.
async fn take_away(cluster: &Cluster, case: &Case) -> Result<()> {
    if case.resource.plural == "namespaces" {
        return Ok(());
    }
    let path = object_path(case, &case.old_object, "");
    let query = "?propagationPolicy=Background&gracePeriodSeconds=0";
    cluster.send(Request { method: "DELETE", path: format!("{path}{query}"), ..Request::default() }).await?;
    until("an object to go", async || {
        let answer =
            cluster.send(Request { method: "GET", path: path.clone(), ..Request::default() }).await?;
        Ok((answer.status == 404).then_some(()))
    })
    .await
}

async fn send(cluster: &Cluster, case: &Case) -> Result<Answer> {
    let subresource = &case.resource.subresource;
    let either = if case.old_object.is_null() { &case.object } else { &case.old_object };
    let (method, path) = match (case.operation.as_str(), case.verb.as_deref()) {
        ("CREATE", _) if subresource.is_empty() => ("POST", collection_path(case, either)),
        ("CREATE" | "CONNECT", _) => ("POST", object_path(case, either, subresource)),
        ("UPDATE", Some("patch")) => ("PATCH", object_path(case, either, subresource)),
        ("UPDATE", _) => ("PUT", object_path(case, either, subresource)),
        ("DELETE", Some("deletecollection")) => ("DELETE", collection_path(case, either)),
        ("DELETE", _) => ("DELETE", object_path(case, either, subresource)),
        (other, _) => bail!("{}: unknown operation {other}", case.name),
    };
    let mut body = case.object.clone();
    if method == "PUT" {
        let path = object_path(case, either, "");
        let live = cluster.send(Request { method: "GET", path, ..Request::default() }).await?;
        for field in ["resourceVersion", "uid"] {
            body["metadata"][field] = live.body["metadata"][field].clone();
        }
    }
    let mut query = if method == "POST" && case.operation == "CONNECT" {
        "command=id&stdout=true&ports=80"
    } else {
        "dryRun=All"
    }
    .to_owned();
    if case.verb.as_deref() == Some("deletecollection") {
        query.push_str(&format!("&fieldSelector=metadata.name%3D{}", case.object_name()));
    }
    let mut groups: Vec<_> = case.groups.iter().map(String::as_str).collect();
    groups.push(if case.authorized { EVERYTHING } else { UNAUTHORIZED });
    groups.extend(case.develops.then_some(DEVELOPER));
    let has_body = ["POST", "PUT", "PATCH"].contains(&method) && case.operation != "CONNECT";
    cluster
        .send(Request {
            method,
            path: format!("{path}?{query}"),
            content_type: (method == "PATCH").then_some("application/merge-patch+json"),
            body: has_body.then_some(&body),
            user: Some((&case.user, groups)),
            ..Request::default()
        })
        .await
}

fn collection_path(case: &Case, object: &Value) -> String {
    // What is connected to is a core kind.
    let version =
        if case.operation == "CONNECT" { "v1" } else { object["apiVersion"].as_str().unwrap_or("v1") };
    // A subresource may have a kind of another group.
    let root = match version.split_once('/') {
        Some((_, version)) if !case.resource.group.is_empty() => {
            format!("/apis/{}/{version}", case.resource.group)
        }
        _ => "/api/v1".to_owned(),
    };
    let plural = &case.resource.plural;
    // The namespace of a Namespace is itself.
    if case.namespace.is_empty() || plural == "namespaces" {
        format!("{root}/{plural}")
    } else {
        format!("{root}/namespaces/{}/{plural}", case.namespace)
    }
}

fn object_path(case: &Case, object: &Value, subresource: &str) -> String {
    let separator = if subresource.is_empty() { "" } else { "/" };
    let name = case.object_name().replace(':', "%3A");
    format!("{}/{name}{separator}{subresource}", collection_path(case, object))
}

fn judge(cluster: &Cluster, policy: &Policy, case: &Case, answer: &Answer) -> Option<String> {
    let warnings = answer.warnings.join("\n");
    let said = said(cluster, policy, answer, &warnings);
    let shown = || format!("got {} {}\n{warnings}", answer.status, answer.message());
    match case.expect {
        // Nothing is behind what a CONNECT goes to, so only a refusal by a policy counts.
        Expect::Passed | Expect::NotMatched if case.operation == "CONNECT" => {
            answer.message().contains("AdmissionPolicy").then(shown)
        }
        Expect::Passed | Expect::NotMatched => (!answer.ok() || said.is_some()).then(shown),
        Expect::Mutated if !answer.ok() => Some(shown()),
        Expect::Mutated => contained(&case.becomes, &answer.body, ""),
        Expect::Refused => match said {
            Some(said)
                if said.contains(case.message.as_deref().unwrap_or_default())
                    && !said.contains("failed expression") =>
            {
                offline_differs(policy, case, &said)
            }
            _ => Some(shown()),
        },
    }
}

/// What the policy says: in a refusal where it is bound to deny, else in a warning.
fn said(cluster: &Cluster, policy: &Policy, answer: &Answer, warnings: &str) -> Option<String> {
    let name = format!("ValidatingAdmissionPolicy '{0}' with binding '{0}'", policy.name);
    let (_, said) = if cluster.denies(policy) {
        answer.message().split_once(&format!("{name} denied request: "))?
    } else {
        warnings.split_once(&format!("Validation failed for {name}: "))?
    };
    Some(said.lines().next().unwrap_or_default().trim_end_matches('"').to_owned())
}

/// The server reports the first refusal; it must say the same as the offline evaluation.
fn offline_differs(policy: &Policy, case: &Case, said: &str) -> Option<String> {
    if case.offline.is_some() || policy.kind == PolicyKind::Mutating {
        return None;
    }
    match evaluate(policy, &case.situation(&case::boundary())) {
        Ok(Evaluation::Refused(messages)) if messages.first().is_some_and(|m| m.trim() == said.trim()) => {
            None
        }
        other => Some(format!("the server says `{said}`, offline it is {other:?}")),
    }
}

/// What of `wanted` is not in `found`; null stands for absent.
pub fn contained(wanted: &Value, found: &Value, at: &str) -> Option<String> {
    match (wanted, found) {
        (Value::Object(fields), _) => fields.iter().find_map(|(name, wanted)| {
            contained(wanted, found.get(name).unwrap_or(&Value::Null), &format!("{at}/{name}"))
        }),
        (Value::Null, Value::Null) => None,
        // A role without rules has null rules.
        (Value::Array(list), Value::Null) if list.is_empty() => None,
        _ if wanted == found => None,
        _ => Some(format!("{at}: wanted {wanted}, found {}", json!(found))),
    }
}
