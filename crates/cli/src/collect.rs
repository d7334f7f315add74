//! Reads from a live cluster what the analyser needs, and nothing that it does not: no value of a Secret.
//!
//! Secrets are asked for as a Table without objects, which holds names and types; labels come from metadata, of which
//! the annotations are dropped but for one. What may hold a credential in other kinds (values of environment variables,
//! values of releases) is dropped before anything is kept. What may not be listed becomes a gap.

mod redact;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bailey_access::{Gap, Loader, Snapshot};
use futures::{StreamExt as _, TryStreamExt as _};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::CliError;
use crate::live::{self, Call, Live, LiveError, Served};

/// How many lists are read at the same time.
const LISTS_AT_ONCE: usize = 4;

/// What takes pages of objects as they come.
pub trait Sink {
    /// Takes some objects of one kind as a `List`; `source` is the path that they were read from.
    fn list(&mut self, source: &str, list: Value) -> Result<(), CliError>;
}

/// What was found out besides the objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Minor version of Kubernetes.
    pub minor: Option<u16>,
    /// Kinds that were listed whole, as `plural.group`.
    pub listed: Vec<String>,
    /// Kinds that could not be listed, and why.
    pub gaps: Vec<(String, String)>,
}

/// One kind to list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    group: String,
    version: String,
    plural: String,
    kind: String,
    /// Metadata only, since the rest says nothing or too much.
    metadata: bool,
}

impl Kind {
    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    fn name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    fn path(&self) -> String {
        live::path(&self.group, &self.version, &self.plural, None, None)
    }
}

/// The snapshot of a live cluster.
pub async fn snapshot(live: &Live, name: Option<&str>) -> Result<Snapshot, CliError> {
    let mut snapshot = Snapshot::default();
    let mut sink = IntoLoader { loader: Loader::new(&mut snapshot, name) };
    let collected = collect(live, &mut sink).await?;
    sink.loader.finish();
    if let Some(cluster) = snapshot.clusters.first_mut() {
        cluster.minor = collected.minor;
        cluster.listed = collected.listed;
    }
    let cluster = snapshot.clusters.first().map(|cluster| cluster.name.clone());
    let gaps = collected.gaps.into_iter().map(|(what, why)| Gap { cluster: cluster.clone(), what, why });
    snapshot.gaps.extend(gaps);
    Ok(snapshot)
}

struct IntoLoader<'a> {
    loader: Loader<'a>,
}

impl Sink for IntoLoader<'_> {
    fn list(&mut self, source: &str, list: Value) -> Result<(), CliError> {
        self.loader.source(source);
        self.loader.object(&list, 0);
        Ok(())
    }
}

