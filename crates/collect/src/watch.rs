//! Keeps what the analyser needs of a cluster, by a watch of each kind.
//!
//! Objects are kept redacted and as bytes, so that an event which changes nothing that is looked at wakes nobody. Secrets
//! are watched as metadata, whose annotations go before anything is kept; their types come from Tables without objects.
//! A kind that cannot be watched is a gap for as long as it cannot.
//!
//! INVARIANT: a kind is either complete as of some moment or a gap.

#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, btree_map::Entry},
    fmt::Debug,
    io::Read,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bailey_access::{Gap, Loader, Snapshot, has_settings};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    Api, Resource,
    api::DynamicObject,
    core::{ApiResource, GroupVersionKind, PartialObjectMeta},
    runtime::{WatchStreamExt as _, watcher},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    kinds::{Kind, wanted},
    lists::minor,
    live::{self, Live, LiveError},
    redact::redact,
};

/// How long a watch may fail before what it kept counts as old.
const STALE: Duration = Duration::from_secs(60);
/// After how long without another failure a watch counts as repaired: one on which nothing happens tells nothing. More
/// than the longest pause between two attempts.
const QUIET: Duration = Duration::from_secs(120);
/// How many Tables of types are read at the same time.
const TABLES_AT_ONCE: usize = 8;
/// Labels of Secrets that say what they open.
const SECRET_LABELS: [&str; 2] = ["cluster.x-k8s.io/cluster-name", "argocd.argoproj.io/secret-type"];
/// The annotation of a Secret that says whose token it is.
const TOKEN_OF: &str = "kubernetes.io/service-account.name";

/// What a cluster holds, for as long as this lives.
pub struct Watch {
    live: Live,
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    watched: HashMap<String, tokio::task::AbortHandle>,
    minor: Option<u16>,
    stale: Vec<String>,
}

/// What the watches write and answers read.
struct Shared {
    kinds: Mutex<BTreeMap<String, Kept>>,
    changed: Arc<Notify>,
}

/// What is kept of a kind.
struct Kept {
    kind: Kind,
    /// Redacted objects as JSON, by `NAMESPACE/NAME`; of Secrets without their type.
    objects: BTreeMap<Box<str>, Object>,
    /// What the list that is being read holds so far.
    coming: BTreeMap<Box<str>, Object>,
    ready: bool,
    failing: Option<Failing>,
}

/// That a kind cannot be read or watched.
struct Failing {
    since: Instant,
    last: Instant,
    why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Object {
    body: Arc<[u8]>,
    /// Of a Secret: its uid and, once known, its type.
    secret: Option<(Box<str>, Option<Box<str>>)>,
}

/// What is kept at one moment, to be read without holding the watches up.
pub struct Kinds {
    minor: Option<u16>,
    lists: Vec<(Kind, Vec<Object>)>,
    gaps: Vec<(String, String)>,
}

impl Watch {
    /// Starts watching all that is served; `changed` hears of each change that matters.
    pub async fn start(live: Live, changed: Arc<Notify>) -> Result<Self, LiveError> {
        let shared = Arc::new(Shared { kinds: Mutex::default(), changed });
        let minor = minor(&live).await?;
        let mut watch =
            Self { live, shared, tasks: JoinSet::new(), watched: HashMap::new(), minor, stale: Vec::new() };
        watch.discover().await?;
        Ok(watch)
    }

    /// Looks again at what is served: watches what is new and forgets what is gone.
    pub async fn discover(&mut self) -> Result<(), LiveError> {
        let served = self.live.discover().await?;
        let mut kinds: BTreeMap<String, Kind> =
            wanted(&served, false).into_iter().map(|kind| (kind.name(), kind)).collect();
        kinds.insert("secrets".to_owned(), Kind::secrets());
        // A group that does not answer now is not gone.
        let is_stale = |kind: &Kind| served.stale.contains(&kind.group);
        let mut kept = self.shared.lock();
        let gone: Vec<String> = kept
            .iter()
            .filter(|(name, kept)| kinds.get(*name) != Some(&kept.kind) && !is_stale(&kept.kind))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            kept.remove(&name);
            if let Some(task) = self.watched.remove(&name) {
                task.abort();
            }
        }
        for (name, kind) in kinds {
            if let Entry::Vacant(slot) = kept.entry(name.clone()) {
                slot.insert(Kept::new(kind.clone()));
                let task = follow(self.live.clone(), kind, Arc::clone(&self.shared));
                self.watched.insert(name, self.tasks.spawn(task));
            }
        }
        drop(kept);
        while self.tasks.try_join_next().is_some() {}
        self.stale = served.stale;
        Ok(())
    }

