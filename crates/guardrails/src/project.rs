//! From a scoped binding of a tenant to the objects that put its grant into effect.

use std::collections::BTreeMap;

use bailey_api::{
    ApprovedRule, BindingKind, BoundarySpec, GrantScope, NamespaceName, PLATFORM, RefusalReason, RefusedRule,
    TenantName,
};
use k8s_openapi::api::rbac::v1::{PolicyRule, Subject};
use serde_json::json;

use crate::{
    Ceiling, Discovery, Model, Object, ObjectKind, Scoped, TenantModel, boundary, cluster_ceiling,
    namespace_ceiling, object::Component, scope,
};

/// A binding of a tenant that points to the empty role, as found on the cluster.
#[derive(Debug, Clone)]
pub struct RequestedBinding {
    /// Its kind.
    pub kind: BindingKind,
    /// Its namespace, for a RoleBinding.
    pub namespace: Option<NamespaceName>,
    /// Its name.
    pub name: String,
    /// Its uid, for owner references.
    pub uid: String,
    /// Whose it is.
    pub tenant: TenantName,
    /// Its subjects.
    pub subjects: Vec<Subject>,
    /// What the platform approved, from its AccessRequest.
    pub approved: Vec<ApprovedRule>,
    /// The role it asks for, as `KIND/NAME`.
    pub role: String,
    /// The rules of that role, or why they cannot be read.
    pub rules: Result<Vec<PolicyRule>, String>,
}

/// What a binding is granted, and the objects that say so.
#[derive(Debug, Clone)]
pub struct Projection {
    /// Where its AccessRequest is.
    pub namespace: NamespaceName,
    /// The name of its AccessRequest.
    pub request_name: String,
    /// Who gets the grant.
    pub subjects: Vec<Subject>,
    /// Granted and refused rules.
    pub scoped: Scoped,
    /// Its AccessRequest, roles and bindings to apply, owned by the binding.
    pub objects: Vec<Object>,
}

/// Projects bindings. Holds what is the same for all of them.
pub struct Projector<'a> {
    model: &'a Model,
    discovery: &'a Discovery,
    index: BoundarySpec,
    namespace: Ceiling,
    cluster: BTreeMap<&'a TenantName, Ceiling>,
}

impl<'a> Projector<'a> {
    /// Prepares for a model.
    pub fn new(model: &'a Model, discovery: &'a Discovery) -> Self {
        let ceiling = |(name, tenant)| (name, cluster_ceiling(discovery, model, tenant));
        Self {
            model,
            discovery,
            index: boundary(model),
            namespace: namespace_ceiling(discovery, model),
            cluster: model.tenants.iter().map(ceiling).collect(),
        }
    }

    /// Projects a binding. `None` if its tenant is not in effect.
    pub fn project(&self, binding: &RequestedBinding) -> Option<Projection> {
        let tenant = self.model.tenants.get(&binding.tenant)?;
        let cluster = self.cluster.get(&binding.tenant)?;
        let home = home(binding, tenant)?;
        let (subjects, foreign) = split_subjects(binding, &self.index);
        let mut scoped = match &binding.rules {
            Ok(rules) => {
                scope(rules, &binding.approved, binding.kind, self.discovery, &self.namespace, cluster)
            }
            Err(message) => Scoped { granted: Vec::new(), refused: vec![unreadable(message)] },
        };
        scoped.refused.extend(foreign);

        let request_name = request_name(binding);
        let mut objects = vec![access_request(binding, &home, &request_name)];
        if !subjects.is_empty() {
            let places: Vec<_> = match &binding.namespace {
                Some(namespace) => vec![namespace.clone()],
                None => tenant.namespaces.iter().cloned().collect(),
            };
            objects.extend(in_namespaces(binding, &scoped, &subjects, &places));
            objects.extend(in_cluster(binding, &scoped, &subjects));
        }
        Some(Projection { namespace: home, request_name, subjects, scoped, objects })
    }
}

fn access_request(binding: &RequestedBinding, home: &NamespaceName, name: &str) -> Object {
    let spec = json!({
        "tenant": binding.tenant,
        "binding": { "kind": binding.kind, "name": binding.name },
    });
    let tenant = Some(binding.tenant.as_str());
    let body = json!({ "spec": spec });
    Object::new(ObjectKind::AccessRequest, Some(home.as_str()), name, Component::Projection, tenant, body)
        .owned_by(binding.object_kind(), &binding.name, &binding.uid)
}

impl RequestedBinding {
    fn object_kind(&self) -> ObjectKind {
        match self.kind {
            BindingKind::ClusterRoleBinding => ObjectKind::ClusterRoleBinding,
            BindingKind::RoleBinding => ObjectKind::RoleBinding,
        }
    }

    /// `bailey:` is reserved, so these names clash with nobody's.
    fn projected_name(&self) -> String {
        match self.kind {
            BindingKind::ClusterRoleBinding => format!("bailey:clusterrolebinding:{}", self.name),
            BindingKind::RoleBinding => format!("bailey:rolebinding:{}", self.name),
        }
    }
}

