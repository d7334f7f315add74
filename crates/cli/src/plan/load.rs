//! Everything that a plan is made from: the cluster, and files over it. What cannot be read is named.

use std::collections::HashMap;
use std::path::PathBuf;

use bailey_api::{AccessRequest, INSTALLATION_NAME, Installation, NamespaceName, TENANT_LABEL, Tenant};
use bailey_guardrails::{Facts, NamespaceFact, Rbac};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::rbac;
use crate::live::{Call, Live, LiveError, Served, map, path, text};
use crate::manifests::Manifest;
use crate::{CliError, report};

/// Something that could not be read, so that the plan may lack what follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

impl Unknown {
    /// Names what could not be read, with the error.
    pub fn new(what: impl Into<String>, error: &LiveError) -> Self {
        Self { what: what.into(), why: report(error) }
    }
}

/// Everything that a plan is made from.
#[derive(Debug)]
pub struct Inputs {
    pub installation: Installation,
    pub tenants: Vec<Tenant>,
    pub facts: Facts,
    pub served: Served,
    /// Metadata of all namespaces.
    pub namespaces: Vec<Value>,
    /// Metadata of all CRDs.
    pub crds: Vec<Value>,
    pub rbac: Rbac,
    /// Roles and bindings as they are, by plural.
    pub rbac_objects: HashMap<&'static str, Vec<Value>>,
    pub requests: Vec<AccessRequest>,
    pub unknown: Vec<Unknown>,
}

/// The plurals of RBAC.
pub const RBAC: [&str; 4] = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];

/// Reads the cluster and the files.
pub async fn load(live: &Live, files: &[PathBuf]) -> Result<Inputs, CliError> {
    let manifests = crate::manifests::read(files)?;
    let mut unknown = Vec::new();
    let served = live.discover().await?;
    unknown.extend(served.stale.iter().map(|group| Unknown {
        what: format!("API group {group}"),
        why: "its server does not answer now; see: kubectl get apiservices".to_owned(),
    }));
    let (installation, tenants) = own_objects(live, &manifests, &mut unknown).await?;
    let requests = objects::<AccessRequest>(live, "accessrequests", &mut unknown).await;

    let mut listed = async |what: &str, target: String, metadata: bool| {
        let list = if metadata { live.list_metadata(&target).await } else { live.list(&target).await };
        list.unwrap_or_else(|error| {
            unknown.push(Unknown::new(what, &error));
            Vec::new()
        })
    };
    let namespaces = listed("namespaces", path("", "v1", "namespaces", None, None), true).await;
    let crds = path("apiextensions.k8s.io", "v1", "customresourcedefinitions", None, None);
    let crds = listed("customresourcedefinitions", crds, true).await;
    let mut rbac_objects = HashMap::new();
    for plural in RBAC {
        let target = path("rbac.authorization.k8s.io", "v1", plural, None, None);
        rbac_objects.insert(plural, listed(plural, target, false).await);
    }
    let (rbac, unreadable) = rbac::read(&rbac_objects);
    unknown.extend(unreadable.into_iter().map(|why| Unknown { what: "a role or binding".to_owned(), why }));
    let facts = facts(&namespaces, &crds);
    Ok(Inputs {
        installation,
        tenants,
        facts,
        served,
        namespaces,
        crds,
        rbac,
        rbac_objects,
        requests,
        unknown,
    })
}

fn facts(namespaces: &[Value], crds: &[Value]) -> Facts {
    let tenant = |item: &Value| map(item, "/metadata/labels").remove(TENANT_LABEL);
    let namespace = |item: &Value| {
        let name = NamespaceName::new(text(item, "/metadata/name")).ok()?;
        Some(NamespaceFact::new(name, &map(item, "/metadata/labels")))
    };
    Facts {
        namespaces: namespaces.iter().filter_map(namespace).collect(),
        crds: crds.iter().map(|item| (text(item, "/metadata/name"), tenant(item))).collect(),
    }
}

/// Installation and Tenants: those of the cluster, with those of the files over them.
async fn own_objects(
    live: &Live,
    manifests: &[Manifest],
    unknown: &mut Vec<Unknown>,
) -> Result<(Installation, Vec<Tenant>), CliError> {
    let mut installation = objects::<Installation>(live, "installations", unknown).await.pop();
    let mut tenants = objects::<Tenant>(live, "tenants", unknown).await;
    for manifest in manifests {
        if manifest.is("Installation") {
            let given: Installation = as_applied(live, manifest, "installations", unknown).await?;
            if given.metadata.name.as_deref() != Some(INSTALLATION_NAME) {
                return Err(manifest.error("the one Installation is named `installation`; rename it"));
            }
            installation = Some(given);
        } else if manifest.is("Tenant") {
            let given: Tenant = as_applied(live, manifest, "tenants", unknown).await?;
            tenants.retain(|tenant| tenant.metadata.name != given.metadata.name);
            tenants.push(given);
        }
    }
    let installation = installation.ok_or_else(|| match unknown.iter().find(|u| u.what == "installations") {
        Some(unknown) => CliError::NotAllowed(format!("cannot read the Installation: {}", unknown.why)),
        None => CliError::Usage(
            "there is no Installation named `installation` on this cluster, so there is nothing to plan; give one with -f FILE"
                .to_owned(),
        ),
    })?;
    Ok((installation, tenants))
}

/// All objects of a kind of `bailey.dev`; none where the kind is not installed.
async fn objects<K: DeserializeOwned>(live: &Live, plural: &str, unknown: &mut Vec<Unknown>) -> Vec<K> {
    let items = match live.list(&path(bailey_api::GROUP, bailey_api::VERSION, plural, None, None)).await {
        Ok(items) => items,
        Err(error) => {
            unknown.push(Unknown::new(plural, &error));
            return Vec::new();
        }
    };
    let mut read = Vec::new();
    for item in items {
        match K::deserialize(&item) {
            Ok(object) => read.push(object),
            Err(error) => {
                let what = format!("{plural} {}", text(&item, "/metadata/name"));
                unknown.push(Unknown { what, why: error.to_string() });
            }
        }
    }
    read
}

/// An object of a file as the API server would keep it, which also checks the rules of its kind.
async fn as_applied<K: DeserializeOwned + kube::Resource>(
    live: &Live,
    manifest: &Manifest,
    plural: &str,
    unknown: &mut Vec<Unknown>,
) -> Result<K, CliError> {
    let mut raw = manifest.object.clone();
    if let Some(metadata) = raw.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let name = text(&raw, "/metadata/name");
    let target = path(bailey_api::GROUP, bailey_api::VERSION, plural, None, Some(&name));
    let target = format!("{target}?dryRun=All&force=true&fieldManager=bailey-plan");
    let kept = match live.json(Call::patch(target, "application/apply-patch+yaml", &raw)).await {
        Ok(kept) => kept,
        // The kind is not installed yet.
        Err(error) if error.status() == Some(404) => raw,
        Err(error) if matches!(error.status(), Some(400 | 422)) => {
            let LiveError::Refused { message, .. } = error else { return Err(error.into()) };
            return Err(manifest.error(format!("is refused: {message}")));
        }
        Err(error) => {
            unknown.push(Unknown::new(format!("whether {} is accepted", manifest.name()), &error));
            raw
        }
    };
    let mut object =
        K::deserialize(&kept).map_err(|error| manifest.error(format!("cannot be read: {error}")))?;
    // What is applied now is younger than all that exists.
    object.meta_mut().creation_timestamp.get_or_insert_with(|| Time(k8s_openapi::jiff::Timestamp::now()));
    Ok(object)
}
