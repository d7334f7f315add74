//! One case's cluster on the shared server: made, read, restored, replaced by the next.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use bailey_access::{Loader, Snapshot};
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::server::{RBAC, Request, Server, Who};
use crate::spec::{ACCOUNTS, GHOST, LABEL, NAMESPACES, SECRETS, Spec, TOKEN, rbac_path};

pub const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";

/// A Secret that is read if its marker is seen.
#[derive(Clone, Debug)]
pub struct Planted {
    pub namespace: String,
    pub name: String,
    pub marker: String,
    /// The account of a token Secret.
    pub account: Option<String>,
}

impl Planted {
    pub fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    pub fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets/{}", self.namespace, self.name)
    }

    fn object(&self) -> Value {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": self.name, "labels": {LABEL: "case"}}, "stringData": {"marker": self.marker}});
        if let Some(account) = &self.account {
            secret["type"] = json!("kubernetes.io/service-account-token");
            secret["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": account});
        }
        secret
    }
}

/// A Role, ClusterRole, RoleBinding or ClusterRoleBinding as it is now.
#[derive(Clone, Debug)]
pub struct Object {
    pub place: Option<usize>,
    pub name: String,
    pub path: String,
    pub body: Value,
}

impl Object {
    pub fn is_of_case(&self) -> bool {
        self.body["metadata"]["labels"].get(LABEL).is_some()
    }
}

/// The RBAC of the case as it is now.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub roles: Vec<Object>,
    pub bindings: Vec<Object>,
}

pub struct Case<'a> {
    pub server: &'a Server,
    pub spec: Spec,
    /// The Secrets that count.
    pub goals: Vec<Planted>,
    /// Token Secrets that were made on the way.
    pub made: Vec<Planted>,
    /// Accounts that were made on the way, by place.
    pub ghosts: BTreeSet<usize>,
    /// Changes with every write; 0 is the case as it was given.
    pub version: u64,
    versions: u64,
    pub objects: Objects,
    built_in: BTreeMap<String, Value>,
}

/// Makes what all cases share.
pub async fn prepare(server: &Server) -> Result<()> {
    for namespace in NAMESPACES {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        server.admin(Request::post("/api/v1/namespaces", object)).await?;
        for name in ACCOUNTS {
            let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
            server.admin(Request::post(path, account)).await?;
        }
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        server
            .until("the default account", async || server.admin_if_there(Request::get(&path)).await)
            .await?;
    }
    for secret in planted(&[]) {
        let path = format!("/api/v1/namespaces/{}/secrets", secret.namespace);
        server.admin(Request::post(path, secret.object())).await?;
    }
    Ok(())
}

fn planted(tokens: &[(usize, String)]) -> Vec<Planted> {
    let mut secrets = Vec::new();
    for (place, namespace) in NAMESPACES.iter().enumerate() {
        let planted = |name: &str, account: Option<&String>| Planted {
            namespace: (*namespace).to_owned(),
            name: name.to_owned(),
            // Not a word that anything else could hold.
            marker: format!("planted-{namespace}-{name}-0f3b9c"),
            account: account.cloned(),
        };
        secrets.extend(SECRETS.iter().map(|name| planted(name, None)));
        let token = tokens.iter().find(|(of, _)| *of == place);
        secrets.extend(token.map(|(_, account)| planted(TOKEN, Some(account))));
    }
    secrets
}

impl<'a> Case<'a> {
    /// Makes a case's cluster in place of the one before.
    pub async fn make(server: &'a Server, spec: Spec) -> Result<Self> {
        let mut case = Self {
            server,
            goals: planted(&spec.tokens),
            spec,
            made: Vec::new(),
            ghosts: BTreeSet::new(),
            version: 0,
            versions: 0,
            objects: Objects::default(),
            built_in: BTreeMap::new(),
        };
        case.clear().await?;
        case.apply().await?;
        Ok(case)
    }

    /// Says that something was written, so that what was seen before counts no longer.
    pub async fn written(&mut self) -> Result<()> {
        self.versions += 1;
        self.version = self.versions;
        self.settle().await
    }

