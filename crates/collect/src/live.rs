//! What is asked of an API server: single requests, whole lists, and discovery.
//!
//! INVARIANT: each request has a deadline, and an error names the request. Answers are JSON as the server
//! wrote them; nothing here decides what they mean.

use std::collections::BTreeMap;
use std::time::Duration;

use bailey_guardrails::{Discovery, DiscoveryError};
use http::header::{ACCEPT, CONTENT_TYPE};
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroizing;

/// How long one request may take.
const REQUEST_SECONDS: u64 = 30;
/// How many objects a page of a list holds, if nobody says otherwise.
pub const PAGE: u32 = 500;

/// Aggregated discovery, which tells all groups, versions and resources in two requests (KEP-3352).
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Lists objects without anything but their metadata.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// Lists objects as rows; with `includeObject=None` they hold no metadata either.
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// Says which request failed and why.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The request got no answer.
    #[error(
        "{request}: no answer from the API server; check that the cluster of this kubeconfig is reachable"
    )]
    Unreachable {
        /// The request.
        request: String,
        /// What the client says.
        #[source]
        source: Box<kube::Error>,
    },
    /// The request took too long.
    #[error("{request}: no answer within {REQUEST_SECONDS} s; try again, or check the API server")]
    Overdue {
        /// The request.
        request: String,
    },
    /// The server refused it.
    #[error("{request}: {message}")]
    Refused {
        /// The request.
        request: String,
        /// The HTTP status.
        status: u16,
        /// What the server says.
        message: String,
    },
    /// The answer is not what was asked for.
    #[error("{request}: the answer is not valid")]
    Invalid {
        /// The request.
        request: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// What the server serves cannot be read.
    #[error("cannot read what the API server serves; Bailey needs Kubernetes 1.33 or newer")]
    Discovery(#[source] DiscoveryError),
}

impl LiveError {
    /// The fixed name of this kind of error.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "Unreachable",
            Self::Overdue { .. } => "Overdue",
            Self::Refused { status: 403, .. } => "Forbidden",
            Self::Refused { .. } => "Refused",
            Self::Invalid { .. } => "InvalidAnswer",
            Self::Discovery(_) => "DiscoveryFailed",
        }
    }

    /// The HTTP status, if the server refused.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// The HTTP method.
    pub method: &'static str,
    /// Path and query.
    pub target: String,
    /// What to accept; JSON if empty.
    pub accept: &'static str,
    /// The type of the body; JSON if empty.
    pub content_type: String,
    /// The body, sent as it is.
    pub body: Vec<u8>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// Leaves the body of a 2xx answer unread, because nothing needs it and it may hold a secret.
    pub discard: bool,
}

impl Call {
    /// A GET.
    pub fn get(target: impl Into<String>) -> Self {
        Self { method: "GET", target: target.into(), ..Self::default() }
    }

    /// A POST of JSON.
    pub fn post(target: impl Into<String>, body: &Value) -> Self {
        Self { method: "POST", target: target.into(), body: body.to_string().into(), ..Self::default() }
    }

    /// A PATCH of the given type.
    pub fn patch(target: impl Into<String>, content_type: &str, body: &Value) -> Self {
        Self {
            method: "PATCH",
            target: target.into(),
            content_type: content_type.to_owned(),
            body: body.to_string().into(),
            ..Self::default()
        }
    }

    fn name(&self) -> String {
        let path = self.target.split('?').next().unwrap_or_default();
        format!("{} {path}", self.method)
    }
}

/// An answer, whatever its status.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; empty where it was discarded.
    pub body: Vec<u8>,
}

impl Answer {
    /// Whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The message of a `Status`, or the HTTP status.
    pub fn message(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        match body.get("message").and_then(Value::as_str).filter(|m| !m.is_empty()) {
            Some(message) => message.to_owned(),
            None => format!("HTTP status {}", self.status),
        }
    }
}

/// An API server, as one identity.
#[derive(Clone)]
pub struct Live {
    client: kube::Client,
    page: u32,
}

impl Live {
    /// Speaks through this client.
    pub fn new(client: kube::Client) -> Self {
        Self { client, page: PAGE }
    }

    /// What it speaks through.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Asks for this many objects of a list at once.
    #[must_use]
    pub fn in_chunks(self, page: u32) -> Self {
        Self { page, ..self }
    }

