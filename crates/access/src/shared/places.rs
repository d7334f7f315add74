//! The credentials that lie in more than one object, in the numbers of a snapshot.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Found, Holder, Ledger};
use crate::fingerprint::{Fingerprint, Mark};
use crate::{Snapshot, Symbol};

/// The kind of a Secret.
pub(super) const SECRET: &str = "Secret";

/// One place of a shared credential.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) cluster: u16,
    pub(super) namespace: Symbol,
    pub(super) name: Symbol,
    pub(super) kind: String,
    /// Where in the object, with the container before it.
    pub(super) key: String,
}

impl Place {
    pub(super) fn is_secret(&self) -> bool {
        self.kind == SECRET
    }

    fn object(&self) -> (u16, Symbol, Symbol, &str) {
        (self.cluster, self.namespace, self.name, &self.kind)
    }
}

/// Places of one credential.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// At least two objects, sorted.
    pub(super) places: Vec<Place>,
    /// Whether it can be guessed.
    pub(super) weak: bool,
    /// What is shown for it, if anything may be.
    pub(super) fingerprint: Option<Fingerprint>,
}

/// The credentials that lie in more than one object.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    pub(super) groups: Vec<Group>,
    /// Groups by a Secret that is in them.
    by_secret: FxHashMap<(u16, Symbol, Symbol), Vec<usize>>,
}

impl Shared {
    /// Those of a ledger, as far as their Secrets are in the snapshot.
    pub fn new(ledger: &Ledger, snapshot: &Snapshot) -> Self {
        let numbers = Numbers::new(snapshot);
        let mut by_mark: BTreeMap<Mark, BTreeSet<(Place, bool)>> = BTreeMap::new();
        for (holder, held) in &ledger.held {
            for found in &held.credentials {
                let Some(place) = numbers.place(holder, found) else { continue };
                for mark in &found.marks {
                    by_mark.entry(*mark).or_default().insert((place.clone(), found.weak));
                }
            }
        }
        // A login and its password alone make one group where they lie in the same places.
        let mut groups: BTreeMap<Vec<Place>, (bool, Option<Fingerprint>)> = BTreeMap::new();
        for (mark, found) in by_mark {
            let weak = found.iter().all(|(_, weak)| *weak);
            let fingerprint = match mark {
                Mark::Exported(fingerprint) => Some(fingerprint).filter(|_| ledger.shows),
                Mark::Local(_) => None,
            };
            let mut places: Vec<Place> = found.into_iter().map(|(place, _)| place).collect();
            places.dedup();
            let objects: BTreeSet<_> = places.iter().map(Place::object).collect();
            if objects.len() > 1 {
                let group = groups.entry(places).or_insert((weak, None));
                group.0 &= weak;
                group.1 = group.1.or(fingerprint);
            }
        }
        let groups = groups.into_iter();
        Self::of(groups.map(|(places, (weak, fingerprint))| Group { places, weak, fingerprint }).collect())
    }

    fn of(groups: Vec<Group>) -> Self {
        let mut by_secret: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (index, group) in groups.iter().enumerate() {
            for place in group.places.iter().filter(|place| place.is_secret()) {
                let indices = by_secret.entry((place.cluster, place.namespace, place.name)).or_default();
                if indices.last() != Some(&index) {
                    indices.push(index);
                }
            }
        }
        Self { groups, by_secret }
    }

    /// The other objects that hold a credential of this Secret, as Secrets. One that is none has a name that nothing
    /// holds: of its readers, those are known who read all Secrets beside it.
    pub fn others(
        &self,
        cluster: u16,
        namespace: Symbol,
        name: Symbol,
    ) -> impl Iterator<Item = (u16, Symbol, Symbol)> + '_ {
        let places = self.places_beside(cluster, namespace, name).map(|(_, place)| {
            let name = if place.is_secret() { place.name } else { Symbol::UNKNOWN };
            (place.cluster, place.namespace, name)
        });
        places.collect::<BTreeSet<_>>().into_iter()
    }

    /// The other places of what this Secret holds, each with the credential.
    pub(super) fn places_beside(
        &self,
        cluster: u16,
        namespace: Symbol,
        name: Symbol,
    ) -> impl Iterator<Item = (&Group, &Place)> {
        let own = (cluster, namespace, name, SECRET);
        let indices = self.by_secret.get(&(cluster, namespace, name)).into_iter().flatten();
        let groups = indices.filter_map(|index| self.groups.get(*index));
        groups
            .flat_map(|group| group.places.iter().map(move |place| (group, place)))
            .filter(move |(_, place)| place.object() != own)
    }
}

/// Finds the numbers of names.
struct Numbers<'s> {
    snapshot: &'s Snapshot,
    secrets: FxHashSet<(u16, Symbol, Symbol)>,
}

impl<'s> Numbers<'s> {
    fn new(snapshot: &'s Snapshot) -> Self {
        let clusters = (0u16..).zip(&snapshot.clusters);
        let secrets = clusters
            .flat_map(|(cluster, facts)| facts.secrets.iter().map(move |s| (cluster, s.namespace, s.name)))
            .collect();
        Self { snapshot, secrets }
    }

    /// The place of a credential, unless its Secret is not in the snapshot (any more).
    fn place(&self, holder: &Holder, found: &Found) -> Option<Place> {
        let cluster = match &holder.cluster {
            None => 0,
            Some(name) => self.snapshot.clusters.iter().position(|cluster| cluster.name == *name)?,
        };
        let place = Place {
            cluster: u16::try_from(cluster).ok()?,
            namespace: self.snapshot.symbols.find(&holder.namespace)?,
            name: self.snapshot.symbols.find(&holder.name)?,
            kind: holder.kind.clone(),
            key: holder.key(&found.key),
        };
        let is_there =
            !place.is_secret() || self.secrets.contains(&(place.cluster, place.namespace, place.name));
        is_there.then_some(place)
    }
}
