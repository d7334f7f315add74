//! Whose each namespace, identity and source of a snapshot is, as small numbers.

use rustc_hash::FxHashMap;

use crate::{Customers, Fact, Identity, Owner, Scope, Snapshot, SubjectKind, Symbol, answer};

/// Whose something is: an index into [`Owners`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Whose(pub u16);

impl Whose {
    /// The platform's.
    pub const PLATFORM: Self = Self(0);
    /// Nobody knows.
    pub const UNKNOWN: Self = Self(1);
    /// Everybody's: an implicit group that all are in.
    pub const EVERYONE: Self = Self(2);

    /// Whether it is a customer's.
    pub fn is_customer(self) -> bool {
        self.0 > Self::EVERYONE.0
    }
}

/// Whose what is, of all clusters of a snapshot.
#[derive(Debug, Clone)]
pub struct Owners {
    names: Vec<String>,
    namespaces: FxHashMap<(u16, Symbol), Whose>,
    clusters: Vec<Option<Whose>>,
    subjects: FxHashMap<(u16, Identity), Whose>,
    sources: FxHashMap<Symbol, Whose>,
}

impl Owners {
    /// Asks the customers about everything that the facts name.
    pub fn new(
        snapshot: &Snapshot,
        customers: &Customers,
        somebodies: impl Iterator<Item = (u16, Fact)>,
    ) -> Self {
        let mut owners = Self {
            names: [answer::PLATFORM, answer::UNKNOWN, answer::EVERYONE].map(str::to_owned).to_vec(),
            namespaces: FxHashMap::default(),
            clusters: Vec::new(),
            subjects: FxHashMap::default(),
            sources: FxHashMap::default(),
        };
        owners.names.extend(customers.customers.keys().cloned());
        for (index, cluster) in (0u16..).zip(&snapshot.clusters) {
            let whole = match customers.owner_of_cluster(&cluster.name) {
                Owner::Unknown => None,
                owner => Some(owners.whose(&owner)),
            };
            owners.clusters.push(whole);
            let named = cluster.namespaces.iter().map(|namespace| namespace.name);
            let used = cluster.secrets.iter().map(|secret| secret.namespace);
            let accounts = cluster.service_accounts.iter().map(|account| account.namespace);
            let bound = cluster.bindings.iter().flat_map(|binding| {
                binding.subjects.iter().map(|subject| subject.namespace).chain(binding.namespace)
            });
            for namespace in named.chain(used).chain(accounts).chain(bound) {
                owners.add_namespace(snapshot, customers, index, namespace);
            }
        }
        owners.add(snapshot, customers, somebodies);
        owners
    }

    /// Asks the customers about a namespace that is new.
    pub fn add_namespace(
        &mut self,
        snapshot: &Snapshot,
        customers: &Customers,
        cluster: u16,
        namespace: Symbol,
    ) {
        if !self.namespaces.contains_key(&(cluster, namespace)) {
            let owner = customers.owner_of_namespace(snapshot.symbols.name(namespace));
            let whose = self.of_cluster(cluster).unwrap_or(self.whose(&owner));
            self.namespaces.insert((cluster, namespace), whose);
        }
    }

    /// Asks them about somebody who is new.
    pub fn add(
        &mut self,
        snapshot: &Snapshot,
        customers: &Customers,
        somebodies: impl Iterator<Item = (u16, Fact)>,
    ) {
        for (cluster, fact) in somebodies {
            match fact {
                Fact::Identity(identity) if !self.subjects.contains_key(&(cluster, identity)) => {
                    let whose = self.ask(snapshot, customers, cluster, identity);
                    self.subjects.insert((cluster, identity), whose);
                }
                Fact::Source(source) if !self.sources.contains_key(&source) => {
                    let owner = customers.owner_of_source(snapshot.symbols.name(source));
                    let whose = self.whose(&owner);
                    self.sources.insert(source, whose);
                }
                _ => {}
            }
        }
    }

    fn ask(&self, snapshot: &Snapshot, customers: &Customers, cluster: u16, identity: Identity) -> Whose {
        let name = snapshot.symbols.name(identity.name);
        let is_group = identity.kind == SubjectKind::Group;
        if is_group && Customers::is_everyone(name) {
            return Whose::EVERYONE;
        }
        let namespace = snapshot.symbols.name(identity.namespace);
        let owner = self.whose(&customers.owner_of_subject(identity.kind, namespace, name));
        if identity.kind == SubjectKind::ServiceAccount && owner == Whose::UNKNOWN {
            return self.of_namespace(cluster, identity.namespace);
        }
        // In a customer's own cluster whoever is not the platform's or Kubernetes' is the customer's.
        match (owner, self.clusters.get(usize::from(cluster)).copied().flatten()) {
            (Whose::UNKNOWN, Some(whole)) => whole,
            (owner, _) => owner,
        }
    }

    fn whose(&self, owner: &Owner) -> Whose {
        match owner {
            Owner::Platform => Whose::PLATFORM,
            Owner::Unknown => Whose::UNKNOWN,
            Owner::Customer(name) => self
                .names
                .iter()
                .skip(3)
                .position(|known| known == name)
                .and_then(|index| u16::try_from(index + 3).ok())
                .map_or(Whose::UNKNOWN, Whose),
        }
    }

    /// Whose a namespace is.
    pub fn of_namespace(&self, cluster: u16, namespace: Symbol) -> Whose {
        let known = self.namespaces.get(&(cluster, namespace)).copied();
        known.or(self.of_cluster(cluster)).unwrap_or(Whose::UNKNOWN)
    }

    /// Whose a whole cluster is, if it is somebody's.
    pub fn of_cluster(&self, cluster: u16) -> Option<Whose> {
        self.clusters.get(usize::from(cluster)).copied().flatten()
    }

    /// Whose an identity or a source is.
    pub fn of_fact(&self, cluster: u16, fact: &Fact) -> Whose {
        match fact {
            Fact::Identity(identity) => {
                self.subjects.get(&(cluster, *identity)).copied().unwrap_or(Whose::UNKNOWN)
            }
            Fact::Source(source) => self.sources.get(source).copied().unwrap_or(Whose::UNKNOWN),
            Fact::Secret { namespace, .. } => self.of_namespace(cluster, *namespace),
            Fact::Secrets(Scope::Namespace(namespace)) | Fact::Everything(Scope::Namespace(namespace)) => {
                self.of_namespace(cluster, *namespace)
            }
            _ => Whose::UNKNOWN,
        }
    }

    /// The name to show.
    pub fn name(&self, whose: Whose) -> &str {
        self.names.get(usize::from(whose.0)).map_or(answer::UNKNOWN, String::as_str)
    }

    /// All customers.
    pub fn customers(&self) -> impl Iterator<Item = Whose> {
        (3..self.names.len()).filter_map(|index| u16::try_from(index).ok().map(Whose))
    }
}
