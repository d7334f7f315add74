//! Takes objects one by one, whatever form they came in, and makes facts of those that matter.
//!
//! What is lost on the way becomes a gap that names the file, the line and the byte. No text of an object but its kind,
//! namespace and name gets into one.

mod access;
mod others;
#[cfg(test)]
mod tests;

use std::fmt;

use rustc_hash::FxHashSet;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::cursor::Place;
use super::kinds::{Kinds, Route, expected};
use super::list::Envelope;
use super::piece::{Fault, Head, Piece};
use super::values::{self, SecretValues};
use super::wire;
use crate::{ClusterFacts, Gap, Origin, Snapshot, Symbol};

/// How many gaps one source may name before the rest of them are only counted.
const GAPS_PER_SOURCE: usize = 100;
/// How deep lists may be in lists.
const LISTS_IN_LISTS: u8 = 4;

/// Kind of what is only the metadata of an object (`meta.k8s.io`).
const PARTIAL: &str = "PartialObjectMetadata";

/// What was taken so far.
pub(super) struct Intake<'a> {
    pub(super) snapshot: &'a mut Snapshot,
    /// Name of the cluster, if it was given.
    pub(super) cluster: Option<String>,
    /// The facts, not yet merged into the snapshot.
    pub(super) facts: ClusterFacts,
    pub(super) gaps: Vec<Gap>,
    pub(super) kinds: Kinds,
    pub(super) values: Option<&'a mut dyn SecretValues>,
    /// The namespace of objects that name none.
    pub(super) namespace: Option<String>,
    /// Whether workloads stand for the pods that they will make.
    pub(super) would_be_pods: bool,
    /// Where each ServiceAccount, pod and node of `facts` was read.
    pub(super) origins: Origins,
    /// ServiceAccounts whose token is not mounted by default.
    pub(super) unmounted: FxHashSet<(Symbol, Symbol)>,
    /// Pods, by their index, whose token is mounted if their ServiceAccount says so.
    pub(super) undecided: Vec<usize>,
    source: SourceState,
}

/// Origins of facts that carry none.
#[derive(Default)]
pub(super) struct Origins {
    pub(super) service_accounts: Vec<Origin>,
    pub(super) pods: Vec<Origin>,
    pub(super) nodes: Vec<Origin>,
}

/// What is known of the source that is being read.
struct SourceState {
    index: u32,
    /// Whether its lines are those of a file.
    has_lines: bool,
    name: String,
    /// `apiVersion` and kind of objects that do not say it.
    expected: Option<(&'static str, &'static str)>,
    gaps: usize,
    /// Objects without a namespace that need one.
    homeless: u64,
    /// Secrets whose type is not known.
    untyped: u64,
}

impl Default for SourceState {
    fn default() -> Self {
        Self {
            index: 0,
            has_lines: true,
            name: String::new(),
            expected: None,
            gaps: 0,
            homeless: 0,
            untyped: 0,
        }
    }
}

impl<'a> Intake<'a> {
    pub(super) fn new(snapshot: &'a mut Snapshot, cluster: Option<&str>) -> Self {
        Self {
            snapshot,
            cluster: cluster.map(str::to_owned),
            facts: ClusterFacts::default(),
            gaps: Vec::new(),
            kinds: Kinds::default(),
            values: None,
            namespace: None,
            would_be_pods: false,
            origins: Origins::default(),
            unmounted: FxHashSet::default(),
            undecided: Vec::new(),
            source: SourceState::default(),
        }
    }

    /// Starts another source.
    pub(super) fn source(&mut self, name: &str) {
        self.end_source();
        let index = u32::try_from(self.snapshot.sources.len()).unwrap_or(u32::MAX);
        self.snapshot.sources.push(name.to_owned());
        self.source =
            SourceState { index, name: name.to_owned(), expected: expected(name), ..SourceState::default() };
    }

    /// Says what was too much to say one by one.
    pub(super) fn end_source(&mut self) {
        let source = std::mem::take(&mut self.source);
        // A list that broke off with its source.
        self.kinds.all().for_each(|met| met.is_in_list = false);
        let name = &source.name;
        if source.homeless > 0 {
            self.gaps.push(Gap {
                cluster: None,
                what: format!("the namespace of {} objects in `{name}`", source.homeless),
                why:
                    "they name none and are taken for `default`; write `metadata.namespace`, or render them \
                      with the namespace that they go to"
                        .to_owned(),
            });
        }
        if source.untyped > 0 {
            self.gaps.push(Gap {
                cluster: None,
                what: format!("the type of {} Secrets in `{name}`", source.untyped),
                why: "metadata alone does not tell it; ask for a Table, or for the Secrets themselves"
                    .to_owned(),
            });
        }
        if source.gaps > GAPS_PER_SOURCE {
            self.gaps.push(Gap {
                cluster: None,
                what: format!("{} more objects in `{name}`", source.gaps - GAPS_PER_SOURCE),
                why: "they cannot be read either; the first ones are named above".to_owned(),
            });
        }
    }

