//! Apply: writes what differs, removes what nobody wants any more.
//!
//! An object is written only if what is there does not already say all that is wanted, so that a
//! reconciliation that changes nothing writes nothing.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use bailey_api::{AccessRequest, COMPONENT_LABEL};
use bailey_guardrails::{Object, ObjectKind};
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions},
    core::PartialObjectMeta,
    runtime::reflector::{ObjectRef, Store},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    FIELD_MANAGER,
    cluster::{Cluster, api_resource},
    error::OperatorError,
    metrics::{KindLabel, Metrics},
};

/// Writes in flight: enough to hide the latency of the API server, far below its limits (APF workload-low).
const CONCURRENT_WRITES: usize = 16;
const DEADLINE: Duration = Duration::from_secs(15);

/// The identity of an object among all that Bailey writes.
pub(crate) type Key = (ObjectKind, Option<String>, String);

/// The key of an object.
pub(crate) fn key(object: &Object) -> Key {
    (object.kind, object.namespace.clone(), object.name.clone())
}

/// Writes to the API server.
#[derive(Clone)]
pub(crate) struct Applier {
    client: Client,
    metrics: Metrics,
}

impl Applier {
    pub(crate) fn new(client: Client, metrics: Metrics) -> Self {
        Self { client, metrics }
    }

