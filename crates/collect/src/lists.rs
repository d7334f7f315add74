//! Reads from a live cluster what the analyser needs, and nothing that it does not: no value of a Secret.
//!
//! Secrets are asked for as Tables without objects, which hold names and types; what says whose a token is comes from
//! metadata, of which the annotations are dropped but for one. What may hold a credential in other kinds (values of
//! environment variables, values of releases) is dropped before anything is kept. What may not be listed becomes a gap.
//! Values are read only for an [`Opener`], to which they go before they are dropped.

use std::collections::BTreeMap;

use bailey_access::{Gap, Loader, SecretValues, Snapshot, has_settings, holds_values};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use crate::{
    kinds::{Kind, wanted},
    live::{self, Call, Live, LiveError, Served},
    redact::redact,
};

/// How many lists are read at the same time.
const LISTS_AT_ONCE: usize = 4;

/// What takes pages of objects as they come.
pub trait Sink {
    /// Why it may not take them.
    type Error: From<LiveError>;

    /// Takes some objects of one kind as a `List`; `source` is the path that they were read from.
    fn list(&mut self, source: &str, list: Value) -> Result<(), Self::Error>;

    /// Hears how far it is: lists that were read, all lists, what was read last.
    fn progress(&mut self, done: usize, all: usize, what: &str) {
        let _ = (done, all, what);
    }

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

/// The snapshot of a live cluster. Values are read only if something takes them; `progress` hears how far it is.
pub async fn snapshot(
    live: &Live,
    name: Option<&str>,
    values: Option<&mut dyn SecretValues>,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Result<Snapshot, LiveError> {
    let mut snapshot = Snapshot::default();
    let loader = Loader::new(&mut snapshot, name);
    let mut sink = match values {
        Some(values) => IntoLoader { loader: loader.open_secrets(values), opens: true, progress },
        None => IntoLoader { loader, opens: false, progress },
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
    progress: &'a mut dyn FnMut(usize, usize, &str),
}

impl Sink for IntoLoader<'_> {
    type Error = LiveError;

    fn list(&mut self, source: &str, list: Value) -> Result<(), LiveError> {
        self.loader.source(source);
        self.loader.object(&list, 0);
        Ok(())
    }

    fn progress(&mut self, done: usize, all: usize, what: &str) {
        (self.progress)(done, all, what);
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
pub async fn collect<S: Sink>(live: &Live, sink: &mut S) -> Result<Collected, S::Error> {
    let mut collected = Collected { minor: minor(live).await?, ..Collected::default() };
    let served = live.discover().await?;
    for group in &served.stale {
        collected.gaps.push((format!("API group {group}"), "its server does not answer now".to_owned()));
    }
    let opens = sink.opener().is_some();
    let kinds = wanted(&served, opens);
    let (mut done, all) = (0, kinds.len() + 1);
    sink.progress(done, all, "secrets");
    match take_secrets(live, &served, sink).await? {
        Ok(()) => collected.listed.push("secrets".to_owned()),
        Err(error) => collected.gaps.push(("secrets".to_owned(), why(error)?)),
    }
    let mut lists = futures::stream::iter(kinds)
        .map(|kind| async move {
            let items = items(live, &kind).await;
            (kind, items)
        })
        .buffer_unordered(LISTS_AT_ONCE);
    while let Some((kind, items)) = lists.next().await {
        done += 1;
        sink.progress(done, all, &kind.name());
        match items {
            Ok(items) => {
                let mut list = list(&kind.api_version(), &format!("{}List", kind.kind), items);
                if let Some(opener) = sink.opener().filter(|_| holds_values(&kind.group, &kind.kind)) {
                    opener.values(&kind.path(), &list);
                }
                if kind.keeps {
                    for item in list.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                        redact(item);
                    }
                    sink.list(&kind.path(), list)?;
                    collected.listed.push(kind.name());
                }
            }
            Err(error) => collected.gaps.push((kind.name(), why(error)?)),
        }
    }
    collected.listed.sort();
    collected.gaps.sort();
    Ok(collected)
}

/// Hands Secrets to a sink, with values if it takes them. What the server says against it is inside.
async fn take_secrets<S: Sink>(
    live: &Live,
    served: &Served,
    sink: &mut S,
) -> Result<Result<(), LiveError>, S::Error> {
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
fn why(error: LiveError) -> Result<String, LiveError> {
    match error {
        LiveError::Refused { status: 403, message, .. } => Ok(format!(
            "{message}; bind a role that may list it, or ask somebody who holds one for a snapshot"
        )),
        LiveError::Refused { message, .. } => Ok(message),
        error => Err(error),
    }
}

pub(crate) async fn minor(live: &Live) -> Result<Option<u16>, LiveError> {
    let version = live.json(Call::get("/version")).await?;
    // Some distributions write `36+`.
    let minor = live::text(&version, "/minor");
    Ok(minor.trim_end_matches('+').parse().ok())
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
pub(crate) async fn settings(live: &Live, kind: &Kind, item: &Value) -> Result<Option<Value>, LiveError> {
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
