//! The audit: each Secret with its audience, and the findings.

use super::{Access, Subjects};
use crate::{
    answer::{self, Audit, ClusterEntry, SecretEntry, Severity, Summary, Verdict},
    findings,
    judge::{Audiences, Listed},
    owners::Whose,
};

impl Access {
    /// Who reaches what, of everything that was loaded.
    pub fn audit(&self, subjects: Subjects) -> Audit {
        let secrets = self.secret_entries(subjects);
        let mut findings = findings::ways(self);
        findings.extend(self.shared.findings(self));
        findings::sort(&mut findings);
        let mut summary = Summary::default();
        for secret in &secrets {
            *match secret.verdict {
                Verdict::PlatformOnly => &mut summary.platform_only,
                Verdict::ExactlyOne => &mut summary.exactly_one,
                Verdict::Shared => &mut summary.shared,
                Verdict::Exposed => &mut summary.exposed,
                Verdict::Unowned => &mut summary.unowned,
            } += 1;
        }
        for finding in &findings {
            *match finding.severity {
                Severity::Critical => &mut summary.critical,
                Severity::High => &mut summary.high,
                Severity::Medium => &mut summary.medium,
                Severity::Low => &mut summary.low,
            } += 1;
        }
        Audit {
            schema: answer::AUDIT_SCHEMA.to_owned(),
            complete: self.is_complete(),
            gaps: self.gaps(),
            clusters: self.cluster_entries(),
            summary,
            secrets,
            findings,
            hints: self.hints(),
        }
    }

    /// Each loaded Secret with its verdict, by cluster, namespace, name.
    pub fn secret_entries(&self, subjects: Subjects) -> Vec<SecretEntry> {
        let listed = self.listed(subjects);
        let all = Audiences::new(&self.all, &self.graph, &self.starts, &listed);
        let proven = Audiences::new(&self.proven, &self.graph, &self.starts, &listed);
        let mut secrets: Vec<SecretEntry> = (0u16..)
            .zip(&self.snapshot.clusters)
            .flat_map(|(cluster, facts)| facts.secrets.iter().map(move |secret| (cluster, secret)))
            .map(|(cluster, secret)| self.secret_entry(cluster, secret, &all, &proven, (subjects, &listed)))
            .collect();
        secrets.sort_by(|a, b| (&a.cluster, &a.namespace, &a.name).cmp(&(&b.cluster, &b.namespace, &b.name)));
        secrets
    }

    /// Those who may be listed for some Secret.
    fn listed(&self, subjects: Subjects) -> Listed {
        let explainer = self.explainer();
        Listed::new(&self.starts, |start| match subjects {
            Subjects::None => None,
            Subjects::Foreign if start.whose == Whose::PLATFORM => None,
            _ => explainer.subject(start.cluster, &start.fact),
        })
    }

    fn cluster_entries(&self) -> Vec<ClusterEntry> {
        (0u16..)
            .zip(&self.snapshot.clusters)
            .map(|(index, facts)| ClusterEntry {
                name: facts.name.clone(),
                version: facts.minor.map(|minor| format!("1.{minor}")),
                customer: self
                    .owners
                    .name(self.owners.of_cluster(index).unwrap_or(Whose::PLATFORM))
                    .to_owned(),
                namespaces: facts.namespaces.len(),
                subjects: self.starts.iter().filter(|start| start.cluster == index).count(),
                roles: facts.roles.len(),
                bindings: facts.bindings.len(),
                pods: facts.pods.len(),
                secrets: facts.secrets.len(),
            })
            .collect()
    }

    fn hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        let unknown: std::collections::BTreeSet<&str> = (0u16..)
            .zip(&self.snapshot.clusters)
            .flat_map(|(index, facts)| facts.secrets.iter().map(move |secret| (index, secret.namespace)))
            .filter(|(index, namespace)| self.owners.of_namespace(*index, *namespace) == Whose::UNKNOWN)
            .map(|(_, namespace)| self.snapshot.symbols.name(namespace))
            .collect();
        if !unknown.is_empty() {
            let few: Vec<&str> = unknown.iter().copied().take(5).collect();
            let more = if unknown.len() > 5 { ", …" } else { "" };
            hints.push(format!(
                "it is not known whose {} namespaces are ({}{more}): name them with --tenants FILE or --preset",
                unknown.len(),
                few.join(", ")
            ));
        }
        hints
    }
}
