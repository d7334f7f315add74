//! Roles and bindings of a cluster: what tenants' bindings ask for, and who holds what beside Bailey.

use std::collections::{BTreeMap, HashMap};

use bailey_api::{
    AccessRequest, ApprovedRule, BindingKind, COMPONENT_LABEL, NamespaceName, REQUESTED_AGGREGATION,
    REQUESTED_ROLE, REQUESTED_RULES, SCOPED_ROLE, TENANT_LABEL, TenantName,
};
use bailey_guardrails::{BindingFact, Model, RequestedBinding, RoleSource, requested_rules};
use k8s_openapi::api::rbac::v1::{PolicyRule, Subject};
use serde::Deserialize;
use serde_json::Value;

use crate::live::{map, text};

/// Roles and bindings, read from lists.
#[derive(Debug, Clone, Default)]
pub struct Rbac {
    cluster_roles: BTreeMap<String, RoleSource>,
    roles: BTreeMap<(String, String), RoleSource>,
    bindings: Vec<Binding>,
}

#[derive(Debug, Clone)]
struct Binding {
    kind: BindingKind,
    namespace: Option<String>,
    name: String,
    uid: String,
    labels: BTreeMap<String, String>,
    asked: Option<String>,
    role_kind: String,
    role_name: String,
    subjects: Vec<Subject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBinding {
    role_ref: k8s_openapi::api::rbac::v1::RoleRef,
    #[serde(default)]
    subjects: Option<Vec<Subject>>,
}

impl Rbac {
    /// Reads the lists of all four kinds; names what cannot be read.
    pub fn read(lists: &HashMap<&str, Vec<Value>>) -> (Self, Vec<String>) {
        let mut rbac = Self::default();
        let mut unreadable = Vec::new();
        for (plural, items) in lists {
            for item in items {
                let namespace = text(item, "/metadata/namespace");
                let name = text(item, "/metadata/name");
                let path = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
                let read = match *plural {
                    "clusterroles" => role(item).map(|r| drop(rbac.cluster_roles.insert(name, r))),
                    "roles" => role(item).map(|r| drop(rbac.roles.insert((namespace, name), r))),
                    _ => binding(plural, item).map(|b| rbac.bindings.push(b)),
                };
                if let Err(error) = read {
                    unreadable.push(format!("{plural} {path}: {error}"));
                }
            }
        }
        rbac.bindings.sort_by(|a, b| (a.kind, &a.namespace, &a.name).cmp(&(b.kind, &b.namespace, &b.name)));
        (rbac, unreadable)
    }

    /// Bindings of tenants that point to the empty role, with the rules they ask for.
    pub fn requested(&self, model: &Model, requests: &[AccessRequest]) -> Vec<RequestedBinding> {
        let scoped = self.bindings.iter().filter(|b| b.role_name == SCOPED_ROLE);
        scoped.filter_map(|binding| self.request(binding, model, requests)).collect()
    }

    fn request(
        &self,
        binding: &Binding,
        model: &Model,
        requests: &[AccessRequest],
    ) -> Option<RequestedBinding> {
        let owner = match &binding.namespace {
            Some(namespace) => model.namespace_owner(namespace)?,
            None => binding.labels.get(TENANT_LABEL)?,
        };
        let tenant = TenantName::new(owner).ok().filter(|t| model.tenants.contains_key(t))?;
        let asked = binding.asked.clone()?;
        Some(RequestedBinding {
            kind: binding.kind,
            namespace: binding.namespace.clone().and_then(|n| NamespaceName::new(n).ok()),
            name: binding.name.clone(),
            uid: binding.uid.clone(),
            subjects: binding.subjects.clone(),
            approved: approved(binding, tenant.as_str(), requests),
            rules: self.rules(&asked, binding.namespace.as_deref(), tenant.as_str()),
            tenant,
        })
    }

    fn rules(&self, asked: &str, namespace: Option<&str>, tenant: &str) -> Result<Vec<PolicyRule>, String> {
        let (kind, name) = asked.split_once('/').unwrap_or(("ClusterRole", asked));
        let source = self.role(kind, name, namespace).ok_or_else(|| {
            format!("{kind} `{name}` does not exist, so nothing is known of what it asks for")
        })?;
        let own =
            self.cluster_roles.values().filter(|r| r.labels.get(TENANT_LABEL).is_some_and(|t| t == tenant));
        requested_rules(source, &own.cloned().collect::<Vec<_>>())
    }

    fn role(&self, kind: &str, name: &str, namespace: Option<&str>) -> Option<&RoleSource> {
        match (kind, namespace) {
            ("Role", Some(namespace)) => self.roles.get(&(namespace.to_owned(), name.to_owned())),
            _ => self.cluster_roles.get(name),
        }
    }

    /// Bindings that Bailey neither wrote nor scoped, with the rules of their roles.
    pub fn unscoped(&self) -> Vec<BindingFact> {
        let baileys = |b: &&Binding| b.labels.contains_key(COMPONENT_LABEL) && b.name.starts_with("bailey:");
        let foreign = self.bindings.iter().filter(|b| b.role_name != SCOPED_ROLE && !baileys(b));
        let fact = |b: &Binding| BindingFact {
            kind: b.kind,
            namespace: b.namespace.clone(),
            name: b.name.clone(),
            role: format!("{}/{}", b.role_kind, b.role_name),
            subjects: b.subjects.clone(),
            rules: self
                .role(&b.role_kind, &b.role_name, b.namespace.as_deref())
                .map(|role| role.rules.clone())
                .unwrap_or_default(),
        };
        foreign.map(fact).collect()
    }
}

fn approved(binding: &Binding, tenant: &str, requests: &[AccessRequest]) -> Vec<ApprovedRule> {
    let of_binding = |request: &&AccessRequest| {
        let spec = &request.spec;
        spec.tenant == tenant
            && spec.binding.kind == binding.kind
            && spec.binding.name == binding.name
            && (binding.namespace.is_none() || request.metadata.namespace == binding.namespace)
    };
    requests.iter().find(of_binding).map(|request| request.spec.approved.clone()).unwrap_or_default()
}

fn role(item: &Value) -> Result<RoleSource, serde_json::Error> {
    let annotation = |key| map(item, "/metadata/annotations").remove(key);
    let rules = item.get("rules").filter(|rules| !rules.is_null());
    Ok(RoleSource {
        rules: rules.map(Vec::<PolicyRule>::deserialize).transpose()?.unwrap_or_default(),
        requested: annotation(REQUESTED_RULES),
        aggregation: annotation(REQUESTED_AGGREGATION),
        labels: map(item, "/metadata/labels"),
    })
}

fn binding(plural: &str, item: &Value) -> Result<Binding, serde_json::Error> {
    let raw = RawBinding::deserialize(item)?;
    let kind = match plural {
        "rolebindings" => BindingKind::RoleBinding,
        _ => BindingKind::ClusterRoleBinding,
    };
    Ok(Binding {
        kind,
        namespace: Some(text(item, "/metadata/namespace")).filter(|n| !n.is_empty()),
        name: text(item, "/metadata/name"),
        uid: text(item, "/metadata/uid"),
        labels: map(item, "/metadata/labels"),
        asked: map(item, "/metadata/annotations").remove(REQUESTED_ROLE),
        role_kind: raw.role_ref.kind,
        role_name: raw.role_ref.name,
        subjects: raw.subjects.unwrap_or_default(),
    })
}
