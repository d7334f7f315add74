//! Whose is it: which customer, the platform, or unknown.
//!
//! Known from the Tenants of a cluster, from a file, or from the labels of a known platform. Names are exact, except for
//! prefixes of namespaces and of sources, which say so. Two owners of one thing are as good as none.

mod file;
mod objects;
mod presets;
mod source;
mod suggest;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

pub use file::{TenantsError, TenantsFile};
pub use presets::{Preset, presets};
pub use source::source_name;
pub use suggest::Unowned;

use crate::SubjectKind;

/// Whose a namespace, a subject, a source or a whole cluster is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// The platform, Kubernetes itself included.
    Platform,
    /// A customer, by its name.
    Customer(String),
    /// Nobody knows.
    Unknown,
}

/// The customers of an installation and what is theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Customers {
    /// The customers by name.
    pub customers: BTreeMap<String, Customer>,
    /// What is the platform's.
    pub platform: Platform,
    /// How this is known: `Tenant objects`, a file's name, a preset's.
    pub source: String,
}

/// What is a customer's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Customer {
    /// Exact names of namespaces on the management cluster.
    pub namespaces: Vec<String>,
    /// A prefix that all namespaces of the customer have.
    pub namespace_prefix: Option<String>,
    /// Exact names of groups.
    pub groups: Vec<String>,
    /// Exact names of users; ServiceAccounts outside of its namespaces as `system:serviceaccount:NS:NAME`.
    pub users: Vec<String>,
    /// Sources (Git, OCI, Helm) that the customer writes: URLs, or prefixes of them that end between two parts of a path.
    pub sources: Vec<String>,
    /// Clusters that are wholly the customer's, by the name of the cluster.
    pub clusters: Vec<String>,
}

/// What is the platform's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Platform {
    /// Exact names of namespaces. `kube-*` and `bailey-system` always are.
    pub namespaces: Vec<String>,
    /// Exact names of groups. Those that begin with `system:` always are, but for those that everybody is in.
    pub groups: Vec<String>,
    /// Exact names of users; ServiceAccounts as `system:serviceaccount:NS:NAME`.
    pub users: Vec<String>,
    /// Sources that the platform writes, as those of a customer.
    pub sources: Vec<String>,
    /// Whether every namespace of no customer is the platform's.
    pub rest: bool,
}

/// What names of ServiceAccounts begin with where a user is expected.
const ACCOUNT: &str = "system:serviceaccount:";
/// What the group of all ServiceAccounts of a namespace begins with.
const ACCOUNTS: &str = "system:serviceaccounts:";
/// The group of cluster administrators that kubeadm makes.
const KUBEADM_ADMINS: &str = "kubeadm:cluster-admins";

impl Customers {
    /// Whether a group has everybody in it, so that it is nobody's.
    pub fn is_everyone(group: &str) -> bool {
        ["system:authenticated", "system:unauthenticated", "system:serviceaccounts"].contains(&group)
    }

    /// Whose a namespace is.
    pub fn owner_of_namespace(&self, name: &str) -> Owner {
        if is_built_in(name) {
            return Owner::Platform;
        }
        match self.listed(name, |customer| &customer.namespaces, &self.platform.namespaces) {
            Some(owner) => owner,
            None => self.owner_by_prefix(name).unwrap_or(self.rest()),
        }
    }

    /// Whose a user, a group or a ServiceAccount is. The namespace is that of a ServiceAccount, else empty. A group that
    /// everybody is in is nobody's.
    pub fn owner_of_subject(&self, kind: SubjectKind, namespace: &str, name: &str) -> Owner {
        match kind {
            SubjectKind::ServiceAccount => self.owner_of_account(namespace, name),
            SubjectKind::User => match name.strip_prefix(ACCOUNT).and_then(|account| account.split_once(':'))
            {
                Some((namespace, name)) => self.owner_of_account(namespace, name),
                None if name == "system:anonymous" => Owner::Unknown,
                None if name.starts_with("system:") => Owner::Platform,
                None => self
                    .listed(name, |customer| &customer.users, &self.platform.users)
                    .unwrap_or(Owner::Unknown),
            },
            SubjectKind::Group => match name.strip_prefix(ACCOUNTS) {
                Some(namespace) => self.owner_of_namespace(namespace),
                None if Self::is_everyone(name) => Owner::Unknown,
                None if name.starts_with("system:") || name == KUBEADM_ADMINS => Owner::Platform,
                None => self
                    .listed(name, |customer| &customer.groups, &self.platform.groups)
                    .unwrap_or(Owner::Unknown),
            },
        }
    }

