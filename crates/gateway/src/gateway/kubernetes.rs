//! The directory from the ConfigMap that the issuer writes, and what is seen of clusters back into their status.
//!
//! A gateway reads one ConfigMap and writes the status of WorkloadClusters, and has no other right.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bailey_api::{
    ClusterServiceStatus, ConditionState, OPERATOR_NAMESPACE, READY, Reason, WorkloadCluster,
    WorkloadClusterStatus, merge_conditions,
};
use bailey_identity::clock::now;
use bailey_process::drain::Signal;
use bailey_process::telemetry::report;
use bailey_tunnel::control::Path;
use bailey_tunnel::directory::{Directory, Index, Seconds};
use bailey_tunnel::names::ClusterUid;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::roster::Seen;
use super::{Known, Shared};

/// The ConfigMap with the directory.
pub const DIRECTORY: &str = "bailey-directory";
/// Its key.
pub const DIRECTORY_KEY: &str = "directory.json";
/// How often statuses are written, if they changed.
const STATUS: Duration = Duration::from_secs(5);
const CALL: Duration = Duration::from_secs(10);
/// An agent reports every ten seconds.
const SILENT: Seconds = 40;
const FIELD_MANAGER: &str = "bailey-gateway";

/// Why a gateway cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The watch ended by itself.
    #[error("the watch of ConfigMap {OPERATOR_NAMESPACE}/{DIRECTORY} ended")]
    Ended,
}

/// Waits for the first directory, and gives what follows it.
pub async fn follow(client: Client, signal: &Signal) -> Option<(Known, FollowConfigMap)> {
    let api: Api<ConfigMap> = Api::namespaced(client, OPERATOR_NAMESPACE);
    let config = watcher::Config::default().fields(&format!("metadata.name={DIRECTORY}"));
    let mut stream = watcher(api, config).default_backoff().applied_objects().boxed();
    loop {
        tokio::select! {
            () = signal.started() => return None,
            event = stream.next() => match event {
                Some(Ok(object)) => if let Some(index) = index(&object) {
                    let (sender, known) = watch::channel(Arc::new(index));
                    return Some((known, FollowConfigMap { stream, sender }));
                },
                Some(Err(error)) => {
                    tracing::warn!(error = report(&error), "the directory cannot be read, and it is tried again");
                }
                None => return None,
            },
        }
    }
}

type Stream = futures::stream::BoxStream<'static, Result<ConfigMap, watcher::Error>>;

/// Follows the directory.
pub struct FollowConfigMap {
    stream: Stream,
    sender: watch::Sender<Arc<Index>>,
}

impl FollowConfigMap {
    /// Runs until the drain. What cannot be used leaves the last that could.
    pub async fn run(mut self, signal: Signal) -> Result<(), FollowError> {
        loop {
            let event = tokio::select! {
                () = signal.started() => return Ok(()),
                event = self.stream.next() => event,
            };
            match event.ok_or(FollowError::Ended)? {
                Ok(object) => {
                    if let Some(index) = index(&object) {
                        self.sender.send_replace(Arc::new(index));
                    }
                }
                Err(error) => tracing::warn!(error = report(&error), "the directory is not followed for now"),
            }
        }
    }
}

fn index(object: &ConfigMap) -> Option<Index> {
    let text = object.data.as_ref().and_then(|data| data.get(DIRECTORY_KEY))?;
    let directory = serde_json::from_str::<Directory>(text).map_err(|error| error.to_string());
    match directory.and_then(|directory| Index::new(directory).map_err(|error| error.to_string())) {
        Ok(index) => Some(index),
        Err(error) => {
            tracing::error!(
                error,
                "ConfigMap {OPERATOR_NAMESPACE}/{DIRECTORY} cannot be used, and the last is kept"
            );
            None
        }
    }
}

