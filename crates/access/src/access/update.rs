//! What a change of roles, bindings and accounts makes other, without making the rest anew.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use rustc_hash::FxHashMap;

use super::Access;
use crate::{
    Certainty, Customers, Snapshot, Symbol, Symbols,
    graph::{self, Changes, Edit, NodeId},
    judge,
};

/// From which other state one was made, and the nodes that were expanded again.
#[derive(Debug, Clone)]
pub struct Since {
    of: u64,
    touched: Vec<NodeId>,
}

/// A number that no other state has.
pub fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Access {
    /// The names that changes are said in; new ones may be added.
    pub fn symbols_mut(&mut self) -> &mut Symbols {
        &mut self.snapshot.symbols
    }

    /// What must change for another state of the same clusters: that of [`Access::snapshot`], cloned, with roles,
    /// bindings and accounts that are new, others or gone. None if anything else differs.
    pub fn changes_to(&self, next: &Snapshot) -> Option<Vec<Changes>> {
        let Snapshot { symbols, clusters, gaps, .. } = &self.snapshot;
        if !symbols.is_start_of(&next.symbols) || clusters.len() != next.clusters.len() || *gaps != next.gaps
        {
            return None;
        }
        let mut changes = Vec::new();
        for ((cluster, before), after) in (0u16..).zip(clusters).zip(&next.clusters) {
            let same = before.name == after.name
                && before.minor == after.minor
                && before.namespaces == after.namespaces
                && before.nodes == after.nodes
                && before.secrets == after.secrets
                && before.pods == after.pods
                && before.listed == after.listed
                && before.objects == after.objects;
            if !same {
                return None;
            }
            changes.push(Changes {
                cluster,
                bindings: edits(&before.bindings, &after.bindings, |b| (b.namespace, b.name)),
                roles: edits(&before.roles, &after.roles, |r| (r.namespace, r.name)),
                service_accounts: edits(&before.service_accounts, &after.service_accounts, |a| {
                    (Some(a.namespace), a.name)
                }),
            });
        }
        Some(changes)
    }

    /// Another state of the same clusters. If only roles, bindings and accounts differ ([`Access::changes_to`]), it is made
    /// from this one, and [`Access::what_if`] looks only at what the changes touch.
    pub fn then(&self, next: Snapshot, customers: Customers) -> Self {
        let changes = self.changes_to(&next).filter(|_| customers == self.customers);
        let Some(changes) = changes else { return Self::new(next, customers) };
        let mut after = self.clone();
        after.id = fresh();
        after.since = Some(Since { of: self.id, touched: Vec::new() });
        after.snapshot.symbols = next.symbols;
        for changes in changes {
            after.update(changes);
        }
        after
    }

    /// The nodes that were expanded again, if this state was made from the other.
    pub(super) fn touched_since(&self, before: &Self) -> Option<Vec<NodeId>> {
        self.since.as_ref().filter(|since| since.of == before.id).map(|since| since.touched.clone())
    }

    /// Makes a change. What may reach something else is made anew and the rest is kept; if the change cannot be followed
    /// (a controller appears, a policy reads the role), all of it is made anew. Says whether it was followed.
    ///
    /// The answer is that of [`Access::new`] for the changed facts; of several shortest ways another may be told.
    pub fn update(&mut self, changes: Changes) -> bool {
        let (cluster, mut namespaces) = (changes.cluster, Vec::new());
        for edit in &changes.bindings {
            let (Edit::Put(binding) | Edit::Remove(binding)) = edit;
            namespaces.extend(binding.namespace);
            namespaces.extend(binding.subjects.iter().map(|subject| subject.namespace));
        }
        for edit in &changes.service_accounts {
            let (Edit::Put(account) | Edit::Remove(account)) = edit;
            namespaces.push(account.namespace);
        }
        let Self { snapshot, graph, proven, all, .. } = self;
        let closures = [(proven, Certainty::Proven), (all, Certainty::Assumed)];
        let renewal = graph.renew(snapshot, changes, closures);
        if let Some(renewal) = &renewal {
            if let Some(since) = &mut self.since {
                since.touched.extend(&renewal.touched);
            }
            for namespace in namespaces {
                self.owners.add_namespace(&self.snapshot, &self.customers, cluster, namespace);
            }
            if renewal.somebody {
                self.owners.add(&self.snapshot, &self.customers, self.graph.somebodies());
                self.starts = judge::starts(&self.graph, &self.owners);
            }
        } else {
            self.since = None;
            (self.graph, self.proven, self.all) = graph::build(&mut self.snapshot);
            self.owners =
                crate::owners::Owners::new(&self.snapshot, &self.customers, self.graph.somebodies());
            self.starts = judge::starts(&self.graph, &self.owners);
        }
        self.reverse = OnceLock::new();
        self.counts = OnceLock::new();
        renewal.is_some()
    }
}

/// What is new, other or gone in a list of objects.
fn edits<T: Clone + PartialEq>(
    before: &[T],
    after: &[T],
    key: impl Fn(&T) -> (Option<Symbol>, Symbol),
) -> Vec<Edit<T>> {
    let old: FxHashMap<_, &T> = before.iter().map(|object| (key(object), object)).collect();
    let new: FxHashMap<_, &T> = after.iter().map(|object| (key(object), object)).collect();
    let gone = before.iter().filter(|object| !new.contains_key(&key(object)));
    let put = after.iter().filter(|object| old.get(&key(object)).is_none_or(|known| known != object));
    gone.map(|object| Edit::Remove(object.clone()))
        .chain(put.map(|object| Edit::Put(object.clone())))
        .collect()
}

#[cfg(test)]
mod tests;
