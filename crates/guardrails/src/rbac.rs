//! Roles and bindings of a cluster: what bindings of tenants ask for, and who holds what beside Bailey.

use std::collections::{BTreeMap, HashMap};

use bailey_api::{
    AccessRequest, ApprovedRule, BindingKind, COMPONENT_LABEL, NamespaceName, REQUESTED_AGGREGATION,
    REQUESTED_ROLE, REQUESTED_RULES, SCOPED_ROLE, TENANT_LABEL, TenantName,
};
use k8s_openapi::{
    api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{BindingFact, Model, RequestedBinding, RoleSource, requested_rules};

/// Roles and bindings, as found. What Bailey wrote is left out: it asks for nothing.
#[derive(Debug, Clone, Default)]
pub struct Rbac {
    cluster_roles: BTreeMap<String, RoleSource>,
    roles: BTreeMap<(String, String), RoleSource>,
    bindings: BTreeMap<(BindingKind, Option<String>, String), Binding>,
}

#[derive(Debug, Clone)]
struct Binding {
    uid: String,
    labels: BTreeMap<String, String>,
    asked: Option<String>,
    role: RoleRef,
    subjects: Vec<Subject>,
}

/// What says which binding an approval is for: tenant, kind, namespace of a RoleBinding, name.
type ApprovalKey<'a> = (&'a str, BindingKind, Option<&'a str>, &'a str);

impl Rbac {
    /// Adds a ClusterRole.
    pub fn add_cluster_role(&mut self, role: &ClusterRole) {
        let name = role.metadata.name.clone().unwrap_or_default();
        self.cluster_roles.insert(name, source(&role.metadata, role.rules.as_ref()));
    }

    /// Adds a Role.
    pub fn add_role(&mut self, role: &Role) {
        if !is_baileys(&role.metadata) {
            let name = role.metadata.name.clone().unwrap_or_default();
            let namespace = role.metadata.namespace.clone().unwrap_or_default();
            self.roles.insert((namespace, name), source(&role.metadata, role.rules.as_ref()));
        }
    }

    /// Adds a ClusterRoleBinding.
    pub fn add_cluster_role_binding(&mut self, binding: &ClusterRoleBinding) {
        let kind = BindingKind::ClusterRoleBinding;
        self.add(kind, &binding.metadata, &binding.role_ref, binding.subjects.as_ref());
    }

    /// Adds a RoleBinding.
    pub fn add_role_binding(&mut self, binding: &RoleBinding) {
        self.add(BindingKind::RoleBinding, &binding.metadata, &binding.role_ref, binding.subjects.as_ref());
    }

    fn add(&mut self, kind: BindingKind, meta: &ObjectMeta, role: &RoleRef, subjects: Option<&Vec<Subject>>) {
        if is_baileys(meta) {
            return;
        }
        let key = (kind, meta.namespace.clone(), meta.name.clone().unwrap_or_default());
        let binding = Binding {
            uid: meta.uid.clone().unwrap_or_default(),
            labels: meta.labels.clone().unwrap_or_default(),
            asked: meta.annotations.as_ref().and_then(|a| a.get(REQUESTED_ROLE)).cloned(),
            role: role.clone(),
            subjects: subjects.cloned().unwrap_or_default(),
        };
        self.bindings.insert(key, binding);
    }

