//! What nobody is known to own, and a tenants file to start from.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use super::{Customers, Owner, presets::source_names};
use crate::{Snapshot, SubjectKind};

/// How many names a list of a suggestion shows.
const SHOWN_MAX: usize = 100;

/// What holds something, or is something, and has no known owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unowned {
    /// Namespaces that hold Secrets, ServiceAccounts or pods, with how many Secrets.
    pub namespaces: BTreeMap<String, usize>,
    /// Groups that bindings name.
    pub groups: BTreeSet<String>,
    /// Users that bindings name.
    pub users: BTreeSet<String>,
    /// Sources that something is applied from.
    pub sources: BTreeSet<String>,
}

impl Unowned {
    /// Whether everything has an owner.
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
            && self.groups.is_empty()
            && self.users.is_empty()
            && self.sources.is_empty()
    }
}

impl Customers {
    /// What holds or is something and has no known owner, but for what lies in clusters that are wholly a customer's.
    pub fn unowned(&self, snapshot: &Snapshot) -> Unowned {
        let mut unowned = Unowned::default();
        let symbols = &snapshot.symbols;
        for cluster in &snapshot.clusters {
            if self.owner_of_cluster(&cluster.name) != Owner::Unknown {
                continue;
            }
            let mut holds: BTreeMap<&str, usize> = BTreeMap::new();
            for secret in &cluster.secrets {
                *holds.entry(symbols.name(secret.namespace)).or_default() += 1;
            }
            let accounts = cluster.service_accounts.iter().map(|account| account.namespace);
            for namespace in accounts.chain(cluster.pods.iter().map(|pod| pod.namespace)) {
                holds.entry(symbols.name(namespace)).or_default();
            }
            for (namespace, secrets) in holds {
                if self.owner_of_namespace(namespace) == Owner::Unknown {
                    *unowned.namespaces.entry(namespace.to_owned()).or_default() += secrets;
                }
            }
            for subject in cluster.bindings.iter().flat_map(|binding| &binding.subjects) {
                let name = symbols.name(subject.name);
                let list = match subject.kind {
                    SubjectKind::Group if Self::is_everyone(name) => continue,
                    SubjectKind::Group => &mut unowned.groups,
                    SubjectKind::User if name == "system:anonymous" => continue,
                    SubjectKind::User => &mut unowned.users,
                    SubjectKind::ServiceAccount => continue,
                };
                if !list.contains(name) && self.owner_of_subject(subject.kind, "", name) == Owner::Unknown {
                    list.insert(name.to_owned());
                }
            }
        }
        unowned.sources = source_names(snapshot)
            .into_iter()
            .filter(|name| self.owner_of_source(name) == Owner::Unknown)
            .collect();
        unowned
    }

    /// One sentence for each sort of thing that nobody is known to own.
    pub fn hints(&self, snapshot: &Snapshot) -> Vec<String> {
        let unowned = self.unowned(snapshot);
        let few = |names: Vec<&String>| {
            let shown: Vec<&str> = names.iter().take(3).map(|name| name.as_str()).collect();
            let more = names.len().saturating_sub(shown.len());
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("{}{more}", shown.join(", "))
        };
        let sorts = [
            ("namespaces", unowned.namespaces.keys().collect::<Vec<_>>()),
            ("groups", unowned.groups.iter().collect()),
            ("users", unowned.users.iter().collect()),
            ("sources", unowned.sources.iter().collect()),
        ];
        sorts
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(sort, names)| format!("nobody is known to own these {sort}: {}", few(names)))
            .collect()
    }

    /// A tenants file with all that is known, and with what has no owner in comments, ready to edit.
    pub fn suggest(&self, snapshot: &Snapshot) -> String {
        let unowned = self.unowned(snapshot);
        let mut out = String::new();
        let origin = if self.source.is_empty() { "nothing was known yet" } else { self.source.as_str() };
        line(&mut out, &format!("# Who the customers are, known so far by: {origin}. Every name is exact."));
        line(&mut out, if self.customers.is_empty() { "customers: {}" } else { "customers:" });
        for (name, customer) in &self.customers {
            line(&mut out, &format!("  {}:", quoted(name)));
            list(&mut out, 4, "namespaces", &customer.namespaces);
            if let Some(prefix) = &customer.namespace_prefix {
                line(&mut out, &format!("    namespacePrefix: {}", quoted(prefix)));
            }
            list(&mut out, 4, "groups", &customer.groups);
            list(&mut out, 4, "users", &customer.users);
            list(&mut out, 4, "sources", &customer.sources);
            list(&mut out, 4, "clusters", &customer.clusters);
        }
        line(&mut out, "platform:");
        list(&mut out, 2, "namespaces", &self.platform.namespaces);
        list(&mut out, 2, "groups", &self.platform.groups);
        list(&mut out, 2, "users", &self.platform.users);
        list(&mut out, 2, "sources", &self.platform.sources);
        line(&mut out, "  # Whether every namespace of no customer is the platform's.");
        line(&mut out, &format!("  rest: {}", self.platform.rest));
        if unowned.is_empty() {
            return out;
        }
        line(&mut out, "# Nobody is known to own these. Move each to where it belongs.");
        let namespaces =
            unowned.namespaces.iter().map(|(name, secrets)| (name, format!("  # {secrets} Secrets")));
        comments(&mut out, "namespaces", namespaces);
        for (sort, names) in
            [("groups", &unowned.groups), ("users", &unowned.users), ("sources", &unowned.sources)]
        {
            comments(&mut out, sort, names.iter().map(|name| (name, String::new())));
        }
        out
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn list(out: &mut String, indent: usize, field: &str, names: &[String]) {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{:indent$}{field}: [{}]", "", names.join(", "));
}

fn comments<'n>(out: &mut String, sort: &str, names: impl Iterator<Item = (&'n String, String)>) {
    let names: Vec<(&String, String)> = names.collect();
    if names.is_empty() {
        return;
    }
    line(out, &format!("#   {sort}:"));
    for (name, note) in names.iter().take(SHOWN_MAX) {
        line(out, &format!("#   - {}{note}", quoted(name)));
    }
    if names.len() > SHOWN_MAX {
        line(out, &format!("#   … and {} more", names.len() - SHOWN_MAX));
    }
}

/// A name as YAML and JSON read it.
fn quoted(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    if name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(plain)
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&name)
    {
        return name.to_owned();
    }
    serde_json::Value::from(name).to_string()
}
