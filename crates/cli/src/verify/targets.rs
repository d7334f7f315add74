//! What the attacks aim at on this cluster, chosen from what exists. Of Secrets only names are read.

use std::time::{SystemTime, UNIX_EPOCH};

use bailey_api::{
    Installation, NamespaceName, OPERATOR_NAMESPACE, ServiceAccountRef, SubjectSet, TENANT_LABEL, Tenant,
};
use bailey_attacks::{Actor, Bindings, RenderedAttack};
use serde::Serialize;

use crate::CliError;
use crate::actors::{self, Identity};
use crate::args::TargetArguments;
use crate::live::{Live, map, path, text};

/// What stands in for a target that does not exist; an attack that needs it is not applicable.
const ABSENT: &str = "bailey-verify-absent-";
/// How many platform namespaces are looked into for one that has everything.
const NAMESPACES_MAX: usize = 30;

/// What the attacks aim at, and who attacks.
#[derive(Debug, Clone)]
pub struct Targets {
    pub bindings: Bindings,
    pub cast: Cast,
}

/// Who attacks: an identity for each actor that the tenant has.
#[derive(Debug, Clone)]
pub struct Cast {
    installer: Option<Identity>,
    developer: Option<Identity>,
    automation: Option<Identity>,
}

/// The targets as they are shown.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    pub installer: String,
    pub developer: String,
    pub automation: String,
    pub tenant_namespace: String,
    pub app_namespace: String,
    pub platform_namespace: String,
    pub platform_secret: String,
    pub platform_account: String,
    pub platform_pod: String,
    pub deployer_namespace: String,
    pub platform_user: String,
    pub platform_cluster_role: String,
    pub other_tenant: String,
    pub other_namespace: String,
}

impl Cast {
    /// The identities that the Tenant names, or that exist in its namespaces.
    pub async fn of(live: &Live, tenant: &Tenant, overrides: &TargetArguments) -> Result<Self, CliError> {
        let set = |listed: &SubjectSet, accounts: &[ServiceAccountRef]| {
            let mut set = listed.clone();
            set.service_accounts.extend(accounts.iter().cloned());
            actors::first(&set, "bailey-verify")
        };
        let spec = &tenant.spec;
        Ok(Self {
            installer: set(&spec.subjects.installers, &spec.install.accounts),
            developer: set(&spec.subjects.developers, &spec.install.control_accounts),
            automation: automation(live, tenant, &accounts(tenant), overrides).await?,
        })
    }

    /// The identity of an actor, if the tenant has one.
    pub fn actor(&self, actor: Actor) -> Option<&Identity> {
        match actor {
            Actor::Installer => self.installer.as_ref(),
            Actor::Developer => self.developer.as_ref(),
            Actor::Automation => self.automation.as_ref(),
        }
    }

    /// All identities.
    pub fn identities(&self) -> impl Iterator<Item = &Identity> {
        [&self.installer, &self.developer, &self.automation].into_iter().flatten()
    }
}

impl Targets {
    /// Why an attack has nothing to aim at, if so.
    pub fn missing(&self, attack: &RenderedAttack) -> Option<String> {
        let steps = format!("{:?}", attack.definition().verify);
        let (_, rest) = steps.split_once(ABSENT)?;
        let what: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        let (thing, flag) = match what.trim_end_matches('-') {
            "secret" => ("no Secret in the platform's namespaces", "--platform-secret"),
            "account" => ("no ServiceAccount in the platform's namespaces", "--platform-account"),
            "pod" => ("no Pod in the platform's namespaces", "--platform-pod"),
            "user" => ("no user in spec.platform.users of the Installation", "--platform-user"),
            "other" => ("no other Tenant", "--other-tenant"),
            _ => ("no such target", "a flag"),
        };
        Some(format!("this cluster has {thing} to aim at; name one with {flag}"))
    }

    /// The targets as they are shown.
    pub fn shown(&self) -> Shown {
        let who =
            |identity: &Option<Identity>| identity.as_ref().map_or("none".to_owned(), |i| i.subject.clone());
        let b = &self.bindings;
        let known =
            |value: &str| if value.starts_with(ABSENT) { "none".to_owned() } else { value.to_owned() };
        Shown {
            installer: who(&self.cast.installer),
            developer: who(&self.cast.developer),
            automation: who(&self.cast.automation),
            tenant_namespace: known(&b.tenant_namespace),
            app_namespace: known(&b.tenant_app_namespace),
            platform_namespace: known(&b.platform_namespace),
            platform_secret: known(&b.platform_secret),
            platform_account: known(&b.platform_account),
            platform_pod: known(&b.platform_pod),
            deployer_namespace: known(&b.platform_deployer_namespace),
            platform_user: known(&b.platform_user),
            platform_cluster_role: known(&b.platform_cluster_role),
            other_tenant: known(&b.other_tenant),
            other_namespace: known(&b.other_namespace),
        }
    }
}

