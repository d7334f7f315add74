//! From raw specs and facts of the cluster to a model that cannot contradict itself.
//!
//! What contradicts something earlier is left out whole and named as a [`Problem`]: half a tenant would be
//! worse than none. Earlier means older, so that nobody takes what another already has.

use std::collections::{BTreeMap, BTreeSet};

use bailey_api::{
    Installation, InstallationSpec, NamespaceName, OPERATOR_NAMESPACE, PodSecurity, ServiceAccountRef,
    SubjectSet, Tenant, TenantName, TenantSpec,
};

/// What is known of the cluster beside its discovery.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// All namespaces.
    pub namespaces: Vec<NamespaceFact>,
    /// All CRDs: name to the tenant label, if any.
    pub crds: BTreeMap<String, Option<String>>,
}

/// A namespace of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceFact {
    /// Its name.
    pub name: NamespaceName,
    /// Its tenant label, if any.
    pub tenant: Option<String>,
    /// Its Pod Security labels, by mode: `enforce`, `warn`, `audit`.
    pub pod_security: BTreeMap<String, PodSecurity>,
}

impl NamespaceFact {
    /// Reads the labels that matter.
    pub fn new(name: NamespaceName, labels: &BTreeMap<String, String>) -> Self {
        let level = |(key, value): (&String, &String)| {
            let mode = key.strip_prefix(POD_SECURITY_PREFIX)?;
            Some((mode.to_owned(), PodSecurity::from_label(value)?))
        };
        Self {
            name,
            tenant: labels.get(bailey_api::TENANT_LABEL).cloned(),
            pod_security: labels.iter().filter_map(level).collect(),
        }
    }
}

/// What the labels of Pod Security begin with (k8s.io/pod-security-admission api/constants.go).
pub(crate) const POD_SECURITY_PREFIX: &str = "pod-security.kubernetes.io/";

/// A valid installation with its valid tenants, by name.
#[derive(Debug, Clone)]
pub struct Model {
    /// What the platform says.
    pub installation: InstallationSpec,
    /// Namespaces of the platform, the built-in ones included.
    pub platform_namespaces: BTreeSet<NamespaceName>,
    /// The tenants that are in effect.
    pub tenants: BTreeMap<TenantName, TenantModel>,
    /// CRDs that exist and that no tenant made.
    pub platform_crds: BTreeSet<String>,
}

/// A valid tenant.
#[derive(Debug, Clone)]
pub struct TenantModel {
    /// Its spec.
    pub spec: TenantSpec,
    /// Its namespaces: those of the spec, and those it created under its prefix.
    pub namespaces: BTreeSet<NamespaceName>,
    /// The Pod Security labels that its namespaces have.
    pub pod_security: BTreeMap<NamespaceName, BTreeMap<String, PodSecurity>>,
}

/// Why a tenant is not in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The tenant.
    pub tenant: String,
    /// The field, such as `spec.namespaces`.
    pub field: &'static str,
    /// What is wrong and what to do.
    pub message: String,
}

const SYSTEM_NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", OPERATOR_NAMESPACE];

/// Checks all tenants against the installation and each other.
pub fn validate(installation: &Installation, tenants: &[Tenant], facts: &Facts) -> (Model, Vec<Problem>) {
    let spec = installation.spec.clone();
    let mut platform_namespaces: BTreeSet<_> = spec.platform.namespaces.iter().cloned().collect();
    platform_namespaces.extend(SYSTEM_NAMESPACES.iter().filter_map(|n| NamespaceName::new(*n).ok()));
    let platform_crds =
        facts.crds.iter().filter(|(_, tenant)| tenant.is_none()).map(|(name, _)| name.clone()).collect();

    let mut model =
        Model { installation: spec, platform_namespaces, tenants: BTreeMap::new(), platform_crds };
    let mut problems = Vec::new();
    let mut claims = Claims::of_platform(&model);
    for tenant in by_age(tenants) {
        match admit(tenant, &claims, facts) {
            Ok((name, valid)) => {
                claims.add(name.as_str(), &valid.spec);
                model.tenants.insert(name, valid);
            }
            Err(problem) => problems.push(problem),
        }
    }
    (model, problems)
}