fn in_namespaces(
    binding: &RequestedBinding,
    scoped: &Scoped,
    subjects: &[Subject],
    places: &[NamespaceName],
) -> Vec<Object> {
    let rules = rules_of(scoped, GrantScope::Namespaces);
    if rules.is_empty() {
        return Vec::new();
    }
    let pair = |namespace: &NamespaceName| {
        let (role, binding_object) = role_and_binding(
            binding,
            (ObjectKind::Role, ObjectKind::RoleBinding),
            Some(namespace.as_str()),
            &rules,
            subjects,
        );
        [role, binding_object]
    };
    places.iter().flat_map(pair).collect()
}

fn in_cluster(binding: &RequestedBinding, scoped: &Scoped, subjects: &[Subject]) -> Vec<Object> {
    let rules = rules_of(scoped, GrantScope::Cluster);
    if rules.is_empty() || binding.kind == BindingKind::RoleBinding {
        return Vec::new();
    }
    let kinds = (ObjectKind::ClusterRole, ObjectKind::ClusterRoleBinding);
    let (role, binding_object) = role_and_binding(binding, kinds, None, &rules, subjects);
    vec![role, binding_object]
}

fn role_and_binding(
    binding: &RequestedBinding,
    (role_kind, binding_kind): (ObjectKind, ObjectKind),
    namespace: Option<&str>,
    rules: &[PolicyRule],
    subjects: &[Subject],
) -> (Object, Object) {
    let name = binding.projected_name();
    let tenant = Some(binding.tenant.as_str());
    let make = |kind, body| {
        Object::new(kind, namespace, &name, Component::Projection, tenant, body).owned_by(
            binding.object_kind(),
            &binding.name,
            &binding.uid,
        )
    };
    let role_ref =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind.resource().2, "name": name});
    (
        make(role_kind, json!({ "rules": rules })),
        make(binding_kind, json!({ "roleRef": role_ref, "subjects": subjects })),
    )
}

fn rules_of(scoped: &Scoped, scope: GrantScope) -> Vec<PolicyRule> {
    let mut rules = Vec::new();
    for granted in scoped.granted.iter().filter(|g| g.scope == scope) {
        if !rules.contains(&granted.rule) {
            rules.push(granted.rule.clone());
        }
    }
    rules
}

/// The request lies beside the app: in the namespace of the binding or of its first account of the tenant.
fn home(binding: &RequestedBinding, tenant: &TenantModel) -> Option<NamespaceName> {
    let of_account =
        binding.subjects.iter().filter_map(|s| s.namespace.as_deref()).find_map(|n| tenant.namespaces.get(n));
    binding.namespace.clone().or_else(|| of_account.cloned()).or_else(|| tenant.namespaces.first().cloned())
}

fn request_name(binding: &RequestedBinding) -> String {
    let prefix = match binding.kind {
        BindingKind::ClusterRoleBinding => "clusterrolebinding",
        BindingKind::RoleBinding => "rolebinding",
    };
    format!("{prefix}.{}", object_name(&binding.name))
}

/// RBAC names may hold characters that others may not; those are replaced, and a checksum keeps names apart.
fn object_name(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let cleaned: String = name
        .chars()
        .map(|c| if allowed(c.to_ascii_lowercase()) { c.to_ascii_lowercase() } else { '-' })
        .take(200)
        .collect();
    let trimmed = cleaned
        .trim_matches(|c| c == '-' || c == '.')
        .replace("..", "-.")
        .replace(".-", "--")
        .replace("-.", "--");
    if trimmed == name {
        return trimmed;
    }
    let sum = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("{trimmed}-{:08x}", sum >> 32)
}

fn unreadable(message: &str) -> RefusedRule {
    RefusedRule {
        request: None,
        rule: None,
        reason: RefusalReason::Unreadable,
        message: message.to_owned(),
        remedy: "apply the role again, or remove the binding".to_owned(),
    }
}

fn split_subjects(binding: &RequestedBinding, index: &BoundarySpec) -> (Vec<Subject>, Vec<RefusedRule>) {
    let tenant = binding.tenant.as_str();
    let owner_of = |subject: &Subject| -> Option<&str> {
        let namespace = subject.namespace.as_deref().or(binding.namespace.as_ref().map(|n| n.as_str()));
        let found = match subject.kind.as_str() {
            "ServiceAccount" => index.namespaces.get(namespace.unwrap_or_default()),
            "Group" => index.groups.get(&subject.name),
            _ => index
                .users
                .get(&subject.name)
                .or_else(|| index.namespaces.get(account_namespace(&subject.name))),
        };
        found.map(String::as_str)
    };
    let (mut own, mut foreign) = (Vec::new(), BTreeMap::new());
    for subject in &binding.subjects {
        match owner_of(subject) {
            Some(owner) if owner == tenant => own.push(subject.clone()),
            owner => {
                let whose = match owner {
                    Some(PLATFORM) => "the platform's".to_owned(),
                    Some(other) => format!("of tenant {other}"),
                    None => format!("not one of tenant {tenant}'s subjects"),
                };
                foreign.insert(format!("{} {}", subject.kind, subject.name), whose);
            }
        }
    }
    let refuse = |(name, whose): (String, String)| {
        RefusedRule {
        request: None,
        rule: None,
        reason: RefusalReason::ForeignSubject,
        message: format!("{name} is {whose}, so it gets nothing from this binding"),
        remedy: "bind an account in a namespace of the tenant, or ask the platform to add the subject to the Tenant".to_owned(),
    }
    };
    (own, foreign.into_iter().map(refuse).collect())
}

fn account_namespace(user: &str) -> &str {
    user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split(':').next()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
