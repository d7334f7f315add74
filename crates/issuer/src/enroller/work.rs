//! The loop: watches the management cluster, writes what should be, and brings each workload cluster up to it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bailey_api::{
    ConditionState, InternalService, InternalServiceStatus, OPERATOR_NAMESPACE, READY, Reason,
    WorkloadCluster, merge_conditions,
};
use bailey_identity::clock::random;
use bailey_process::drain::Signal;
use bailey_process::telemetry::report;
use bailey_tunnel::backoff::Backoff;
use bailey_tunnel::claims::AGENT_NAMESPACE;
use bailey_tunnel::directory::{Cluster, Index};
use bailey_tunnel::gate::Policy;
use bailey_tunnel::names::{ClusterUid, InstallationName, SniLabel};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::reflector::Store;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::build::{Offered, Site, objects, offered};
use super::plan::{ClusterFact, Plan, SOURCES_ANNOTATION, plan};
use super::remote::Kubeconfigs;
use crate::authority::Authority;

const FIELD_MANAGER: &str = "bailey-issuer";
/// The ConfigMap that gateways read, and its key.
const DIRECTORY: (&str, &str) = ("bailey-directory", "directory.json");
const DEBOUNCE: Duration = Duration::from_millis(50);
const RESYNC: Duration = Duration::from_secs(60);
const CALL: Duration = Duration::from_secs(10);
/// Everything that one workload cluster is given.
const ENROL: Duration = Duration::from_secs(60);
/// Workload clusters that are worked on at a time.
const AT_ONCE: usize = 16;
/// Repairs what somebody changed in a workload cluster, which is not watched.
const REPAIR: Duration = Duration::from_secs(600);
/// Versions of Cluster API, the newest first.
const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// What the enroller is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The installation.
    pub installation: InstallationName,
    /// What strangers may do at gateways.
    pub sources: Policy,
    /// Where gateways are, as workload clusters reach them: HOST:PORT.
    pub gateways: Vec<String>,
    /// The image that agents run; none where they are run in another way.
    pub image: Option<String>,
}

