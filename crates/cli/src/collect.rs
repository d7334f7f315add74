//! Reads from a live cluster what the analyser needs, and nothing that it does not: no value of a Secret.
//!
//! Secrets are asked for as Tables without objects, which hold names and types; what says whose a token is comes from
//! metadata, of which the annotations are dropped but for one. What may hold a credential in other kinds (values of
//! environment variables, values of releases) is dropped before anything is kept. What may not be listed becomes a gap.
//! Values are read only for an [`Opener`], to which they go before they are dropped.

mod redact;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bailey_access::{Gap, Loader, SecretValues, Snapshot, has_settings, holds_values};
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

    /// What takes values, too, if they are to be read.
    fn opener(&mut self) -> Option<&mut dyn Opener> {
        None
    }
}

/// What takes values for a moment and keeps none.
pub trait Opener {
    /// Takes a page of the list of Secrets as the server wrote it: facts and values.
    fn secrets(&mut self, source: &str, page: &[u8]);

    /// Takes the values of other objects, and no facts.
    fn values(&mut self, source: &str, list: &Value);
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
    /// Whether facts are kept; else only values are looked at.
    keeps: bool,
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

/// The snapshot of a live cluster. Values are read only if something takes them.
pub async fn snapshot(
    live: &Live,
    name: Option<&str>,
    values: Option<&mut dyn SecretValues>,
) -> Result<Snapshot, CliError> {
    let mut snapshot = Snapshot::default();
    let loader = Loader::new(&mut snapshot, name);
    let mut sink = match values {
        Some(values) => IntoLoader { loader: loader.open_secrets(values), opens: true },
        None => IntoLoader { loader, opens: false },
    };
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
    opens: bool,
}

impl Sink for IntoLoader<'_> {
    fn list(&mut self, source: &str, list: Value) -> Result<(), CliError> {
        self.loader.source(source);
        self.loader.object(&list, 0);
        Ok(())
    }

    fn opener(&mut self) -> Option<&mut dyn Opener> {
        if self.opens { Some(self) } else { None }
    }
}

impl Opener for IntoLoader<'_> {
    fn secrets(&mut self, source: &str, page: &[u8]) {
        self.loader.source(source);
        self.loader.load_answer(page);
    }

    fn values(&mut self, source: &str, list: &Value) {
        self.loader.source(source);
        self.loader.values(list);
    }
}

