//! Switches the rails of one control plane: none, or with so many tenants in the index and in RBAC.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bailey_guardrails::{Desired, Discovery, Object, ObjectKind, build, policies};
use bailey_testkit::ControlPlane;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde_json::{Value, json};

use super::{requests, scene};

/// How long the API server may take to see a change.
const EFFECT: Duration = Duration::from_secs(60);
/// The API server looks for changed policies once a second; each kind of policy has its own look.
const SETTLE: Duration = Duration::from_millis(2000);
/// Writes in flight while switching.
const WRITES: usize = 8;
/// A group that holds everything, so that only the rails decide on the probe.
const PROBE_GROUP: &str = "bench:probe";
/// A role of the platform that no tenant may delete.
const TARGET: &str = "bench-target";
const RBAC: &str = "rbac.authorization.k8s.io";
const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// The rails with so many tenants in the index, or none.
pub type Tenants = Option<usize>;

/// The switch.
pub struct Rails {
    admin: Client,
    plane_admin: bailey_testkit::Access,
    bindings: Vec<Object>,
    sizes: Vec<Size>,
    on: bool,
    /// What is there of the roles of tenants in the cluster scope.
    granted: BTreeMap<String, Object>,
}

/// What differs with the number of tenants: the index, and what tenants hold in the cluster scope.
struct Size {
    tenants: usize,
    index: Object,
    grants: BTreeMap<String, Object>,
}

impl Rails {
    /// Puts policies, rights of the first tenant and all indexes in place; no policy is bound.
    pub async fn prepare(plane: &ControlPlane, sizes: &[usize]) -> Result<Self> {
        let admin = plane.admin().client().await?;
        define_kinds(plane, &admin).await?;
        let discovery = discover(&admin).await?;
        let policies = policies()?;
        let desired_for =
            |tenants| -> Result<Desired> { Ok(build(&scene::model(tenants)?, &policies, &discovery)) };
        let first = desired_for(1)?;
        let (bound, rails): (Vec<_>, Vec<_>) = first.rails.iter().cloned().partition(is_binding);
        for object in
            std::iter::once(&first.platform).chain(&rails).chain(&first.namespaces).chain(&first.grants)
        {
            requests::apply(&admin, &requests::path(object), &object.content).await?;
        }
        let size = |tenants| -> Result<Size> {
            let desired = desired_for(tenants)?;
            let cluster = |o: &&Object| o.namespace.is_none();
            let grants =
                desired.grants.iter().filter(cluster).map(|o| (requests::path(o), o.clone())).collect();
            Ok(Size { tenants, index: desired.boundary, grants })
        };
        let sizes = sizes.iter().map(|tenants| size(*tenants)).collect::<Result<Vec<_>>>()?;
        let cluster = |o: &&Object| o.namespace.is_none();
        let granted = first.grants.iter().filter(cluster).map(|o| (requests::path(o), o.clone())).collect();
        for group in [PROBE_GROUP, scene::PLATFORM_GROUP] {
            let subject = json!({ "apiGroup": RBAC, "kind": "Group", "name": group });
            bind_cluster_admin(&admin, &format!("bench:{group}"), subject).await?;
        }
        requests::apply(&admin, &format!("{CLUSTER_ROLES}/{TARGET}"), &cluster_role(TARGET)).await?;
        Ok(Self { admin, plane_admin: plane.admin().clone(), bindings: bound, sizes, on: false, granted })
    }

    /// The number of bindings that are switched.
    pub fn count(&self) -> usize {
        self.bindings.len()
    }

    /// The bytes of each index.
    pub fn index_bytes(&self) -> Vec<(usize, usize)> {
        self.sizes.iter().map(|size| (size.tenants, size.index.content.to_string().len())).collect()
    }

    /// Switches, and waits until the API server acts so. Without rails the first tenant keeps its rights.
    pub async fn switch(&mut self, tenants: Tenants) -> Result<()> {
        let wanted = tenants.unwrap_or(1);
        let size = self.sizes.iter().find(|size| size.tenants == wanted).context("no such size")?;
        match tenants {
            None => {
                for binding in self.bindings.iter().filter(|_| self.on) {
                    requests::delete(&self.admin, &requests::path(binding)).await?;
                }
            }
            Some(_) => {
                self.write_index(&size.index).await?;
                for binding in self.bindings.iter().filter(|_| !self.on) {
                    requests::apply(&self.admin, &requests::path(binding), &binding.content).await?;
                }
            }
        }
        self.grant(&size.grants).await?;
        self.granted = size.grants.clone();
        self.on = tenants.is_some();
        self.wait(tenants).await?;
        tokio::time::sleep(SETTLE).await;
        Ok(())
    }