    /// Sends a request and returns whatever is answered.
    pub async fn send(&self, call: Call) -> Result<Answer, LiveError> {
        let request = call.name();
        let mut message = http::Request::builder().method(call.method).uri(&call.target);
        message =
            message.header(ACCEPT, if call.accept.is_empty() { "application/json" } else { call.accept });
        if !call.body.is_empty() {
            let json = "application/json";
            message = message
                .header(CONTENT_TYPE, if call.content_type.is_empty() { json } else { &call.content_type });
        }
        for (name, value) in &call.headers {
            message = message.header(name, value);
        }
        let unreachable = |source: kube::Error| LiveError::Unreachable {
            request: request.clone(),
            source: Box::new(source),
        };
        let message =
            message.body(Body::from(call.body)).map_err(|e| unreachable(kube::Error::HttpError(e)))?;
        let exchange = async {
            let (head, body) = self.client.send(message).await?.into_parts();
            let unread = call.discard && head.status.is_success();
            let body = if unread { Vec::new() } else { body.collect_bytes().await?.to_vec() };
            Ok(Answer { status: head.status.as_u16(), body })
        };
        match tokio::time::timeout(Duration::from_secs(REQUEST_SECONDS), exchange).await {
            Ok(answer) => answer.map_err(unreachable),
            Err(_) => Err(LiveError::Overdue { request }),
        }
    }

    /// Sends a request whose answer must be JSON of a success.
    pub async fn json(&self, call: Call) -> Result<Value, LiveError> {
        let request = call.name();
        let answer = self.send(call).await?;
        if !answer.is_success() {
            return Err(LiveError::Refused { request, status: answer.status, message: answer.message() });
        }
        serde_json::from_slice(&answer.body).map_err(|source| LiveError::Invalid { request, source })
    }

    /// An object, or nothing if it or its kind does not exist.
    pub async fn get(&self, target: String) -> Result<Option<Value>, LiveError> {
        match self.json(Call::get(target)).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a list, page by page; none if the kind does not exist.
    pub async fn list(&self, target: &str) -> Result<Vec<Value>, LiveError> {
        self.pages(target, "", "items").await
    }

    /// The metadata of all objects of a list.
    pub async fn list_metadata(&self, target: &str) -> Result<Vec<Value>, LiveError> {
        self.pages(target, METADATA, "items").await
    }

    /// The names in a list, which never holds more of an object than the columns of a table.
    pub async fn list_names(&self, target: &str) -> Result<Vec<String>, LiveError> {
        let rows = self.list_cells(target).await?;
        let first = |row: &Vec<Value>| Some(row.first()?.as_str()?.to_owned());
        Ok(rows.iter().filter_map(first).collect())
    }

    /// The columns of a list as a table shows them, the name first, and nothing else of the objects.
    pub async fn list_cells(&self, target: &str) -> Result<Vec<Vec<Value>>, LiveError> {
        let separator = if target.contains('?') { '&' } else { '?' };
        let mut rows = self.pages(&format!("{target}{separator}includeObject=None"), TABLE, "rows").await?;
        let cells = |row: &mut Value| match row.get_mut("cells").map(Value::take) {
            Some(Value::Array(cells)) => Some(cells),
            _ => None,
        };
        Ok(rows.iter_mut().filter_map(cells).collect())
    }

    async fn pages(&self, target: &str, accept: &'static str, field: &str) -> Result<Vec<Value>, LiveError> {
        let separator = if target.contains('?') { '&' } else { '?' };
        let mut items = Vec::new();
        let mut next = String::new();
        loop {
            let page = format!("{target}{separator}limit={}&continue={next}", self.page);
            let mut list = match self.json(Call { accept, ..Call::get(page) }).await {
                Err(error) if error.status() == Some(404) => return Ok(Vec::new()),
                // The list is older than the server remembers: take it in one piece.
                Err(error) if error.status() == Some(410) && !next.is_empty() => {
                    next.clear();
                    items.clear();
                    self.json(Call { accept, ..Call::get(target) }).await?
                }
                other => other?,
            };
            if let Some(Value::Array(page)) = list.get_mut(field).map(Value::take) {
                items.extend(page);
            }
            match list.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(more) if !more.is_empty() => next = encode(more),
                _ => return Ok(items),
            }
        }
    }

