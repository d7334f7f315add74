//! Dereference: what the operator knows of the cluster, from watches, as one snapshot.
//!
//! Kinds of `bailey.dev` are watched as raw objects and read one by one, so that one that cannot be read is
//! named and left out, and never stops the stream.

use std::{fmt::Debug, sync::Arc};

use bailey_api::{AccessRequest, Boundary, COMPONENT_LABEL, Installation, Tenant};
use bailey_guardrails::{Discovery, ObjectKind, Rbac};
use futures::StreamExt;
use k8s_openapi::{
    api::{
        core::v1::Namespace,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::DynamicObject,
    core::{ApiResource, GroupVersionKind, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        reflector::{Store, store::Writer},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use tokio::{sync::Notify, task::JoinSet};

use crate::{error::OperatorError, metrics::Metrics};

/// Caches of all that the operator looks at.
pub(crate) struct Cluster {
    installations: Store<DynamicObject>,
    tenants: Store<DynamicObject>,
    boundaries: Store<DynamicObject>,
    requests: Store<DynamicObject>,
    rails: Vec<(ObjectKind, Store<DynamicObject>)>,
    namespaces: Store<PartialObjectMeta<Namespace>>,
    crds: Store<PartialObjectMeta<CustomResourceDefinition>>,
    pub cluster_roles: Store<ClusterRole>,
    pub cluster_role_bindings: Store<ClusterRoleBinding>,
    pub roles: Store<Role>,
    pub role_bindings: Store<RoleBinding>,
    watches: JoinSet<String>,
}

/// One raw object that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub object: String,
    pub message: String,
}

impl Cluster {
    /// Starts all watches; `changed` is told of each change.
    pub(crate) fn watch(
        client: &Client,
        discovery: &Discovery,
        changed: &Arc<Notify>,
        metrics: &Metrics,
    ) -> Self {
        let mut start = Start { client, changed, metrics, watches: JoinSet::new() };
        let own = watcher::Config::default().labels(COMPONENT_LABEL);
        let all = watcher::Config::default();
        let policies = [
            ObjectKind::ValidatingPolicy,
            ObjectKind::ValidatingPolicyBinding,
            ObjectKind::MutatingPolicy,
            ObjectKind::MutatingPolicyBinding,
        ];
        let served = |kind: &ObjectKind| discovery.find(kind.resource().0, kind.resource().3).is_some();
        let rails = policies
            .into_iter()
            .filter(served)
            .map(|kind| (kind, start.raw(api_resource(kind), own.clone())))
            .collect();
        Self {
            installations: start.raw(ApiResource::erase::<Installation>(&()), all.clone()),
            tenants: start.raw(ApiResource::erase::<Tenant>(&()), all.clone()),
            boundaries: start.raw(ApiResource::erase::<Boundary>(&()), all.clone()),
            requests: start.raw(ApiResource::erase::<AccessRequest>(&()), all.clone()),
            rails,
            namespaces: start.typed(all.clone()),
            crds: start.typed(all.clone()),
            cluster_roles: start.typed(all.clone()),
            cluster_role_bindings: start.typed(all.clone()),
            roles: start.typed(all.clone()),
            role_bindings: start.typed(all),
            watches: start.watches,
        }
    }

    /// Waits until every cache has seen the whole list once.
    pub(crate) async fn complete(&self) -> Result<(), OperatorError> {
        let ended = |_| OperatorError::Watch { what: "a cache".to_owned() };
        for store in [&self.installations, &self.tenants, &self.boundaries, &self.requests] {
            store.wait_until_ready().await.map_err(ended)?;
        }
        for (_, store) in &self.rails {
            store.wait_until_ready().await.map_err(ended)?;
        }
        self.namespaces.wait_until_ready().await.map_err(ended)?;
        self.crds.wait_until_ready().await.map_err(ended)?;
        self.cluster_roles.wait_until_ready().await.map_err(ended)?;
        self.cluster_role_bindings.wait_until_ready().await.map_err(ended)?;
        self.roles.wait_until_ready().await.map_err(ended)?;
        self.role_bindings.wait_until_ready().await.map_err(ended)
    }

    /// Waits for a watch to end, which none should.
    pub(crate) async fn ended(&mut self) -> OperatorError {
        match self.watches.join_next().await {
            Some(Ok(what)) => OperatorError::Watch { what },
            Some(Err(error)) => OperatorError::Watch { what: error.to_string() },
            None => OperatorError::Watch { what: "everything".to_owned() },
        }
    }

    /// The Installation, if there is one that can be read.
    pub(crate) fn installation(&self) -> (Option<Installation>, Vec<Unreadable>) {
        let (mut found, unreadable) = read_all(&self.installations);
        (found.pop(), unreadable)
    }

    /// All Tenants that can be read.
    pub(crate) fn tenants(&self) -> (Vec<Tenant>, Vec<Unreadable>) {
        read_all(&self.tenants)
    }

    /// All AccessRequests that can be read.
    pub(crate) fn requests(&self) -> (Vec<AccessRequest>, Vec<Unreadable>) {
        read_all(&self.requests)
    }

    /// The Boundary as it is.
    pub(crate) fn boundary(&self) -> Option<Arc<DynamicObject>> {
        self.boundaries.state().into_iter().find(|b| b.name_any() == bailey_api::INSTALLATION_NAME)
    }

    /// Bailey's admission policies and bindings, as they are.
    pub(crate) fn rails(&self) -> impl Iterator<Item = (ObjectKind, Arc<DynamicObject>)> {
        self.rails.iter().flat_map(|(kind, store)| store.state().into_iter().map(|o| (*kind, o)))
    }

    /// All roles and bindings.
    pub(crate) fn rbac(&self) -> Rbac {
        let mut rbac = Rbac::default();
        self.cluster_roles.state().iter().for_each(|role| rbac.add_cluster_role(role));
        self.roles.state().iter().for_each(|role| rbac.add_role(role));
        self.cluster_role_bindings.state().iter().for_each(|binding| rbac.add_cluster_role_binding(binding));
        self.role_bindings.state().iter().for_each(|binding| rbac.add_role_binding(binding));
        rbac
    }

    /// All namespaces, with their labels.
    pub(crate) fn namespaces(&self) -> Vec<Arc<PartialObjectMeta<Namespace>>> {
        self.namespaces.state()
    }

    /// All CRDs, with their labels.
    pub(crate) fn crds(&self) -> Vec<Arc<PartialObjectMeta<CustomResourceDefinition>>> {
        self.crds.state()
    }
}

/// The API resource of a kind that Bailey writes.
pub(crate) fn api_resource(kind: ObjectKind) -> ApiResource {
    let (group, version, name, plural) = kind.resource();
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, name), plural)
}