/// Chooses targets from the cluster, with the overrides over them.
pub async fn choose(
    live: &Live,
    installation: &Installation,
    tenant: &Tenant,
    tenants: &[Tenant],
    overrides: &TargetArguments,
    cast: Cast,
) -> Result<Targets, CliError> {
    let name = tenant.metadata.name.clone().unwrap_or_default();
    let first = tenant.spec.namespaces.first().map(ToString::to_string).unwrap_or_default();
    let of_automation =
        cast.automation.as_ref().and_then(|i| i.account()).map(|(namespace, _)| namespace.to_owned());
    let tenant_namespace = overrides.tenant_namespace.clone().or(of_automation).unwrap_or(first);
    let mut own = tenant.spec.namespaces.iter().map(ToString::to_string);
    let app = own.find(|n| n.contains("argo")).or_else(|| own.next_back());
    let other = match &overrides.other_tenant {
        Some(name) => tenants.iter().find(|t| t.metadata.name.as_ref() == Some(name)),
        None => tenants.iter().find(|t| t.metadata.name != tenant.metadata.name),
    };
    let absent = |what: &str| format!("{ABSENT}{what}");
    let other_subjects = other.map(|t| &t.spec.subjects);
    let other_group = other_subjects.and_then(|s| {
        s.installers.groups.first().or(s.developers.groups.first()).or(s.viewers.groups.first())
    });
    let place = platform_place(live, installation, overrides).await?;
    let platform = &installation.spec.platform;
    let bindings = Bindings {
        tenant: name,
        tenant_app_namespace: overrides
            .app_namespace
            .clone()
            .or(app)
            .unwrap_or_else(|| tenant_namespace.clone()),
        tenant_namespace,
        tenant_group: tenant.spec.subjects.installers.groups.first().cloned().unwrap_or_default(),
        tenant_developers: tenant.spec.subjects.developers.groups.first().cloned().unwrap_or_default(),
        // A label may name a tenant that does not exist, so those attacks need none.
        other_tenant: other
            .and_then(|t| t.metadata.name.clone())
            .unwrap_or_else(|| "another-tenant".to_owned()),
        other_namespace: other
            .and_then(|t| t.spec.namespaces.first())
            .map_or_else(|| absent("other"), ToString::to_string),
        other_group: other_group.cloned().unwrap_or_else(|| absent("other")),
        platform_secret: place.secret.unwrap_or_else(|| absent("secret")),
        platform_account: place.account.unwrap_or_else(|| absent("account")),
        platform_pod: place.pod.unwrap_or_else(|| absent("pod")),
        platform_deployer_namespace: deployer(live, installation, overrides, &place.namespace).await,
        platform_namespace: place.namespace,
        platform_user: overrides
            .platform_user
            .clone()
            .or_else(|| platform.users.first().cloned())
            .unwrap_or_else(|| absent("user")),
        platform_cluster_role: platform_role(live, overrides).await?,
        management_cluster: installation.spec.management_cluster.name.clone(),
        marker: format!("never-sent-{}", nonce()),
        nonce: nonce(),
    };
    Ok(Targets { bindings, cast })
}

/// All accounts that the Tenant names, those with most rights first.
fn accounts(tenant: &Tenant) -> Vec<ServiceAccountRef> {
    let spec = &tenant.spec;
    let mut accounts = spec.subjects.installers.service_accounts.clone();
    accounts.extend(spec.install.accounts.iter().cloned());
    accounts.extend(spec.subjects.developers.service_accounts.iter().cloned());
    accounts.extend(spec.install.control_accounts.iter().cloned());
    accounts
}

