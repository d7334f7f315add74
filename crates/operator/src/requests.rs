//! From bindings and roles on the cluster to what tenants ask for, and to what they hold without asking.

use std::collections::{BTreeMap, HashMap};

use bailey_api::{
    AccessRequest, ApprovedRule, BindingKind, BindingRef, COMPONENT_LABEL, NamespaceName,
    REQUESTED_AGGREGATION, REQUESTED_ROLE, REQUESTED_RULES, SCOPED_ROLE, TENANT_LABEL, TenantName,
};
use bailey_guardrails::{BindingFact, Model, RequestedBinding, RoleSource, requested_rules};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role, RoleRef, Subject};
use kube::{Resource, ResourceExt, runtime::reflector::ObjectRef};

use crate::cluster::Cluster;

/// All bindings of tenants in effect that point to the empty role, with the rules they ask for.
pub(crate) fn requested(
    cluster: &Cluster,
    model: &Model,
    requests: &[AccessRequest],
) -> Vec<RequestedBinding> {
    let approvals = approvals(requests);
    let own_roles = own_cluster_roles(cluster);
    let complete = |kind, namespace: Option<NamespaceName>, object: &dyn Bound, tenant: TenantName| {
        let name = object.name();
        let request = (tenant.to_string(), kind, name.clone(), namespace.as_ref().map(ToString::to_string));
        let asked = object.asked()?;
        let empty = Vec::new();
        let own = own_roles.get(tenant.as_str()).unwrap_or(&empty);
        Some(RequestedBinding {
            kind,
            name,
            uid: object.uid(),
            subjects: object.subjects(),
            approved: approvals.get(&request).cloned().unwrap_or_default(),
            rules: rules(cluster, &asked, namespace.as_ref(), own),
            namespace,
            tenant,
        })
    };
    let mut found = Vec::new();
    for binding in cluster.cluster_role_bindings.state() {
        let tenant = binding.labels().get(TENANT_LABEL).and_then(|t| model.tenants.get_key_value(t.as_str()));
        if let Some((tenant, _)) = tenant.filter(|_| is_scoped(&binding.role_ref)) {
            found.extend(complete(BindingKind::ClusterRoleBinding, None, &*binding, tenant.clone()));
        }
    }
    for binding in cluster.role_bindings.state() {
        if !is_scoped(&binding.role_ref) {
            continue;
        }
        let Ok(namespace) = NamespaceName::new(Bound::namespace(&*binding).unwrap_or_default()) else {
            continue;
        };
        let owner = model.namespace_owner(namespace.as_str()).and_then(|o| TenantName::new(o).ok());
        if let Some(tenant) = owner.filter(|o| model.tenants.contains_key(o)) {
            found.extend(complete(BindingKind::RoleBinding, Some(namespace), &*binding, tenant));
        }
    }
    found.sort_by(|a, b| (a.kind, &a.namespace, &a.name).cmp(&(b.kind, &b.namespace, &b.name)));
    found
}

/// All bindings that Bailey did not write and did not scope, with the rules of their roles.
pub(crate) fn unscoped(cluster: &Cluster) -> Vec<BindingFact> {
    let mut facts = Vec::new();
    for binding in cluster.cluster_role_bindings.state() {
        facts.extend(fact(cluster, BindingKind::ClusterRoleBinding, &*binding));
    }
    for binding in cluster.role_bindings.state() {
        facts.extend(fact(cluster, BindingKind::RoleBinding, &*binding));
    }
    facts
}

fn fact(cluster: &Cluster, kind: BindingKind, binding: &dyn Bound) -> Option<BindingFact> {
    let role = binding.role_ref();
    if is_scoped(role) || binding.is_baileys() {
        return None;
    }
    let namespace = binding.namespace();
    Some(BindingFact {
        kind,
        name: binding.name(),
        role: format!("{}/{}", role.kind, role.name),
        subjects: binding.subjects(),
        rules: source(cluster, &role.kind, &role.name, namespace.as_deref())
            .map(|s| s.rules)
            .unwrap_or_default(),
        namespace,
    })
}

/// The role that a scoped binding asks for, as `KIND/NAME`.
pub(crate) fn asked_role(cluster: &Cluster, binding: &RequestedBinding) -> String {
    let asked = match (&binding.namespace, binding.kind) {
        (Some(namespace), BindingKind::RoleBinding) => cluster
            .role_bindings
            .get(&ObjectRef::new(&binding.name).within(namespace.as_str()))
            .and_then(|b| b.asked()),
        _ => cluster.cluster_role_bindings.get(&ObjectRef::new(&binding.name)).and_then(|b| b.asked()),
    };
    asked.unwrap_or_default()
}