/// Why the enroller cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EnrollerError {
    /// A watch ended.
    #[error("the watch of {0} ended")]
    Watch(&'static str),
    /// Cluster API is not there.
    #[error("this cluster does not serve Clusters of cluster.x-k8s.io; install Cluster API first")]
    NoClusterApi(#[source] Option<Box<kube::Error>>),
}

/// Runs until the drain. The index is what is decided, for the issuer's own desk.
pub async fn run(
    client: Client,
    options: Options,
    index: watch::Sender<Arc<Index>>,
    authority: watch::Receiver<Arc<Authority>>,
    signal: Signal,
) -> Result<(), EnrollerError> {
    let clusters = cluster_resource(&client).await?;
    let changed = Arc::new(Notify::new());
    let mut watches = JoinSet::new();
    let api = Api::<DynamicObject>::all_with(client.clone(), &clusters);
    let clusters = follow(api, reflector::store::Writer::new(clusters), "Clusters", &changed, &mut watches);
    let api = Api::<WorkloadCluster>::namespaced(client.clone(), OPERATOR_NAMESPACE);
    let existing = follow(api, reflector::store::Writer::new(()), "WorkloadClusters", &changed, &mut watches);
    let api = Api::<InternalService>::namespaced(client.clone(), OPERATOR_NAMESPACE);
    let services = follow(api, reflector::store::Writer::new(()), "InternalServices", &changed, &mut watches);
    tokio::select! {
        () = signal.started() => return Ok(()),
        ready = async {
            tokio::try_join!(clusters.wait_until_ready(), existing.wait_until_ready(), services.wait_until_ready())
        } => {
            ready.map_err(|_| EnrollerError::Watch("the management cluster"))?;
        }
    }
    let kubeconfigs = Kubeconfigs::new(client.clone(), index.subscribe());
    let mut work = Work {
        client,
        options,
        index,
        authority,
        kubeconfigs,
        enrolled: HashMap::new(),
        problems: Vec::new(),
    };
    loop {
        let services: Vec<_> = services.state().iter().map(|one| (**one).clone()).collect();
        let existing: Vec<_> = existing.state().iter().map(|one| (**one).clone()).collect();
        let facts: Vec<_> = clusters.state().iter().filter_map(|one| fact(one)).collect();
        let settled = work.round(&facts, &existing, &services).await;
        let pause = if settled { RESYNC } else { Duration::from_secs(2) };
        tokio::select! {
            () = signal.started() => return Ok(()),
            Some(ended) = watches.join_next() => return Err(EnrollerError::Watch(ended.unwrap_or("an object"))),
            () = changed.notified() => sleep(DEBOUNCE).await,
            changed = work.authority.changed() => if changed.is_err() { return Ok(()) },
            () = sleep(pause) => {}
        }
    }
}

struct Work {
    client: Client,
    options: Options,
    index: watch::Sender<Arc<Index>>,
    authority: watch::Receiver<Arc<Authority>>,
    kubeconfigs: Kubeconfigs,
    enrolled: HashMap<ClusterUid, Enrolled>,
    problems: Vec<String>,
}

/// How far a workload cluster is.
#[derive(Default)]
struct Enrolled {
    /// What it was given last, as text.
    given: Option<String>,
    since: Option<Instant>,
    failures: u32,
    not_before: Option<Instant>,
}

impl Work {
    /// Does what is to be done once; false if something has to be tried again soon.
    async fn round(
        &mut self,
        clusters: &[ClusterFact],
        existing: &[WorkloadCluster],
        services: &[InternalService],
    ) -> bool {
        let Options { installation, sources, .. } = &self.options;
        let planned = plan(installation, *sources, clusters, existing, services, label);
        if planned.problems != self.problems {
            for problem in &planned.problems {
                tracing::warn!(problem, "left out");
            }
            self.problems.clone_from(&planned.problems);
        }
        // Whoever is gone is cut off first.
        let mut settled = self.publish(&planned).await;
        settled &= self.write(&planned, services).await;
        settled & self.enrol_all(&planned, services).await
    }

    /// Tells gateways and the desk.
    async fn publish(&self, planned: &Plan) -> bool {
        let index = match Index::new(planned.directory.clone()) {
            Ok(index) => Arc::new(index),
            Err(error) => {
                tracing::error!(%error, "the directory contradicts itself");
                return false;
            }
        };
        if self.index.borrow().directory() != index.directory() {
            self.index.send_replace(index);
        }
        let Ok(text) = serde_json::to_string(&planned.directory) else { return false };
        let (name, key) = DIRECTORY;
        let content = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "labels": { "app.kubernetes.io/managed-by": "bailey" } },
            "data": { key: text },
        });
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), OPERATOR_NAMESPACE);
        done("write the directory", api.patch(name, &apply(), &Patch::Apply(&content))).await
    }

    async fn write(&self, planned: &Plan, services: &[InternalService]) -> bool {
        let api: Api<WorkloadCluster> = Api::namespaced(self.client.clone(), OPERATOR_NAMESPACE);
        let mut settled = true;
        for name in &planned.remove {
            settled &= done("remove a WorkloadCluster", api.delete(name, &DeleteParams::default())).await;
        }
        for (name, spec) in &planned.write {
            // Labels and addresses are ours; a revocation is the platform's, which is why it is left out.
            let mut spec = json!(spec);
            if let Some(spec) = spec.as_object_mut() {
                spec.remove("revokedBefore");
            }
            let content = json!({
                "apiVersion": "bailey.dev/v1alpha1", "kind": "WorkloadCluster",
                "metadata": { "name": name }, "spec": spec,
            });
            settled &=
                done("write a WorkloadCluster", api.patch(name, &apply(), &Patch::Apply(&content))).await;
        }
        let api: Api<InternalService> = Api::namespaced(self.client.clone(), OPERATOR_NAMESPACE);
        for service in services {
            let name = service.name_any();
            let Some(published) =
                planned.directory.services.iter().find(|published| published.name.as_str() == name)
            else {
                continue;
            };
            let status = service_status(service, published);
            if service.status.as_ref() == Some(&status) {
                continue;
            }
            let content = json!({
                "apiVersion": "bailey.dev/v1alpha1", "kind": "InternalService",
                "metadata": { "name": name }, "status": status,
            });
            settled &=
                done("write a status", api.patch_status(&name, &apply(), &Patch::Apply(&content))).await;
        }
        settled
    }

    /// Brings all workload clusters up to what they should have; one that fails waits for its own next time.
    async fn enrol_all(&mut self, planned: &Plan, services: &[InternalService]) -> bool {
        self.enrolled.retain(|uid, _| planned.directory.clusters.iter().any(|cluster| cluster.uid == *uid));
        let bundle = self.authority.borrow_and_update().bundle().to_owned();
        let Options { installation, gateways, image, .. } = self.options.clone();
        let site = Site { installation, gateways, image, bundle };
        let ports: BTreeMap<_, _> = services
            .iter()
            .filter_map(|one| {
                Some((one.name_any(), u16::try_from(one.spec.port.unwrap_or(one.spec.backend.port)).ok()?))
            })
            .collect();
        let mut due = Vec::new();
        for cluster in &planned.directory.clusters {
            let offers: Vec<_> = planned
                .directory
                .services
                .iter()
                .filter(|service| service.clusters.contains(&cluster.uid))
                .filter_map(|service| Some(offered(service, *ports.get(service.name.as_str())?)))
                .collect();
            let wanted = objects(&site, cluster, &offers);
            let text = json!(wanted).to_string();
            let state = self.enrolled.entry(cluster.uid.clone()).or_default();
            let given =
                state.given.as_ref() == Some(&text) && state.since.is_some_and(|at| at.elapsed() < REPAIR);
            let waits = state.not_before.is_some_and(|moment| Instant::now() < moment);
            if !given && !waits {
                due.push((cluster.clone(), wanted, offers, text));
            }
        }
        let kubeconfigs = &self.kubeconfigs;
        let results: Vec<_> = futures::stream::iter(due)
            .map(|(cluster, wanted, offers, text)| async move {
                let enrolled = timeout(ENROL, enrol(kubeconfigs, &cluster, &wanted, &offers)).await;
                let result =
                    enrolled.unwrap_or_else(|_| Err(format!("not done within {} s", ENROL.as_secs())));
                (cluster, text, result)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut settled = true;
        for (cluster, text, result) in results {
            let state = self.enrolled.entry(cluster.uid.clone()).or_default();
            match result {
                Ok(()) => {
                    tracing::info!(cluster = cluster.name, "the workload cluster has what it should");
                    *state =
                        Enrolled { given: Some(text), since: Some(Instant::now()), ..Enrolled::default() };
                }
                Err(error) => {
                    tracing::warn!(
                        cluster = cluster.name,
                        error,
                        "the workload cluster cannot be reached or changed"
                    );
                    state.failures += 1;
                    state.not_before =
                        Some(Instant::now() + Backoff::ENROL.wait(state.failures, random(), None));
                    settled = false;
                }
            }
        }
        settled && self.enrolled.values().all(|state| state.not_before.is_none())
    }
}

/// Gives a workload cluster its objects, and removes Services that it may not reach any more.
async fn enrol(
    kubeconfigs: &Kubeconfigs,
    cluster: &Cluster,
    wanted: &[Value],
    offers: &[Offered],
) -> Result<(), String> {
    let client = kubeconfigs.client(&cluster.uid).await.map_err(|error| error.to_string())?;
    for object in wanted {
        let dynamic: DynamicObject =
            serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
        let types = dynamic.types.clone().unwrap_or_default();
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        let api: Api<DynamicObject> = match dynamic.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let name = dynamic.name_any();
        call(api.patch(&name, &apply(), &Patch::Apply(object)))
            .await
            .map_err(|error| format!("{} {name}: {error}", types.kind))?;
    }
    let api: Api<Service> = Api::namespaced(client, AGENT_NAMESPACE);
    let ours = ListParams::default().labels("app.kubernetes.io/managed-by=bailey");
    let found = call(api.list(&ours)).await?;
    for gone in
        found.iter().map(ResourceExt::name_any).filter(|name| !offers.iter().any(|one| one.name == *name))
    {
        call(api.delete(&gone, &DeleteParams::default())).await.map(drop)?;
    }
    Ok(())
}

fn service_status(
    service: &InternalService,
    published: &bailey_tunnel::directory::Service,
) -> InternalServiceStatus {
    let old = service.status.clone().unwrap_or_default();
    let count = published.clusters.len();
    let message = match count {
        0 => "no cluster may reach it; choose some in spec.clusters".to_owned(),
        1 => "1 cluster may reach it".to_owned(),
        count => format!("{count} clusters may reach it"),
    };
    let wanted = [ConditionState { kind: READY, holds: Some(true), reason: Reason::Applied, message }];
    let generation = service.metadata.generation;
    InternalServiceStatus {
        observed_generation: generation,
        conditions: merge_conditions(&old.conditions, &wanted, generation, Time(Timestamp::now())),
        clusters: i32::try_from(count).unwrap_or(i32::MAX),
        agent_port: Some(published.agent_port.into()),
    }
}

fn fact(object: &DynamicObject) -> Option<ClusterFact> {
    let meta = object.meta();
    Some(ClusterFact {
        namespace: meta.namespace.clone()?,
        name: meta.name.clone()?,
        uid: ClusterUid::new(meta.uid.clone()?).ok()?,
        labels: meta.labels.clone().unwrap_or_default(),
        declared: object.annotations().get(SOURCES_ANNOTATION).cloned(),
        deleting: meta.deletion_timestamp.is_some(),
    })
}

/// Finds the newest version of Clusters that is served.
async fn cluster_resource(client: &Client) -> Result<ApiResource, EnrollerError> {
    let mut last = None;
    for version in VERSIONS {
        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("cluster.x-k8s.io", version, "Cluster"),
            "clusters",
        );
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        match timeout(CALL, api.list(&ListParams::default().limit(1))).await {
            Ok(Ok(_)) => return Ok(resource),
            Ok(Err(error)) => last = Some(error),
            Err(_) => {}
        }
    }
    Err(EnrollerError::NoClusterApi(last.map(Box::new)))
}