/// Lists every kind that matters into a sink.
pub async fn collect(live: &Live, sink: &mut dyn Sink) -> Result<Collected, CliError> {
    let mut collected = Collected { minor: minor(live).await?, ..Collected::default() };
    let served = live.discover().await?;
    for group in &served.stale {
        collected.gaps.push((format!("API group {group}"), "its server does not answer now".to_owned()));
    }
    let kinds = wanted(&served);
    let bar = progress(kinds.len() + 1);
    bar.set_message("secrets");
    match secrets(live).await {
        Ok(items) => {
            sink.list("/api/v1/secrets", list("v1", "SecretList", items))?;
            collected.listed.push("secrets".to_owned());
        }
        Err(error) => collected.gaps.push(("secrets".to_owned(), why(error)?)),
    }
    bar.inc(1);
    let mut lists = futures::stream::iter(kinds)
        .map(|kind| async move {
            let items = items(live, &kind).await;
            (kind, items)
        })
        .buffer_unordered(LISTS_AT_ONCE);
    while let Some((kind, items)) = lists.next().await {
        bar.set_message(kind.name());
        match items {
            Ok(items) => {
                sink.list(&kind.path(), list(&kind.api_version(), &format!("{}List", kind.kind), items))?;
                collected.listed.push(kind.name());
            }
            Err(error) => collected.gaps.push((kind.name(), why(error)?)),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    collected.listed.sort();
    collected.gaps.sort();
    Ok(collected)
}

/// A list that is refused is a gap; a server that does not answer is an error.
fn why(error: LiveError) -> Result<String, CliError> {
    match error {
        LiveError::Refused { status: 403, message, .. } => Ok(format!(
            "{message}; bind a role that may list it, or ask somebody who holds one for a snapshot"
        )),
        LiveError::Refused { message, .. } => Ok(message),
        error => Err(error.into()),
    }
}

fn progress(length: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(u64::try_from(length).ok(), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("reading the cluster {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar
}

async fn minor(live: &Live) -> Result<Option<u16>, CliError> {
    let version = live.json(Call::get("/version")).await?;
    // Some distributions write `36+`.
    let minor = live::text(&version, "/minor");
    Ok(minor.trim_end_matches('+').parse().ok())
}

/// Kinds that the analyser keeps facts of, in the version that the server prefers. ConfigMaps by name only.
fn wanted(served: &Served) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for ((group, plural), version) in &served.versions {
        let Some(kind) = served.kinds.get(&(group.clone(), plural.clone())) else { continue };
        let lists = served.discovery.resources().iter().any(|resource| {
            resource.group == *group && resource.name == *plural && resource.verbs.iter().any(|v| v == "list")
        });
        if !lists || (group.is_empty() && plural == "secrets") || !bailey_access::keeps(group, kind) {
            continue;
        }
        kinds.push(Kind {
            group: group.clone(),
            version: version.clone(),
            plural: plural.clone(),
            kind: kind.clone(),
            metadata: group.is_empty() && ["configmaps", "nodes"].contains(&plural.as_str()),
        });
    }
    kinds
}

async fn items(live: &Live, kind: &Kind) -> Result<Vec<Value>, LiveError> {
    let mut items =
        if kind.metadata { live.list_metadata(&kind.path()).await? } else { live.list(&kind.path()).await? };
    for item in &mut items {
        if let Some(fields) = item.as_object_mut() {
            fields.insert("apiVersion".to_owned(), kind.api_version().into());
            fields.insert("kind".to_owned(), kind.kind.clone().into());
        }
        redact::redact(item);
    }
    Ok(items)
}

/// Secrets without values. Names and types come from Tables without objects, a namespace each, since their rows do not
/// say the namespace. Metadata is asked for only of types that controllers write, which nobody applies with kubectl and
/// whose annotations so hold no copy of the values.
async fn secrets(live: &Live) -> Result<Vec<Value>, LiveError> {
    let namespaces = live.list_names("/api/v1/namespaces").await?;
    let of_type = |kind: &str| format!("/api/v1/secrets?fieldSelector=type%3D{kind}");
    let (token, cluster_api) =
        (of_type("kubernetes.io/service-account-token"), of_type("cluster.x-k8s.io/secret"));
    let argocd = "argocd.argoproj.io/secret-type";
    let argocd_list = format!("/api/v1/secrets?labelSelector={argocd}%3Dcluster");
    let (token, cluster_api, argocd_any) = futures::try_join!(
        live.list_metadata(&token),
        live.list_metadata(&cluster_api),
        live.list_names(&argocd_list)
    )?;
    let mut known: BTreeMap<(String, String), Value> = BTreeMap::new();
    for item in token.iter().chain(&cluster_api) {
        let account = live::text(item, "/metadata/annotations/kubernetes.io~1service-account.name");
        let cluster = live::text(item, "/metadata/labels/cluster.x-k8s.io~1cluster-name");
        let key = (live::text(item, "/metadata/namespace"), live::text(item, "/metadata/name"));
        known.insert(
            key,
            json!({
                "annotations": {"kubernetes.io/service-account.name": account},
                "labels": {"cluster.x-k8s.io/cluster-name": cluster},
            }),
        );
    }
    let pages = futures::stream::iter(namespaces).map(|namespace| async move {
        let path = live::path("", "v1", "secrets", Some(&namespace), None);
        let rows = live.list_cells(&path).await?;
        let argocd_path = format!("{path}?labelSelector={argocd}%3Dcluster");
        Ok::<_, LiveError>((namespace, rows, argocd_path))
    });
    let pages: Vec<_> = pages.buffered(LISTS_AT_ONCE * 2).try_collect().await?;
    let mut secrets = Vec::new();
    for (namespace, rows, argocd_path) in pages {
        let of_argocd =
            if argocd_any.is_empty() { Vec::new() } else { live.list_names(&argocd_path).await? };
        for row in rows {
            let cell = |index: usize| row.get(index).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (name, kind) = (cell(0), cell(1));
            let found = known.get(&(namespace.clone(), name.clone()));
            let mut metadata = found.cloned().unwrap_or_else(|| json!({}));
            if let Some(fields) = metadata.as_object_mut() {
                if of_argocd.contains(&name) {
                    fields.insert("labels".to_owned(), json!({ argocd: "cluster" }));
                }
                fields.insert("namespace".to_owned(), namespace.clone().into());
                fields.insert("name".to_owned(), name.into());
            }
            secrets.push(json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata}));
        }
    }
    Ok(secrets)
}

fn list(api_version: &str, kind: &str, items: Vec<Value>) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "items": items })
}