    /// Kinds of which nothing is known yet, neither objects nor why not.
    pub fn pending(&self) -> Vec<String> {
        let kinds = self.shared.lock();
        let pending = kinds.iter().filter(|(_, kept)| !kept.ready && kept.failing.is_none());
        pending.map(|(name, _)| name.clone()).collect()
    }

    /// How many objects are kept, and their bytes.
    pub fn size(&self) -> (usize, usize) {
        let kinds = self.shared.lock();
        let objects = kinds.values().flat_map(|kept| kept.objects.values());
        objects.fold((0, 0), |(count, bytes), object| (count + 1, bytes + object.body.len()))
    }

    /// What is kept now. Types of new Secrets are asked for first.
    pub async fn kinds(&self) -> Result<Kinds, LiveError> {
        let untyped = self.learn_types().await?;
        let kinds = self.shared.lock();
        let stale = self.stale.iter();
        let mut gaps: Vec<(String, String)> = stale
            .map(|group| (format!("API group {group}"), "its server does not answer now".to_owned()))
            .collect();
        let mut lists = Vec::with_capacity(kinds.len());
        for (name, kept) in kinds.iter() {
            let ended = self.watched.get(name).is_none_or(tokio::task::AbortHandle::is_finished);
            match kept.why_not().or_else(|| ended.then(|| "its watch has ended".to_owned())) {
                Some(why) => gaps.push((name.clone(), why)),
                None => lists.push((kept.kind.clone(), kept.objects.values().cloned().collect())),
            }
        }
        if let Some(why) = untyped {
            gaps.push(("types of secrets".to_owned(), why));
        }
        gaps.sort();
        Ok(Kinds { minor: self.minor, lists, gaps })
    }

    /// Asks for the types of Secrets that have none yet. A Secret keeps its type for as long as it lives, so a row that
    /// is read after the Secret was seen is of that one, or of a later one of which an event will come.
    async fn learn_types(&self) -> Result<Option<String>, LiveError> {
        let mut wanted: HashMap<String, HashMap<String, Box<str>>> = HashMap::new();
        if let Some(kept) = self.shared.lock().get("secrets") {
            for (key, object) in &kept.objects {
                let Some((uid, None)) = &object.secret else { continue };
                let (namespace, name) = key.split_once('/').unwrap_or_default();
                wanted.entry(namespace.to_owned()).or_default().insert(name.to_owned(), uid.clone());
            }
        }
        let tables = futures::stream::iter(wanted).map(|(namespace, names)| async move {
            let path = live::path("", "v1", "secrets", Some(&namespace), None);
            let rows = match names.keys().next().filter(|_| names.len() == 1) {
                Some(name) => {
                    let field = live::encode(&format!("metadata.name={name}"));
                    self.live.list_cells(&format!("{path}?fieldSelector={field}")).await?
                }
                None => self.live.list_cells(&path).await?,
            };
            Ok::<_, LiveError>((namespace, names, rows))
        });
        let tables: Result<Vec<_>, LiveError> = tables.buffer_unordered(TABLES_AT_ONCE).try_collect().await;
        let tables = match tables {
            Ok(tables) => tables,
            Err(LiveError::Refused { message, .. }) => return Ok(Some(message)),
            Err(error) => return Err(error),
        };
        let mut kinds = self.shared.lock();
        let Some(kept) = kinds.get_mut("secrets") else { return Ok(None) };
        for (namespace, names, rows) in tables {
            for row in rows {
                let cell = |index: usize| row.get(index).and_then(Value::as_str).unwrap_or_default();
                let Some(seen) = names.get(cell(0)) else { continue };
                let object = kept.objects.get_mut(format!("{namespace}/{}", cell(0)).as_str());
                match object.and_then(|object| object.secret.as_mut()) {
                    Some((uid, kind)) if uid == seen => *kind = Some(cell(1).into()),
                    _ => {}
                }
            }
        }
        Ok(None)
    }
}

impl Kinds {
    /// The facts of it.
    pub fn snapshot(&self, name: Option<&str>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let mut loader = Loader::new(&mut snapshot, name);
        for (kind, objects) in &self.lists {
            loader.source(&kind.path());
            if let Err(error) = loader.load_json(listing(kind, objects)) {
                loader.missing(kind.name(), error.to_string());
            }
        }
        loader.finish();
        if let Some(cluster) = snapshot.clusters.first_mut() {
            cluster.minor = self.minor;
            cluster.listed = self.lists.iter().map(|(kind, _)| kind.name()).collect();
        }
        let cluster = snapshot.clusters.first().map(|cluster| cluster.name.clone());
        let gap = |(what, why): &(String, String)| Gap {
            cluster: cluster.clone(),
            what: what.clone(),
            why: why.clone(),
        };
        snapshot.gaps.extend(self.gaps.iter().map(gap));
        snapshot
    }
}