pub(crate) fn read_all<K: DeserializeOwned>(store: &Store<DynamicObject>) -> (Vec<K>, Vec<Unreadable>) {
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    for object in store.state() {
        let read = serde_json::to_value(&*object).and_then(serde_json::from_value::<K>);
        match read {
            Ok(value) => found.push(value),
            Err(error) => {
                let kind = object.types.as_ref().map_or("object", |t| t.kind.as_str());
                unreadable.push(Unreadable {
                    object: format!("{kind} {}", object.name_any()),
                    message: error.to_string(),
                });
            }
        }
    }
    (found, unreadable)
}

struct Start<'a> {
    client: &'a Client,
    changed: &'a Arc<Notify>,
    metrics: &'a Metrics,
    watches: JoinSet<String>,
}

impl Start<'_> {
    fn raw(&mut self, resource: ApiResource, config: watcher::Config) -> Store<DynamicObject> {
        let api = Api::all_with(self.client.clone(), &resource);
        self.reflect(api, resource.plural.clone(), Writer::new(resource), config)
    }

    fn typed<K>(&mut self, config: watcher::Config) -> Store<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let api: Api<K> = Api::all(self.client.clone());
        self.reflect(api, K::plural(&()).into_owned(), Writer::new(()), config)
    }

    /// Metadata of managers is dropped before the cache: it is most of a small object and never looked at.
    fn reflect<K>(
        &mut self,
        api: Api<K>,
        what: String,
        writer: Writer<K>,
        config: watcher::Config,
    ) -> Store<K>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        K::DynamicType: Clone + Eq + std::hash::Hash + Send + Sync,
    {
        let reader = writer.as_reader();
        let (changed, errors) = (Arc::clone(self.changed), self.metrics.watch_errors.clone());
        let stream = watcher(api, config)
            .default_backoff()
            .modify(|object| object.managed_fields_mut().clear())
            .reflect(writer);
        self.watches.spawn(async move {
            let mut stream = std::pin::pin!(stream);
            while let Some(event) = stream.next().await {
                match event {
                    // Half of a list says nothing: what is complete does.
                    Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                    Ok(_) => changed.notify_one(),
                    Err(error) => {
                        errors.inc();
                        tracing::warn!(resource = what, error = %error, "watch failed and is tried again");
                    }
                }
            }
            what
        });
        reader
    }
}
