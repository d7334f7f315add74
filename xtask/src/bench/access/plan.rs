//! Which namespaces a generated cluster has and what stands in each: names only, drawn before anything is written, so
//! that bindings, mounts and rules name things that exist.
//!
//! INVARIANT: the counts are those of the size; what is not fixed is dealt among the customers' namespaces.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::fixed::{self, ClusterRole, Fixed};
use super::random::Random;
use super::rules;
use super::size::{Counts, Size};

const NAMESPACES_OF_A_CUSTOMER: usize = 4;

pub const STEMS: &[&str] = &[
    "api", "auth", "billing", "cache", "catalog", "checkout", "etl", "frontend", "gateway", "indexer",
    "ledger", "mailer", "metrics", "orders", "portal", "queue", "reports", "search", "shipping", "worker",
];

/// What a generated cluster consists of.
pub struct Plan {
    pub counts: Counts,
    pub seed: u64,
    pub fixed: Fixed,
    /// Platform namespaces first, then those of customers.
    pub places: Vec<Place>,
    /// All ClusterRoles, those that aggregate filled.
    pub cluster_roles: Vec<ClusterRole>,
    /// The names of those that customers' bindings may refer to.
    pub customer_roles: Vec<String>,
}

/// A namespace and what stands in it.
#[derive(Default)]
pub struct Place {
    pub name: String,
    /// The level of Pod Security; none where the namespace says nothing.
    pub level: Option<String>,
    pub customer: Option<usize>,
    pub accounts: Vec<String>,
    pub roles: Vec<Role>,
    pub secrets: Vec<Secret>,
}

pub struct Role {
    pub name: String,
    pub rules: Vec<Value>,
    /// Subjects of its own binding, for fixed roles.
    pub to: Option<Vec<String>>,
}

#[derive(Clone)]
pub struct Secret {
    pub name: String,
    pub kind: String,
    /// The account that a token belongs to.
    pub account: Option<String>,
    /// The workload cluster that it opens.
    pub cluster: Option<String>,
}

impl Plan {
    /// Draws the cluster of this size and seed.
    pub fn new(size: Size, seed: u64) -> Result<Self> {
        let counts = size.counts();
        let fixed = fixed::load()?;
        let mut places = places(&fixed, &counts, seed)?;
        accounts(&mut places, &fixed, &counts, seed)?;
        secrets(&mut places, &fixed, &counts, seed)?;
        roles(&mut places, &fixed, &counts, seed)?;
        let (cluster_roles, customer_roles) = cluster_roles(&fixed, &counts, seed)?;
        Ok(Self { counts, seed, fixed, places, cluster_roles, customer_roles })
    }

    /// Returns the namespaces of customers.
    pub fn customers(&self) -> &[Place] {
        let first = self.places.iter().position(|place| place.customer.is_some());
        first.and_then(|first| self.places.get(first..)).unwrap_or_default()
    }

    /// Returns a stream of random numbers of this cluster.
    pub fn random(&self, stream: &str) -> Random {
        Random::new(self.seed, stream)
    }
}

/// Says how many are left to deal after the fixed ones.
fn rest(kind: &str, all: usize, fixed: usize) -> Result<usize> {
    all.checked_sub(fixed).with_context(|| format!("the size has {all} {kind}, and {fixed} are fixed"))
}

fn places(fixed: &Fixed, counts: &Counts, seed: u64) -> Result<Vec<Place>> {
    let mut random = Random::new(seed, "places");
    let mut places: Vec<Place> = fixed
        .namespaces
        .iter()
        .map(|(name, level)| Place { name: name.clone(), level: Some(level.clone()), ..Place::default() })
        .collect();
    for index in 0..rest("namespaces", counts.namespaces, places.len())? {
        let customer = index / NAMESPACES_OF_A_CUSTOMER;
        let name = match index % NAMESPACES_OF_A_CUSTOMER {
            0 => format!("org-c{customer:04}"),
            1 => format!("c{customer:04}-apps"),
            2 => format!("c{customer:04}-ci"),
            _ => format!("c{customer:04}-data"),
        };
        let level = random.weighted(
            None,
            &[(55, Some("baseline")), (30, Some("restricted")), (5, Some("privileged")), (10, None)],
        );
        let level = level.map(str::to_owned);
        places.push(Place { name, level, customer: Some(customer), ..Place::default() });
    }
    Ok(places)
}

/// Finds the places that fixed objects go to, by name.
fn by_name(places: &mut [Place]) -> BTreeMap<String, &mut Place> {
    places.iter_mut().map(|place| (place.name.clone(), place)).collect()
}

/// Hands one object after another to a customer's namespace that is drawn.
fn deal(
    places: &mut [Place],
    count: usize,
    random: &mut Random,
    mut give: impl FnMut(&mut Place, &mut Random),
) {
    let mut customers: Vec<&mut Place> = places.iter_mut().filter(|place| place.customer.is_some()).collect();
    for _ in 0..count {
        let at = random.below(customers.len());
        if let Some(place) = customers.get_mut(at) {
            give(place, random);
        }
    }
}

