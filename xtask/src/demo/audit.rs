//! What Audit must not change: a few writes and reads of the customer, each seen to work as before.

use anyhow::{Result, bail};

use super::story::Story;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Does what the customer did before, as dry runs, and says what still works.
pub async fn same_as_before(story: &Story) -> Result<Vec<String>> {
    let names = &story.cluster.names;
    let role = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"an-app"},
        "rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["list"]}]}"#;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All";
    let (status, body) = story.installer.send("POST", roles, Some(JSON), Some(role)).await?;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    let kept = body.pointer("/rules/0/resources/0").is_some_and(|resource| resource == "nodes");
    if status != 201 || !kept {
        bail!("in Audit a customer's ClusterRole is not accepted as it is: status {status}: {body}");
    }
    let release = r#"{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{"name":"an-app"},
        "spec":{"interval":"10m","chart":{"spec":{"chart":"app","sourceRef":{"kind":"HelmRepository","name":"own"}}}}}"#;
    let releases = format!(
        "/apis/helm.toolkit.fluxcd.io/v2/namespaces/{}/helmreleases?dryRun=All",
        names.tenant_namespace
    );
    let (status, body) = story.developer.send("POST", &releases, Some(JSON), Some(release)).await?;
    if status != 201 {
        bail!("in Audit a developer's HelmRelease is refused: status {status}: {body}");
    }
    let secret = format!(
        "/api/v1/namespaces/{}/secrets/{}?dryRun=All",
        names.platform_namespace, names.platform_secret
    );
    let (status, body) = story.installer.send("PATCH", &secret, Some(MERGE_PATCH), Some("{}")).await?;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    if status != 200 || body.pointer("/data/password").is_none() {
        bail!("in Audit an empty patch of a Secret of the platform is refused: status {status}");
    }
    Ok(vec![
        "an app's ClusterRole is accepted with the rules it states".to_owned(),
        "a HelmRelease without an account is accepted".to_owned(),
        "even the platform's Secrets can still be read, through an empty patch".to_owned(),
    ])
}