fn follow<K>(
    api: Api<K>,
    writer: reflector::store::Writer<K>,
    what: &'static str,
    changed: &Arc<Notify>,
    watches: &mut JoinSet<&'static str>,
) -> Store<K>
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + std::hash::Hash + Send + Sync,
{
    let reader = writer.as_reader();
    let changed = Arc::clone(changed);
    let stream = watcher(api, watcher::Config::default()).default_backoff().reflect(writer);
    watches.spawn(async move {
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            match event {
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Ok(_) => changed.notify_one(),
                Err(error) => tracing::warn!(what, error = report(&error), "watch failed and is tried again"),
            }
        }
        what
    });
    reader
}

fn label() -> SniLabel {
    let mut bits = [0; 16];
    if getrandom::fill(&mut bits).is_err() {
        // A label is no secret of worth; without randomness TLS would not work either.
        tracing::error!("this machine gives no randomness");
    }
    SniLabel::from_bits(bits)
}

fn apply() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}

/// Makes a call with its deadline, and says what came of it.
async fn call<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    match timeout(CALL, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(report(&error)),
        Err(_) => Err(format!("no answer within {} s", CALL.as_secs())),
    }
}

async fn done<T>(what: &str, made: impl Future<Output = Result<T, kube::Error>>) -> bool {
    match call(made).await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(error, "cannot {what}, and it is tried again");
            false
        }
    }
}