    /// Says that something is missing.
    pub(super) fn gap(&mut self, what: impl fmt::Display, place: Place, why: impl Into<String>) {
        self.source.gaps += 1;
        if self.source.gaps > GAPS_PER_SOURCE {
            return;
        }
        let what = format!("{what} in `{}`{}", self.source.name, At(place));
        self.gaps.push(Gap { cluster: None, what, why: why.into() });
    }

    /// The name of the source that is being read.
    pub(super) fn source_name(&self) -> &str {
        &self.source.name
    }

    /// Whether objects that do not say their kind can be told from their source.
    pub(super) fn expects(&self) -> bool {
        self.source.expected.is_some()
    }

    /// Takes a single object, or a list that is in memory.
    pub(super) fn single(&mut self, piece: Piece<'_>, place: Place) {
        let head = piece.head();
        if Envelope::names_list(&head.kind) {
            match piece {
                Piece::Value(value) => self.list(value, place, LISTS_IN_LISTS),
                _ => match piece.read::<Value>() {
                    Ok(value) => self.list(&value, place, LISTS_IN_LISTS),
                    Err(fault) => self.fault(&head, piece, place, &fault),
                },
            }
        } else {
            self.take(&head, piece, place, false);
        }
    }

    fn list(&mut self, list: &Value, place: Place, depth: u8) {
        let envelope = Envelope::of(list);
        let Some(items) = envelope.items(list) else {
            // A kind of its own whose name ends like a list's.
            return self.take(&Piece::Value(list).head(), Piece::Value(list), place, false);
        };
        for item in items {
            self.item_of(item, &envelope, place, depth);
        }
        self.end_list(&envelope, true);
    }

    /// Takes an entry of a list that is in memory.
    pub(super) fn item(&mut self, item: &Value, envelope: &Envelope, place: Place) {
        self.item_of(item, envelope, place, LISTS_IN_LISTS);
    }

    fn item_of(&mut self, item: &Value, envelope: &Envelope, place: Place, depth: u8) {
        let piece = Piece::Value(item);
        if envelope.is_table() {
            return self.row(piece, envelope, place);
        }
        let head = piece.head();
        if Envelope::names_list(&head.kind) && item.get("items").is_some() {
            match depth.checked_sub(1) {
                Some(depth) => self.list(item, place, depth),
                None => self.gap("a list", place, "it is in too many lists and left out"),
            }
        } else {
            self.take(&envelope.complete(head), piece, place, true);
        }
    }

    /// Takes an entry of a list, whose head was looked at.
    pub(super) fn listed(&mut self, head: &Head<'_>, piece: Piece<'_>, place: Place) {
        if !Envelope::names_list(&head.kind) {
            return self.take(head, piece, place, true);
        }
        match piece.read::<Value>() {
            Ok(value) => self.item(&value, &Envelope::default(), place),
            Err(fault) => self.fault(head, piece, place, &fault),
        }
    }

    /// Ends a list; `whole` if it was read to its end.
    pub(super) fn end_list(&mut self, envelope: &Envelope, whole: bool) {
        if let Some((api_version, kind)) = self.subject_of(envelope) {
            self.kinds.of(&api_version, &kind).is_in_list = true;
        }
        let source = self.source.name.clone();
        for met in self.kinds.all().filter(|met| met.is_in_list) {
            met.is_in_list = false;
            if whole && envelope.goes_on {
                met.broken_off.get_or_insert_with(|| source.clone());
            } else if whole {
                met.is_listed = true;
            }
        }
    }

    /// The kind that a list is about, even if it is empty.
    fn subject_of(&self, envelope: &Envelope) -> Option<(String, String)> {
        let expected = || self.source.expected.map(|(version, kind)| (version.to_owned(), kind.to_owned()));
        let secrets = || envelope.holds_secrets().then(|| ("v1".to_owned(), "Secret".to_owned()));
        if envelope.is_table() {
            return expected().or_else(secrets);
        }
        match envelope.of_kind()? {
            (_, PARTIAL) => expected(),
            (api_version, kind) => Some((api_version.to_owned(), kind.to_owned())),
        }
    }

