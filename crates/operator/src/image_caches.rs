//! The loop of ImageCaches: builds what runs each, applies it, and says how it is.
//!
//! It works in the operator's own namespace only, and only where the operator was told an image to run. What it makes is
//! owned by its ImageCache, so the API server removes it; nothing is deleted here. Secrets are named and never read.

use std::{sync::Arc, time::Duration};

use bailey_api::{
    ConditionState, ImageCache, ImageCacheStatus, OPERATOR_NAMESPACE, READY, RECONCILING, Reason, STALLED,
};
use bailey_guardrails::{CacheObject, ImageCacheProblem, ManagementCache, management_cache};
use bailey_process::{drain::Signal, telemetry::report};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
    runtime::{WatchStreamExt, reflector, watcher},
};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    FIELD_MANAGER,
    apply::{Applier, within},
    cluster::read_all,
    error::OperatorError,
    metrics::{KindLabel, Metrics},
    status::conditions,
};

const DEBOUNCE: Duration = Duration::from_millis(100);
const RETRY: Duration = Duration::from_secs(3);
/// Repairs what somebody changed, since only StatefulSets are watched.
const RESYNC: Duration = Duration::from_secs(120);
/// Names the image that caches run by default. Without it there is nothing to do.
const IMAGE: &str = "BAILEY_CACHE_IMAGE";

/// Runs until the signal starts or a watch ends; at once idle where image caches are not switched on.
pub(crate) async fn run(client: Client, metrics: Metrics, signal: Signal) -> Result<(), OperatorError> {
    let Some(image) = std::env::var(IMAGE).ok().filter(|image| !image.is_empty()) else {
        signal.started().await;
        return Ok(());
    };
    let changed = Arc::new(Notify::new());
    let mut watches = JoinSet::new();
    let resource = ApiResource::erase::<ImageCache>(&());
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let writer = reflector::store::Writer::new(resource);
    let caches = follow(api, writer, "imagecaches", &changed, &metrics, &mut watches);
    let api = Api::<StatefulSet>::namespaced(client.clone(), OPERATOR_NAMESPACE);
    let writer = reflector::store::Writer::new(());
    let sets = follow(api, writer, "statefulsets", &changed, &metrics, &mut watches);
    let ended = |_| OperatorError::Watch { what: "a cache".to_owned() };
    tokio::select! {
        () = signal.started() => return Ok(()),
        complete = async { tokio::try_join!(caches.wait_until_ready(), sets.wait_until_ready()) } => {
            complete.map_err(ended)?;
        }
    }
    let applier = Applier::new(client.clone(), metrics.clone());
    let work = Work { client, applier, metrics, image };
    let mut next = Duration::ZERO;
    loop {
        tokio::select! {
            () = signal.started() => return Ok(()),
            Some(ended) = watches.join_next() => {
                let what = ended.unwrap_or_else(|error| error.to_string());
                return Err(OperatorError::Watch { what });
            }
            () = changed.notified() => tokio::time::sleep(DEBOUNCE).await,
            () = tokio::time::sleep(next) => {}
        }
        let (found, unreadable) = read_all::<ImageCache>(&caches);
        for bad in &unreadable {
            tracing::warn!(object = bad.object, error = bad.message, "object cannot be read and is left out");
        }
        let mut failed = false;
        for cache in found.iter().filter(|cache| cache.meta().deletion_timestamp.is_none()) {
            let set = reflector::ObjectRef::new(&cache.name_any()).within(OPERATOR_NAMESPACE);
            failed |= !work.reconcile(cache, sets.get(&set).as_deref()).await;
        }
        next = if failed { RETRY } else { RESYNC };
    }
}

fn follow<K>(
    api: Api<K>,
    writer: reflector::store::Writer<K>,
    what: &'static str,
    changed: &Arc<Notify>,
    metrics: &Metrics,
    watches: &mut JoinSet<String>,
) -> reflector::Store<K>
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + std::hash::Hash + Send + Sync,
{
    let reader = writer.as_reader();
    let (changed, errors) = (Arc::clone(changed), metrics.watch_errors.clone());
    let stream = watcher(api, watcher::Config::default()).default_backoff().reflect(writer);
    watches.spawn(async move {
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            match event {
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Ok(_) => changed.notify_one(),
                Err(error) => {
                    errors.inc();
                    tracing::warn!(resource = what, error = %error, "watch failed and is tried again");
                }
            }
        }
        what.to_owned()
    });
    reader
}

