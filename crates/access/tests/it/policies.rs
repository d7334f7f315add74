//! Reading Secrets through the message of an admission policy.

use anyhow::Result;
use serde_json::{Value, json};

use crate::case::{Case, POLICIES, Planted};
use crate::direct::seen;
use crate::server::{Request, Who};
use crate::spec::LABEL;

const NAME: &str = "oracle-probe";

/// A policy that says what a Secret held when it is changed, and its binding, with their plurals.
pub fn objects() -> [(&'static str, Value); 2] {
    let version = "admissionregistration.k8s.io/v1";
    let metadata = json!({"name": NAME, "labels": {LABEL: "probe"}});
    let policy = json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"],
            "operations": ["UPDATE", "DELETE"]}]},
        "matchConditions": [{"name": "case", "expression": "request.namespace.startsWith('oracle-')"}],
        "validations": [{"expression": "false",
            "messageExpression": "'it was ' + string(oldObject.data['marker'])"}]}});
    let binding = json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata,
        "spec": {"policyName": NAME, "validationActions": ["Deny"]}});
    [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)]
}

/// Writes both, has everybody change every Secret as a dry run, and takes them away. The Secrets seen.
pub async fn read(case: &Case<'_>, writers: [&Who; 2], all: &[Who]) -> Result<Vec<Planted>> {
    for ((plural, object), who) in objects().into_iter().zip(writers) {
        let answer = case.server.ask(who, &Request::post(format!("{POLICIES}/{plural}"), object)).await?;
        anyhow::ensure!(answer.ok(), "a policy that a dry run allowed: {}", answer.text);
    }
    let Some(first) = case.goals.first() else { return Ok(Vec::new()) };
    let touch = Request::patch(first.path(), json!({"metadata": {"labels": {"touched": "yes"}}})).dry();
    let refused = async |wanted: bool| {
        let admin = Who::in_groups("oracle-admin", &["system:masters"]);
        let look = async || {
            let status = case.server.ask(&admin, &touch).await?.status;
            Ok(((status == 422) == wanted).then_some(()))
        };
        case.server.until("a policy to act, or to end", look).await
    };
    refused(true).await?;
    let mut found = Vec::new();
    let secrets: Vec<&Planted> = case.goals.iter().collect();
    for who in all {
        for secret in &secrets {
            let put = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret.name}});
            let requests = [
                Request::patch(secret.path(), json!({})).dry(),
                Request::put(secret.path(), put).dry(),
                Request::delete(secret.path()).dry(),
            ];
            for answer in case.server.ask_all(who, &requests).await? {
                found.extend(seen(&[*secret], &answer).into_iter().cloned());
            }
        }
    }
    for (plural, _) in objects() {
        case.server.admin(Request::delete(format!("{POLICIES}/{plural}/{NAME}"))).await?;
    }
    refused(false).await?;
    Ok(found)
}