    fn take(&mut self, head: &Head<'_>, piece: Piece<'_>, place: Place, listed: bool) {
        if head.kind.is_empty() || head.kind == PARTIAL {
            self.take_expected(head, piece, place, listed);
        } else {
            self.take_known(head, piece, place, listed, true);
        }
    }

    /// Takes an object of a known kind, `whole` unless it is only its metadata.
    fn take_known(&mut self, head: &Head<'_>, piece: Piece<'_>, place: Place, listed: bool, whole: bool) {
        let met = self.kinds.of(&head.api_version, &head.kind);
        met.count += 1;
        met.is_in_list |= listed;
        let route = met.route;
        let origin = self.origin(place);
        let taken = match route {
            Route::Namespace => self.take_namespace(piece, origin),
            Route::ServiceAccount => self.take_service_account(piece, origin),
            Route::Role => self.take_role(piece, origin, true),
            Route::ClusterRole => self.take_role(piece, origin, false),
            Route::RoleBinding => self.take_binding(piece, place, origin, true),
            Route::ClusterRoleBinding => self.take_binding(piece, place, origin, false),
            Route::Secret => self.take_secret(piece, place, origin, whole),
            Route::Pod => self.take_pod(piece, origin),
            Route::Node => self.take_node(piece, origin),
            Route::ConfigMap => self.take_config_map(head, piece, origin, whole),
            Route::Workload => self.take_workload(head, piece, origin),
            Route::Volume => self.take_volume(head, piece, origin),
            Route::Object(shape) => self.take_object(head, piece, origin, shape),
            Route::Unknown => self.take_unknown(head, piece, origin),
            Route::Nothing => Ok(()),
        };
        let taken = match taken {
            Ok(()) if whole && self.would_be_pods => self.take_would_be_pod(head, piece, origin),
            taken => taken,
        };
        let taken = match taken {
            Ok(()) if whole => self.open_plain(head, piece, place),
            taken => taken,
        };
        if let Err(fault) = taken {
            self.kinds.of(&head.api_version, &head.kind).is_spoilt = true;
            self.fault(head, piece, place, &fault);
        }
    }

    /// Takes an object that does not say what it is.
    fn take_expected(&mut self, head: &Head<'_>, piece: Piece<'_>, place: Place, listed: bool) {
        let is_partial = head.kind == PARTIAL;
        let expected = self.source.expected;
        match expected {
            Some((_, kind))
                if is_partial && !matches!(kind, "ConfigMap" | "Namespace" | "Node" | "Secret") =>
            {
                let why = "metadata alone says too little; ask for the objects themselves";
                self.gap(format_args!("a {kind}"), place, why);
            }
            Some((api_version, kind)) => {
                let head = Head { api_version: api_version.into(), kind: kind.into() };
                self.take_known(&head, piece, place, listed, !is_partial);
            }
            None if !listed && self.take_version(piece) => {}
            None => {
                // What cannot be parsed says no kind either.
                if let Err(fault) = piece.read::<IgnoredAny>() {
                    return self.fault(head, piece, place, &fault);
                }
                let why = "it does not say its `kind` and is left out; name the file after what it holds, such as \
                           `secrets.json`";
                self.gap("an object", place, why);
            }
        }
    }

    /// Takes a row of a Table.
    pub(super) fn row(&mut self, piece: Piece<'_>, envelope: &Envelope, place: Place) {
        let is_secret = match self.source.expected {
            Some((_, kind)) => kind == "Secret",
            None => envelope.holds_secrets(),
        };
        if !is_secret {
            let why = "a Table says too little of any kind but Secrets; ask for the objects themselves";
            return self.gap("a row", place, why);
        }
        let met = self.kinds.of("v1", "Secret");
        met.count += 1;
        met.is_in_list = true;
        let origin = self.origin(place);
        let row = piece.read::<wire::Row<'_>>();
        let taken = row.and_then(|row| match row.object {
            Some(mut secret) => {
                let cell = row.cells.into_iter().nth(envelope.type_column().unwrap_or(usize::MAX));
                secret.kind = secret.kind.or_else(|| cell.and_then(|cell| cell.0));
                self.keep_secret(&secret, origin, false)
            }
            None => Err(Fault::new("has no metadata (ask for the Table with `includeObject=Metadata`)")),
        });
        if let Err(fault) = taken {
            self.kinds.of("v1", "Secret").is_spoilt = true;
            let head = Head { api_version: "v1".into(), kind: "Secret".into() };
            self.fault(&head, piece, place, &fault);
        }
    }

