//! From a model to all objects that do not depend on a single binding: index, rails and roles.

use bailey_api::{
    Enforcement, InstallTarget, NamespaceName, PodSecurity, RailState, RailStatus, SCOPED_ROLE, SubjectSet,
    TenantName,
};
use serde_json::{Value, json};

use crate::{
    BindingMode, Ceiling, Discovery, Model, Object, ObjectKind, Policy, PolicyKind, TenantModel, Where,
    boundary, cluster_ceiling, model::POD_SECURITY_PREFIX, namespace_ceiling, object::Component,
};

/// Everything that should exist, in the groups that it is applied in.
#[derive(Debug, Clone)]
pub struct Desired {
    /// The index. Before the rails, which refuse without it.
    pub boundary: Object,
    /// Policies and their bindings, each policy before its binding.
    pub rails: Vec<Object>,
    /// Roles and bindings of people and release accounts.
    pub grants: Vec<Object>,
    /// Namespaces of tenants, with their label.
    pub namespaces: Vec<Object>,
    /// What each rail does, for the status.
    pub rail_status: Vec<RailStatus>,
}

/// Builds everything. Cannot fail: what could is checked by [`validate`](crate::validate) and tests of the policies.
pub fn build(model: &Model, policies: &[Policy], discovery: &Discovery) -> Desired {
    let supported = |policy: &&Policy| {
        let (group, _, _, plural) = policy_kinds(policy.kind).0.resource();
        discovery.find(group, plural).is_some()
    };
    let usable: Vec<_> = policies.iter().filter(supported).collect();
    Desired {
        boundary: index(model),
        rails: usable.iter().flat_map(|policy| rail(policy, model)).collect(),
        grants: grants(model, discovery),
        namespaces: namespaces(model),
        rail_status: rail_status(policies, &usable, model.installation.enforcement),
    }
}

impl Desired {
    /// All objects, in an order in which they can be applied.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        std::iter::once(&self.boundary).chain(&self.rails).chain(&self.namespaces).chain(&self.grants)
    }
}

fn index(model: &Model) -> Object {
    let body = json!({ "spec": boundary(model) });
    Object::new(ObjectKind::Boundary, None, bailey_api::INSTALLATION_NAME, Component::Rail, None, body)
}

fn policy_kinds(kind: PolicyKind) -> (ObjectKind, ObjectKind) {
    match kind {
        PolicyKind::Validating => (ObjectKind::ValidatingPolicy, ObjectKind::ValidatingPolicyBinding),
        PolicyKind::Mutating => (ObjectKind::MutatingPolicy, ObjectKind::MutatingPolicyBinding),
    }
}

/// What the bindings of a validating policy do; `None` where the policy is not bound.
fn actions(policy: &Policy, enforcement: Enforcement) -> Option<Vec<&'static str>> {
    let by_enforcement = match enforcement {
        Enforcement::Audit => vec!["Audit"],
        Enforcement::Warn => vec!["Warn", "Audit"],
        Enforcement::Enforce => vec!["Deny"],
    };
    match policy.mode {
        BindingMode::Always => Some(vec!["Deny"]),
        BindingMode::ByEnforcement => Some(by_enforcement),
        BindingMode::OnlyEnforce if enforcement == Enforcement::Enforce => Some(vec!["Deny"]),
        BindingMode::OnlyWarn if enforcement == Enforcement::Warn => Some(vec!["Warn"]),
        BindingMode::OnlyEnforce | BindingMode::OnlyWarn => None,
    }
}

