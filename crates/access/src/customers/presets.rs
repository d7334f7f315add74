//! Customers as the labels and objects of a known platform say them. The presets are data, in `customers/presets.yaml`.

use std::{collections::BTreeSet, sync::LazyLock};

use serde::Deserialize;

use super::{Customers, Owner, objects::texts, source};
use crate::{ClusterFacts, Snapshot, SubjectKind, source_name};

/// A platform whose way to name customers is known.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Preset {
    /// Its name, for a flag.
    pub name: String,
    /// What it goes by, in a line.
    pub title: String,
    #[serde(default)]
    namespace_labels: Vec<String>,
    namespace_prefix: Option<String>,
    customers: Option<CustomerKind>,
    owners: Option<String>,
    namespaces: Option<String>,
    #[serde(default)]
    platform_customers: Vec<String>,
    #[serde(default)]
    groups_by_name: bool,
    #[serde(default)]
    sources_by_name: bool,
    #[serde(default)]
    rest: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CustomerKind {
    group: String,
    kind: String,
}

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    // A test reads the file; what is built cannot be broken.
    serde_saphyr::from_str(include_str!("../../customers/presets.yaml")).unwrap_or_default()
});

/// All presets.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

impl Preset {
    /// The preset of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// The preset that a snapshot looks like, none if it looks like none or like several.
    pub fn detect(snapshot: &Snapshot) -> Option<&'static Self> {
        let mut fitting = PRESETS.iter().filter(|preset| {
            snapshot.clusters.iter().any(|cluster| !preset.customers_of(snapshot, cluster).is_empty())
        });
        let first = fitting.next()?;
        fitting.next().is_none().then_some(first)
    }

    /// The customers of a snapshot.
    pub fn customers(&self, snapshot: &Snapshot) -> Customers {
        let mut customers = Customers { source: format!("preset {}", self.name), ..Customers::default() };
        customers.platform.rest = self.rest;
        for cluster in &snapshot.clusters {
            for customer in self.customers_of(snapshot, cluster) {
                if !self.platform_customers.contains(&customer) {
                    customers.customers.entry(customer).or_default();
                }
            }
            self.namespaces(&mut customers, snapshot, cluster);
            self.owners(&mut customers, snapshot, cluster);
        }
        customers.tidy();
        if self.groups_by_name {
            customers.add_groups_by_name(snapshot, &self.platform_customers);
        }
        if self.sources_by_name {
            customers.add_sources_by_name(snapshot, &self.platform_customers);
        }
        customers.add_clusters(snapshot);
        customers
    }

    /// Names of customers, the platform's own among them.
    fn customers_of(&self, snapshot: &Snapshot, cluster: &ClusterFacts) -> BTreeSet<String> {
        let labels = cluster.namespaces.iter().filter_map(|namespace| self.label(snapshot, namespace));
        let objects = self.customers.iter().flat_map(|of| cluster.objects_of(&of.group, &of.kind));
        let objects = objects.map(|object| snapshot.symbols.name(object.name).to_owned());
        labels.chain(objects).filter(|name| !name.is_empty()).collect()
    }

    fn label(&self, snapshot: &Snapshot, namespace: &crate::NamespaceFact) -> Option<String> {
        let wanted = |key: &str| self.namespace_labels.iter().any(|label| label == key);
        let mut labels = namespace.labels.iter();
        let found = labels.find(|(key, _)| wanted(snapshot.symbols.name(*key)));
        found.map(|(_, value)| snapshot.symbols.name(*value).to_owned())
    }

    fn namespaces(&self, customers: &mut Customers, snapshot: &Snapshot, cluster: &ClusterFacts) {
        for namespace in &cluster.namespaces {
            let name = snapshot.symbols.name(namespace.name).to_owned();
            let by_prefix =
                self.namespace_prefix.as_ref().and_then(|prefix| name.strip_prefix(prefix.as_str()));
            let by_prefix = by_prefix.filter(|rest| {
                customers.customers.contains_key(*rest)
                    || self.platform_customers.iter().any(|own| own == rest)
            });
            let Some(customer) = self.label(snapshot, namespace).or_else(|| by_prefix.map(str::to_owned))
            else {
                continue;
            };
            if self.platform_customers.contains(&customer) {
                customers.platform.namespaces.push(name);
            } else if let Some(of) = customers.customers.get_mut(&customer) {
                of.namespaces.push(name);
            }
        }
    }

    fn owners(&self, customers: &mut Customers, snapshot: &Snapshot, cluster: &ClusterFacts) {
        let Some(kind) = &self.customers else { return };
        for object in cluster.objects_of(&kind.group, &kind.kind) {
            let Some(of) = customers.customers.get_mut(snapshot.symbols.name(object.name)) else { continue };
            if let Some(pointer) = &self.namespaces {
                of.namespaces.extend(texts(object, pointer));
            }
            let Some(owners) = self.owners.as_deref().and_then(|pointer| object.body.pointer(pointer)) else {
                continue;
            };
            for owner in owners.as_array().into_iter().flatten() {
                let text = |field: &str| {
                    owner.get(field).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
                };
                match text("kind").as_str() {
                    "Group" => of.groups.push(text("name")),
                    _ => of.users.push(text("name")),
                }
            }
        }
    }
}