    /// The answers to a list, page by page as the server wrote them. They may hold values of Secrets, so they are
    /// overwritten when they go; buffers of the connection are not ours to clear.
    pub async fn list_unread(&self, target: &str) -> Result<Vec<Zeroizing<Vec<u8>>>, LiveError> {
        #[derive(Deserialize)]
        struct Page {
            #[serde(default)]
            metadata: PageMetadata,
        }
        #[derive(Default, Deserialize)]
        struct PageMetadata {
            #[serde(default, rename = "continue")]
            next: String,
        }
        let separator = if target.contains('?') { '&' } else { '?' };
        let mut pages = Vec::new();
        let mut next = String::new();
        loop {
            let call = Call::get(format!("{target}{separator}limit={}&continue={next}", self.page));
            let request = call.name();
            let mut answer = self.send(call).await?;
            if answer.status == 410 && !next.is_empty() {
                // The list is older than the server remembers: take it in one piece.
                pages.clear();
                answer = self.send(Call::get(target)).await?;
            }
            if !answer.is_success() {
                return Err(LiveError::Refused { request, status: answer.status, message: answer.message() });
            }
            let body = Zeroizing::new(answer.body);
            let page: Page = serde_json::from_slice(&body)
                .map_err(|source| LiveError::Invalid { request, source: without_text(&source) })?;
            pages.push(body);
            match page.metadata.next {
                more if more.is_empty() => return Ok(pages),
                more => next = encode(&more),
            }
        }
    }

    /// Everything that is served.
    pub async fn discover(&self) -> Result<Served, LiveError> {
        let mut documents = Vec::new();
        for path in ["/api", "/apis"] {
            documents.push(self.json(Call { accept: DISCOVERY, ..Call::get(path) }).await?);
        }
        Served::read(&documents)
    }
}

/// What an API server serves.
#[derive(Debug, Clone, Default)]
pub struct Served {
    /// Resources whatever their version.
    pub discovery: Discovery,
    /// Group and resource to the version that the server prefers.
    pub versions: BTreeMap<(String, String), String>,
    /// Group and resource to its kind.
    pub kinds: BTreeMap<(String, String), String>,
    /// Groups whose server does not answer now.
    pub stale: Vec<String>,
}

impl Served {
    fn read(documents: &[Value]) -> Result<Self, LiveError> {
        let discovery = Discovery::from_aggregated(documents).map_err(LiveError::Discovery)?;
        let mut served = Self { discovery, ..Self::default() };
        for group in documents.iter().flat_map(|document| array(document, "items")) {
            let name = text(group, "/metadata/name");
            for version in array(group, "versions") {
                if text(version, "/freshness") == "Stale" && !served.stale.contains(&name) {
                    served.stale.push(name.clone());
                }
                for resource in array(version, "resources") {
                    let key = (name.clone(), text(resource, "/resource"));
                    served.kinds.entry(key.clone()).or_insert_with(|| text(resource, "/responseKind/kind"));
                    served.versions.entry(key).or_insert_with(|| text(version, "/version"));
                }
            }
        }
        Ok(served)
    }
}

/// The fault without what the parser quotes, which may be a value of a Secret.
fn without_text(error: &serde_json::Error) -> serde_json::Error {
    let (line, column) = (error.line(), error.column());
    serde::de::Error::custom(format!("it is no list, at line {line} column {column}"))
}

fn array<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// A text of an object, empty if absent.
pub fn text(item: &Value, pointer: &str) -> String {
    item.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Labels or annotations of an object.
pub fn map(item: &Value, pointer: &str) -> BTreeMap<String, String> {
    let fields = item.pointer(pointer).and_then(Value::as_object);
    let entry = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    fields.into_iter().flatten().filter_map(entry).collect()
}

/// The path of a resource or, with a name, of one object.
pub fn path(group: &str, version: &str, plural: &str, namespace: Option<&str>, name: Option<&str>) -> String {
    let mut path =
        if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    if let Some(namespace) = namespace {
        path.push_str("/namespaces/");
        path.push_str(&encode(namespace));
    }
    path.push('/');
    path.push_str(plural);
    if let Some(name) = name {
        path.push('/');
        path.push_str(&encode(name));
    }
    path
}

/// Encodes what a URL would take for something else.
pub fn encode(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~:@".contains(&b);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_odd_characters_stays_one_segment_of_the_path() {
        let path = path("rbac.authorization.k8s.io", "v1", "roles", Some("a"), Some("bailey:odd name?x"));
        assert_eq!(path, "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles/bailey:odd%20name%3Fx");
    }

    #[test]
    fn a_group_that_does_not_answer_is_named_and_the_preferred_version_is_first() {
        let resource =
            serde_json::json!({"resource": "helmreleases", "scope": "Namespaced", "verbs": ["list"]});
        let document = serde_json::json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]},
            {"metadata": {"name": "helm"}, "versions": [
                {"version": "v2", "freshness": "Current", "resources": [resource]},
                {"version": "v1", "freshness": "Current", "resources": [resource]},
            ]},
        ]});
        let served = Served::read(&[document]).unwrap();
        assert_eq!(served.stale, ["metrics.k8s.io"]);
        assert_eq!(served.versions[&("helm".to_owned(), "helmreleases".to_owned())], "v2");
    }
}