    /// Whose a source is, by its URL or by the name that [`source_name`] gives it. The longest prefix decides.
    pub fn owner_of_source(&self, url: &str) -> Owner {
        let name = source_name(url);
        let best = |sources: &[String]| {
            sources
                .iter()
                .map(|prefix| source_name(prefix))
                .filter(|prefix| source::covers(prefix, &name))
                .map(|p| p.len())
                .max()
        };
        let customers = self
            .customers
            .iter()
            .filter_map(|(customer, of)| Some((best(&of.sources)?, Owner::Customer(customer.clone()))));
        let platform = best(&self.platform.sources).map(|length| (length, Owner::Platform));
        single_best(customers.chain(platform)).unwrap_or(Owner::Unknown)
    }

    /// The customer whose a whole cluster is, by the cluster's name, or by `NAMESPACE/NAME` of its Cluster object.
    pub fn owner_of_cluster(&self, name: &str) -> Owner {
        let (namespace, name) = name.rsplit_once('/').unwrap_or(("", name));
        match self.listed(name, |customer| &customer.clusters, &[]) {
            Some(owner) => owner,
            None if namespace.is_empty() => Owner::Unknown,
            None => self.owner_of_namespace(namespace),
        }
    }

    fn owner_of_account(&self, namespace: &str, name: &str) -> Owner {
        let user = format!("{ACCOUNT}{namespace}:{name}");
        let listed = self.listed(&user, |customer| &customer.users, &self.platform.users);
        listed.unwrap_or_else(|| self.owner_of_namespace(namespace))
    }

    /// The one owner in whose list a name is: unknown if it is in several, none if in no list.
    fn listed(
        &self,
        name: &str,
        list: impl Fn(&Customer) -> &Vec<String>,
        platform: &[String],
    ) -> Option<Owner> {
        let has = |names: &[String]| names.iter().any(|known| known == name);
        let customers = self
            .customers
            .iter()
            .filter(|(_, of)| has(list(of)))
            .map(|(customer, _)| Owner::Customer(customer.clone()));
        let platform = has(platform).then_some(Owner::Platform);
        let mut owners = customers.chain(platform);
        let first = owners.next()?;
        Some(if owners.next().is_some() { Owner::Unknown } else { first })
    }

    fn owner_by_prefix(&self, name: &str) -> Option<Owner> {
        let matching = self.customers.iter().filter_map(|(customer, of)| {
            let prefix = of.namespace_prefix.as_ref().filter(|prefix| name.starts_with(prefix.as_str()))?;
            Some((prefix.len(), Owner::Customer(customer.clone())))
        });
        single_best(matching)
    }

    fn rest(&self) -> Owner {
        if self.platform.rest { Owner::Platform } else { Owner::Unknown }
    }
}

/// The owner with the longest match: unknown if several have it, none if there is no match.
fn single_best(matches: impl Iterator<Item = (usize, Owner)>) -> Option<Owner> {
    let mut best: Option<(usize, Owner)> = None;
    for (length, owner) in matches {
        best = match best {
            Some((longest, known)) if longest > length => Some((longest, known)),
            Some((longest, _)) if longest == length => Some((length, Owner::Unknown)),
            _ => Some((length, owner)),
        };
    }
    best.map(|(_, owner)| owner)
}

/// Namespaces that are Kubernetes' or Bailey's own.
fn is_built_in(namespace: &str) -> bool {
    namespace.starts_with("kube-") || namespace == "bailey-system"
}
