//! Credentials that lie in several places: whoever reads one place holds what the others keep.
//!
//! Values are seen by the [`Ledger`] only, which keeps fingerprints. Weak credentials are compared by marks that mean
//! nothing outside this process.

mod answers;
mod findings;
mod places;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::fingerprint::{Extraction, Extractor, Mark, Origin};
use crate::load::{OpenPlain, OpenSecret, SecretValues};
use crate::{ClusterFacts, Gap, Snapshot};
pub use places::Shared;

/// Fingerprints of everything that was opened.
#[derive(Debug, Clone)]
pub struct Ledger {
    extractor: Arc<Extractor>,
    /// Whether fingerprints mean something beyond this run, so that answers show them.
    shows: bool,
    held: BTreeMap<Holder, Held>,
}

/// An object that holds values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    /// Its cluster, as far as it is known.
    cluster: Option<String>,
    namespace: String,
    name: String,
    kind: String,
    /// The container that has the values, empty for none.
    container: String,
}

/// What an object holds.
#[derive(Debug, Clone, Default)]
struct Held {
    credentials: Vec<Found>,
    /// Whether it holds no value at all.
    is_empty: bool,
    /// Keys that were not looked into.
    unread: Vec<String>,
}

/// A credential without its value.
#[derive(Debug, Clone)]
struct Found {
    key: String,
    weak: bool,
    marks: Vec<Mark>,
}

impl Ledger {
    /// An empty one, of which fingerprints are shown nowhere, since the next run has another key.
    pub fn new(extractor: Extractor) -> Self {
        Self { extractor: Arc::new(extractor), shows: false, held: BTreeMap::new() }
    }

    /// Has answers show the fingerprints of credentials that are not weak, for those who keep the key.
    #[must_use]
    pub fn showing_fingerprints(mut self) -> Self {
        self.shows = true;
        self
    }

    /// Objects of which parts were too large or too deep to be looked into, as `Secret NS/NAME#KEY`.
    pub fn unread(&self) -> Vec<String> {
        let of = |(holder, held): (&Holder, &Held)| {
            let Holder { kind, namespace, name, .. } = holder;
            let key = |key: &String| format!("{kind} {namespace}/{name}#{}", holder.key(key));
            held.unread.iter().map(key).collect::<Vec<_>>()
        };
        self.held.iter().flat_map(of).collect()
    }

    /// What of the Secrets of a snapshot was not looked into because their values are not in what was read.
    pub fn gaps(&self, snapshot: &Snapshot) -> Vec<Gap> {
        let of = |cluster: &ClusterFacts| {
            let opened = self.held.iter().filter(|(holder, _)| {
                holder.kind == places::SECRET
                    && holder.cluster.as_ref().is_none_or(|name| *name == cluster.name)
            });
            let (all, opened) = (cluster.secrets.len(), opened.map(|(_, held)| held.is_empty));
            let opened: Vec<bool> = opened.collect();
            // One may be empty; that all are means that whoever wrote them left their values out.
            let missing =
                if opened.iter().all(|is_empty| *is_empty) { all } else { all.saturating_sub(opened.len()) };
            (missing > 0).then(|| Gap {
                cluster: Some(cluster.name.clone()),
                what: format!("values of {missing} of {all} Secrets"),
                why:
                    "what was read holds none, as a snapshot does; ask the cluster itself, or read a dump of \
                      `kubectl get secrets -A -o json`"
                        .to_owned(),
            })
        };
        snapshot.clusters.iter().filter_map(of).collect()
    }

    /// Forgets what an object holds, or all objects of a namespace.
    pub fn forget(&mut self, cluster: &str, namespace: &str, object: Option<(&str, &str)>) {
        self.held.retain(|holder, _| {
            let elsewhere = holder.cluster.as_deref().is_some_and(|name| name != cluster);
            let other = object
                .is_some_and(|(kind, name)| (holder.kind.as_str(), holder.name.as_str()) != (kind, name));
            elsewhere || holder.namespace != namespace || other
        });
    }

    /// How many objects, and containers of workloads, were looked into.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing was looked into.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The later of two objects of a name counts, as everywhere.
    fn keep(&mut self, holder: Holder, is_empty: bool, extraction: Extraction) {
        let credentials = extraction.credentials.into_iter().map(|credential| Found {
            marks: credential.marks().collect(),
            weak: credential.weak,
            key: credential.key,
        });
        let held = Held {
            credentials: credentials.collect(),
            is_empty,
            unread: extraction.unread.into_iter().map(|unread| unread.key).collect(),
        };
        self.held.insert(holder, held);
    }
}

impl Holder {
    /// A key of it, with the container before it.
    fn key(&self, key: &str) -> String {
        if self.container.is_empty() { key.to_owned() } else { format!("{}/{key}", self.container) }
    }
}

impl SecretValues for Ledger {
    fn secret(&mut self, secret: &OpenSecret<'_>) {
        let holder = Holder {
            cluster: secret.cluster.map(str::to_owned),
            namespace: secret.namespace.to_owned(),
            name: secret.name.to_owned(),
            kind: places::SECRET.to_owned(),
            container: String::new(),
        };
        let extraction = self.extractor.credentials(Origin::Secret(secret.kind), secret.data);
        self.keep(holder, secret.data.is_empty(), extraction);
    }

    fn plain(&mut self, part: &OpenPlain<'_>) {
        let holder = Holder {
            cluster: part.cluster.map(str::to_owned),
            namespace: part.namespace.to_owned(),
            name: part.name.to_owned(),
            kind: part.kind.to_owned(),
            container: part.container.to_owned(),
        };
        let data: &BTreeMap<String, Zeroizing<Vec<u8>>> = part.data;
        let extraction = self.extractor.credentials(Origin::Plain, data);
        self.keep(holder, data.is_empty(), extraction);
    }

    fn named(&mut self, cluster: &str) {
        let nameless: Vec<_> = self.held.keys().filter(|holder| holder.cluster.is_none()).cloned().collect();
        for mut holder in nameless {
            if let Some(held) = self.held.remove(&holder) {
                holder.cluster = Some(cluster.to_owned());
                self.held.insert(holder, held);
            }
        }
    }
}