    /// Makes it as it was given again, if anything was written.
    pub async fn restore(&mut self) -> Result<()> {
        if self.version == 0 {
            return Ok(());
        }
        self.clear().await?;
        self.apply().await?;
        self.version = 0;
        Ok(())
    }

    async fn clear(&mut self) -> Result<()> {
        let selected = format!("labelSelector={LABEL}");
        let mut requests = vec![
            Request::delete(format!("{RBAC}/clusterroles?{selected}")),
            Request::delete(format!("{RBAC}/clusterrolebindings?{selected}")),
            Request::delete("/apis/certificates.k8s.io/v1/certificatesigningrequests"),
            Request::delete(format!("{POLICIES}/validatingadmissionpolicybindings?{selected}")),
            Request::delete(format!("{POLICIES}/validatingadmissionpolicies?{selected}")),
            Request::delete(format!("/api/v1/namespaces/kube-system/secrets?{selected}")),
        ];
        for (place, namespace) in NAMESPACES.iter().enumerate() {
            requests.push(Request::delete(rbac_path(Some(place), "roles")));
            requests.push(Request::delete(rbac_path(Some(place), "rolebindings")));
            let kept: Vec<String> = SECRETS.iter().map(|name| format!("metadata.name!={name}")).collect();
            let path = format!("/api/v1/namespaces/{namespace}/secrets?fieldSelector={}", kept.join(","));
            requests.push(Request::delete(path));
        }
        for (path, body) in std::mem::take(&mut self.built_in) {
            let mut body = body;
            if let Some(metadata) = body["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
            }
            requests.push(Request::put(path, body));
        }
        self.server.admin_all(requests).await?;
        for (place, namespace) in NAMESPACES.iter().enumerate() {
            if self.ghosts.remove(&place) {
                let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{GHOST}");
                self.server.admin_if_there(Request::delete(path)).await?;
                self.server.forget(&Who::account(namespace, GHOST)).await;
            }
        }
        Ok(())
    }

    async fn apply(&mut self) -> Result<()> {
        self.made.clear();
        let mut requests: Vec<Request> =
            self.spec.objects().into_iter().map(|(path, object)| Request::post(path, object)).collect();
        for secret in self.goals.iter().filter(|secret| secret.account.is_some()) {
            let path = format!("/api/v1/namespaces/{}/secrets", secret.namespace);
            requests.push(Request::post(path, secret.object()));
        }
        self.server.admin_all(requests).await?;
        for secret in self.goals.iter().filter(|secret| secret.account.is_some()) {
            self.filled(secret).await?;
        }
        self.settle().await
    }

    /// Puts a Secret back as it was planted.
    pub async fn replant(&self, secret: &Planted) -> Result<()> {
        self.server.admin_if_there(Request::delete(secret.path())).await?;
        let path = format!("/api/v1/namespaces/{}/secrets", secret.namespace);
        self.server.admin(Request::post(path, secret.object())).await?;
        if secret.account.is_some() {
            self.filled(secret).await?;
        }
        Ok(())
    }

    /// Waits until a controller has put a token of its account into a token Secret; returns it.
    pub async fn filled(&self, secret: &Planted) -> Result<String> {
        let account = secret.account.as_deref().context("a token Secret")?;
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/{account}", secret.namespace);
        let uid = self.server.admin(Request::get(path)).await?.json()["metadata"]["uid"].clone();
        let look = async || {
            let Some(answer) = self.server.admin_if_there(Request::get(secret.path())).await? else {
                return Ok(None);
            };
            let found = answer.json();
            let of = &found["metadata"]["annotations"]["kubernetes.io/service-account.uid"];
            let token = found["data"]["token"].as_str().filter(|token| !token.is_empty() && *of == uid);
            Ok(token.map(str::to_owned))
        };
        self.server.until("a controller to fill a token Secret", look).await
    }

    /// Waits until controllers and the authorizer have done what follows from what was written, and reads it.
    async fn settle(&mut self) -> Result<()> {
        if self.spec.aggregates() || !self.built_in.is_empty() || self.version > 0 {
            let server = self.server;
            let look = async || {
                let list = server.admin(Request::get(format!("{RBAC}/clusterroles"))).await?.json();
                Ok(is_aggregated(&list["items"]).then_some(()))
            };
            server.until("aggregated roles to be filled", look).await?;
        }
        self.server.settle().await?;
        self.objects = self.read_objects().await?;
        if self.is_constrained() {
            self.server.forget_all().await;
        }
        Ok(())
    }