/// Writes what is seen of clusters into their status, until the drain.
pub async fn write_statuses(client: Client, shared: Arc<Shared>, signal: Signal) {
    let api: Api<WorkloadCluster> = Api::namespaced(client, OPERATOR_NAMESPACE);
    let mut written: HashMap<ClusterUid, WorkloadClusterStatus> = HashMap::new();
    loop {
        tokio::select! {
            () = signal.started() => return,
            () = sleep(STATUS) => {}
        }
        let index = shared.known.borrow().clone();
        for (uid, seen) in shared.roster.seen() {
            let Some(cluster) = index.directory().clusters.iter().find(|cluster| cluster.uid == uid) else {
                written.remove(&uid);
                continue;
            };
            // Another gateway has its agents, and writes.
            if seen.report.is_none() {
                continue;
            }
            let old = written.get(&uid);
            let status = status(&seen, old, now());
            if old.is_some_and(|old| same(old, &status)) {
                continue;
            }
            match write(&api, &cluster.name, &status).await {
                Ok(()) => drop(written.insert(uid, status)),
                Err(error) => tracing::warn!(cluster = cluster.name, error, "its status cannot be written"),
            }
        }
    }
}

async fn write(
    api: &Api<WorkloadCluster>,
    cluster: &str,
    status: &WorkloadClusterStatus,
) -> Result<(), String> {
    let name = object_name(cluster);
    let content = serde_json::json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "WorkloadCluster",
        "metadata": { "name": name }, "status": status,
    });
    let (params, patch) = (PatchParams::apply(FIELD_MANAGER).force(), Patch::Apply(&content));
    match timeout(CALL, api.patch_status(&name, &params, &patch)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(report(&error)),
        Err(_) => Err("no answer".to_owned()),
    }
}

/// Names the WorkloadCluster of a Cluster, which is told as NAMESPACE/NAME.
pub fn object_name(cluster: &str) -> String {
    cluster.replace('/', ".")
}

fn status(seen: &Seen, old: Option<&WorkloadClusterStatus>, now: Seconds) -> WorkloadClusterStatus {
    let fresh = seen.report.as_ref().filter(|(_, at)| seen.sessions > 0 && now.saturating_sub(*at) < SILENT);
    let (holds, reason, message) = match fresh {
        None => {
            let message = match seen.refused {
                Some(reason) => format!("no agent has a session; the last one was refused: {reason}"),
                None => "no agent has a session".to_owned(),
            };
            (false, Reason::NotConnected, message)
        }
        Some((report, _)) => match report.services.iter().find(|service| !service.ready) {
            Some(service) => {
                let message = format!("service `{}` does not answer: {}", service.name, service.reason);
                (false, Reason::ServiceNotReady, message)
            }
            None => {
                let message = match report.services.len() {
                    0 => "connected; it may reach no service yet".to_owned(),
                    1 => "its service answers".to_owned(),
                    count => format!("its {count} services answer"),
                };
                (true, Reason::Connected, message)
            }
        },
    };
    let wanted = [ConditionState { kind: READY, holds: Some(holds), reason, message }];
    let conditions = old.map(|old| old.conditions.clone()).unwrap_or_default();
    let time =
        |seconds: Seconds| i64::try_from(seconds).ok().and_then(|s| Timestamp::from_second(s).ok()).map(Time);
    let report = seen.report.as_ref();
    WorkloadClusterStatus {
        observed_generation: None,
        conditions: merge_conditions(&conditions, &wanted, None, Time(Timestamp::now())),
        path: report.map(|(report, _)| path(report.path).to_owned()),
        certificate_not_after: time(seen.not_after),
        skew_seconds: report
            .and_then(|(report, at)| Some(i64::try_from(report.now).ok()? - i64::try_from(*at).ok()?)),
        services: report
            .iter()
            .flat_map(|(report, _)| &report.services)
            .map(|service| ClusterServiceStatus {
                name: service.name.to_string(),
                ready: service.ready,
                reason: service.reason.clone(),
            })
            .collect(),
    }
}

/// Says whether a status says the same: a clock that wanders by a second is no news.
fn same(old: &WorkloadClusterStatus, new: &WorkloadClusterStatus) -> bool {
    let near = |a: Option<i64>, b: Option<i64>| a.zip(b).map_or(a == b, |(a, b)| a.abs_diff(b) <= 2);
    near(old.skew_seconds, new.skew_seconds)
        && WorkloadClusterStatus { skew_seconds: old.skew_seconds, ..new.clone() } == *old
}

fn path(path: Path) -> &'static str {
    match path {
        Path::Direct => "Direct",
        Path::Proxy => "Proxy",
        Path::ApiServer => "ApiServer",
    }
}
