//! The tenants file: who the customers are, written by hand.
//!
//! ```yaml
//! customers:
//!   acme:
//!     namespaces: [org-acme]
//!     namespacePrefix: acme-
//!     groups: ["acme:admins"]
//!     users: [jane@acme.example]
//!     sources: [https://git.acme.example/]
//!     clusters: [acme-prod]
//! platform:
//!   namespaces: [monitoring]
//!   groups: [platform-admins]
//!   users: []
//!   sources: [https://github.com/platform]
//!   rest: true
//! ```
//!
//! Every name is exact. An unknown field is an error, since a misspelt one would leave something out in silence; other
//! things at the top, such as notes, are named in a hint.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Customer, Customers, Platform, is_built_in};
use crate::answer;

/// Says what is wrong with a tenants file.
#[derive(Debug, thiserror::Error)]
pub enum TenantsError {
    /// Neither YAML nor JSON.
    #[error("cannot read tenants file `{file}`: it is neither YAML nor JSON")]
    Syntax {
        /// The file.
        file: String,
        /// What the parser says.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// A field has no such value.
    #[error("tenants file `{file}`, field `{field}`: {problem}")]
    Field {
        /// The file.
        file: String,
        /// The field, as a path with dots.
        field: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// One thing has two owners.
    #[error(
        "tenants file `{file}`: `{what}` is said to belong to `{first}` and to `{second}`; leave it with one of them"
    )]
    Conflict {
        /// The file.
        file: String,
        /// A namespace, group, user, source or cluster.
        what: String,
        /// An owner.
        first: String,
        /// The other.
        second: String,
    },
}

impl TenantsError {
    /// A word for conditions and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "TenantsSyntax",
            Self::Field { .. } => "TenantsField",
            Self::Conflict { .. } => "TenantsConflict",
        }
    }
}

/// What a tenants file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantsFile {
    /// The customers.
    pub customers: Customers,
    /// What was passed over, for people.
    pub hints: Vec<String>,
}

const TOP: [&str; 3] = ["customers", "platform", "platform_namespaces"];
const OF_CUSTOMER: [&str; 6] = ["namespaces", "namespacePrefix", "groups", "users", "sources", "clusters"];
const OF_PLATFORM: [&str; 5] = ["namespaces", "groups", "users", "sources", "rest"];