fn rail(policy: &Policy, model: &Model) -> Vec<Object> {
    let (kind, binding_kind) = policy_kinds(policy.kind);
    let annotate = |mut object: Object| {
        if let Some(metadata) = object.content.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert(
                "annotations".to_owned(),
                json!({"bailey.dev/rail": policy.rail, "bailey.dev/holds": policy.holds}),
            );
        }
        object
    };
    let Some(actions) = actions(policy, model.installation.enforcement) else { return Vec::new() };
    let object = Object::new(kind, None, &policy.name, Component::Rail, None, json!({ "spec": policy.spec }));
    let mut spec = json!({ "policyName": policy.name });
    if let Some(spec) = spec.as_object_mut() {
        if policy.kind == PolicyKind::Validating {
            spec.insert("validationActions".to_owned(), json!(actions));
        }
        if let Some(denies) = policy.denies_without_boundary {
            let action = if denies { "Deny" } else { "Allow" };
            spec.insert(
                "paramRef".to_owned(),
                json!({ "name": bailey_api::INSTALLATION_NAME, "parameterNotFoundAction": action }),
            );
        }
        let expression = match policy.place {
            Where::Everywhere => None,
            // By the name that the API server itself puts on a namespace: nobody can change it.
            Where::PlatformNamespaces => Some(json!({
                "key": "kubernetes.io/metadata.name", "operator": "In", "values": model.platform_namespaces,
            })),
            // By the label that only Bailey sets, since namespaces of tenants come and go.
            Where::TenantNamespaces => Some(json!({ "key": bailey_api::TENANT_LABEL, "operator": "Exists" })),
        };
        if let Some(expression) = expression {
            let selector = json!({ "namespaceSelector": { "matchExpressions": [expression] } });
            spec.insert("matchResources".to_owned(), selector);
        }
    }
    let binding =
        Object::new(binding_kind, None, &policy.name, Component::Rail, None, json!({ "spec": spec }));
    vec![annotate(object), annotate(binding)]
}

fn rail_status(policies: &[Policy], usable: &[&Policy], enforcement: Enforcement) -> Vec<RailStatus> {
    let state = |policy: &Policy| {
        if !usable.contains(&policy) {
            return RailState::Absent;
        }
        match (policy.kind, actions(policy, enforcement).as_deref()) {
            (_, None) => RailState::Absent,
            (PolicyKind::Mutating, Some(_)) | (_, Some(["Deny"])) => RailState::Enforced,
            (_, Some(["Audit"])) => RailState::Audited,
            (_, Some(_)) => RailState::Warned,
        }
    };
    let named = |policy: &Policy| RailStatus {
        name: policy.name.trim_start_matches("bailey-").to_owned(),
        state: state(policy),
        holds: policy.holds.clone(),
    };
    policies.iter().map(named).collect()
}

fn namespaces(model: &Model) -> Vec<Object> {
    let mut objects = Vec::new();
    for (name, tenant) in &model.tenants {
        for namespace in &tenant.namespaces {
            let mut object = Object::new(
                ObjectKind::Namespace,
                None,
                namespace.as_str(),
                Component::Grant,
                Some(name.as_str()),
                json!({}),
            );
            if let Some(labels) =
                object.content.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)
            {
                labels.extend(pod_security(namespace, tenant, model.installation.enforcement));
            }
            objects.push(object);
        }
    }
    objects
}

/// Pod Security labels as the mode asks, where they are not stricter already. The mode itself is a label, so
/// that a change of mode changes the object and takes back what an earlier mode set.
fn pod_security(
    namespace: &NamespaceName,
    tenant: &TenantModel,
    enforcement: Enforcement,
) -> Vec<(String, Value)> {
    let modes: &[&str] = match enforcement {
        Enforcement::Audit => &["audit"],
        Enforcement::Warn => &["audit", "warn"],
        Enforcement::Enforce => &["audit", "warn", "enforce"],
    };
    let has = tenant.pod_security.get(namespace);
    let level = |mode: &str| {
        let set = has.and_then(|labels| labels.get(mode)).copied().unwrap_or(PodSecurity::Privileged);
        set.max(tenant.spec.pod_security)
    };
    let label = |mode: &&str| (format!("{POD_SECURITY_PREFIX}{mode}"), json!(level(mode).as_str()));
    let mut labels: Vec<_> = modes.iter().map(label).collect();
    labels.push((bailey_api::ENFORCEMENT_LABEL.to_owned(), json!(enforcement.as_str())));
    labels
}

const INSTALLERS: &str = "bailey:installers";
const DEVELOPERS: &str = "bailey:developers";
const VIEWERS: &str = "bailey:viewers";

fn grants(model: &Model, discovery: &Discovery) -> Vec<Object> {
    let ceiling = namespace_ceiling(discovery, model);
    let role = |name: &str, ceiling: &Ceiling| {
        Object::new(
            ObjectKind::ClusterRole,
            None,
            name,
            Component::Grant,
            None,
            json!({ "rules": ceiling.rules() }),
        )
    };
    let mut objects = vec![
        Object::new(
            ObjectKind::ClusterRole,
            None,
            SCOPED_ROLE,
            Component::Grant,
            None,
            json!({ "rules": [] }),
        ),
        role(INSTALLERS, &ceiling),
        role(DEVELOPERS, &developers(&ceiling)),
        role(VIEWERS, &viewers(&ceiling)),
    ];
    for (name, tenant) in &model.tenants {
        objects.extend(tenant_grants(name, tenant, model, discovery));
    }
    objects
}

