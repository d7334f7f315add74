//! Answers that count who reaches another place of the same credential.

use std::collections::BTreeSet;

use super::places::{Group, Place};
use crate::answer::{Finding, Reach, ReachedSecret, Reader, WhatIf, WhoCanRead, Why};
use crate::question::{QuestionError, SecretRef, SubjectRef};
use crate::{Access, Symbol, findings};

impl Access {
    /// Everybody who reaches a Secret or another one that holds the same credential, with the shortest way of each.
    pub fn who_holds(&self, secret: &SecretRef) -> Result<WhoCanRead, QuestionError> {
        let mut answer = self.who_can_read(secret)?;
        let owner = answer.secret.customer.clone();
        let mut known: BTreeSet<String> =
            answer.subjects.iter().map(|reader| reader.subject.clone()).collect();
        for (group, own, other) in self.copies(secret) {
            for mut reader in self.who_can_read(&self.secret_ref(other))?.subjects {
                if known.insert(reader.subject.clone()) {
                    reader.path.push(group.step(self, other, &own));
                    answer.subjects.push(reader);
                }
            }
        }
        let is_own = |reader: &Reader| reader.customer == owner || reader.customer == crate::answer::PLATFORM;
        answer.subjects.sort_by(|a, b| (is_own(a), &a.subject).cmp(&(is_own(b), &b.subject)));
        Ok(answer)
    }

    /// Everything that one subject reaches, with what holds the same credentials.
    pub fn reach_with_copies(&self, subject: &SubjectRef) -> Result<Reach, QuestionError> {
        let mut answer = self.reach(subject)?;
        let name =
            |secret: &ReachedSecret| (secret.cluster.clone(), secret.namespace.clone(), secret.name.clone());
        let mut known: BTreeSet<_> = answer.secrets.iter().map(name).collect();
        for reached in answer.secrets.clone() {
            let secret = SecretRef {
                cluster: Some(reached.cluster.clone()),
                namespace: reached.namespace.clone(),
                name: reached.name.clone(),
            };
            for (group, own, other) in self.copies(&secret) {
                let SecretRef { cluster, namespace, name } = self.secret_ref(other);
                let cluster = cluster.unwrap_or_default();
                if !known.insert((cluster.clone(), namespace.clone(), name.clone())) {
                    continue;
                }
                let owner = self.owners.of_namespace(other.cluster, other.namespace);
                let customer = self.owners.name(owner).to_owned();
                let step = group.step(self, &own, other);
                let mut path = reached.path.clone();
                let edge = step.edge.clone();
                path.push(step);
                answer.secrets.push(ReachedSecret {
                    cluster,
                    namespace,
                    name,
                    foreign: customer != answer.customer || customer == crate::answer::UNKNOWN,
                    customer,
                    certainty: reached.certainty,
                    edge,
                    path,
                });
            }
        }
        Ok(answer)
    }

    /// Ways from a subject to a Secret, through others that hold the same credential if there is no other.
    pub fn why_with_copies(
        &self,
        subject: &SubjectRef,
        secret: &SecretRef,
        alternates: usize,
    ) -> Result<Why, QuestionError> {
        let mut answer = self.why(subject, secret, alternates)?;
        for (group, own, other) in self.copies(secret) {
            let left = (alternates + 1).saturating_sub(answer.paths.len());
            let ways =
                if left == 0 { Vec::new() } else { self.why(subject, &self.secret_ref(other), 0)?.paths };
            for mut way in ways.into_iter().take(left) {
                way.steps.push(group.step(self, other, &own));
                answer.paths.push(way);
            }
        }
        answer.reached = !answer.paths.is_empty();
        Ok(answer)
    }

    /// What another state of the same clusters would change, with credentials that would lie in several places.
    pub fn what_if_with_copies(&self, after: &Self, objects: Vec<String>) -> WhatIf {
        let mut answer = self.what_if(after, objects);
        let (old, new) = (self.shared.findings(self), after.shared.findings(after));
        let ids = |findings: &[Finding]| findings.iter().map(|f| f.id.clone()).collect::<BTreeSet<_>>();
        let (old, new_ids) = (ids(&old), ids(&new));
        answer.findings.extend(new.into_iter().filter(|finding| !old.contains(&finding.id)));
        findings::sort(&mut answer.findings);
        answer.resolved.extend(old.difference(&new_ids).cloned());
        answer.resolved.sort();
        answer
    }

    /// Other Secrets with a credential of this one: the credential, its place here, its place there.
    fn copies(&self, secret: &SecretRef) -> Vec<(&Group, Place, &Place)> {
        let cluster = match &secret.cluster {
            None => Some(0),
            Some(wanted) => self.snapshot.clusters.iter().position(|cluster| cluster.name == *wanted),
        };
        let cluster = cluster.and_then(|cluster| u16::try_from(cluster).ok());
        let symbols = &self.snapshot.symbols;
        let names = symbols.find(&secret.namespace).zip(symbols.find(&secret.name));
        let Some((cluster, (namespace, name))) = cluster.zip(names) else { return Vec::new() };
        let is_own = |place: &&Place| {
            place.is_secret() && (place.cluster, place.namespace, place.name) == (cluster, namespace, name)
        };
        let beside = self.shared.places_beside(cluster, namespace, name).filter(|(_, p)| p.is_secret());
        let mut seen: BTreeSet<(u16, Symbol, Symbol)> = BTreeSet::new();
        beside
            .filter(|(_, place)| seen.insert((place.cluster, place.namespace, place.name)))
            .filter_map(|(group, place)| Some((group, group.places.iter().find(is_own)?.clone(), place)))
            .collect()
    }

    fn secret_ref(&self, place: &Place) -> SecretRef {
        let name = |symbol| self.snapshot.symbols.name(symbol).to_owned();
        let cluster = self.snapshot.clusters.get(usize::from(place.cluster));
        SecretRef {
            cluster: cluster.map(|cluster| cluster.name.clone()),
            namespace: name(place.namespace),
            name: name(place.name),
        }
    }
}
