//! Which findings are about which Secret.
//!
//! A finding names Secrets as `NS/NAME`, whole scopes as `NS/*` and `*/*`, in another cluster than the first with
//! `CLUSTER:` before it. Where it names fewer than it counts, it is about every Secret of those whom it reaches.

use std::collections::HashMap;

use bailey_access::answer::{Audit, Finding, SecretEntry};

/// An index of findings by Secret.
pub struct Cover<'a> {
    first: Option<&'a str>,
    findings: Vec<&'a Finding>,
    named: HashMap<&'a str, Vec<usize>>,
    shortened: Vec<usize>,
}

impl<'a> Cover<'a> {
    /// Indexes findings of an audit.
    pub fn new(audit: &'a Audit, findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let findings: Vec<_> = findings.into_iter().collect();
        let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut shortened = Vec::new();
        for (index, finding) in findings.iter().enumerate() {
            for secret in &finding.secrets {
                named.entry(secret.as_str()).or_default().push(index);
            }
            if is_shortened(finding) {
                shortened.push(index);
            }
        }
        let first = audit.clusters.first().map(|cluster| cluster.name.as_str());
        Self { first, findings, named, shortened }
    }

    /// The findings about a Secret, in their order.
    pub fn of(&self, secret: &SecretEntry) -> Vec<&'a Finding> {
        let SecretEntry { cluster, namespace, name, .. } = secret;
        let keys = [format!("{namespace}/{name}"), format!("{namespace}/*"), "*/*".to_owned()];
        let is_first = self.first.is_none_or(|first| first == cluster);
        let mut found = Vec::new();
        for key in keys {
            let key = if is_first { key } else { format!("{cluster}:{key}") };
            found.extend(self.named.get(key.as_str()).into_iter().flatten().copied());
        }
        let shortened = self.shortened.iter().copied();
        found.extend(shortened.filter(|index| {
            self.findings.get(*index).is_some_and(|finding| finding.reaches.contains(&secret.customer))
        }));
        found.sort_unstable();
        found.dedup();
        found.into_iter().filter_map(|index| self.findings.get(index).copied()).collect()
    }
}

/// Whether a finding counts more Secrets than it names.
pub fn is_shortened(finding: &Finding) -> bool {
    let scoped = finding.secrets.iter().any(|secret| secret.ends_with("/*"));
    let told = finding.secrets.iter().any(|secret| secret.starts_with('…'));
    told || (!scoped && finding.secrets.len() < finding.secret_count)
}

/// Whether what a finding names (`NS/NAME`, `NS/*`, `*/*`) lies within another such pattern, in the same cluster.
pub fn within(inner: &str, outer: &str) -> bool {
    let (inner, outer) = (Pattern::of(inner), Pattern::of(outer));
    let fits = |inner: &str, outer: &str| outer == "*" || inner == outer;
    inner.cluster == outer.cluster && fits(inner.namespace, outer.namespace) && fits(inner.name, outer.name)
}

/// Whether what a finding names touches a namespace.
pub fn touches(pattern: &str, namespace: &str) -> bool {
    let pattern = Pattern::of(pattern);
    pattern.namespace == "*" || pattern.namespace == namespace
}

struct Pattern<'a> {
    cluster: Option<&'a str>,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Pattern<'a> {
    fn of(text: &'a str) -> Self {
        let (place, name) = text.split_once('/').unwrap_or((text, "*"));
        let (cluster, namespace) = place.rsplit_once(':').map_or((None, place), |(c, n)| (Some(c), n));
        Self { cluster, namespace, name }
    }
}

#[cfg(test)]
mod tests;