async fn automation(
    live: &Live,
    tenant: &Tenant,
    accounts: &[ServiceAccountRef],
    overrides: &TargetArguments,
) -> Result<Option<Identity>, CliError> {
    let fits =
        |namespace: &str| overrides.tenant_namespace.as_deref().is_none_or(|wanted| wanted == namespace);
    if let Some(account) = accounts.iter().find(|a| fits(a.namespace())) {
        return Ok(Some(actors::service_account(account.namespace(), account.name())));
    }
    for namespace in tenant.spec.namespaces.iter().filter(|n| fits(n.as_str())) {
        let target = path("", "v1", "serviceaccounts", Some(namespace.as_str()), Some("automation"));
        if live.get(target).await?.is_some() {
            return Ok(Some(actors::service_account(namespace.as_str(), "automation")));
        }
    }
    Ok(None)
}

/// A namespace of the platform with a Secret, an account and a Pod, or as many of them as there are.
#[derive(Debug, Clone, Default)]
struct Place {
    namespace: String,
    secret: Option<String>,
    account: Option<String>,
    pod: Option<String>,
}

impl Place {
    fn score(&self) -> usize {
        [&self.secret, &self.account, &self.pod].into_iter().flatten().count()
    }
}

fn platform_namespaces(installation: &Installation) -> Vec<String> {
    let own = installation.spec.platform.namespaces.iter().map(NamespaceName::to_string);
    own.chain(["kube-system".to_owned(), OPERATOR_NAMESPACE.to_owned()]).take(NAMESPACES_MAX).collect()
}

async fn platform_place(
    live: &Live,
    installation: &Installation,
    overrides: &TargetArguments,
) -> Result<Place, CliError> {
    let candidates = match &overrides.platform_namespace {
        Some(namespace) => vec![namespace.clone()],
        None => platform_namespaces(installation),
    };
    let mut best = Place::default();
    for namespace in candidates {
        let one = async |plural, given: &Option<String>| match given {
            Some(name) => Ok(Some(name.clone())),
            None => {
                let names = live.list_names(&path("", "v1", plural, Some(&namespace), None)).await?;
                let first = names.iter().find(|name| *name != "default").or(names.first()).cloned();
                Ok::<_, CliError>(first)
            }
        };
        let place = Place {
            secret: one("secrets", &overrides.platform_secret).await?,
            account: one("serviceaccounts", &overrides.platform_account).await?,
            pod: one("pods", &overrides.platform_pod).await?,
            namespace: namespace.clone(),
        };
        if best.namespace.is_empty() || place.score() > best.score() {
            best = place;
        }
        if best.score() == 3 {
            break;
        }
    }
    Ok(best)
}

/// The namespace where the platform's own releases or the cluster's kubeconfig are.
///
/// Only the better choice: what may not be listed does not count.
async fn deployer(
    live: &Live,
    installation: &Installation,
    overrides: &TargetArguments,
    fallback: &str,
) -> String {
    if let Some(namespace) = &overrides.deployer_namespace {
        return namespace.clone();
    }
    let kubeconfig = format!("{}-kubeconfig", installation.spec.management_cluster.name);
    for namespace in platform_namespaces(installation) {
        let named = async |group, version, plural| {
            live.list_names(&path(group, version, plural, Some(&namespace), None)).await.unwrap_or_default()
        };
        if named("", "v1", "secrets").await.contains(&kubeconfig)
            || !named("helm.toolkit.fluxcd.io", "v2", "helmreleases").await.is_empty()
            || !named("kustomize.toolkit.fluxcd.io", "v1", "kustomizations").await.is_empty()
        {
            return namespace;
        }
    }
    fallback.to_owned()
}

/// A ClusterRole that is the platform's own rather than Kubernetes' or Bailey's.
async fn platform_role(live: &Live, overrides: &TargetArguments) -> Result<String, CliError> {
    if let Some(name) = &overrides.platform_cluster_role {
        return Ok(name.clone());
    }
    let roles =
        live.list_metadata(&path("rbac.authorization.k8s.io", "v1", "clusterroles", None, None)).await?;
    let built_in = ["admin", "cluster-admin", "edit", "view"];
    let own =
        |name: &str| !name.starts_with("system:") && !name.starts_with("bailey") && !built_in.contains(&name);
    let platforms = roles.iter().filter(|role| !map(role, "/metadata/labels").contains_key(TENANT_LABEL));
    let found = platforms.map(|role| text(role, "/metadata/name")).find(|name| own(name));
    Ok(found.unwrap_or_else(|| "cluster-admin".to_owned()))
}

/// A suffix that makes the names of this run its own.
fn nonce() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("v{:x}x", since.as_millis() & 0xffff_ffff)
}