fn accounts(places: &mut [Place], fixed: &Fixed, counts: &Counts, seed: u64) -> Result<()> {
    let left = rest("ServiceAccounts", counts.accounts, places.len() + fixed.accounts.len())?;
    for place in places.iter_mut() {
        place.accounts.push("default".to_owned());
    }
    let mut named = by_name(places);
    for account in &fixed.accounts {
        let (namespace, name) = account.split_once('/').context("a fixed account has a namespace")?;
        let place = named.get_mut(namespace).with_context(|| format!("no namespace `{namespace}`"))?;
        place.accounts.push(name.to_owned());
    }
    deal(places, left, &mut Random::new(seed, "account names"), |place, random| {
        place.accounts.push(format!("{}-{}", random.word(STEMS), place.accounts.len()));
    });
    Ok(())
}

fn secrets(places: &mut [Place], fixed: &Fixed, counts: &Counts, seed: u64) -> Result<()> {
    let mut random = Random::new(seed, "secret names");
    let mut written = fixed.secrets.len();
    let mut named = by_name(places);
    for secret in &fixed.secrets {
        let place = named.get_mut(&secret.namespace).context("a fixed Secret has a namespace")?;
        place.secrets.push(Secret {
            name: secret.name.clone(),
            kind: secret.kind.clone(),
            account: secret.account.clone(),
            cluster: None,
        });
    }
    for place in places.iter_mut().filter(|place| place.name.starts_with("org-")) {
        for index in 0..=random.below(2) {
            let cluster = format!("wc{:04}-{index}", place.customer.unwrap_or_default());
            for part in ["ca", "etcd", "kubeconfig", "proxy", "sa"] {
                place.secrets.push(Secret {
                    name: format!("{cluster}-{part}"),
                    kind: "cluster.x-k8s.io/secret".to_owned(),
                    account: None,
                    cluster: Some(cluster.clone()),
                });
                written += 1;
            }
        }
    }
    deal(places, rest("Secrets", counts.secrets, written)?, &mut random, |place, random| {
        let secret = customer_secret(place, random);
        place.secrets.push(secret);
    });
    Ok(())
}

fn customer_secret(place: &Place, random: &mut Random) -> Secret {
    let (stem, count) = (random.word(STEMS), place.secrets.len());
    let kind = random.weighted(
        "Opaque",
        &[
            (58, "Opaque"),
            (14, "kubernetes.io/tls"),
            (10, "kubernetes.io/dockerconfigjson"),
            (14, "helm.sh/release.v1"),
            (4, "kubernetes.io/service-account-token"),
        ],
    );
    let name = match kind {
        "kubernetes.io/tls" => format!("{stem}-{count}-tls"),
        "kubernetes.io/dockerconfigjson" => format!("{stem}-{count}-pull"),
        "helm.sh/release.v1" => format!("sh.helm.release.v1.{stem}-{count}.v{}", 1 + random.below(9)),
        "kubernetes.io/service-account-token" => format!("{stem}-{count}-token"),
        _ => format!("{stem}-{count}"),
    };
    let account = kind.ends_with("account-token").then(|| random.pick(&place.accounts).cloned()).flatten();
    Secret { name, kind: kind.to_owned(), account, cluster: None }
}

fn roles(places: &mut [Place], fixed: &Fixed, counts: &Counts, seed: u64) -> Result<()> {
    let left = rest("Roles", counts.roles, fixed.roles.len())?;
    let mut named = by_name(places);
    for role in &fixed.roles {
        let place = named.get_mut(&role.namespace).context("a fixed Role has a namespace")?;
        let (name, rules, to) = (role.name.clone(), role.rules.clone(), Some(role.to.clone()));
        place.roles.push(Role { name, rules, to });
    }
    deal(places, left, &mut Random::new(seed, "roles"), |place, random| {
        let (stem, rules) = rules::of_role(place, random);
        place.roles.push(Role { name: format!("{stem}-{}", place.roles.len()), rules, to: None });
    });
    Ok(())
}

fn cluster_roles(fixed: &Fixed, counts: &Counts, seed: u64) -> Result<(Vec<ClusterRole>, Vec<String>)> {
    let mut random = Random::new(seed, "clusterroles");
    let mut all = fixed.cluster_roles.clone();
    let mut customer = Vec::new();
    for index in 0..rest("ClusterRoles", counts.cluster_roles, all.len())? {
        let role = rules::of_cluster_role(index, &mut random);
        customer.push(role.name.clone());
        all.push(role);
    }
    fill_aggregates(&mut all);
    Ok((all, customer))
}

/// Fills the roles that aggregate, as the controller does on a live cluster. A role that is taken from may aggregate
/// itself, so it goes on until nothing changes.
fn fill_aggregates(roles: &mut [ClusterRole]) {
    loop {
        let mut changed = false;
        let filled: Vec<Option<Vec<Value>>> = roles
            .iter()
            .map(|role| {
                let label = role.aggregates.as_ref()?;
                let from = roles.iter().filter(|other| other.labels.contains_key(label));
                let mut rules: Vec<Value> = Vec::new();
                for rule in from.flat_map(|other| &other.rules) {
                    if !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
                Some(rules)
            })
            .collect();
        for (role, rules) in roles.iter_mut().zip(filled) {
            if let Some(rules) = rules.filter(|rules| *rules != role.rules) {
                role.rules = rules;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
