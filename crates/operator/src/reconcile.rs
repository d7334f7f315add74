//! The loop: wait for a change, take a snapshot, validate, build, apply, update status.

mod effect;
mod state;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bailey_api::{AccessRequest, Installation, NamespaceName, TENANT_LABEL, Tenant};
use bailey_guardrails::{
    Desired, Discovery, Facts, ForeignGrant, Model, NamespaceFact, Policy, Problem, Projection, Projector,
    RequestedBinding, build, foreign_grants, policies, validate,
};
use bailey_process::{drain::Signal, telemetry::report};
use kube::{Client, Resource, ResourceExt};
use tokio::sync::Notify;

use crate::{
    apply::{Applier, Key},
    cluster::{Cluster, Unreadable},
    discover::discover,
    error::OperatorError,
    events::Events,
    metrics::{Metrics, ReasonLabel},
    status::Applied,
};

/// Changes come in bursts (a chart is many objects); one reconciliation serves a burst.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Repairs what no watch told of.
const RESYNC: Duration = Duration::from_secs(300);
const RETRY: Duration = Duration::from_secs(3);
/// How long the API server may take to put a new policy into effect before rights that need it are given.
const SETTLE: Duration = Duration::from_millis(1500);
/// Keeps a Tenant or the Installation until what it made is taken back.
const FINALIZER: &str = "bailey.dev/release";
/// Says that a tenant may go although apps of it are installed.
const RELEASE: &str = "bailey.dev/release";

/// Runs until the signal starts, or until a watch ends.
pub(crate) async fn run(client: Client, metrics: Metrics, signal: Signal) -> Result<(), OperatorError> {
    let policies = policies().map_err(|source| OperatorError::Policy { source: Box::new(source) })?;
    let changed = Arc::new(Notify::new());
    let discovery = tokio::select! {
        () = signal.started() => return Ok(()),
        discovery = first_discovery(&client) => discovery,
    };
    let mut cluster = Cluster::watch(&client, &discovery, &changed, &metrics);
    tokio::select! {
        () = signal.started() => return Ok(()),
        complete = cluster.complete() => complete?,
    }
    tracing::info!("caches are complete");
    let mut reconciler = Reconciler::new(client, metrics, policies, discovery);
    let mut next = Duration::ZERO;
    loop {
        tokio::select! {
            () = signal.started() => return Ok(()),
            error = cluster.ended() => return Err(error),
            () = changed.notified() => tokio::time::sleep(DEBOUNCE).await,
            () = tokio::time::sleep(next) => {}
        }
        next = reconciler.once(&cluster).await;
    }
}