struct Work {
    client: Client,
    applier: Applier,
    metrics: Metrics,
    image: String,
}

impl Work {
    /// Puts one into effect and says so; false if that has to be tried again.
    async fn reconcile(&self, cache: &ImageCache, set: Option<&StatefulSet>) -> bool {
        let name = format!("ImageCache {}/{}", cache.namespace().unwrap_or_default(), cache.name_any());
        let built = management_cache(cache, Some(&self.image));
        let applied = match &built {
            Ok(built) => self.apply(&built.objects).await,
            Err(_) => Ok(()),
        };
        if let Err(error) = &applied {
            tracing::warn!(object = name, error = report(error), "not applied, and tried again");
        }
        let failure = applied.as_ref().err().map(|error| report(error));
        let status = status(cache, &built, failure.as_deref(), set);
        if cache.status.as_ref() == Some(&status) {
            return applied.is_ok();
        }
        let resource = ApiResource::erase::<ImageCache>(&());
        let namespace = cache.namespace();
        let stated =
            self.applier.apply_status(&resource, namespace.as_deref(), &cache.name_any(), &status).await;
        if let Err(error) = &stated {
            tracing::warn!(
                object = name,
                error = report(error),
                "its status is not written, and tried again"
            );
        }
        applied.is_ok() && stated.is_ok()
    }

    async fn apply(&self, objects: &[CacheObject]) -> Result<(), OperatorError> {
        let params = PatchParams::apply(FIELD_MANAGER).force();
        for object in objects {
            let (group, version, kind, plural) = object.resource;
            let resource =
                ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
            let api =
                Api::<DynamicObject>::namespaced_with(self.client.clone(), OPERATOR_NAMESPACE, &resource);
            let described = format!("{kind} {OPERATOR_NAMESPACE}/{}", object.name);
            let patch = Patch::Apply(&object.content);
            within("apply", &described, api.patch(&object.name, &params, &patch)).await?;
            self.metrics.writes.get_or_create(&KindLabel { kind }).inc();
        }
        Ok(())
    }
}

/// What is said of an ImageCache.
fn status(
    cache: &ImageCache,
    built: &Result<ManagementCache, ImageCacheProblem>,
    failure: Option<&str>,
    set: Option<&StatefulSet>,
) -> ImageCacheStatus {
    let generation = cache.metadata.generation;
    let old = cache.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = set.and_then(|set| set.status.as_ref()).and_then(|status| status.ready_replicas).unwrap_or(0);
    let wanted = cache.spec.replicas;
    let state =
        |kind, holds, reason, message: String| ConditionState { kind, holds: Some(holds), reason, message };
    let conditions_wanted = match (built, failure) {
        (Err(problem), _) => vec![
            state(READY, false, Reason::Invalid, problem.to_string()),
            state(STALLED, true, Reason::Invalid, problem.to_string()),
        ],
        (Ok(_), Some(why)) => vec![
            state(READY, false, Reason::ApplyFailed, why.to_owned()),
            state(RECONCILING, true, Reason::ApplyFailed, why.to_owned()),
        ],
        (Ok(_), None) => {
            let message = format!("{ready} of {wanted} replicas serve");
            if ready >= 1 || wanted == 0 {
                vec![state(READY, true, Reason::Applied, message)]
            } else {
                let hint = format!(
                    "{message}. See: kubectl -n {OPERATOR_NAMESPACE} describe pod -l app.kubernetes.io/instance={}",
                    cache.name_any()
                );
                vec![
                    state(READY, false, Reason::Applying, hint.clone()),
                    state(RECONCILING, true, Reason::Applying, hint),
                ]
            }
        }
    };
    ImageCacheStatus {
        observed_generation: generation,
        conditions: conditions(old, &conditions_wanted, generation),
        address: built.as_ref().ok().map(|built| built.address.clone()),
        budget: built.as_ref().ok().map(|built| built.budget.clone()),
        ready_replicas: if built.is_ok() { ready } else { 0 },
    }
}