    /// Writes those of `objects` that differ. Tries all, and gives the number written and the first error.
    pub(crate) async fn apply_all<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Object>,
        live: &Live<'_>,
    ) -> (usize, Option<OperatorError>) {
        let mut differing = Vec::new();
        for object in objects {
            match live.find(object) {
                Some(found) if object.is_said_by(&found) => {}
                found => differing.push((object, found.is_none())),
            }
        }
        let writes: Vec<_> =
            differing.into_iter().map(|(object, new)| self.write(object, new).boxed()).collect();
        let results = stream::iter(writes).buffer_unordered(CONCURRENT_WRITES).collect::<Vec<_>>().await;
        let written = results.iter().filter(|r| r.is_ok()).count();
        (written, results.into_iter().find_map(Result::err))
    }

    async fn write(&self, object: &Object, new: bool) -> Result<(), OperatorError> {
        let name = describe(object.kind, object.namespace.as_deref(), &object.name);
        if !(new && is_rbac(object.kind) && self.create(object, &name).await?) {
            self.apply(object, &name).await?;
        }
        self.metrics.writes.get_or_create(&KindLabel { kind: object.kind.resource().2 }).inc();
        tracing::debug!(object = name, "applied");
        Ok(())
    }

    /// Creates an object of RBAC; false if there is one already.
    ///
    /// A create costs the API server half of what a server-side apply does. It is for kinds whose fields are
    /// replaced whole by a later apply, so that it does not matter that they have two owners.
    async fn create(&self, object: &Object, name: &str) -> Result<bool, OperatorError> {
        let json = |source| OperatorError::Json { object: name.to_owned(), source };
        let content: DynamicObject = serde_json::from_value(object.content.clone()).map_err(json)?;
        let api = self.api(object.kind, object.namespace.as_deref());
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match within("create", name, api.create(&params, &content)).await {
            Ok(_) => Ok(true),
            Err(OperatorError::Api { source, .. }) if is_conflict(&source) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn apply(&self, object: &Object, name: &str) -> Result<(), OperatorError> {
        let api = self.api(object.kind, object.namespace.as_deref());
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let patch = Patch::Apply(&object.content);
        let applied = within("apply", name, api.patch(&object.name, &params, &patch)).await;
        match applied {
            // The role of a binding cannot change; whoever wrote another one in its place loses it.
            Err(OperatorError::Api { source, .. }) if is_immutable(&source) => {
                self.remove(object.kind, object.namespace.as_deref(), &object.name, None).await?;
                within("apply", name, api.patch(&object.name, &params, &patch)).await.map(drop)
            }
            other => other.map(drop),
        }
    }

    /// Writes the Boundary whole, so that nothing of an earlier one stays in it.
    pub(crate) async fn write_boundary(
        &self,
        wanted: &Object,
        cluster: &Cluster,
    ) -> Result<bool, OperatorError> {
        let live = cluster.boundary();
        let spec = wanted.content.get("spec");
        if live.as_ref().is_some_and(|l| l.data.get("spec") == spec) {
            return Ok(false);
        }
        let name = describe(wanted.kind, None, &wanted.name);
        let json = |source| OperatorError::Json { object: name.clone(), source };
        let mut object: DynamicObject = serde_json::from_value(wanted.content.clone()).map_err(json)?;
        let api = self.api(wanted.kind, None);
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match live {
            Some(live) => {
                object.metadata.resource_version = live.metadata.resource_version.clone();
                within("update", &name, api.replace(&wanted.name, &params, &object)).await?;
            }
            None => {
                within("create", &name, api.create(&params, &object)).await?;
            }
        }
        let bytes = spec.map_or(0, |s| s.to_string().len());
        self.metrics.boundary_bytes.set(u32::try_from(bytes).map_or(f64::MAX, f64::from));
        self.metrics.writes.get_or_create(&KindLabel { kind: wanted.kind.resource().2 }).inc();
        Ok(true)
    }

    /// Removes an object; that it is gone already is fine.
    pub(crate) async fn remove(
        &self,
        kind: ObjectKind,
        namespace: Option<&str>,
        name: &str,
        uid: Option<String>,
    ) -> Result<(), OperatorError> {
        let described = describe(kind, namespace, name);
        let params = DeleteParams {
            preconditions: uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None }),
            ..DeleteParams::default()
        };
        let api = self.api(kind, namespace);
        match within("delete", &described, api.delete(name, &params)).await {
            Ok(_) => {
                self.metrics.removals.get_or_create(&KindLabel { kind: kind.resource().2 }).inc();
                tracing::info!(object = described, "removed");
                Ok(())
            }
            Err(OperatorError::Api { source, .. }) if is_not_found(&source) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes all of `orphans`. Tries all, and gives the first error.
    pub(crate) async fn remove_all(&self, orphans: Vec<Orphan>) -> Option<OperatorError> {
        stream::iter(orphans)
            .map(|o| async move { self.remove(o.key.0, o.key.1.as_deref(), &o.key.2, o.uid).await })
            .buffer_unordered(CONCURRENT_WRITES)
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .find_map(Result::err)
    }

    /// Takes a namespace out of a tenant; the namespace and what is in it stay.
    pub(crate) async fn release_namespace(&self, name: &str) -> Result<(), OperatorError> {
        // Pod Security stays as tight as it is: what runs there is still a customer's.
        let labels = json!({
            bailey_api::TENANT_LABEL: null, bailey_api::ENFORCEMENT_LABEL: null, COMPONENT_LABEL: null,
        });
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        let described = describe(ObjectKind::Namespace, None, name);
        let api = self.api(ObjectKind::Namespace, None);
        match within("label", &described, api.patch(name, &PatchParams::default(), &patch)).await {
            Err(OperatorError::Api { source, .. }) if is_not_found(&source) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Writes the status of a `bailey.dev` object, by server-side apply.
    pub(crate) async fn apply_status<S: Serialize>(
        &self,
        resource: &kube::core::ApiResource,
        namespace: Option<&str>,
        name: &str,
        status: &S,
    ) -> Result<(), OperatorError> {
        let described = format!("{} {name}", resource.kind);
        let content = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": { "name": name }, "status": status,
        });
        let api = dynamic(&self.client, resource, namespace);
        let params = PatchParams::apply(concat!("bailey-operator", "-status")).force();
        within("write the status of", &described, api.patch_status(name, &params, &Patch::Apply(&content)))
            .await
            .map(drop)
    }

    /// Replaces the finalizers of a cluster-scoped `bailey.dev` object, if nobody changed it meanwhile.
    pub(crate) async fn set_finalizers(
        &self,
        resource: &kube::core::ApiResource,
        object: &kube::core::ObjectMeta,
        finalizers: &[String],
    ) -> Result<(), OperatorError> {
        let name = object.name.clone().unwrap_or_default();
        let patch =
            json!({ "metadata": { "resourceVersion": object.resource_version, "finalizers": finalizers } });
        let described = format!("{} {name}", resource.kind);
        let api = dynamic(&self.client, resource, None);
        within("finalize", &described, api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)))
            .await
            .map(drop)
    }

    fn api(&self, kind: ObjectKind, namespace: Option<&str>) -> Api<DynamicObject> {
        dynamic(&self.client, &api_resource(kind), namespace)
    }
}

fn dynamic(
    client: &Client,
    resource: &kube::core::ApiResource,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

/// An object of Bailey that nobody wants.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub key: Key,
    uid: Option<String>,
}

fn collect<K>(store: &Store<K>, kind: ObjectKind, found: &mut Vec<Orphan>)
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    for object in store.state() {
        let name = object.name_any();
        if name.starts_with("bailey:") && object.labels().contains_key(COMPONENT_LABEL) {
            found.push(Orphan { key: (kind, object.namespace(), name), uid: object.uid() });
        }
    }
}