impl Customers {
    /// Reads a tenants file. `file` is its name, for errors.
    pub fn from_file(text: &str, file: &str) -> Result<TenantsFile, TenantsError> {
        let value: Value = serde_saphyr::from_str(text)
            .map_err(|source| TenantsError::Syntax { file: file.to_owned(), source: Box::new(source) })?;
        let reader = Reader { file };
        let top = reader.map(&value, "")?;
        let hints = reader.top_level(top)?;
        let mut customers = Customers { source: file.to_owned(), ..Customers::default() };
        let given = top.get("customers").ok_or_else(|| {
            reader.wrong("customers", "it is missing; write a map of customers by their names")
        })?;
        for (name, value) in reader.map(given, "customers")? {
            customers.customers.insert(name.clone(), reader.customer(name, value)?);
        }
        if let Some(platform) = top.get("platform") {
            customers.platform = reader.platform(platform)?;
        }
        if let Some(namespaces) = top.get("platform_namespaces") {
            customers.platform.namespaces.extend(reader.names(namespaces, "platform_namespaces")?);
        }
        reader.conflicts(&customers)?;
        Ok(TenantsFile { customers, hints })
    }
}

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn wrong(&self, field: &str, problem: impl Into<String>) -> TenantsError {
        let field = if field.is_empty() { "(the whole file)" } else { field };
        TenantsError::Field { file: self.file.to_owned(), field: field.to_owned(), problem: problem.into() }
    }

    fn map<'v>(&self, value: &'v Value, field: &str) -> Result<&'v Map<String, Value>, TenantsError> {
        value.as_object().ok_or_else(|| self.wrong(field, "it must be a map"))
    }

    /// Fields at the top that are not ours: a hint, or an error for one that is nearly ours.
    fn top_level(&self, top: &Map<String, Value>) -> Result<Vec<String>, TenantsError> {
        let mut others = Vec::new();
        for field in top.keys().filter(|field| !TOP.contains(&field.as_str())) {
            if let Some(near) = TOP.iter().find(|known| distance(known, field) <= 2) {
                return Err(self.wrong(field, format!("there is no such field; did you mean `{near}`?")));
            }
            others.push(format!("`{field}`"));
        }
        if others.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![format!(
            "tenants file `{}`: {} mean nothing here and were passed over",
            self.file,
            others.join(", ")
        )])
    }

    fn known(&self, map: &Map<String, Value>, field: &str, known: &[&str]) -> Result<(), TenantsError> {
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                let known = known.join("`, `");
                Err(self
                    .wrong(&format!("{field}.{key}"), format!("there is no such field; known are `{known}`")))
            }
            None => Ok(()),
        }
    }

    fn customer(&self, name: &str, value: &Value) -> Result<Customer, TenantsError> {
        let field = format!("customers.{name}");
        if name.is_empty() || [answer::PLATFORM, answer::EVERYONE, answer::UNKNOWN].contains(&name) {
            return Err(self.wrong(&field, "this name has a meaning of its own; choose the customer's name"));
        }
        let map = self.map(value, &field)?;
        self.known(map, &field, &OF_CUSTOMER)?;
        let list = |key: &str| self.list(map, &field, key);
        let customer = Customer {
            namespaces: list("namespaces")?,
            namespace_prefix: self.prefix(map, &field)?,
            groups: list("groups")?,
            users: list("users")?,
            sources: list("sources")?,
            clusters: list("clusters")?,
        };
        if let Some(own) = customer.namespaces.iter().find(|name| is_built_in(name)) {
            return Err(
                self.wrong(&format!("{field}.namespaces"), format!("`{own}` belongs to the cluster itself"))
            );
        }
        for (key, names) in [("groups", &customer.groups), ("users", &customer.users)] {
            let system = |name: &&String| name.starts_with("system:") && !name.starts_with(super::ACCOUNT);
            if let Some(name) = names.iter().find(system) {
                let problem =
                    format!("`{name}` belongs to Kubernetes; name a group or user of your identity provider");
                return Err(self.wrong(&format!("{field}.{key}"), problem));
            }
        }
        Ok(customer)
    }

    fn prefix(&self, map: &Map<String, Value>, field: &str) -> Result<Option<String>, TenantsError> {
        let field = format!("{field}.namespacePrefix");
        let prefix = match map.get("namespacePrefix") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(prefix)) => prefix,
            Some(_) => return Err(self.wrong(&field, "it must be a text")),
        };
        if prefix.len() < 3 || prefix.contains('*') || "kube-".starts_with(prefix.as_str()) {
            return Err(
                self.wrong(&field, "use at least three characters with the customer's name, such as `acme-`")
            );
        }
        Ok(Some(prefix.clone()))
    }

    fn platform(&self, value: &Value) -> Result<Platform, TenantsError> {
        let map = self.map(value, "platform")?;
        self.known(map, "platform", &OF_PLATFORM)?;
        let list = |key: &str| self.list(map, "platform", key);
        let rest = match map.get("rest") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(rest)) => *rest,
            Some(_) => return Err(self.wrong("platform.rest", "it must be true or false")),
        };
        let groups = list("groups")?;
        if let Some(group) = groups.iter().find(|group| Customers::is_everyone(group)) {
            return Err(self.wrong(
                "platform.groups",
                format!("`{group}` holds customers too; name the platform's groups"),
            ));
        }
        Ok(Platform {
            namespaces: list("namespaces")?,
            groups,
            users: list("users")?,
            sources: list("sources")?,
            rest,
        })
    }

    fn list(&self, map: &Map<String, Value>, field: &str, key: &str) -> Result<Vec<String>, TenantsError> {
        match map.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(value) => self.names(value, &format!("{field}.{key}")),
        }
    }

    fn names(&self, value: &Value, field: &str) -> Result<Vec<String>, TenantsError> {
        let list = value.as_array().ok_or_else(|| self.wrong(field, "it must be a list of names"))?;
        let mut names: Vec<String> = Vec::new();
        for (index, name) in list.iter().enumerate() {
            let field = format!("{field}[{index}]");
            let name = name.as_str().map(str::trim).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| self.wrong(&field, "it must be a name in quotes"))?;
            if name.contains('*') {
                return Err(self.wrong(&field, format!("`{name}`: names are exact, there are no patterns")));
            }
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn conflicts(&self, customers: &Customers) -> Result<(), TenantsError> {
        let mut owners: BTreeMap<(&str, String), &str> = BTreeMap::new();
        let lists = customers.customers.iter().flat_map(|(name, of)| {
            [
                ("namespace", &of.namespaces, name.as_str()),
                ("group", &of.groups, name.as_str()),
                ("user", &of.users, name.as_str()),
                ("source", &of.sources, name.as_str()),
                ("cluster", &of.clusters, name.as_str()),
            ]
        });
        let platform = &customers.platform;
        let of_platform = [
            ("namespace", &platform.namespaces, answer::PLATFORM),
            ("group", &platform.groups, answer::PLATFORM),
            ("user", &platform.users, answer::PLATFORM),
            ("source", &platform.sources, answer::PLATFORM),
        ];
        for (kind, names, owner) in lists.chain(of_platform) {
            for name in names {
                let key = if kind == "source" { super::source_name(name) } else { name.clone() };
                match owners.insert((kind, key), owner) {
                    Some(first) if first != owner => {
                        return Err(TenantsError::Conflict {
                            file: self.file.to_owned(),
                            what: format!("{kind} {name}"),
                            first: first.to_owned(),
                            second: owner.to_owned(),
                        });
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// How many letters must be put in, taken out or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut left = index + 1;
        let mut diagonal = index;
        for (cell, own) in row.iter_mut().skip(1).zip(other.chars()) {
            let changed = diagonal + usize::from(letter != own);
            diagonal = *cell;
            *cell = changed.min(left + 1).min(diagonal + 1);
            left = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
