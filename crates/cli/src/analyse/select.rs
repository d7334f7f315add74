//! Which part of an audit is looked at: the exit code is of that part, too.
//!
//! A finding belongs to a namespace or customer from which it starts or where it ends, and to a verdict if it is about a
//! Secret of that verdict. A name that nothing has is refused: a typing error must not look like a clean answer.

use std::collections::{BTreeSet, HashSet};

use bailey_access::answer::{
    Audit, EVERYONE, Finding, PLATFORM, SecretEntry, Severity, Summary, UNKNOWN, Verdict,
};

use super::cover::{Cover, touches};
use super::document::{Selection, Waived};
use crate::CliError;

/// What to look at. Several values of one filter widen it, filters narrow each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Findings of at least this severity.
    pub severity: Option<Severity>,
    /// Namespaces.
    pub namespaces: Vec<String>,
    /// Customers.
    pub customers: Vec<String>,
    /// Verdicts.
    pub verdicts: Vec<Verdict>,
}

/// Names that a filter may have besides those which the audit shows.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Namespaces that exist.
    pub namespaces: BTreeSet<String>,
    /// Customers that exist.
    pub customers: BTreeSet<String>,
}

impl Filter {
    /// Narrows an audit and its waived findings, counts anew, and says what was done.
    pub fn apply(
        &self,
        audit: &mut Audit,
        waived: &mut Vec<Waived>,
        names: &Names,
    ) -> Result<Option<Selection>, CliError> {
        let selection = (*self != Self::default()).then(|| Selection {
            severity: self.severity,
            namespaces: self.namespaces.clone(),
            customers: self.customers.clone(),
            verdicts: self.verdicts.clone(),
            secrets_of: audit.secrets.len(),
            findings_of: audit.findings.len() + waived.len(),
        });
        if selection.is_some() {
            self.check(audit, names)?;
            let of_verdict = self.of_verdict(audit, waived);
            let keeps = |finding: &Finding| self.keeps(finding) && self.is_about(&of_verdict, finding);
            audit.findings.retain(|finding| keeps(finding));
            waived.retain(|waived| keeps(&waived.finding));
            audit.secrets.retain(|secret| self.keeps_secret(secret));
        }
        audit.summary = summary(audit);
        Ok(selection)
    }

    /// Whether a finding of another audit, such as one that is gone, would be selected. Verdicts cannot be asked.
    pub fn keeps(&self, finding: &Finding) -> bool {
        let starts = |namespace: &String| namespace_of(&finding.subject) == Some(namespace);
        let ends = |namespace: &String| finding.secrets.iter().any(|secret| touches(secret, namespace));
        let of = |customer: &String| finding.customer == *customer || finding.reaches.contains(customer);
        self.severity.is_none_or(|least| finding.severity >= least)
            && (self.namespaces.is_empty() || self.namespaces.iter().any(|n| starts(n) || ends(n)))
            && (self.customers.is_empty() || self.customers.iter().any(of))
    }

    fn keeps_secret(&self, secret: &SecretEntry) -> bool {
        let of = |customer: &String| secret.customer == *customer || secret.audience.contains(customer);
        (self.namespaces.is_empty() || self.namespaces.contains(&secret.namespace))
            && (self.customers.is_empty() || self.customers.iter().any(of))
            && (self.verdicts.is_empty() || self.verdicts.contains(&secret.verdict))
    }

    fn is_about(&self, of_verdict: &HashSet<String>, finding: &Finding) -> bool {
        self.verdicts.is_empty() || of_verdict.contains(&finding.id)
    }

    /// Ids of findings about Secrets of the verdicts.
    fn of_verdict(&self, audit: &Audit, waived: &[Waived]) -> HashSet<String> {
        if self.verdicts.is_empty() {
            return HashSet::new();
        }
        let cover = Cover::new(audit, audit.findings.iter().chain(waived.iter().map(|w| &w.finding)));
        let secrets = audit.secrets.iter().filter(|secret| self.verdicts.contains(&secret.verdict));
        secrets.flat_map(|secret| cover.of(secret)).map(|finding| finding.id.clone()).collect()
    }

    fn check(&self, audit: &Audit, names: &Names) -> Result<(), CliError> {
        let shown = audit.secrets.iter().map(|secret| &secret.namespace);
        let namespaces: BTreeSet<_> = shown.chain(&names.namespaces).collect();
        if let Some(unknown) = self.namespaces.iter().find(|name| !namespaces.contains(name)) {
            return Err(CliError::Usage(format!("there is no namespace `{unknown}` in what was read")));
        }
        let of_secrets = audit.secrets.iter().flat_map(|s| s.audience.iter().chain([&s.customer]));
        let of_findings = audit.findings.iter().flat_map(|f| f.reaches.iter().chain([&f.customer]));
        let customers: BTreeSet<_> = of_secrets.chain(of_findings).chain(&names.customers).collect();
        let always = [PLATFORM, EVERYONE, UNKNOWN];
        let is_unknown = |name: &&String| !customers.contains(name) && !always.contains(&name.as_str());
        if let Some(unknown) = self.customers.iter().find(is_unknown) {
            let known: Vec<_> = customers.iter().map(|name| name.as_str()).collect();
            return Err(CliError::Usage(format!(
                "there is no customer `{unknown}`; known: {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        }
        Ok(())
    }
}

/// The namespace of a subject `sa:NS/NAME`, with or without `CLUSTER:` before it.
fn namespace_of(subject: &str) -> Option<&str> {
    let account = match subject.split_once(':')? {
        ("sa", account) => account,
        ("user" | "group" | "source", _) => return None,
        (_cluster, rest) => rest.strip_prefix("sa:")?,
    };
    account.split_once('/').map(|(namespace, _)| namespace)
}

/// The numbers of what an audit shows.
fn summary(audit: &Audit) -> Summary {
    let secrets = |verdict| audit.secrets.iter().filter(|secret| secret.verdict == verdict).count();
    let findings = |severity| audit.findings.iter().filter(|f| f.severity == severity).count();
    Summary {
        platform_only: secrets(Verdict::PlatformOnly),
        exactly_one: secrets(Verdict::ExactlyOne),
        shared: secrets(Verdict::Shared),
        exposed: secrets(Verdict::Exposed),
        unowned: secrets(Verdict::Unowned),
        critical: findings(Severity::Critical),
        high: findings(Severity::High),
        medium: findings(Severity::Medium),
        low: findings(Severity::Low),
    }
}

#[cfg(test)]
mod tests;