/// What is there, to be found by key.
pub(crate) struct Live<'a> {
    cluster: &'a Cluster,
    namespaces: HashMap<String, Arc<PartialObjectMeta<Namespace>>>,
    requests: HashMap<(Option<String>, String), &'a AccessRequest>,
    rails: HashMap<(ObjectKind, String), Arc<DynamicObject>>,
}

impl<'a> Live<'a> {
    pub(crate) fn new(cluster: &'a Cluster, requests: &'a [AccessRequest]) -> Self {
        Self {
            cluster,
            namespaces: cluster.namespaces().into_iter().map(|n| (n.name_any(), n)).collect(),
            requests: requests.iter().map(|r| ((r.namespace(), r.name_any()), r)).collect(),
            rails: cluster.rails().map(|(kind, o)| ((kind, o.name_any()), o)).collect(),
        }
    }

    /// All namespaces.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Arc<PartialObjectMeta<Namespace>>> {
        self.namespaces.values()
    }

    /// Bailey's objects that are not in `wanted`. Labels alone do not make an object Bailey's: its name must
    /// have the reserved prefix too, which nobody but the platform may use.
    pub(crate) fn orphans(&self, wanted: &HashSet<Key>) -> Vec<Orphan> {
        let mut found = Vec::new();
        collect(&self.cluster.cluster_roles, ObjectKind::ClusterRole, &mut found);
        collect(&self.cluster.cluster_role_bindings, ObjectKind::ClusterRoleBinding, &mut found);
        collect(&self.cluster.roles, ObjectKind::Role, &mut found);
        collect(&self.cluster.role_bindings, ObjectKind::RoleBinding, &mut found);
        let rails = self.rails.iter().filter(|((_, name), _)| name.starts_with("bailey-"));
        found
            .extend(rails.map(|((kind, name), o)| Orphan { key: (*kind, None, name.clone()), uid: o.uid() }));
        let requests = self.requests.iter().map(|((namespace, name), request)| Orphan {
            key: (ObjectKind::AccessRequest, namespace.clone(), name.clone()),
            uid: request.uid(),
        });
        found.extend(requests);
        found.retain(|orphan| !wanted.contains(&orphan.key));
        found
    }

    fn find(&self, wanted: &Object) -> Option<Value> {
        match wanted.kind {
            ObjectKind::ClusterRole => cached(&self.cluster.cluster_roles, wanted),
            ObjectKind::ClusterRoleBinding => cached(&self.cluster.cluster_role_bindings, wanted),
            ObjectKind::Role => cached(&self.cluster.roles, wanted),
            ObjectKind::RoleBinding => cached(&self.cluster.role_bindings, wanted),
            ObjectKind::Namespace => {
                let found = self.namespaces.get(&wanted.name)?;
                Some(json!({ "metadata": { "name": wanted.name, "labels": found.labels() } }))
            }
            ObjectKind::AccessRequest => {
                // The status is large and not what is applied here.
                let found = self.requests.get(&(wanted.namespace.clone(), wanted.name.clone()))?;
                Some(json!({ "metadata": found.metadata, "spec": found.spec }))
            }
            kind => {
                let found = self.rails.get(&(kind, wanted.name.clone()))?;
                serde_json::to_value(&**found).ok()
            }
        }
    }
}

fn cached<K>(store: &Store<K>, wanted: &Object) -> Option<Value>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + 'static,
{
    let mut reference = ObjectRef::<K>::new(&wanted.name);
    if let Some(namespace) = &wanted.namespace {
        reference = reference.within(namespace);
    }
    store.get(&reference).and_then(|object| serde_json::to_value(&*object).ok())
}

fn describe(kind: ObjectKind, namespace: Option<&str>, name: &str) -> String {
    let kind = kind.resource().2;
    match namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

pub(crate) async fn within<T>(
    verb: &'static str,
    object: &str,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, OperatorError> {
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(answer) => answer.map_err(|source| OperatorError::api(verb, object, source)),
        Err(_) => {
            Err(OperatorError::Deadline { verb, object: object.to_owned(), seconds: DEADLINE.as_secs() })
        }
    }
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

fn is_rbac(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Role | ObjectKind::RoleBinding | ObjectKind::ClusterRole | ObjectKind::ClusterRoleBinding
    )
}

fn is_immutable(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 422 && status.message.contains("cannot change roleRef"))
}
