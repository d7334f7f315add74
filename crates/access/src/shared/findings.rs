//! What is wrong with a credential that lies with several owners.

use std::collections::BTreeSet;

use super::places::{Group, Place, Shared};
use crate::answer::{Finding, Severity, Step};
use crate::owners::Whose;
use crate::{Access, Certainty, catalogue, findings};

/// How many places a finding names, of each side.
const PLACES: usize = 50;

impl Shared {
    /// A finding for each credential that lies with different owners.
    pub fn findings(&self, access: &Access) -> Vec<Finding> {
        self.groups.iter().filter_map(|group| finding(access, group)).collect()
    }
}

impl Group {
    /// Id of the edge from one place to another.
    pub(super) fn rule(&self) -> &'static str {
        if self.weak { "weak-credential" } else { "shared-credential" }
    }

    /// The step from one place to another.
    pub(super) fn step(&self, access: &Access, from: &Place, to: &Place) -> Step {
        let rule = match self.fingerprint {
            Some(fingerprint) => format!("the same credential, fingerprint {fingerprint}"),
            None => "the same credential, by its fingerprint".to_owned(),
        };
        Step {
            edge: self.rule().to_owned(),
            from: text(access, from),
            to: text(access, to),
            object: text(access, to),
            rule,
            at: None,
            guard: None,
            certainty: Certainty::Proven,
        }
    }
}

/// `Kind NS/NAME#KEY`.
fn text(access: &Access, place: &Place) -> String {
    format!("{} {}#{}", place.kind, object(access, place), place.key)
}

/// `NS/NAME`.
fn object(access: &Access, place: &Place) -> String {
    let name = |symbol| access.snapshot.symbols.name(symbol);
    let prefix = access.explainer().prefix(place.cluster);
    format!("{prefix}{}/{}", name(place.namespace), name(place.name))
}

fn finding(access: &Access, group: &Group) -> Option<Finding> {
    let places = &group.places;
    let owner = |place: &Place| access.owners.of_namespace(place.cluster, place.namespace);
    let owners: BTreeSet<Whose> = places.iter().map(owner).collect();
    if owners.len() < 2 {
        return None;
    }
    let rank = |place: &&Place| (!owner(place).is_customer(), !place.is_secret());
    let first = places.iter().min_by_key(rank)?;
    let others: Vec<&Place> = places.iter().filter(|place| owner(place) != owner(first)).collect();
    let rule = group.rule();
    let path: Vec<Step> = others.iter().take(PLACES).map(|other| group.step(access, first, other)).collect();
    let subject = format!("{}:{}#{}", first.kind.to_lowercase(), object(access, first), first.key);
    let reaches: BTreeSet<String> =
        others.iter().map(|other| access.owners.name(owner(other)).to_owned()).collect();
    let reaches: Vec<String> = reaches.into_iter().collect();
    let customers = owners.iter().filter(|owner| owner.is_customer()).count();
    let secrets: BTreeSet<String> =
        places.iter().filter(|place| place.is_secret()).map(|place| object(access, place)).collect();
    Some(Finding {
        id: findings::id(rule, &subject, &path),
        rule: rule.to_owned(),
        severity: match (customers, group.weak) {
            (0, _) => Severity::Low,
            (_, true) => Severity::Medium,
            (_, false) => Severity::High,
        },
        message: format!(
            "the same credential lies with {} and with {}",
            access.owners.name(owner(first)),
            reaches.join(", ")
        ),
        customer: access.owners.name(owner(first)).to_owned(),
        also: Vec::new(),
        reaches,
        secret_count: secrets.len(),
        secrets: secrets.into_iter().collect(),
        certainty: Certainty::Proven,
        path,
        remedy: catalogue::edge(rule).map_or_else(String::new, |edge| edge.remedy.clone()),
        subject,
    })
}
