//! Rights of a tenant's subjects that Bailey did not grant: what makes a boundary leak while it looks closed.

use bailey_api::{BindingKind, PLATFORM};
use k8s_openapi::api::rbac::v1::{PolicyRule, Subject};

use crate::{Discovery, Model, boundary, cluster_ceiling};

/// A binding as found on the cluster, with the rules of its role.
#[derive(Debug, Clone)]
pub struct BindingFact {
    /// Its kind.
    pub kind: BindingKind,
    /// Its namespace, for a RoleBinding.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The role, as `KIND/NAME`.
    pub role: String,
    /// Its subjects.
    pub subjects: Vec<Subject>,
    /// The rules of its role.
    pub rules: Vec<PolicyRule>,
}

/// A right that reaches beyond the boundary.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignGrant {
    /// The tenant whose subject holds it.
    pub tenant: String,
    /// The binding, as `KIND NAMESPACE/NAME`.
    pub binding: String,
    /// The subject, as `group:NAME`, `user:NAME` or `sa:NAMESPACE/NAME`.
    pub subject: String,
    /// The role, as `KIND/NAME`.
    pub role: String,
    /// Where it reaches.
    pub reaches: String,
    /// What to do.
    pub remedy: String,
}

/// The rights beyond the boundary among `bindings`, sorted. Bailey's own bindings must not be among them.
pub fn foreign_grants(model: &Model, discovery: &Discovery, bindings: &[BindingFact]) -> Vec<ForeignGrant> {
    let index = boundary(model);
    let mut found = Vec::new();
    for binding in bindings {
        for subject in &binding.subjects {
            let namespace = subject.namespace.as_deref().or(binding.namespace.as_deref()).unwrap_or_default();
            let (owner, shown) = match subject.kind.as_str() {
                "ServiceAccount" => {
                    (index.namespaces.get(namespace), format!("sa:{namespace}/{}", subject.name))
                }
                "Group" => (index.groups.get(&subject.name), format!("group:{}", subject.name)),
                _ => (index.users.get(&subject.name), format!("user:{}", subject.name)),
            };
            let Some(tenant) = owner.filter(|o| *o != PLATFORM) else { continue };
            let Some(reaches) = reach(binding, tenant, model, discovery) else { continue };
            let path = match &binding.namespace {
                Some(namespace) => format!("{namespace}/{}", binding.name),
                None => binding.name.clone(),
            };
            let in_namespace = binding.namespace.as_ref().map(|n| format!(" -n {n}")).unwrap_or_default();
            found.push(ForeignGrant {
                tenant: tenant.clone(),
                binding: format!("{} {path}", binding.kind.as_str()),
                subject: shown,
                role: binding.role.clone(),
                reaches,
                remedy: format!(
                    "remove the subject, or: kubectl delete {} {}{in_namespace}",
                    binding.kind.as_str().to_lowercase(),
                    binding.name
                ),
            });
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Where a binding reaches beyond the tenant, if it does.
fn reach(binding: &BindingFact, tenant: &str, model: &Model, discovery: &Discovery) -> Option<String> {
    if binding.rules.is_empty() {
        return None;
    }
    match &binding.namespace {
        Some(namespace) => match model.namespace_owner(namespace) {
            Some(owner) if owner == tenant => None,
            Some(PLATFORM) => Some(format!("namespace {namespace} of the platform")),
            Some(owner) => Some(format!("namespace {namespace} of tenant {owner}")),
            None => None,
        },
        None => {
            let ceiling = cluster_ceiling(discovery, model, model.tenants.get(tenant)?);
            let within = |rule: &PolicyRule| {
                let pairs = rule
                    .api_groups
                    .iter()
                    .flatten()
                    .flat_map(|g| rule.resources.iter().flatten().map(move |r| (g, r)));
                let mut inside = rule.non_resource_urls.as_ref().is_none_or(Vec::is_empty);
                for (group, resource) in pairs {
                    let held = ceiling.verbs(group, resource);
                    inside &= rule.verbs.iter().all(|v| held.contains(v));
                }
                inside
            };
            (!binding.rules.iter().all(within)).then(|| "the whole cluster".to_owned())
        }
    }
}