impl Shared {
    /// A task that panicked has left whole objects, so what it held is as good as before.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(&self, name: &str, change: impl FnOnce(&mut Kept) -> bool) {
        if self.lock().get_mut(name).is_some_and(change) {
            self.changed.notify_one();
        }
    }
}

impl Kept {
    fn new(kind: Kind) -> Self {
        Self { kind, objects: BTreeMap::new(), coming: BTreeMap::new(), ready: false, failing: None }
    }

    /// Whether it is complete, or why not.
    fn why_not(&self) -> Option<String> {
        match &self.failing {
            Some(failing) if !self.ready || failing.is_stale() => Some(failing.why.clone()),
            None if !self.ready => Some("it is still being read".to_owned()),
            _ => None,
        }
    }

    /// Takes an event; whether anything that matters is different now. A list that has only begun says nothing yet:
    /// each attempt of one that is refused begins, too.
    fn take(&mut self, event: Event) -> bool {
        match event {
            Event::Starts => {
                self.coming.clear();
                return false;
            }
            Event::Listed(key, object) => {
                let object = object.or_known(self.objects.get(&key));
                self.coming.insert(key, object);
                return false;
            }
            _ => {}
        }
        let was_failing = self.failing.take().is_some();
        match event {
            Event::Starts | Event::Listed(..) => false,
            Event::Complete => {
                let coming = std::mem::take(&mut self.coming);
                let differs = !self.ready || was_failing || coming != self.objects;
                self.objects = coming;
                self.ready = true;
                differs
            }
            Event::Is(key, object) => {
                let object = object.or_known(self.objects.get(&key));
                let old = self.objects.insert(key, object.clone());
                was_failing || old.is_none_or(|old| old != object)
            }
            Event::Gone(key) => self.objects.remove(&key).is_some(),
        }
    }

    /// Notes that it could not be read or watched; whether that is news.
    fn fail(&mut self, why: String) -> bool {
        let now = Instant::now();
        let before = self.failing.take().filter(|failing| failing.last.elapsed() < QUIET);
        let is_news = !self.ready && before.is_none();
        self.failing = Some(Failing { since: before.map_or(now, |failing| failing.since), last: now, why });
        is_news
    }
}

impl Failing {
    fn is_stale(&self) -> bool {
        self.since.elapsed() > STALE && self.last.elapsed() < QUIET
    }
}

impl Object {
    /// With the type that is known of the same Secret.
    fn or_known(mut self, known: Option<&Self>) -> Self {
        if let (Some((uid, kind)), Some((known_uid, known_kind))) =
            (&mut self.secret, known.and_then(|known| known.secret.as_ref()))
            && uid == known_uid
        {
            kind.clone_from(known_kind);
        }
        self
    }
}

/// What a watch tells.
enum Event {
    Starts,
    Listed(Box<str>, Object),
    Complete,
    Is(Box<str>, Object),
    Gone(Box<str>),
}

/// Watches one kind until it is dropped.
async fn follow(live: Live, kind: Kind, shared: Arc<Shared>) {
    let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &kind.plural);
    let client = live.client().clone();
    if kind.metadata {
        events(Api::<PartialObjectMeta<DynamicObject>>::all_with(client, &resource), live, kind, shared)
            .await;
    } else {
        events(Api::<DynamicObject>::all_with(client, &resource), live, kind, shared).await;
    }
}

async fn events<K>(api: Api<K>, live: Live, kind: Kind, shared: Arc<Shared>)
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    let name = kind.name();
    let value = |object: &K| serde_json::to_value(object).unwrap_or_default();
    let mut stream = pin!(watcher(api, watcher::Config::default()).default_backoff());
    while let Some(event) = stream.next().await {
        let event = match event {
            Ok(watcher::Event::Init) => Some(Event::Starts),
            Ok(watcher::Event::InitDone) => Some(Event::Complete),
            Ok(watcher::Event::InitApply(object)) => {
                kept(&live, &kind, value(&object)).await.map(|(key, object)| Event::Listed(key, object))
            }
            Ok(watcher::Event::Apply(object)) => {
                kept(&live, &kind, value(&object)).await.map(|(key, object)| Event::Is(key, object))
            }
            Ok(watcher::Event::Delete(object)) => Some(Event::Gone(key_of(&value(&object)))),
            Err(error) => {
                shared.with(&name, |kept| kept.fail(why(&error)));
                continue;
            }
        };
        if let Some(event) = event {
            shared.with(&name, |kept| kept.take(event));
        }
    }
}