impl Customers {
    /// Adds groups that are bound in a customer's namespaces and have its name as a word of theirs. A group that names
    /// several customers, or one in whose namespaces it is not bound, is left alone.
    fn add_groups_by_name(&mut self, snapshot: &Snapshot, platform: &[String]) {
        let mut found: BTreeSet<(String, Owner)> = BTreeSet::new();
        for cluster in &snapshot.clusters {
            for binding in &cluster.bindings {
                let place = binding.namespace.map(|namespace| snapshot.symbols.name(namespace));
                for subject in binding.subjects.iter().filter(|subject| subject.kind == SubjectKind::Group) {
                    let group = snapshot.symbols.name(subject.name);
                    let Some(named) =
                        self.named_in(group, platform).filter(|_| !group.starts_with("system:"))
                    else {
                        continue;
                    };
                    let bound_here = place.is_some_and(|place| self.owner_of_namespace(place) == named);
                    if bound_here || named == Owner::Platform {
                        found.insert((group.to_owned(), named));
                    }
                }
            }
        }
        for (group, owner) in found {
            match owner {
                Owner::Platform => self.platform.groups.push(group),
                Owner::Customer(customer) => {
                    if let Some(of) = self.customers.get_mut(&customer) {
                        of.groups.push(group);
                    }
                }
                Owner::Unknown => {}
            }
        }
        self.tidy();
    }

    /// Adds sources of Flux, Argo CD and app catalogs whose host or path names a customer, or one of the words that
    /// stand for the platform. What has an owner keeps it.
    pub fn add_sources_by_name(&mut self, snapshot: &Snapshot, platform: &[String]) {
        for name in source_names(snapshot) {
            if self.owner_of_source(&name) != Owner::Unknown {
                continue;
            }
            let customers = self.customers.keys().filter(|customer| source::names(&name, customer));
            let customers: Vec<String> = customers.cloned().collect();
            let of_platform = platform.iter().any(|word| source::names(&name, word));
            match (customers.as_slice(), of_platform) {
                ([customer], false) => {
                    if let Some(of) = self.customers.get_mut(customer) {
                        of.sources.push(name);
                    }
                }
                ([], true) => self.platform.sources.push(name),
                _ => {}
            }
        }
        self.tidy();
    }

    /// The one customer, or the platform, whose name is a word of a text.
    fn named_in(&self, text: &str, platform: &[String]) -> Option<Owner> {
        let customers = self.customers.keys().map(|name| (name.as_str(), Owner::Customer(name.clone())));
        let platform = platform.iter().map(|name| (name.as_str(), Owner::Platform));
        let mut found: Vec<(&str, Owner)> =
            customers.chain(platform).filter(|(name, _)| has_word(text, name)).collect();
        // `acme-labs` is not `acme`.
        let all: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
        found.retain(|(name, _)| !all.iter().any(|other| other.len() > name.len() && other.contains(name)));
        match found.as_slice() {
            [(_, owner)] => Some(owner.clone()),
            _ => None,
        }
    }
}

/// Whether a text has a word between characters that are neither letters nor digits.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let outside = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric());
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        !word.is_empty() && outside(before) && outside(after)
    })
}

/// Names of all sources that objects of a snapshot name.
pub(super) fn source_names(snapshot: &Snapshot) -> BTreeSet<String> {
    let pointers = |group: &str, kind: &str| match (group, kind) {
        ("source.toolkit.fluxcd.io", "Bucket") => ["/spec/endpoint"].as_slice(),
        ("source.toolkit.fluxcd.io", _) => ["/spec/url"].as_slice(),
        ("argoproj.io", "Application") => ["/spec/source/repoURL"].as_slice(),
        ("application.giantswarm.io", "Catalog") => ["/spec/storage/URL"].as_slice(),
        _ => [].as_slice(),
    };
    let objects = snapshot.clusters.iter().flat_map(|cluster| &cluster.objects);
    objects
        .flat_map(|object| {
            pointers(object.group(), &object.kind)
                .iter()
                .filter_map(|pointer| object.text(pointer))
                .collect::<Vec<_>>()
        })
        .map(source_name)
        .filter(|name| !name.is_empty())
        .collect()
}