impl Model {
    /// The owner of a namespace: a tenant's name, or `platform`.
    pub fn namespace_owner(&self, namespace: &str) -> Option<&str> {
        if self.platform_namespaces.contains(namespace) {
            return Some(bailey_api::PLATFORM);
        }
        self.tenants.iter().find(|(_, t)| t.namespaces.contains(namespace)).map(|(name, _)| name.as_str())
    }
}

impl TenantModel {
    /// All subjects that act as installers: those listed, and the install accounts.
    pub fn installers(&self) -> SubjectSet {
        with_accounts(&self.spec.subjects.installers, &self.spec.install.accounts)
    }

    /// All subjects that act as developers: those listed, and the control accounts.
    pub fn developers(&self) -> SubjectSet {
        with_accounts(&self.spec.subjects.developers, &self.spec.install.control_accounts)
    }
}

fn with_accounts(set: &SubjectSet, accounts: &[ServiceAccountRef]) -> SubjectSet {
    let mut set = set.clone();
    set.service_accounts.extend(accounts.iter().cloned());
    set.service_accounts.sort();
    set.service_accounts.dedup();
    set
}

fn by_age(tenants: &[Tenant]) -> Vec<&Tenant> {
    let mut sorted: Vec<_> = tenants.iter().collect();
    sorted.sort_by_key(|t| {
        (
            t.metadata.creation_timestamp.as_ref().map(|time| time.0),
            t.metadata.name.clone().unwrap_or_default(),
        )
    });
    sorted
}

/// What is taken: each value with its owner.
#[derive(Default)]
struct Claims {
    namespaces: BTreeMap<String, String>,
    prefixes: BTreeMap<String, String>,
    groups: BTreeMap<String, String>,
    users: BTreeMap<String, String>,
    crds: BTreeMap<String, String>,
}

impl Claims {
    fn of_platform(model: &Model) -> Self {
        let owned = |names: Vec<String>| {
            names.into_iter().map(|name| (name, bailey_api::PLATFORM.to_owned())).collect()
        };
        let platform = &model.installation.platform;
        Self {
            namespaces: owned(model.platform_namespaces.iter().map(ToString::to_string).collect()),
            groups: owned(platform.groups.clone()),
            users: owned(platform.users.clone()),
            ..Self::default()
        }
    }

    fn add(&mut self, tenant: &str, spec: &TenantSpec) {
        let owner = || tenant.to_owned();
        self.namespaces.extend(spec.namespaces.iter().map(|n| (n.to_string(), owner())));
        self.prefixes.extend(spec.namespace_prefix.iter().map(|p| (p.clone(), owner())));
        for set in [&spec.subjects.installers, &spec.subjects.developers, &spec.subjects.viewers] {
            self.groups.extend(set.groups.iter().map(|g| (g.clone(), owner())));
            self.users.extend(set.users.iter().map(|u| (u.clone(), owner())));
        }
        self.crds.extend(spec.crds.groups.iter().map(|g| (g.to_string(), owner())));
        self.crds.extend(spec.crds.names.iter().map(|n| (n.to_string(), owner())));
    }
}

