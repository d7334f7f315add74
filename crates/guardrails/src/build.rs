//! From a model to all objects that do not depend on a single binding: index, rails and roles.

use bailey_api::{
    Enforcement, InstallTarget, NamespaceName, PodSecurity, RailState, RailStatus, SCOPED_ROLE, SubjectSet,
    TenantName,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use crate::{
    BindingMode, Ceiling, Discovery, Lookup, Model, Object, ObjectKind, Policy, PolicyKind, TenantModel,
    Where, boundary, cluster_ceiling, model::POD_SECURITY_PREFIX, namespace_ceiling, object::Component,
};

/// Everything that should exist, in the groups that it is applied in.
#[derive(Debug, Clone)]
pub struct Desired {
    /// The index. Before the rails, which refuse without it.
    pub boundary: Object,
    /// The exact names of the platform, for the rails that do not use the index.
    pub platform: Object,
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
        platform: platform(model),
        rails: usable.iter().flat_map(|policy| rail(policy, model)).collect(),
        grants: grants(model, discovery),
        namespaces: namespaces(model),
        rail_status: rail_status(policies, &usable, model.installation.enforcement),
    }
}

impl Desired {
    /// All objects, in an order in which they can be applied.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        [&self.boundary, &self.platform]
            .into_iter()
            .chain(&self.rails)
            .chain(&self.namespaces)
            .chain(&self.grants)
    }
}

fn index(model: &Model) -> Object {
    let body = json!({ "spec": boundary(model) });
    Object::new(ObjectKind::Boundary, None, bailey_api::INSTALLATION_NAME, Component::Rail, None, body)
}

/// The role that holds the exact names of the platform; bound to nobody, it grants nothing.
const PLATFORM_ROLE: &str = "bailey:platform";

fn platform(model: &Model) -> Object {
    let index = boundary(model);
    let names = |map: &std::collections::BTreeMap<String, String>| -> Vec<String> {
        map.iter().filter(|(_, owner)| *owner == bailey_api::PLATFORM).map(|(name, _)| name.clone()).collect()
    };
    let rule = |resource: &str, names: Vec<String>| json!({ "apiGroups": [bailey_api::GROUP], "resources": [resource], "resourceNames": names, "verbs": ["is"] });
    let rules = json!([rule("users", names(&index.users)), rule("groups", names(&index.groups))]);
    Object::new(
        ObjectKind::ClusterRole,
        None,
        PLATFORM_ROLE,
        Component::Rail,
        None,
        json!({ "rules": rules }),
    )
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
        let param = match policy.lookup {
            Lookup::Nothing => None,
            // Nobody but the platform can remove it; if it did, refusing everybody would lock the operator out.
            Lookup::Platform => Some((PLATFORM_ROLE, "Allow")),
            Lookup::Boundary { denies: true } => Some((bailey_api::INSTALLATION_NAME, "Deny")),
            Lookup::Boundary { denies: false } => Some((bailey_api::INSTALLATION_NAME, "Allow")),
        };
        if let Some((name, action)) = param {
            spec.insert("paramRef".to_owned(), json!({ "name": name, "parameterNotFoundAction": action }));
        }
        if policy.place == Where::PlatformNamespaces {
            // By the name that the API server itself puts on a namespace: nobody can change it.
            let selector = json!({ "namespaceSelector": { "matchExpressions": [{
                "key": "kubernetes.io/metadata.name", "operator": "In", "values": model.platform_namespaces,
            }]}});
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
    let roles = [
        (format!("bailey:tenant:{name}"), cluster_rules(name, tenant, model, discovery), installers.clone()),
        (format!("bailey:tenant:{name}:members"), member_rules(name, tenant), members(tenant, &installers)),
        (
            format!("bailey:tenant:{name}:developers"),
            vec![verbs_on_tenant(name, &["get", "develop"])],
            developers,
        ),
    ];
    for (role, rules, set) in roles {
        let body = json!({ "rules": rules });
        let binding = bind(ObjectKind::ClusterRoleBinding, None, &role, &role, name, &set);
        if binding.is_some() {
            objects.push(Object::new(
                ObjectKind::ClusterRole,
                None,
                &role,
                Component::Grant,
                Some(name.as_str()),
                body,
            ));
        }
        objects.extend(binding);
    }
    objects
}

/// Everybody who writes in the cluster scope for a tenant: its installers and the accounts of its namespaces.
fn members(tenant: &TenantModel, installers: &SubjectSet) -> SubjectSet {
    let mut members = installers.clone();
    members.groups.extend(tenant.namespaces.iter().map(NamespaceName::accounts_group));
    members
}

/// Verbs that no API serves, for rails to ask the authorizer: `act` for the tenant, `define` its custom kinds.
fn member_rules(name: &TenantName, tenant: &TenantModel) -> Vec<PolicyRule> {
    let define = |resource: &str, names: Vec<String>| PolicyRule {
        api_groups: Some(vec![bailey_api::GROUP.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        resource_names: Some(names),
        verbs: vec!["define".to_owned()],
        ..PolicyRule::default()
    };
    let crds = &tenant.spec.crds;
    let mut rules = vec![verbs_on_tenant(name, &["act"])];
    // A rule without names would mean all of them.
    if !crds.groups.is_empty() {
        rules.push(define("groups", crds.groups.iter().map(ToString::to_string).collect()));
    }
    if !crds.names.is_empty() {
        rules.push(define("definitions", crds.names.iter().map(ToString::to_string).collect()));
    }
    rules
}

fn verbs_on_tenant(name: &TenantName, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![bailey_api::GROUP.to_owned()]),
        resources: Some(vec!["tenants".to_owned()]),
        resource_names: Some(vec![name.to_string()]),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        ..PolicyRule::default()
    }
}

/// What installers hold in the cluster.
fn cluster_rules(
    name: &TenantName,
    tenant: &TenantModel,
    model: &Model,
    discovery: &Discovery,
) -> Vec<PolicyRule> {
    let mut rules = cluster_ceiling(discovery, model, tenant).rules();
    let verbs: &[&str] = match tenant.spec.install.target {
        InstallTarget::ManagementCluster => &["get", "install"],
        InstallTarget::WorkloadClusters => &["get"],
    };
    rules.push(verbs_on_tenant(name, verbs));
    rules
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
