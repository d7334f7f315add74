//! A stand-in for an API server that shows a dump to tools which speak to nothing else: discovery, namespaces and the
//! four kinds of RBAC, on loopback. It answers every access review with yes and changes nothing.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header};
use axum::routing::any;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::lists;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The kinds that are served: plural, kind, group and version, whether it lives in namespaces.
const KINDS: [(&str, &str, &str, bool); 6] = [
    ("namespaces", "Namespace", "v1", false),
    ("serviceaccounts", "ServiceAccount", "v1", true),
    ("roles", "Role", RBAC, true),
    ("clusterroles", "ClusterRole", RBAC, false),
    ("rolebindings", "RoleBinding", RBAC, true),
    ("clusterrolebindings", "ClusterRoleBinding", RBAC, false),
];

/// A server on loopback; it ends when this is dropped.
pub struct Server {
    url: String,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts one for a folder of compact Lists, on a free port.
    pub fn start(dump: &Path, runtime: &Runtime) -> Result<Self> {
        let shelves =
            KINDS.iter().map(|(plural, ..)| Shelf::read(dump, plural)).collect::<Result<Vec<_>>>()?;
        let cluster = Arc::new(Cluster { shelves });
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).context("listen on loopback")?;
        let url = format!("http://{}", listener.local_addr()?);
        let router = axum::Router::new().fallback(any(move |request: Request<Body>| {
            let cluster = Arc::clone(&cluster);
            async move { cluster.answer(request.method(), request.uri().path()) }
        }));
        let task = runtime.spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("the stand-in API server ended: {error}");
            }
        });
        Ok(Self { url, task })
    }

    /// Returns a kubeconfig for it.
    pub fn kubeconfig(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "dump", "cluster": {"server": self.url}}],
            "contexts": [{"name": "dump", "context": {"cluster": "dump", "user": "dump"}}],
            "current-context": "dump",
            "users": [{"name": "dump", "user": {}}],
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Cluster {
    shelves: Vec<Shelf>,
}

/// The text of a List, and where each object is in it.
struct Shelf {
    text: String,
    items: Vec<Item>,
}

struct Item {
    namespace: Option<String>,
    name: String,
    at: Range<usize>,
}

impl Shelf {
    fn read(dump: &Path, plural: &str) -> Result<Self> {
        let path = dump.join(format!("{plural}.json"));
        let failure = || format!("read `{}` as a compact List", path.display());
        let text = fs::read_to_string(&path).with_context(failure)?;
        let inside = text.strip_prefix(lists::BEFORE).and_then(|text| text.strip_suffix(lists::AFTER));
        let inside = inside.with_context(failure)?;
        let mut items = Vec::new();
        let mut start = lists::BEFORE.len();
        for line in inside.split_inclusive('\n') {
            let object = line.trim_end_matches(['\n', ',']);
            let head: Head = serde_json::from_str(object).with_context(failure)?;
            let at = start..start + object.len();
            items.push(Item { namespace: head.metadata.namespace, name: head.metadata.name, at });
            start += line.len();
        }
        Ok(Self { text, items })
    }

    /// Returns the objects of a namespace, or all.
    fn list(&self, namespace: Option<&str>) -> String {
        let wanted =
            self.items.iter().filter(|item| namespace.is_none() || item.namespace.as_deref() == namespace);
        wanted.filter_map(|item| self.text.get(item.at.clone())).collect::<Vec<_>>().join(",")
    }

    fn get(&self, namespace: Option<&str>, name: &str) -> Option<&str> {
        let item =
            self.items.iter().find(|item| item.name == name && item.namespace.as_deref() == namespace)?;
        self.text.get(item.at.clone())
    }
}

#[derive(Deserialize)]
struct Head {
    metadata: HeadMetadata,
}

#[derive(Deserialize)]
struct HeadMetadata {
    namespace: Option<String>,
    name: String,
}

impl Cluster {
    fn answer(&self, method: &Method, path: &str) -> Response<Body> {
        let text = if method == Method::GET { self.get(path) } else { review(path) };
        let (status, text) = match text {
            Some(text) => (StatusCode::OK, text),
            None => (StatusCode::NOT_FOUND, missing(path)),
        };
        let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
        response.body(Body::from(text)).unwrap_or_default()
    }

    fn get(&self, path: &str) -> Option<String> {
        let words: Vec<&str> = path.split('/').filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"]}).to_string()),
            ["apis"] => Some(groups().to_string()),
            ["version"] => Some(json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"}).to_string()),
            ["api", "v1"] => Some(resources("v1").to_string()),
            ["apis", "rbac.authorization.k8s.io", "v1"] => Some(resources(RBAC).to_string()),
            ["api", "v1", rest @ ..] => self.objects("v1", rest),
            ["apis", "rbac.authorization.k8s.io", "v1", rest @ ..] => self.objects(RBAC, rest),
            _ => None,
        }
    }

    fn objects(&self, version: &str, path: &[&str]) -> Option<String> {
        let (namespace, plural, name) = match path {
            ["namespaces", namespace, plural] => (Some(*namespace), *plural, None),
            ["namespaces", namespace, plural, name] => (Some(*namespace), *plural, Some(*name)),
            [plural] => (None, *plural, None),
            [plural, name] => (None, *plural, Some(*name)),
            _ => return None,
        };
        let mut shelves = KINDS.iter().zip(&self.shelves);
        let ((_, kind, ..), shelf) = shelves.find(|(known, _)| known.0 == plural && known.2 == version)?;
        match name {
            Some(name) => shelf.get(namespace, name).map(str::to_owned),
            None => {
                let head =
                    format!(r#"{{"kind":"{kind}List","apiVersion":"{version}","metadata":{{}},"items":["#);
                Some(head + &shelf.list(namespace) + "]}")
            }
        }
    }
}

/// Allows what a client asks whether it may.
fn review(path: &str) -> Option<String> {
    let kind = match path.rsplit('/').next()? {
        "selfsubjectaccessreviews" => "SelfSubjectAccessReview",
        "subjectaccessreviews" => "SubjectAccessReview",
        _ => return None,
    };
    let (version, status) = ("authorization.k8s.io/v1", json!({"allowed": true}));
    Some(json!({"apiVersion": version, "kind": kind, "spec": {}, "status": status}).to_string())
}

fn missing(path: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": format!("the stand-in serves nothing at {path}"),
    })
    .to_string()
}

fn groups() -> Value {
    let version = json!({"groupVersion": RBAC, "version": "v1"});
    let group =
        json!({"name": "rbac.authorization.k8s.io", "versions": [version], "preferredVersion": version});
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]})
}

/// Discovery. Secrets are named, since tools resolve what is asked about; they are never served.
fn resources(version: &str) -> Value {
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let secrets = ("secrets", "Secret", "v1", true);
    let of_version = KINDS.iter().chain([&secrets]).filter(|(_, _, of, _)| *of == version);
    let resources: Vec<Value> = of_version
        .map(|(plural, kind, _, namespaced)| {
            let singular = kind.to_lowercase();
            json!({"name": plural, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": verbs})
        })
        .collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources})
}

#[cfg(test)]
mod tests;
