//! What every generated cluster has, whatever its size: Kubernetes' own roles, twenty operators, and the planted
//! subjects. The three files beside this one hold it as data.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The namespace of the planted subjects.
pub const PLANTED: &str = "planted";

/// Objects that are written as they stand here.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Fixed {
    /// Each namespace with its level of Pod Security.
    pub namespaces: BTreeMap<String, String>,
    /// ServiceAccounts as `NAMESPACE/NAME`.
    pub accounts: Vec<String>,
    pub cluster_roles: Vec<ClusterRole>,
    /// ClusterRoleBindings.
    pub bindings: Vec<Binding>,
    /// Roles, each with a RoleBinding of the same name.
    pub roles: Vec<Role>,
    pub secrets: Vec<Secret>,
    /// Subjects with a known answer.
    pub planted: Vec<Planted>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterRole {
    pub name: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The label by which it takes the rules of others; its own are then filled in.
    pub aggregates: Option<String>,
    #[serde(default)]
    pub rules: Vec<Value>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// Its own name; that of the role where it has none.
    pub name: Option<String>,
    pub role: String,
    /// Subjects: `sa:NAMESPACE/NAME`, `user:NAME` or `group:NAME`.
    pub to: Vec<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    #[serde(rename = "in")]
    pub namespace: String,
    pub name: String,
    pub rules: Vec<Value>,
    pub to: Vec<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    #[serde(rename = "in")]
    pub namespace: String,
    pub name: String,
    #[serde(rename = "type", default = "opaque")]
    pub kind: String,
    /// The account that a token belongs to.
    pub account: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Planted {
    pub name: String,
    /// The namespace of its Role and RoleBinding; without one it has a ClusterRole and a ClusterRoleBinding.
    #[serde(rename = "in")]
    pub namespace: Option<String>,
    pub rules: Vec<Value>,
    pub reads: Vec<String>,
    pub does_not_read: Vec<String>,
    pub why: String,
}

/// What a planted subject reads, as `planted.json` says it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `sa:NAMESPACE/NAME`.
    pub subject: String,
    /// Secrets as `NAMESPACE/NAME`, or all of a namespace as `NAMESPACE/*`. It may read others too.
    pub reads: Vec<String>,
    /// None of these may be read; the same forms.
    pub does_not_read: Vec<String>,
    pub why: String,
}

fn opaque() -> String {
    "Opaque".to_owned()
}

/// Reads the three files into one, planted subjects made into roles and bindings.
pub fn load() -> Result<Fixed> {
    let files = [
        ("kubernetes", include_str!("kubernetes.yaml")),
        ("operators", include_str!("operators.yaml")),
        ("planted", include_str!("planted.yaml")),
    ];
    let mut all = Fixed::default();
    for (name, text) in files {
        let part: Fixed = serde_saphyr::from_str(text).with_context(|| format!("read `{name}.yaml`"))?;
        all.namespaces.extend(part.namespaces);
        all.accounts.extend(part.accounts);
        all.cluster_roles.extend(part.cluster_roles);
        all.bindings.extend(part.bindings);
        all.roles.extend(part.roles);
        all.secrets.extend(part.secrets);
        all.planted.extend(part.planted);
    }
    for subject in all.planted.clone() {
        grant(&mut all, subject);
    }
    Ok(all)
}

impl Planted {
    /// Returns its ServiceAccount in the form of the command line.
    fn subject(&self) -> String {
        format!("sa:{PLANTED}/{}", self.name)
    }

    /// Returns what it reads.
    pub fn answer(&self) -> Answer {
        Answer {
            subject: self.subject(),
            reads: self.reads.clone(),
            does_not_read: self.does_not_read.clone(),
            why: self.why.clone(),
        }
    }
}

/// Gives a planted subject its account, its role and its binding.
fn grant(all: &mut Fixed, subject: Planted) {
    let to = vec![subject.subject()];
    let name = format!("planted-{}", subject.name);
    all.accounts.push(format!("{PLANTED}/{}", subject.name));
    match subject.namespace {
        Some(namespace) => all.roles.push(Role { namespace, name, rules: subject.rules, to }),
        None => {
            let role = ClusterRole {
                name: name.clone(),
                labels: BTreeMap::new(),
                aggregates: None,
                rules: subject.rules,
            };
            all.cluster_roles.push(role);
            all.bindings.push(Binding { name: None, role: name, to });
        }
    }
}

#[cfg(test)]
mod tests;