fn admit(tenant: &Tenant, claims: &Claims, facts: &Facts) -> Result<(TenantName, TenantModel), Problem> {
    let raw = tenant.metadata.name.clone().unwrap_or_default();
    let problem = |field, message: String| Problem { tenant: raw.clone(), field, message };
    let name = TenantName::new(raw.clone()).map_err(|e| problem("metadata.name", e.to_string()))?;
    let spec = &tenant.spec;
    for namespace in &spec.namespaces {
        if let Some(owner) = claims.namespaces.get(namespace.as_str()) {
            return Err(problem("spec.namespaces", taken("namespace", namespace.as_str(), owner)));
        }
        if let Some((prefix, owner)) =
            claims.prefixes.iter().find(|(p, _)| namespace.as_str().starts_with(*p))
        {
            let message = format!(
                "namespace `{namespace}` lies under the prefix `{prefix}` of {}; choose another",
                who(owner)
            );
            return Err(problem("spec.namespaces", message));
        }
    }
    if let Some(prefix) = &spec.namespace_prefix {
        let clash = claims
            .prefixes
            .iter()
            .find(|(p, _)| p.starts_with(prefix.as_str()) || prefix.starts_with(p.as_str()));
        let inside = claims.namespaces.iter().find(|(n, _)| n.starts_with(prefix.as_str()));
        if let Some((other, owner)) = clash.or(inside) {
            let message =
                format!("prefix `{prefix}` would cover `{other}` of {}; choose a longer one", who(owner));
            return Err(problem("spec.namespacePrefix", message));
        }
    }
    check_subjects(spec, claims).map_err(|(field, message)| problem(field, message))?;
    let entitled =
        spec.crds.groups.iter().map(|g| g.as_str()).chain(spec.crds.names.iter().map(|n| n.as_str()));
    for crd in entitled {
        let group = crd.split_once('.').map_or(crd, |(_, group)| group);
        if let Some(owner) = claims.crds.get(crd).or_else(|| claims.crds.get(group)) {
            return Err(problem("spec.crds", taken("custom kinds", crd, owner)));
        }
    }
    let namespaces = namespaces_of(&name, spec, facts);
    let has = facts.namespaces.iter().filter(|fact| namespaces.contains(&fact.name));
    let pod_security = has.map(|fact| (fact.name.clone(), fact.pod_security.clone())).collect();
    Ok((name, TenantModel { spec: spec.clone(), namespaces, pod_security }))
}

fn check_subjects(spec: &TenantSpec, claims: &Claims) -> Result<(), (&'static str, String)> {
    for set in [&spec.subjects.installers, &spec.subjects.developers, &spec.subjects.viewers] {
        if let Some((group, owner)) = set.groups.iter().find_map(|g| claims.groups.get(g).map(|o| (g, o))) {
            return Err(("spec.subjects", taken("group", group, owner)));
        }
        if let Some((user, owner)) = set.users.iter().find_map(|u| claims.users.get(u).map(|o| (u, o))) {
            return Err(("spec.subjects", taken("user", user, owner)));
        }
        let in_own = |account: &&ServiceAccountRef| {
            spec.namespaces.iter().any(|n| n.as_str() == account.namespace())
                || spec.namespace_prefix.as_ref().is_some_and(|p| account.namespace().starts_with(p.as_str()))
        };
        if let Some(account) = set.service_accounts.iter().find(|a| !in_own(a)) {
            let message = format!(
                "account `{account}` is in no namespace of the tenant; add its namespace, or use an account of the tenant"
            );
            return Err(("spec.subjects", message));
        }
    }
    Ok(())
}

fn taken(kind: &str, value: &str, owner: &str) -> String {
    format!("{kind} `{value}` belongs to {}; remove it from one of the two", who(owner))
}

fn who(owner: &str) -> String {
    if owner == bailey_api::PLATFORM { "the platform".to_owned() } else { format!("tenant `{owner}`") }
}

/// A label counts only under the tenant's prefix, because before `Enforce` anybody could have set it.
fn namespaces_of(name: &TenantName, spec: &TenantSpec, facts: &Facts) -> BTreeSet<NamespaceName> {
    let created = facts.namespaces.iter().filter(|fact| {
        fact.tenant.as_deref() == Some(name.as_str())
            && spec.namespace_prefix.as_ref().is_some_and(|p| fact.name.as_str().starts_with(p.as_str()))
    });
    spec.namespaces.iter().cloned().chain(created.map(|fact| fact.name.clone())).collect()
}

#[cfg(test)]
mod tests;