    /// Gives and takes what tenants hold in the cluster scope: every authorization looks through it.
    async fn grant(&self, wanted: &BTreeMap<String, Object>) -> Result<()> {
        let missing = wanted.iter().filter(|(path, _)| !self.granted.contains_key(*path));
        let given = stream::iter(missing)
            .map(|(path, object)| requests::apply(&self.admin, path, &object.content))
            .buffer_unordered(WRITES);
        given.try_collect::<()>().await?;
        let over = self.granted.keys().filter(|path| !wanted.contains_key(*path));
        stream::iter(over)
            .map(|path| requests::delete(&self.admin, path))
            .buffer_unordered(WRITES)
            .try_collect::<()>()
            .await
    }

    /// A plain update, as the operator does it.
    async fn write_index(&self, index: &Object) -> Result<()> {
        let path = requests::path(index);
        let mut content = index.content.clone();
        let json = "application/json";
        match requests::get(&self.admin, &path).await? {
            None => {
                let collection = path.rsplit_once('/').map_or("", |(collection, _)| collection);
                requests::create(&self.admin, collection, &content).await?;
            }
            Some(live) => {
                let version = live.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
                if let Some(metadata) = content.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.insert("resourceVersion".to_owned(), version);
                }
                requests::succeed(&self.admin, "PUT", &path, json, content.to_string().into_bytes()).await?;
            }
        }
        Ok(())
    }

    /// The last tenant of this size must be known, by the label that its role gets, and the one after it
    /// unknown. Texts of refusals do not tell: when several policies refuse, one of them is shown.
    async fn wait(&self, tenants: Tenants) -> Result<()> {
        let started = Instant::now();
        let last = tenants.unwrap_or(1).saturating_sub(1);
        let label = format!("\"{}\":\"{}\"", bailey_api::TENANT_LABEL, scene::tenant_name(last));
        loop {
            let target = self.delete_target_as(last).await?;
            let known = self.create_role_as(last).await?;
            let unknown = self.create_role_as(last + 1).await?;
            let scoped = known.1.contains(&label) && known.1.contains(bailey_api::REQUESTED_RULES);
            let statuses = (target.0, known.0, unknown.0, scoped);
            let wanted = if tenants.is_some() { (403, 201, 403, true) } else { (200, 201, 201, false) };
            if statuses == wanted {
                return Ok(());
            }
            if started.elapsed() > EFFECT {
                bail!("the rails are not as wanted ({tenants:?}): {target:?} {known:?} {unknown:?}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// A dry run without a body: with one that does not say so too, it would delete.
    async fn delete_target_as(&self, tenant: usize) -> Result<(u16, String)> {
        self.send_as(tenant, "DELETE", &format!("{CLUSTER_ROLES}/{TARGET}?dryRun=All"), Vec::new()).await
    }

    async fn create_role_as(&self, tenant: usize) -> Result<(u16, String)> {
        let body = cluster_role("bench-probe").to_string().into_bytes();
        self.send_as(tenant, "POST", &format!("{CLUSTER_ROLES}?dryRun=All"), body).await
    }

    async fn send_as(&self, tenant: usize, method: &str, path: &str, body: Vec<u8>) -> Result<(u16, String)> {
        let mut config = self.plane_admin.config().await?;
        config.auth_info.impersonate = Some("bench-probe".to_owned());
        config.auth_info.impersonate_groups = Some(vec![PROBE_GROUP.to_owned(), scene::installers(tenant)]);
        let client = Client::try_from(config)?;
        let (status, body) = requests::send(&client, method, path, "application/json", body).await?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

fn cluster_role(name: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name },
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
    })
}

fn is_binding(object: &Object) -> bool {
    matches!(object.kind, ObjectKind::ValidatingPolicyBinding | ObjectKind::MutatingPolicyBinding)
}

/// Binds somebody to cluster-admin.
pub async fn bind_cluster_admin(admin: &Client, name: &str, subject: Value) -> Result<()> {
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [subject],
    });
    requests::apply(admin, &format!("/apis/{RBAC}/v1/clusterrolebindings/{name}"), &binding).await
}

async fn define_kinds(plane: &ControlPlane, admin: &Client) -> Result<()> {
    let mut wait = vec![
        "wait".to_owned(),
        "--for=condition=Established".to_owned(),
        "--timeout=60s".to_owned(),
        "crd".to_owned(),
    ];
    for crd in bailey_api::crds() {
        let name = crd.metadata.name.clone().unwrap_or_default();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        requests::apply(admin, &path, &serde_json::to_value(crd)?).await?;
        wait.push(name);
    }
    let wait: Vec<&str> = wait.iter().map(String::as_str).collect();
    plane.admin().kubectl(&wait, None).await?.stdout_of_success().map(drop)
}

async fn discover(admin: &Client) -> Result<Discovery> {
    let mut documents = Vec::new();
    for path in ["/api", "/apis"] {
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let request = http::Request::get(path).header(http::header::ACCEPT, accept).body(Vec::new())?;
        documents.push(admin.request::<Value>(request).await?);
    }
    Ok(Discovery::from_aggregated(&documents)?)
}