async fn first_discovery(client: &Client) -> Discovery {
    loop {
        match discover(client).await {
            Ok(discovery) => return discovery,
            Err(error) => tracing::warn!(error = report(&error), "discovery failed and is tried again"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

struct Reconciler {
    client: Client,
    applier: Applier,
    events: Events,
    metrics: Metrics,
    policies: Vec<Policy>,
    discovery: Discovery,
    /// The CRDs that the discovery was made with: name and generation.
    crds_seen: HashMap<String, Option<i64>>,
    discovered: Instant,
    /// When a rail was last written.
    rails_written: Option<Instant>,
    /// What was last said of each AccessRequest, for Events on change.
    said: HashMap<Key, String>,
    waits: bool,
}

/// All that one reconciliation looks at.
struct Snapshot {
    installation: Installation,
    tenants: Vec<Tenant>,
    requests: Vec<AccessRequest>,
    unreadable: Vec<Unreadable>,
    facts: Facts,
}

/// What one reconciliation wants.
struct Wanted {
    model: Model,
    problems: Vec<Problem>,
    desired: Desired,
    projections: Vec<(RequestedBinding, Projection)>,
    foreign: Vec<ForeignGrant>,
    leaving: Vec<String>,
    in_use: HashMap<String, String>,
}

impl Reconciler {
    fn new(client: Client, metrics: Metrics, policies: Vec<Policy>, discovery: Discovery) -> Self {
        Self {
            applier: Applier::new(client.clone(), metrics.clone()),
            events: Events::new(client.clone()),
            client,
            metrics,
            policies,
            discovery,
            crds_seen: HashMap::new(),
            discovered: Instant::now(),
            rails_written: None,
            said: HashMap::new(),
            waits: false,
        }
    }

    /// Reconciles once, and says when to look again if nothing changes before.
    async fn once(&mut self, cluster: &Cluster) -> Duration {
        let started = Instant::now();
        let rediscover = self.rediscover(cluster).await;
        let Some(snapshot) = self.dereference(cluster) else { return rediscover.unwrap_or(RESYNC) };
        let wanted = self.want(&snapshot, cluster);
        let applied = self.apply(&snapshot, &wanted, cluster).await;
        let applied = match applied {
            Ok(applied) => applied,
            Err(error) => {
                self.metrics.errors.get_or_create(&ReasonLabel { reason: error.reason() }).inc();
                tracing::warn!(error = report(&error), "reconciliation failed and is tried again");
                Applied::Failed(report(&error))
            }
        };
        let stated = self.update_status(&snapshot, &wanted, &applied).await;
        self.metrics.reconciliations.inc();
        self.metrics.duration.observe(started.elapsed().as_secs_f64());
        tracing::debug!(milliseconds = started.elapsed().as_millis(), ?applied, "reconciled");
        match (applied, stated) {
            (Applied::Failed(_), _) | (_, Err(_)) => RETRY,
            (Applied::Partly(_), _) => SETTLE,
            (Applied::All, Ok(())) => rediscover.unwrap_or(RESYNC),
        }
    }

    /// Asks again what is served when CRDs changed; says when to ask once more if one is not served yet.
    async fn rediscover(&mut self, cluster: &Cluster) -> Option<Duration> {
        let crds: HashMap<_, _> =
            cluster.crds().iter().map(|c| (c.name_any(), c.meta().generation)).collect();
        if crds == self.crds_seen && self.discovered.elapsed() < RESYNC {
            return None;
        }
        match discover(&self.client).await {
            Ok(discovery) => {
                self.discovery = discovery;
                self.discovered = Instant::now();
            }
            Err(error) => {
                tracing::warn!(error = report(&error), "discovery failed and is tried again");
                return Some(RETRY);
            }
        }
        let served = |name: &String| {
            name.split_once('.').is_some_and(|(plural, group)| self.discovery.find(group, plural).is_some())
        };
        // A CRD is served a moment after it is stored; one that never is (not established) must not keep us busy.
        let fresh = cluster.crds().iter().any(|c| !served(&c.name_any()) && is_fresh(c.meta()));
        if fresh {
            return Some(Duration::from_millis(500));
        }
        self.crds_seen = crds;
        None
    }

    fn dereference(&mut self, cluster: &Cluster) -> Option<Snapshot> {
        let (installation, mut unreadable) = cluster.installation();
        let (tenants, more) = cluster.tenants();
        unreadable.extend(more);
        let (requests, more) = cluster.requests();
        unreadable.extend(more);
        for bad in &unreadable {
            tracing::warn!(object = bad.object, error = bad.message, "object cannot be read and is left out");
        }
        let Some(installation) = installation else {
            if !std::mem::replace(&mut self.waits, true) {
                tracing::info!(
                    "there is no Installation: what is in effect stays, and nothing new is written"
                );
            }
            return None;
        };
        self.waits = false;
        let namespaces = cluster.namespaces().into_iter().filter_map(|n| {
            let name = NamespaceName::new(n.name_any()).ok()?;
            Some(NamespaceFact::new(name, n.labels()))
        });
        let crds = cluster.crds().into_iter().map(|c| (c.name_any(), c.labels().get(TENANT_LABEL).cloned()));
        let facts = Facts { namespaces: namespaces.collect(), crds: crds.collect() };
        Some(Snapshot { installation, tenants, requests, unreadable, facts })
    }

    fn want(&self, snapshot: &Snapshot, cluster: &Cluster) -> Wanted {
        let mut in_use = HashMap::new();
        let mut leaving = Vec::new();
        for tenant in snapshot.tenants.iter().filter(|t| t.meta().deletion_timestamp.is_some()) {
            let name = tenant.name_any();
            match uses(tenant, snapshot) {
                Some(uses) => drop(in_use.insert(name, uses)),
                None => leaving.push(name),
            }
        }
        let staying: Vec<_> =
            snapshot.tenants.iter().filter(|t| !leaving.contains(&t.name_any())).cloned().collect();
        let (model, problems) = validate(&snapshot.installation, &staying, &snapshot.facts);
        let desired = build(&model, &self.policies, &self.discovery);
        let projector = Projector::new(&model, &self.discovery);
        let rbac = cluster.rbac();
        let projections = rbac
            .requested(&model, &snapshot.requests)
            .into_iter()
            .filter_map(|binding| projector.project(&binding).map(|projection| (binding, projection)))
            .collect();
        let foreign = foreign_grants(&model, &self.discovery, &rbac.unscoped());
        Wanted { model, problems, desired, projections, foreign, leaving, in_use }
    }
}

fn is_fresh(meta: &kube::core::ObjectMeta) -> bool {
    const FRESH_SECONDS: i64 = 60;
    let now = k8s_openapi::jiff::Timestamp::now().as_second();
    meta.creation_timestamp.as_ref().is_some_and(|t| now - t.0.as_second() < FRESH_SECONDS)
}

/// What keeps a tenant that is being deleted, in words; `None` if nothing does or the platform said to go on.
fn uses(tenant: &Tenant, snapshot: &Snapshot) -> Option<String> {
    const SHOWN: usize = 5;
    let name = tenant.name_any();
    if tenant.annotations().get(RELEASE).is_some_and(|v| v == "true") {
        return None;
    }
    let requests = snapshot.requests.iter().filter(|r| r.spec.tenant == name);
    let mut uses: Vec<_> =
        requests.map(|r| format!("{} {}", r.spec.binding.kind.as_str(), r.spec.binding.name)).collect();
    let crds = snapshot.facts.crds.iter().filter(|(_, owner)| owner.as_deref() == Some(name.as_str()));
    uses.extend(crds.map(|(crd, _)| format!("CustomResourceDefinition {crd}")));
    if uses.is_empty() {
        return None;
    }
    let more = uses.len().saturating_sub(SHOWN);
    uses.truncate(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "apps are installed: {}{more}. Uninstall them, or take the tenant away from under them with: kubectl annotate tenant {name} {RELEASE}=true",
        uses.join(", ")
    ))
}