fn why(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.message.clone(),
        watcher::Error::WatchError(status) => status.message.clone(),
        _ => "the API server does not answer".to_owned(),
    }
}

fn key_of(object: &Value) -> Box<str> {
    let (namespace, name) = (live::text(object, "/metadata/namespace"), live::text(object, "/metadata/name"));
    format!("{namespace}/{name}").into()
}

/// What is kept of an object. None for settings of a controller that cannot be read: its name alone would say that
/// nothing is set.
async fn kept(live: &Live, kind: &Kind, mut object: Value) -> Option<(Box<str>, Object)> {
    let key = key_of(&object);
    if kind.is_secrets() {
        return Some((key, secret(&object)));
    }
    if kind.metadata && kind.kind == "ConfigMap" && has_settings(&live::text(&object, "/metadata/name")) {
        object = crate::lists::settings(live, kind, &object).await.ok()??;
    }
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.clone().into());
        // Only Cluster API says there what something is.
        if !kind.group.ends_with("cluster.x-k8s.io") {
            fields.remove("status");
        }
    }
    redact(&mut object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["creationTimestamp", "finalizers", "generation", "resourceVersion", "selfLink", "uid"] {
            metadata.remove(field);
        }
    }
    Some((key, Object { body: object.to_string().into_bytes().into(), secret: None }))
}

/// A Secret without its type, of its metadata.
fn secret(object: &Value) -> Object {
    let mut metadata = json!({
        "namespace": live::text(object, "/metadata/namespace"),
        "name": live::text(object, "/metadata/name"),
    });
    let of = |field: &str, names: &[&str]| {
        let fields = object.pointer("/metadata").and_then(|metadata| metadata.get(field)?.as_object());
        let found = names.iter().filter_map(|name| Some(((*name).to_owned(), fields?.get(*name)?.clone())));
        let found: serde_json::Map<String, Value> = found.collect();
        (field.to_owned(), found)
    };
    if let Some(fields) = metadata.as_object_mut() {
        let found = [of("labels", &SECRET_LABELS), of("annotations", &[TOKEN_OF])];
        let found = found.into_iter().filter(|(_, found)| !found.is_empty());
        fields.extend(found.map(|(field, found)| (field, Value::Object(found))));
    }
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}).to_string();
    let uid = live::text(object, "/metadata/uid").into();
    Object { body: body.into_bytes().into(), secret: Some((uid, None)) }
}

/// Objects of a kind as one `List`, made while it is read.
struct Listing<'a, I> {
    pieces: I,
    piece: Cow<'a, [u8]>,
    at: usize,
}

impl<'a, I: Iterator<Item = Cow<'a, [u8]>>> Read for Listing<'a, I> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest = loop {
            match self.piece.get(self.at..) {
                Some(rest) if !rest.is_empty() => break rest,
                _ => match self.pieces.next() {
                    Some(piece) => (self.piece, self.at) = (piece, 0),
                    None => return Ok(0),
                },
            }
        };
        let length = (&mut &*rest).read(buffer)?;
        self.at += length;
        Ok(length)
    }
}

fn listing<'a>(kind: &Kind, objects: &'a [Object]) -> Listing<'a, impl Iterator<Item = Cow<'a, [u8]>>> {
    let (version, name) = (json!(kind.api_version()), json!(format!("{}List", kind.kind)));
    let head = format!("{{\"apiVersion\":{version},\"kind\":{name},\"items\":[");
    let comma = std::iter::once(&b""[..]).chain(std::iter::repeat(&b","[..]));
    let items = objects.iter().zip(comma).flat_map(|(object, comma)| {
        let body = &object.body;
        let [start, rest]: [Cow<'a, [u8]>; 2] = match &object.secret {
            Some((_, Some(kind))) => {
                let rest = body.get(1..).unwrap_or_default();
                [format!("{{\"type\":{},", json!(kind)).into_bytes().into(), rest.into()]
            }
            _ => [Cow::Borrowed(&b""[..]), Cow::Borrowed(body)],
        };
        [Cow::Borrowed(comma), start, rest]
    });
    let pieces = std::iter::once(Cow::Owned(head.into_bytes())).chain(items);
    Listing { pieces: pieces.chain(std::iter::once(Cow::Borrowed(&b"]}"[..]))), piece: Cow::default(), at: 0 }
}