    /// Whether anybody may act as others for certain requests only.
    pub fn is_constrained(&self) -> bool {
        self.objects.roles.iter().any(|role| role.body["rules"].to_string().contains("impersonate:"))
    }

    async fn read_objects(&self) -> Result<Objects> {
        let mut objects = Objects::default();
        for plural in ["roles", "rolebindings"] {
            for place in [None, Some(0), Some(1), Some(2)] {
                let path = rbac_path(place, plural);
                let list = self.server.admin(Request::get(&path)).await?.json();
                let kind = format!(
                    "{}{}",
                    if place.is_none() { "Cluster" } else { "" },
                    if plural == "roles" { "Role" } else { "RoleBinding" }
                );
                for item in list["items"].as_array().context("a list")? {
                    let name = item["metadata"]["name"].as_str().context("a name")?.to_owned();
                    let mut body = item.clone();
                    body["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
                    body["kind"] = json!(kind);
                    let object = Object { place, path: format!("{path}/{name}"), name, body };
                    if plural == "roles" { objects.roles.push(object) } else { objects.bindings.push(object) }
                }
            }
        }
        Ok(objects)
    }

    /// Remembers how a built-in object was, before it is changed.
    pub fn remember(&mut self, path: &str) {
        let all = self.objects.roles.iter().chain(&self.objects.bindings);
        let object = all.into_iter().find(|object| object.path == path && !object.is_of_case());
        if let Some(object) = object.filter(|object| object.place.is_none()) {
            self.built_in.entry(path.to_owned()).or_insert_with(|| object.body.clone());
        }
    }

    /// Every Secret that may be read: those that count, and those made on the way.
    pub fn secrets(&self) -> impl Iterator<Item = &Planted> {
        self.goals.iter().chain(&self.made)
    }

    /// What the analyser is given: everything that it asks a server for.
    pub async fn facts(&self) -> Result<Snapshot> {
        let lists = [
            "/api/v1/namespaces",
            "/api/v1/serviceaccounts",
            "/api/v1/secrets",
            "/api/v1/pods",
            "/api/v1/nodes",
            "/api/v1/configmaps",
            "/apis/rbac.authorization.k8s.io/v1/roles",
            "/apis/rbac.authorization.k8s.io/v1/rolebindings",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
            "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
            "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
            "/version",
        ];
        let answers = try_join_all(lists.map(|path| self.server.admin(Request::get(path)))).await?;
        let mut snapshot = Snapshot::default();
        let mut loader = Loader::new(&mut snapshot, Some("oracle"));
        for (path, answer) in lists.iter().zip(answers) {
            loader.source(path);
            loader.object(&answer.json(), 0);
        }
        loader.finish();
        anyhow::ensure!(snapshot.gaps.is_empty(), "gaps: {:?}", snapshot.gaps);
        Ok(snapshot)
    }
}

/// Whether each aggregating role holds exactly what it selects.
fn is_aggregated(roles: &Value) -> bool {
    let roles: Vec<&Value> = roles.as_array().into_iter().flatten().collect();
    let rules = |role: &Value| -> BTreeSet<String> {
        role["rules"].as_array().into_iter().flatten().map(Value::to_string).collect()
    };
    roles.iter().all(|role| {
        let Some(selectors) = role["aggregationRule"]["clusterRoleSelectors"].as_array() else { return true };
        let selected = |other: &&&Value| {
            selectors.iter().any(|selector| {
                selector["matchLabels"].as_object().is_some_and(|labels| {
                    labels.iter().all(|(key, value)| other["metadata"]["labels"].get(key) == Some(value))
                })
            })
        };
        let name = &role["metadata"]["name"];
        let others = roles.iter().filter(|other| other["metadata"]["name"] != *name);
        let wanted: BTreeSet<String> = others.filter(selected).flat_map(|other| rules(other)).collect();
        wanted == rules(role)
    })
}