    /// Bindings of tenants in effect that point to the empty role, with the rules they ask for; sorted.
    pub fn requested(&self, model: &Model, requests: &[AccessRequest]) -> Vec<RequestedBinding> {
        let approvals: HashMap<ApprovalKey<'_>, &Vec<ApprovedRule>> = requests.iter().map(approval).collect();
        let request =
            |((kind, namespace, name), binding): (&(BindingKind, Option<String>, String), &Binding)| {
                if !is_scoped(&binding.role) {
                    return None;
                }
                let owner = match namespace {
                    Some(namespace) => model.namespace_owner(namespace)?,
                    None => binding.labels.get(TENANT_LABEL)?,
                };
                let (tenant, _) = model.tenants.get_key_value(owner)?;
                let role = binding.asked.clone()?;
                let key = (tenant.as_str(), *kind, namespace.as_deref(), name.as_str());
                Some(RequestedBinding {
                    kind: *kind,
                    namespace: namespace.as_ref().and_then(|n| NamespaceName::new(n.clone()).ok()),
                    name: name.clone(),
                    uid: binding.uid.clone(),
                    subjects: binding.subjects.clone(),
                    approved: approvals.get(&key).map(|rules| (*rules).clone()).unwrap_or_default(),
                    rules: self.rules(&role, namespace.as_deref(), tenant),
                    role,
                    tenant: tenant.clone(),
                })
            };
        self.bindings.iter().filter_map(request).collect()
    }

    fn rules(
        &self,
        asked: &str,
        namespace: Option<&str>,
        tenant: &TenantName,
    ) -> Result<Vec<PolicyRule>, String> {
        let (kind, name) = asked.split_once('/').unwrap_or(("ClusterRole", asked));
        let source = self.role(kind, name, namespace).ok_or_else(|| {
            format!("{kind} `{name}` does not exist, so nothing is known of what it asks for")
        })?;
        let is_own = |role: &&RoleSource| role.labels.get(TENANT_LABEL).is_some_and(|t| t == tenant.as_str());
        requested_rules(source, self.cluster_roles.values().filter(is_own))
    }

    fn role(&self, kind: &str, name: &str, namespace: Option<&str>) -> Option<&RoleSource> {
        match (kind, namespace) {
            ("Role", Some(namespace)) => self.roles.get(&(namespace.to_owned(), name.to_owned())),
            _ => self.cluster_roles.get(name),
        }
    }

    /// Bindings that Bailey neither wrote nor scoped, with the rules of their roles; sorted.
    pub fn unscoped(&self) -> Vec<BindingFact> {
        let foreign = self.bindings.iter().filter(|(_, binding)| !is_scoped(&binding.role));
        let fact =
            |((kind, namespace, name), binding): (&(BindingKind, Option<String>, String), &Binding)| {
                let role = self.role(&binding.role.kind, &binding.role.name, namespace.as_deref());
                BindingFact {
                    kind: *kind,
                    namespace: namespace.clone(),
                    name: name.clone(),
                    role: format!("{}/{}", binding.role.kind, binding.role.name),
                    subjects: binding.subjects.clone(),
                    rules: role.map(|role| role.rules.clone()).unwrap_or_default(),
                }
            };
        foreign.map(fact).collect()
    }
}

fn approval(request: &AccessRequest) -> (ApprovalKey<'_>, &Vec<ApprovedRule>) {
    let binding = &request.spec.binding;
    // A request of a ClusterRoleBinding lies in some namespace of the tenant; its binding in none.
    let namespace =
        request.metadata.namespace.as_deref().filter(|_| binding.kind == BindingKind::RoleBinding);
    ((request.spec.tenant.as_str(), binding.kind, namespace, binding.name.as_str()), &request.spec.approved)
}

fn is_scoped(role: &RoleRef) -> bool {
    role.kind == "ClusterRole" && role.name == SCOPED_ROLE
}

/// Labels alone do not make an object Bailey's: its name must have the reserved prefix too.
fn is_baileys(meta: &ObjectMeta) -> bool {
    meta.name.as_ref().is_some_and(|n| n.starts_with("bailey:"))
        && meta.labels.as_ref().is_some_and(|labels| labels.contains_key(COMPONENT_LABEL))
}

fn source(meta: &ObjectMeta, rules: Option<&Vec<PolicyRule>>) -> RoleSource {
    let annotation = |key: &str| meta.annotations.as_ref().and_then(|a| a.get(key)).cloned();
    RoleSource {
        rules: rules.cloned().unwrap_or_default(),
        requested: annotation(REQUESTED_RULES),
        aggregation: annotation(REQUESTED_AGGREGATION),
        labels: meta.labels.clone().unwrap_or_default(),
    }
}
