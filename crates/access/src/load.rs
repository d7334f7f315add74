//! Reads dumps of clusters: JSON and YAML as `kubectl get -o` writes them, lists of the API, Tables, manifests.
//!
//! Streamed: one object is in memory at a time, and only facts stay. What cannot be read becomes a [`Gap`] that names
//! file, line, byte and the way out, and everything else is read nevertheless; only a reader that fails is an error.
//! Knows no file system: whoever has files gives readers.
//!
//! INVARIANT: no value of a Secret is kept, and none gets into a gap or an error.

mod cursor;
mod finish;
mod form;
mod inflate;
mod intake;
mod json;
mod kinds;
mod list;
mod nesting;
mod pending;
mod piece;
mod shape;
#[cfg(test)]
mod tests;
mod values;
mod wire;
mod yaml;

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde_json::Value;

use crate::{Gap, Snapshot};
use cursor::Place;
use form::Form;
use intake::Intake;
use piece::Piece;

pub use inflate::Inflate;
pub use kinds::{has_settings, keeps};
#[cfg(test)]
pub(crate) use shape::setting_names;
pub use shape::{drop_values, is_setting};
pub use values::{OpenPlain, OpenSecret, SecretValues, holds_values};

/// How large one object may be. etcd takes 1.5 MiB, other stores of the API somewhat more. Less in tests, to be quick.
const OBJECT_BYTES_MAX: usize = if cfg!(test) { 2 << 20 } else { 32 << 20 };

/// Reads the dumps of one cluster.
///
/// For each file: [`Self::source`], then one of the `load` methods. At the end [`Self::finish`]; without it the
/// snapshot gets no facts. What the snapshot already holds of the cluster is replaced where an object of the same name
/// is read.
#[must_use = "without `finish` nothing of what was read gets into the snapshot"]
pub struct Loader<'a> {
    intake: Intake<'a>,
}

/// A reader failed in the midst of a dump. What was read before can still be finished.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{name}` to its end")]
pub struct LoadError {
    /// The source.
    pub name: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl LoadError {
    /// The fixed name of this kind of error.
    pub fn reason(&self) -> &'static str {
        "ReadFailed"
    }
}

impl<'a> Loader<'a> {
    /// A loader into a cluster of the snapshot. Without a name, it is the one that the cluster's Installation says,
    /// else `cluster`.
    pub fn new(snapshot: &'a mut Snapshot, cluster: Option<&str>) -> Self {
        Self { intake: Intake::new(snapshot, cluster) }
    }

    /// Has values of Secrets, ConfigMaps and containers read and handed over. Without this they are passed over and never
    /// copied.
    pub fn open_secrets(mut self, values: &'a mut dyn SecretValues) -> Self {
        self.intake.values = Some(values);
        self
    }

    /// The namespace of objects that should name one and do not, as in manifests before they are applied. Without it
    /// they are taken for `default`, and a gap says so.
    pub fn default_namespace(mut self, namespace: &str) -> Self {
        self.intake.namespace = Some(namespace.to_owned());
        self
    }

    /// Takes each workload for a pod of it, too, as there will be once the manifest is applied. A cluster that is read as
    /// it is has its pods already.
    pub fn would_be_pods(mut self) -> Self {
        self.intake.would_be_pods = true;
        self
    }

    /// Names what is read next: a path or an address. Where a list does not say what it holds, the last part of the
    /// name does, if it is a plural of the API: `dump/secrets.json`, `/api/v1/secrets?limit=500`.
    pub fn source(&mut self, name: &str) {
        self.intake.source(name);
    }

    /// Reads JSON, YAML, or either of them in gzip.
    pub fn load(&mut self, mut reader: impl Read) -> Result<(), LoadError> {
        self.guarded(|intake| {
            let start = form::first_bytes(&mut reader)?;
            if !form::is_gzip(&start) {
                return plain(&start, reader, intake);
            }
            let mut inflated = Inflate::new(start.as_slice().chain(reader));
            let start = form::first_bytes(&mut inflated)?;
            plain(&start, inflated, intake)
        })
    }

    /// Reads JSON: objects, arrays of objects, and lists, one or many behind each other.
    pub fn load_json(&mut self, reader: impl Read) -> Result<(), LoadError> {
        self.guarded(|intake| json::read(reader, intake))
    }

    /// Reads YAML: documents, each an object or a list.
    pub fn load_yaml(&mut self, reader: impl Read) -> Result<(), LoadError> {
        self.guarded(|intake| yaml::read(reader, intake))
    }

    /// Reads an answer of an API server, page by page if it comes so. As [`Self::load_json`], but its lines mean nothing.
    pub fn load_answer(&mut self, answer: &[u8]) {
        self.intake.forget_lines();
        // Memory does not fail.
        let _ = self.load_json(answer);
    }

    /// Hands the values of an object or list on to whom [`Self::open_secrets`] named, and takes no fact from it. A
    /// source of it must have been named before.
    pub fn values(&mut self, value: &Value) {
        self.intake.values_of(value);
    }

    /// Takes one object or list that is at hand, such as a rendered manifest, with the place that it is from. A source
    /// of it must have been named before.
    pub fn object(&mut self, value: &Value, line: u32) {
        self.intake.single(Piece::Value(value), Place { line, byte: 0 });
    }

    /// Says that something is missing of which the caller knows, such as a file that cannot be opened: what, and why.
    pub fn missing(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.intake.gaps.push(Gap { cluster: None, what: what.into(), why: why.into() });
    }

    /// How many objects of each `apiVersion` and kind were read, those that are not kept included; 0 for an empty list.
    pub fn counts(&self) -> BTreeMap<(String, String), u64> {
        self.intake.kinds.counts()
    }

    /// Puts the facts into the snapshot, the later one of two equal objects.
    pub fn finish(self) {
        finish::finish(self.intake);
    }

    /// A stream that is damaged is a gap; one that cannot be read is an error.
    fn guarded(&mut self, read: impl FnOnce(&mut Intake<'a>) -> io::Result<()>) -> Result<(), LoadError> {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        match read(&mut self.intake) {
            Err(error) if matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof) => {
                self.intake.gap("the rest", NOWHERE, format!("it cannot be inflated: {error}"));
                Ok(())
            }
            Err(source) => Err(LoadError { name: self.intake.source_name().to_owned(), source }),
            Ok(()) => Ok(()),
        }
    }
}

/// Why an object is left out that is larger than any API server stores.
fn too_large() -> String {
    format!(
        "it has more than {} MiB and is left out; look whether the file is damaged there",
        OBJECT_BYTES_MAX >> 20
    )
}

const NOWHERE: Place = Place { line: 0, byte: 0 };

fn plain(start: &[u8], reader: impl Read, intake: &mut Intake<'_>) -> io::Result<()> {
    match form::of(start) {
        Ok(Form::Json) => json::read(start.chain(reader), intake),
        Ok(Form::Yaml) => yaml::read(start.chain(reader), intake),
        Err(why) => {
            intake.gap("everything", NOWHERE, why);
            Ok(())
        }
    }
}
