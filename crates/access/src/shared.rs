//! Credentials that lie in several places: whoever reads one place holds what the others keep.
//!
//! Values are seen by [`Ledger::secret`] only, which keeps fingerprints. Weak credentials are compared by marks that
//! mean nothing outside this process.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Access, Certainty, Symbol,
    answer::{Finding, Severity, Step},
    catalogue, findings,
    fingerprint::{Extractor, Mark, Origin},
    load::{OpenSecret, SecretValues},
    owners::Whose,
};

/// Where a credential was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    cluster: Option<String>,
    namespace: String,
    name: String,
    key: String,
    weak: bool,
}

/// Fingerprints of everything that was opened.
#[derive(Debug)]
pub struct Ledger {
    extractor: Extractor,
    by_mark: BTreeMap<Mark, BTreeSet<Found>>,
    /// Objects of which parts were not looked into.
    unread: Vec<String>,
}

impl Ledger {
    /// An empty one.
    pub fn new(extractor: Extractor) -> Self {
        Self { extractor, by_mark: BTreeMap::new(), unread: Vec::new() }
    }

    /// Objects of which parts were too large or too deep to be looked into, as `Secret NS/NAME#KEY`.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }
}

impl SecretValues for Ledger {
    fn secret(&mut self, secret: &OpenSecret<'_>) {
        let extraction = self.extractor.credentials(Origin::Secret(secret.kind), secret.data);
        for part in &extraction.unread {
            self.unread.push(format!("Secret {}/{}#{}", secret.namespace, secret.name, part.key));
        }
        for credential in &extraction.credentials {
            let found = Found {
                cluster: secret.cluster.map(str::to_owned),
                namespace: secret.namespace.to_owned(),
                name: secret.name.to_owned(),
                key: credential.key.clone(),
                weak: credential.weak,
            };
            for mark in credential.marks() {
                self.by_mark.entry(mark).or_default().insert(found.clone());
            }
        }
    }
}

/// One place of a shared credential, in the numbers of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    cluster: u16,
    namespace: Symbol,
    name: Symbol,
    key: String,
}

/// The credentials that lie in more than one Secret.
#[derive(Debug, Default)]
pub struct Shared {
    groups: BTreeMap<Vec<Place>, bool>,
}

impl Shared {
    /// Those of a ledger, as far as their Secrets are in the snapshot.
    pub fn new(ledger: &Ledger, snapshot: &crate::Snapshot) -> Self {
        let place = |found: &Found| {
            let cluster = match &found.cluster {
                None => 0,
                Some(name) => snapshot.clusters.iter().position(|cluster| cluster.name == *name).unwrap_or(0),
            };
            Some(Place {
                cluster: u16::try_from(cluster).ok()?,
                namespace: snapshot.symbols.find(&found.namespace)?,
                name: snapshot.symbols.find(&found.name)?,
                key: found.key.clone(),
            })
        };
        let mut groups = BTreeMap::new();
        for found in ledger.by_mark.values().filter(|found| found.len() > 1) {
            let mut places: Vec<Place> = found.iter().filter_map(place).collect();
            places.sort();
            places.dedup();
            let secrets: BTreeSet<_> = places.iter().map(|p| (p.cluster, p.namespace, p.name)).collect();
            if secrets.len() > 1 {
                let weak = found.iter().all(|found| found.weak);
                *groups.entry(places).or_insert(weak) &= weak;
            }
        }
        Self { groups }
    }

    /// The other Secrets that hold a credential of this one.
    pub fn others(
        &self,
        cluster: u16,
        namespace: Symbol,
        name: Symbol,
    ) -> impl Iterator<Item = (u16, Symbol, Symbol)> + '_ {
        let is_it =
            move |place: &Place| (place.cluster, place.namespace, place.name) == (cluster, namespace, name);
        self.groups
            .keys()
            .filter(move |places| places.iter().any(is_it))
            .flatten()
            .filter(move |place| !is_it(place))
            .map(|place| (place.cluster, place.namespace, place.name))
    }

    /// A finding for each credential that lies with different owners.
    pub fn findings(&self, access: &Access) -> Vec<Finding> {
        self.groups.iter().filter_map(|(places, weak)| finding(access, places, *weak)).collect()
    }
}

fn finding(access: &Access, places: &[Place], weak: bool) -> Option<Finding> {
    let owner = |place: &Place| access.owners.of_namespace(place.cluster, place.namespace);
    let owners: BTreeSet<Whose> = places.iter().map(owner).collect();
    if owners.len() < 2 {
        return None;
    }
    let text = |place: &Place| {
        let name = |symbol| access.snapshot.symbols.name(symbol);
        let prefix = access.explainer().prefix(place.cluster);
        format!("{prefix}{}/{}#{}", name(place.namespace), name(place.name), place.key)
    };
    let first = places.iter().find(|place| owner(place).is_customer()).or(places.first())?;
    let others: Vec<&Place> = places.iter().filter(|place| owner(place) != owner(first)).collect();
    let rule = if weak { "weak-credential" } else { "shared-credential" };
    let edge = catalogue::edge(rule);
    let path: Vec<Step> = others
        .iter()
        .map(|other| Step {
            edge: rule.to_owned(),
            from: format!("Secret {}", text(first)),
            to: format!("Secret {}", text(other)),
            object: format!("Secret {}", text(other)),
            rule: "the same credential, by its fingerprint".to_owned(),
            at: None,
            guard: None,
            certainty: Certainty::Proven,
        })
        .collect();
    let subject = format!("secret:{}", text(first));
    let reaches: BTreeSet<String> =
        others.iter().map(|other| access.owners.name(owner(other)).to_owned()).collect();
    let reaches: Vec<String> = reaches.into_iter().collect();
    let customers = owners.iter().filter(|owner| owner.is_customer()).count();
    Some(Finding {
        id: findings::id(rule, &subject, &path),
        rule: rule.to_owned(),
        severity: if customers == 0 {
            Severity::Low
        } else if weak {
            Severity::Medium
        } else {
            Severity::High
        },
        message: format!(
            "the same credential lies with {} and with {}",
            access.owners.name(owner(first)),
            reaches.join(", ")
        ),
        customer: access.owners.name(owner(first)).to_owned(),
        also: Vec::new(),
        reaches,
        secrets: others.iter().map(|other| text(other)).collect(),
        secret_count: others.len(),
        certainty: Certainty::Proven,
        path,
        remedy: edge.map_or_else(String::new, |edge| edge.remedy.clone()),
        subject,
    })
}
