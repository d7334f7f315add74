//! Whether each customer is isolated: nobody else reaches its Secrets, and it reaches none of others.

use std::collections::BTreeMap;

use super::Access;
use crate::{
    SecretFact,
    judge::{self, Audiences, Listed},
    owners::Whose,
};

/// How many Secrets are named of each kind.
const NAMED: usize = 3;

/// The Secrets of one customer by who reaches them, and those of others that it reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// Secrets that are its own.
    pub total: usize,
    /// Own Secrets that provably nobody but it and the platform reaches.
    pub exactly_one: usize,
    /// Own Secrets that provably somebody else reaches.
    pub shared: usize,
    /// The first of them, as `NAMESPACE/NAME` and who.
    pub shared_with: Vec<(String, String)>,
    /// Own Secrets of which that is not sure.
    pub unknown: usize,
    /// The first of them, as `NAMESPACE/NAME` and who may reach it.
    pub unknown_with: Vec<(String, String)>,
    /// Secrets of the platform and of other customers that it provably reaches.
    pub others: usize,
    /// The first of them, as `NAMESPACE/NAME` and whose.
    pub reaches: Vec<(String, String)>,
    /// Such Secrets that it may reach.
    pub others_unknown: usize,
}

impl Access {
    /// How isolated each customer is, by name.
    pub fn isolation(&self) -> BTreeMap<String, Isolation> {
        let all = Audiences::new(&self.all, &self.graph, &self.starts, &Listed::default());
        let proven = Audiences::new(&self.proven, &self.graph, &self.starts, &Listed::default());
        let mut of: BTreeMap<Whose, Isolation> =
            self.owners.customers().map(|whose| (whose, Isolation::default())).collect();
        for (cluster, facts) in (0u16..).zip(&self.snapshot.clusters) {
            for secret in &facts.secrets {
                let owner = self.owners.of_namespace(cluster, secret.namespace);
                let audience = self.audience(&all, cluster, secret);
                let sure = self.audience(&proven, cluster, secret);
                if let Some(own) = of.get_mut(&owner) {
                    self.count_own(own, owner, secret, &audience, &sure);
                }
                if owner == Whose::UNKNOWN {
                    continue;
                }
                for whose in audience.customers.iter().filter(|whose| **whose != owner) {
                    let Some(theirs) = of.get_mut(whose) else { continue };
                    if !sure.customers.contains(whose) {
                        theirs.others_unknown += 1;
                        continue;
                    }
                    theirs.others += 1;
                    self.name(&mut theirs.reaches, secret, || self.owners.name(owner).to_owned());
                }
            }
        }
        of.into_iter().map(|(whose, isolation)| (self.owners.name(whose).to_owned(), isolation)).collect()
    }

    fn count_own(
        &self,
        own: &mut Isolation,
        owner: Whose,
        secret: &SecretFact,
        audience: &judge::Audience,
        sure: &judge::Audience,
    ) {
        let others = |audience: &judge::Audience| {
            let others = audience.customers.iter().filter(|whose| **whose != owner);
            others.map(|whose| self.owners.name(*whose)).collect::<Vec<_>>().join(", ")
        };
        own.total += 1;
        let (sure, maybe) = (others(sure), others(audience));
        if !sure.is_empty() {
            own.shared += 1;
            self.name(&mut own.shared_with, secret, || sure);
        } else if !maybe.is_empty() || audience.unknown {
            own.unknown += 1;
            let who = || if maybe.is_empty() { "somebody who belongs to nobody".to_owned() } else { maybe };
            self.name(&mut own.unknown_with, secret, who);
        } else {
            own.exactly_one += 1;
        }
    }

    fn name(&self, named: &mut Vec<(String, String)>, secret: &SecretFact, with: impl FnOnce() -> String) {
        if named.len() < NAMED {
            let name = |symbol| self.snapshot.symbols.name(symbol);
            named.push((format!("{}/{}", name(secret.namespace), name(secret.name)), with()));
        }
    }
}