fn is_scoped(role: &RoleRef) -> bool {
    role.kind == "ClusterRole" && role.name == SCOPED_ROLE
}

/// What a binding of either kind has in common.
trait Bound {
    fn name(&self) -> String;
    fn namespace(&self) -> Option<String>;
    fn uid(&self) -> String;
    fn asked(&self) -> Option<String>;
    fn subjects(&self) -> Vec<Subject>;
    fn role_ref(&self) -> &RoleRef;
    fn is_baileys(&self) -> bool;
}

macro_rules! bound {
    ($kind:ty) => {
        impl Bound for $kind {
            fn name(&self) -> String {
                ResourceExt::name_any(self)
            }
            fn namespace(&self) -> Option<String> {
                ResourceExt::namespace(self)
            }
            fn uid(&self) -> String {
                Resource::meta(self).uid.clone().unwrap_or_default()
            }
            fn asked(&self) -> Option<String> {
                self.annotations().get(REQUESTED_ROLE).cloned()
            }
            fn subjects(&self) -> Vec<Subject> {
                self.subjects.clone().unwrap_or_default()
            }
            fn role_ref(&self) -> &RoleRef {
                &self.role_ref
            }
            fn is_baileys(&self) -> bool {
                self.labels().contains_key(COMPONENT_LABEL) && self.name_any().starts_with("bailey:")
            }
        }
    };
}

bound!(k8s_openapi::api::rbac::v1::ClusterRoleBinding);
bound!(k8s_openapi::api::rbac::v1::RoleBinding);

type ApprovalKey = (String, BindingKind, String, Option<String>);

fn approvals(requests: &[AccessRequest]) -> HashMap<ApprovalKey, Vec<ApprovedRule>> {
    let mut approvals = HashMap::new();
    for request in requests.iter().filter(|r| !r.spec.approved.is_empty()) {
        let BindingRef { kind, name } = request.spec.binding.clone();
        let namespace = (kind == BindingKind::RoleBinding).then(|| request.namespace().unwrap_or_default());
        approvals.insert((request.spec.tenant.clone(), kind, name, namespace), request.spec.approved.clone());
    }
    approvals
}

fn own_cluster_roles(cluster: &Cluster) -> HashMap<String, Vec<RoleSource>> {
    let mut own = HashMap::<String, Vec<RoleSource>>::new();
    for role in cluster.cluster_roles.state() {
        if let Some(tenant) = role.labels().get(TENANT_LABEL) {
            own.entry(tenant.clone()).or_default().push(of_cluster_role(&role));
        }
    }
    own
}

fn rules(
    cluster: &Cluster,
    asked: &str,
    namespace: Option<&NamespaceName>,
    own: &[RoleSource],
) -> Result<Vec<PolicyRule>, String> {
    let (kind, name) = asked.split_once('/').unwrap_or(("ClusterRole", asked));
    let source = source(cluster, kind, name, namespace.map(|n| n.as_str()))
        .ok_or_else(|| format!("{kind} `{name}` does not exist, so nothing is known of what it asks for"))?;
    requested_rules(&source, own)
}

fn source(cluster: &Cluster, kind: &str, name: &str, namespace: Option<&str>) -> Option<RoleSource> {
    match (kind, namespace) {
        ("Role", Some(namespace)) => {
            cluster.roles.get(&ObjectRef::new(name).within(namespace)).map(|role| of_role(&role))
        }
        _ => cluster.cluster_roles.get(&ObjectRef::new(name)).map(|role| of_cluster_role(&role)),
    }
}

fn of_role(role: &Role) -> RoleSource {
    record(role.annotations(), role.labels(), role.rules.clone())
}

fn of_cluster_role(role: &ClusterRole) -> RoleSource {
    record(role.annotations(), role.labels(), role.rules.clone())
}

fn record(
    annotations: &BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
    rules: Option<Vec<PolicyRule>>,
) -> RoleSource {
    RoleSource {
        rules: rules.unwrap_or_default(),
        requested: annotations.get(REQUESTED_RULES).cloned(),
        aggregation: annotations.get(REQUESTED_AGGREGATION).cloned(),
        labels: labels.clone(),
    }
}
