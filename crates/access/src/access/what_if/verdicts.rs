//! The Secrets whose verdict changes.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::ends::End;
use crate::{
    SecretFact,
    access::Access,
    answer::{Verdict, VerdictChange},
    judge::{self, Audiences, Listed},
    owners::Whose,
};

/// A Secret by the names of its cluster, its namespace and itself.
type Name<'a> = (&'a str, &'a str, &'a str);

/// The verdicts that differ, by name: of Secrets that are new, gone or another's, that lie under an end that somebody
/// gains or loses, or that hold a credential of others.
pub fn changes<'a>(before: &'a Access, after: &'a Access, ends: &[End<'a>]) -> Vec<VerdictChange> {
    let ends: FxHashSet<End<'a>> = ends.iter().copied().collect();
    let (old, new) = (Secrets::new(before), Secrets::new(after));
    let mut changes: BTreeMap<Name<'a>, [Option<Verdict>; 2]> = BTreeMap::new();
    for (name, secret) in &new.by_name {
        let was = old.by_name.get(name);
        let same_owner = was.is_some_and(|was| old.owner_name(was) == new.owner_name(secret));
        if !same_owner
            || is_under(name, &ends)
            || was.is_some_and(|was| before.is_copied(was))
            || after.is_copied(secret)
        {
            changes.insert(*name, [was.map(|was| old.verdict(was)), Some(new.verdict(secret))]);
        }
    }
    for (name, secret) in old.by_name.iter().filter(|(name, _)| !new.by_name.contains_key(*name)) {
        changes.insert(*name, [Some(old.verdict(secret)), None]);
    }
    let first = before.snapshot.clusters.first().map(|cluster| cluster.name.as_str());
    let changed = changes.into_iter().filter(|(_, [before, after])| before != after);
    let told = changed.map(|((cluster, namespace, name), [before, after])| {
        let prefix = if first == Some(cluster) { String::new() } else { format!("{cluster}:") };
        VerdictChange { secret: format!("{prefix}{namespace}/{name}"), before, after }
    });
    let mut told: Vec<VerdictChange> = told.collect();
    told.sort_by(|a, b| a.secret.cmp(&b.secret));
    told
}

fn is_under(name: &Name<'_>, ends: &FxHashSet<End<'_>>) -> bool {
    let (cluster, namespace, name) = *name;
    let whole = End { cluster, namespace: None, name: None };
    let within = End { namespace: Some(namespace), ..whole };
    [End { name: Some(name), ..within }, within, whole].iter().any(|end| ends.contains(end))
}

/// The Secrets of one state.
struct Secrets<'a> {
    access: &'a Access,
    audiences: Audiences,
    by_name: FxHashMap<Name<'a>, (u16, &'a SecretFact, Whose)>,
}

impl<'a> Secrets<'a> {
    fn new(access: &'a Access) -> Self {
        let name = |symbol| access.snapshot.symbols.name(symbol);
        let clusters = (0u16..).zip(&access.snapshot.clusters);
        let secrets = clusters
            .flat_map(|(index, facts)| facts.secrets.iter().map(move |secret| (index, facts, secret)));
        let by_name = secrets.map(|(index, facts, secret)| {
            let owner = access.owners.of_namespace(index, secret.namespace);
            ((facts.name.as_str(), name(secret.namespace), name(secret.name)), (index, secret, owner))
        });
        Self {
            access,
            audiences: Audiences::new(&access.all, &access.graph, &access.starts, &Listed::default()),
            by_name: by_name.collect(),
        }
    }

    fn owner_name(&self, (_, _, owner): &(u16, &SecretFact, Whose)) -> &'a str {
        self.access.owners.name(*owner)
    }

    fn verdict(&self, (cluster, secret, owner): &(u16, &SecretFact, Whose)) -> Verdict {
        judge::verdict(*owner, &self.access.audience(&self.audiences, *cluster, secret))
    }
}

impl Access {
    /// Whether a credential of a Secret lies elsewhere, too.
    fn is_copied(&self, (cluster, secret, _): &(u16, &SecretFact, Whose)) -> bool {
        self.shared.others(*cluster, secret.namespace, secret.name).next().is_some()
    }
}