/// Lists every kind that matters into a sink.
pub async fn collect(live: &Live, sink: &mut dyn Sink) -> Result<Collected, CliError> {
    let mut collected = Collected { minor: minor(live).await?, ..Collected::default() };
    let served = live.discover().await?;
    for group in &served.stale {
        collected.gaps.push((format!("API group {group}"), "its server does not answer now".to_owned()));
    }
    let opens = sink.opener().is_some();
    let kinds = wanted(&served, opens);
    let bar = progress(kinds.len() + 1);
    bar.set_message("secrets");
    match take_secrets(live, &served, sink).await? {
        Ok(()) => collected.listed.push("secrets".to_owned()),
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
                let mut list = list(&kind.api_version(), &format!("{}List", kind.kind), items);
                if let Some(opener) = sink.opener().filter(|_| holds_values(&kind.group, &kind.kind)) {
                    opener.values(&kind.path(), &list);
                }
                if kind.keeps {
                    for item in list.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                        redact::redact(item);
                    }
                    sink.list(&kind.path(), list)?;
                    collected.listed.push(kind.name());
                }
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

/// Hands Secrets to a sink, with values if it takes them. What the server says against it is inside.
async fn take_secrets(
    live: &Live,
    served: &Served,
    sink: &mut dyn Sink,
) -> Result<Result<(), LiveError>, CliError> {
    const PATH: &str = "/api/v1/secrets";
    if sink.opener().is_none() {
        return match secrets(live, served).await {
            Ok(items) => sink.list(PATH, list("v1", "SecretList", items)).map(Ok),
            Err(error) => Ok(Err(error)),
        };
    }
    match live.list_unread(PATH).await {
        Ok(pages) => {
            if let Some(opener) = sink.opener() {
                pages.iter().for_each(|page| opener.secrets(PATH, page));
            }
            Ok(Ok(()))
        }
        Err(error) => Ok(Err(error)),
    }
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

/// Kinds that the analyser keeps facts of, in the version that the server prefers, and those that hold values if it
/// opens them. Else ConfigMaps by name only.
fn wanted(served: &Served, opens: bool) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for ((group, plural), version) in &served.versions {
        let Some(kind) = served.kinds.get(&(group.clone(), plural.clone())) else { continue };
        let lists = served.discovery.resources().iter().any(|resource| {
            resource.group == *group && resource.name == *plural && resource.verbs.iter().any(|v| v == "list")
        });
        let keeps = bailey_access::keeps(group, kind);
        let is_opened = opens && holds_values(group, kind);
        if !lists || (group.is_empty() && plural == "secrets") || !(keeps || is_opened) {
            continue;
        }
        kinds.push(Kind {
            group: group.clone(),
            version: version.clone(),
            plural: plural.clone(),
            kind: kind.clone(),
            metadata: group.is_empty() && ["configmaps", "nodes"].contains(&plural.as_str()) && !is_opened,
            keeps,
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
    }
    if kind.metadata && kind.kind == "ConfigMap" {
        let mut kept = Vec::with_capacity(items.len());
        for item in items {
            kept.extend(if has_settings(&live::text(&item, "/metadata/name")) {
                settings(live, kind, &item).await?
            } else {
                Some(item)
            });
        }
        items = kept;
    }
    Ok(items)
}

/// The whole of a ConfigMap that has settings of a controller, by its metadata. None if it may not be read or is gone
/// since: its metadata alone would say that nothing is set.
async fn settings(live: &Live, kind: &Kind, item: &Value) -> Result<Option<Value>, LiveError> {
    let (namespace, name) = (live::text(item, "/metadata/namespace"), live::text(item, "/metadata/name"));
    let path = live::path(&kind.group, &kind.version, &kind.plural, Some(&namespace), Some(&name));
    match live.get(path).await {
        Err(LiveError::Refused { .. }) => Ok(None),
        other => other,
    }
}

/// Secrets without values. Names and types come from Tables without objects, a namespace each, since their rows do not
/// say the namespace; labels from Tables of those that have them. Metadata is asked for only of tokens, whose account is
/// an annotation: a manifest of one holds no value, since the token is put in by the cluster.
async fn secrets(live: &Live, served: &Served) -> Result<Vec<Value>, LiveError> {
    let namespaces = live.list_names("/api/v1/namespaces").await?;
    let token = "/api/v1/secrets?fieldSelector=type%3Dkubernetes.io/service-account-token";
    let argocd = "argocd.argoproj.io/secret-type";
    let argocd_list = format!("/api/v1/secrets?labelSelector={argocd}%3Dcluster");
    let (token, clusters, argocd_any) = futures::try_join!(
        live.list_metadata(token),
        secrets_of_clusters(live, served),
        live.list_names(&argocd_list)
    )?;
    let mut known: BTreeMap<(String, String), Value> = BTreeMap::new();
    for item in &token {
        let account = live::text(item, "/metadata/annotations/kubernetes.io~1service-account.name");
        let key = (live::text(item, "/metadata/namespace"), live::text(item, "/metadata/name"));
        known.insert(key, json!({"annotations": {"kubernetes.io/service-account.name": account}}));
    }
    for (key, cluster) in clusters {
        known.insert(key, json!({"labels": {"cluster.x-k8s.io/cluster-name": cluster}}));
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
                    let labels = fields.entry("labels").or_insert_with(|| json!({}));
                    if let Some(labels) = labels.as_object_mut() {
                        labels.insert(argocd.to_owned(), "cluster".into());
                    }
                }
                fields.insert("namespace".to_owned(), namespace.clone().into());
                fields.insert("name".to_owned(), name.into());
            }
            secrets.push(json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata}));
        }
    }
    Ok(secrets)
}

/// Which Secrets carry the label of a cluster of Cluster API, by namespace and name. Without the right to list clusters,
/// which is a gap of its own, none is known.
async fn secrets_of_clusters(
    live: &Live,
    served: &Served,
) -> Result<Vec<((String, String), String)>, LiveError> {
    let (group, plural) = ("cluster.x-k8s.io", "clusters");
    let Some(version) = served.versions.get(&(group.to_owned(), plural.to_owned())) else {
        return Ok(Vec::new());
    };
    let clusters = match live.list_metadata(&live::path(group, version, plural, None, None)).await {
        Err(LiveError::Refused { .. }) => return Ok(Vec::new()),
        other => other?,
    };
    let of_each = futures::stream::iter(clusters).map(|cluster| async move {
        let (namespace, name) =
            (live::text(&cluster, "/metadata/namespace"), live::text(&cluster, "/metadata/name"));
        let path = live::path("", "v1", "secrets", Some(&namespace), None);
        let secrets =
            live.list_names(&format!("{path}?labelSelector={group}%2Fcluster-name%3D{name}")).await?;
        let labelled = secrets.into_iter().map(|secret| ((namespace.clone(), secret), name.clone()));
        Ok::<_, LiveError>(labelled.collect::<Vec<_>>())
    });
    let of_each: Vec<_> = of_each.buffered(LISTS_AT_ONCE).try_collect().await?;
    Ok(of_each.into_iter().flatten().collect())
}

fn list(api_version: &str, kind: &str, items: Vec<Value>) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "items": items })
}