/// Groups of kinds that describe workload clusters and what runs on them.
fn is_remote_group(group: &str) -> bool {
    ["cluster.x-k8s.io", "toolkit.fluxcd.io"].iter().any(|g| group == *g || group.ends_with(&format!(".{g}")))
        || group == "application.giantswarm.io"
}

fn developers(ceiling: &Ceiling) -> Ceiling {
    let read = viewers(ceiling);
    let mut developers = ceiling.filter(|group, resource, _| {
        is_remote_group(group)
            || (group.is_empty() && resource == "configmaps")
            || (group == "argoproj.io" && resource == "applications")
    });
    for (group, resource, verbs) in read.iter() {
        developers.add(group, resource, verbs.clone());
    }
    developers
}

/// Reading, but no Secrets and none of the subresources that get into a pod.
fn viewers(ceiling: &Ceiling) -> Ceiling {
    ceiling.filter(|group, resource, verb| {
        let enters =
            ["exec", "attach", "portforward", "proxy"].iter().any(|s| resource.ends_with(&format!("/{s}")));
        ["get", "list", "watch"].contains(&verb) && !enters && !(group.is_empty() && resource == "secrets")
    })
}

fn tenant_grants(
    name: &TenantName,
    tenant: &TenantModel,
    model: &Model,
    discovery: &Discovery,
) -> Vec<Object> {
    let subjects = &tenant.spec.subjects;
    let (installers, developers) = (tenant.installers(), tenant.developers());
    let mut objects = Vec::new();
    for namespace in &tenant.namespaces {
        for (role, set) in
            [(INSTALLERS, &installers), (DEVELOPERS, &developers), (VIEWERS, &subjects.viewers)]
        {
            objects.extend(bind(ObjectKind::RoleBinding, Some(namespace.as_str()), role, role, name, set));
        }
    }
    let cluster = cluster_role(name, tenant, model, discovery);
    let role_name = cluster.name.clone();
    objects.push(cluster);
    objects.extend(bind(ObjectKind::ClusterRoleBinding, None, &role_name, &role_name, name, &installers));
    objects
}

/// What installers hold in the cluster.
fn cluster_role(name: &TenantName, tenant: &TenantModel, model: &Model, discovery: &Discovery) -> Object {
    let mut rules = cluster_ceiling(discovery, model, tenant).rules();
    let mut verbs = vec!["get".to_owned()];
    if tenant.spec.install.target == InstallTarget::ManagementCluster {
        verbs.push("install".to_owned());
    }
    rules.push(k8s_openapi::api::rbac::v1::PolicyRule {
        api_groups: Some(vec![bailey_api::GROUP.to_owned()]),
        resources: Some(vec!["tenants".to_owned()]),
        resource_names: Some(vec![name.to_string()]),
        verbs,
        ..Default::default()
    });
    let role = format!("bailey:tenant:{name}");
    Object::new(
        ObjectKind::ClusterRole,
        None,
        &role,
        Component::Grant,
        Some(name.as_str()),
        json!({ "rules": rules }),
    )
}

fn bind(
    kind: ObjectKind,
    namespace: Option<&str>,
    name: &str,
    role: &str,
    tenant: &TenantName,
    set: &SubjectSet,
) -> Option<Object> {
    const RBAC: &str = "rbac.authorization.k8s.io";
    let named = |kind: &str, name: &String| json!({"apiGroup": RBAC, "kind": kind, "name": name});
    let mut subjects: Vec<Value> = set.groups.iter().map(|g| named("Group", g)).collect();
    subjects.extend(set.users.iter().map(|u| named("User", u)));
    subjects.extend(
        set.service_accounts
            .iter()
            .map(|a| json!({"kind": "ServiceAccount", "namespace": a.namespace(), "name": a.name()})),
    );
    if subjects.is_empty() {
        return None;
    }
    let body = json!({
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    });
    Some(Object::new(kind, namespace, name, Component::Grant, Some(tenant.as_str()), body))
}

#[cfg(test)]
mod tests;