    /// Says that an object cannot be read, by its name if that much can.
    pub(super) fn fault(&mut self, head: &Head<'_>, piece: Piece<'_>, place: Place, fault: &Fault) {
        let named = piece.read::<wire::Object<'_>>().unwrap_or_default().metadata;
        let kind = if head.kind.is_empty() { "an object" } else { head.kind.as_ref() };
        let name = ObjectName { kind, namespace: &named.namespace.0, name: &named.name.0 };
        let at = Place {
            line: if place.line == 0 { 0 } else { place.line.saturating_add(fault.lines) },
            byte: place.byte.saturating_add(fault.bytes),
        };
        let why = format!("it {} and is left out; dump or write it again", fault.what);
        self.gap(name, at, why);
    }

    fn origin(&self, place: Place) -> Origin {
        Origin { source: self.source.index, line: if self.source.has_lines { place.line } else { 0 } }
    }

    /// Says that lines of this source mean nothing to people, as in an answer of an API server.
    pub(super) fn forget_lines(&mut self) {
        self.source.has_lines = false;
    }

    /// Hands on the values of an object, or of the items of a list, and takes nothing else of it.
    pub(super) fn values_of(&mut self, value: &Value) {
        let envelope = Envelope::of(value);
        let place = Place { line: 0, byte: 0 };
        let items = envelope.items(value).map_or_else(|| vec![value], |items| items.iter().collect());
        for item in items {
            let piece = Piece::Value(item);
            let head = envelope.complete(piece.head());
            let opened = match (head.api_version.as_ref(), head.kind.as_ref()) {
                ("v1", "Secret") => self.open(piece, place),
                _ => self.open_plain(&head, piece, place),
            };
            if let Err(fault) = opened {
                self.fault(&head, piece, place, &fault);
            }
        }
    }

    /// Hands on what a ConfigMap or a workload holds in plain text, if that was asked for.
    fn open_plain(&mut self, head: &Head<'_>, piece: Piece<'_>, place: Place) -> Result<(), Fault> {
        let Some(sink) = self.values.as_deref_mut() else { return Ok(()) };
        let home = values::Home {
            cluster: self.cluster.as_deref(),
            namespace: self.namespace.as_deref().unwrap_or("default"),
        };
        let handed = values::hand_on_plain(head, piece, home, sink)?;
        if let Some((namespace, name)) = handed.named {
            // So that the place has numbers, as facts have.
            self.snapshot.symbols.intern(&namespace);
            self.snapshot.symbols.intern(&name);
        }
        for unread in handed.unread {
            self.gap(unread, place, "its value is not in base64; write it again");
        }
        Ok(())
    }

    /// Hands the values of a Secret on, if that was asked for.
    fn open(&mut self, piece: Piece<'_>, place: Place) -> Result<(), Fault> {
        let Some(sink) = self.values.as_deref_mut() else { return Ok(()) };
        let cluster = self.cluster.as_deref();
        let namespace = self.namespace.as_deref();
        for unread in values::hand_on(piece, cluster, namespace, sink)? {
            self.gap(unread, place, "its value is not in base64; write it again");
        }
        Ok(())
    }

    /// The namespace of an object that must have one.
    fn home(&mut self, namespace: &str) -> Symbol {
        if !namespace.is_empty() {
            return self.snapshot.symbols.intern(namespace);
        }
        match &self.namespace {
            Some(given) => self.snapshot.symbols.intern(given),
            None => {
                self.source.homeless += 1;
                self.snapshot.symbols.intern("default")
            }
        }
    }

    fn intern(&mut self, text: &wire::Text<'_>) -> Symbol {
        self.snapshot.symbols.intern(&text.0)
    }

    /// The name of an object, which it must have.
    fn name(&mut self, name: &wire::Text<'_>) -> Result<Symbol, Fault> {
        match name.0.is_empty() {
            true => Err(Fault::new("has no `metadata.name`")),
            false => Ok(self.intern(name)),
        }
    }
}

/// `KIND NAMESPACE/NAME`, as far as it is known.
pub(super) struct ObjectName<'n> {
    pub(super) kind: &'n str,
    pub(super) namespace: &'n str,
    pub(super) name: &'n str,
}

impl fmt::Display for ObjectName<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.kind)?;
        match (self.namespace, self.name) {
            (_, "") => Ok(()),
            ("", name) => write!(formatter, " {name}"),
            (namespace, name) => write!(formatter, " {namespace}/{name}"),
        }
    }
}

/// `, line L, byte B`; nothing for what has no lines.
struct At(Place);

impl fmt::Display for At {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.line {
            0 => Ok(()),
            line => write!(formatter, ", line {line}, byte {}", self.0.byte),
        }
    }
}
