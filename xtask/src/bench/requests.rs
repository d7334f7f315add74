//! Requests whose answers are read and not parsed, so that the client costs as little as it can.

use anyhow::{Context as _, Result, bail};
use bailey_guardrails::Object;
use http::header::{ACCEPT, CONTENT_TYPE};
use kube::{Client, client::Body};
use serde_json::Value;

/// The content type of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";
/// The content type of a merge patch.
pub const MERGE: &str = "application/merge-patch+json";

/// Sends a request and returns its status and body, whatever the status.
pub async fn send(
    client: &Client,
    method: &str,
    path: &str,
    content_type: &str,
    body: Vec<u8>,
) -> Result<(u16, Vec<u8>)> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, content_type)
        .body(Body::from(body))?;
    let (head, body) = client.send(request).await?.into_parts();
    let body = body.collect_bytes().await?;
    Ok((head.status.as_u16(), body.to_vec()))
}

/// Sends a request that must succeed.
pub async fn succeed(
    client: &Client,
    method: &str,
    path: &str,
    content_type: &str,
    body: Vec<u8>,
) -> Result<Vec<u8>> {
    let (status, body) = send(client, method, path, content_type, body).await?;
    if !(200..300).contains(&status) {
        bail!("{method} `{path}`: status {status}: {}", String::from_utf8_lossy(&body));
    }
    Ok(body)
}

/// Applies an object server-side.
pub async fn apply(client: &Client, path: &str, object: &Value) -> Result<()> {
    let path = format!("{path}?fieldManager=bench&force=true");
    succeed(client, "PATCH", &path, APPLY, object.to_string().into_bytes()).await.map(drop)
}

/// Deletes what is at a path, without a body.
pub async fn delete(client: &Client, path: &str) -> Result<()> {
    succeed(client, "DELETE", path, "application/json", Vec::new()).await.map(drop)
}

/// Creates an object in a collection.
pub async fn create(client: &Client, collection: &str, object: &Value) -> Result<Value> {
    let body = object.to_string().into_bytes();
    let answer = succeed(client, "POST", collection, "application/json", body).await?;
    serde_json::from_slice(&answer).with_context(|| format!("read the answer to POST `{collection}`"))
}

/// Gets what is at a path; `None` when nothing is.
pub async fn get(client: &Client, path: &str) -> Result<Option<Value>> {
    let (status, body) = send(client, "GET", path, "application/json", Vec::new()).await?;
    match status {
        200 => Ok(Some(serde_json::from_slice(&body).with_context(|| format!("read `{path}`"))?)),
        404 => Ok(None),
        _ => bail!("GET `{path}`: status {status}: {}", String::from_utf8_lossy(&body)),
    }
}

/// Where an object of Bailey is.
pub fn path(object: &Object) -> String {
    let (group, version, _, plural) = object.kind.resource();
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    match &object.namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}/{}", object.name),
        None => format!("{root}/{plural}/{}", object.name),
    }
}
