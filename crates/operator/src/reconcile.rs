//! The loop: wait for a change, take a snapshot, validate, build, apply, update status.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use bailey_api::{AccessRequest, Enforcement, Installation, NamespaceName, TENANT_LABEL, Tenant};
use bailey_guardrails::{
    Desired, Discovery, Facts, ForeignGrant, Model, NamespaceFact, Object, ObjectKind, Policy, Problem,
    Projection, Projector, RequestedBinding, build, foreign_grants, policies, validate,
};
use bailey_process::{drain::Signal, telemetry::report};
use futures::{FutureExt, StreamExt, stream};
use kube::{Client, Resource, ResourceExt, core::ApiResource};
use tokio::sync::Notify;

use crate::{
    apply::{Applier, Key, key, orphans},
    cluster::{Cluster, Unreadable},
    discover::discover,
    error::OperatorError,
    events::Events,
    metrics::{Metrics, ReasonLabel},
    requests::{asked_role, requested, unscoped},
    status::{self, Applied, TenantFacts},
};

/// Changes come in bursts (a chart is many objects); one reconciliation serves a burst.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Repairs what no watch told of.
const RESYNC: Duration = Duration::from_secs(300);
const RETRY: Duration = Duration::from_secs(3);
/// How long the API server may take to put a new policy into effect before rights that need it are given.
const SETTLE: Duration = Duration::from_millis(1500);
const STATUS_WRITES: usize = 16;
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
        let stated = self.update_status(&snapshot, &wanted, cluster, &applied).await;
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
        let projections = requested(cluster, &model, &snapshot.requests)
            .into_iter()
            .filter_map(|binding| projector.project(&binding).map(|projection| (binding, projection)))
            .collect();
        let foreign = foreign_grants(&model, &self.discovery, &unscoped(cluster));
        Wanted { model, problems, desired, projections, foreign, leaving, in_use }
    }

    /// Rails go before the rights that need them, and rights before the rails that they need.
    async fn apply(
        &mut self,
        snapshot: &Snapshot,
        wanted: &Wanted,
        cluster: &Cluster,
    ) -> Result<Applied, OperatorError> {
        if snapshot.installation.meta().deletion_timestamp.is_none() {
            self.keep::<Installation>(snapshot.installation.meta()).await?;
        } else if snapshot.tenants.is_empty() {
            return self.remove_installation(snapshot, cluster).await;
        }
        for tenant in snapshot.tenants.iter().filter(|t| t.meta().deletion_timestamp.is_none()) {
            self.keep::<Tenant>(tenant.meta()).await?;
        }
        self.applier.write_boundary(&wanted.desired.boundary, cluster).await?;
        self.applier.apply_all([&wanted.desired.platform], cluster).await.1.map_or(Ok(()), Err)?;
        let keys = self.keys(wanted, snapshot);
        if snapshot.installation.spec.enforcement == Enforcement::Enforce {
            self.apply_rails(&wanted.desired.rails, cluster).await?;
            if self.rails_written.is_some_and(|at| at.elapsed() < SETTLE) {
                return Ok(Applied::Partly(
                    "the rails are written; the rights that need them follow".to_owned(),
                ));
            }
            self.apply_grants(wanted, cluster).await?;
            self.remove(&keys, cluster).await?;
        } else {
            self.apply_grants(wanted, cluster).await?;
            self.remove(&keys, cluster).await?;
            self.apply_rails(&wanted.desired.rails, cluster).await?;
        }
        self.release(wanted, snapshot, cluster).await?;
        Ok(Applied::All)
    }

    async fn apply_rails(&mut self, rails: &[Object], cluster: &Cluster) -> Result<(), OperatorError> {
        let is_policy =
            |o: &&Object| matches!(o.kind, ObjectKind::ValidatingPolicy | ObjectKind::MutatingPolicy);
        let (policies, bindings): (Vec<_>, Vec<_>) = rails.iter().partition(is_policy);
        for group in [policies, bindings] {
            let (written, error) = self.applier.apply_all(group, cluster).await;
            if written > 0 {
                self.rails_written = Some(Instant::now());
            }
            error.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Roles go before what binds them, so that a binding is never refused for lack of its role.
    async fn apply_grants(&self, wanted: &Wanted, cluster: &Cluster) -> Result<(), OperatorError> {
        let projected = wanted.projections.iter().flat_map(|(_, p)| &p.objects);
        let all: Vec<_> =
            wanted.desired.namespaces.iter().chain(&wanted.desired.grants).chain(projected).collect();
        let of = |kinds: &[ObjectKind]| {
            all.iter().copied().filter(|o| kinds.contains(&o.kind)).collect::<Vec<_>>()
        };
        let mut first = None;
        for kinds in [
            &[ObjectKind::Namespace][..],
            &[ObjectKind::ClusterRole, ObjectKind::Role, ObjectKind::AccessRequest],
            &[ObjectKind::ClusterRoleBinding, ObjectKind::RoleBinding],
        ] {
            let (_, error) = self.applier.apply_all(of(kinds), cluster).await;
            first = first.or(error);
        }
        first.map_or(Ok(()), Err)
    }

    /// What cannot be read is not an orphan: its objects stay as they are.
    fn keys(&self, wanted: &Wanted, snapshot: &Snapshot) -> Option<HashSet<Key>> {
        let complete = !snapshot.unreadable.iter().any(|u| u.object.starts_with("Tenant"));
        let projected = wanted.projections.iter().flat_map(|(_, p)| &p.objects);
        complete.then(|| wanted.desired.objects().chain(projected).map(key).collect())
    }

    async fn remove(&self, keys: &Option<HashSet<Key>>, cluster: &Cluster) -> Result<(), OperatorError> {
        let Some(keys) = keys else { return Ok(()) };
        let (mut bindings, mut rest): (Vec<_>, Vec<_>) =
            orphans(cluster, keys).into_iter().partition(|o| binds(o.key.0));
        for group in [&mut bindings, &mut rest] {
            self.applier.remove_all(std::mem::take(group)).await.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Takes back what leaving tenants had, and lets them go.
    async fn release(
        &self,
        wanted: &Wanted,
        snapshot: &Snapshot,
        cluster: &Cluster,
    ) -> Result<(), OperatorError> {
        let kept: HashSet<_> = wanted.desired.namespaces.iter().map(|n| n.name.as_str()).collect();
        for namespace in cluster.namespaces() {
            let ours = namespace.labels().contains_key(bailey_api::COMPONENT_LABEL);
            let invalid =
                wanted.problems.iter().any(|p| Some(&p.tenant) == namespace.labels().get(TENANT_LABEL));
            if ours && !invalid && !kept.contains(namespace.name_any().as_str()) {
                self.applier.release_namespace(&namespace.name_any()).await?;
            }
        }
        for tenant in snapshot.tenants.iter().filter(|t| wanted.leaving.contains(&t.name_any())) {
            self.let_go::<Tenant>(tenant.meta()).await?;
            tracing::info!(tenant = tenant.name_any(), "tenant removed");
        }
        Ok(())
    }

    /// Takes everything back: bindings of rails first, the index last.
    async fn remove_installation(
        &self,
        snapshot: &Snapshot,
        cluster: &Cluster,
    ) -> Result<Applied, OperatorError> {
        self.remove(&Some(HashSet::new()), cluster).await?;
        let name = bailey_api::INSTALLATION_NAME;
        self.applier.remove(ObjectKind::Boundary, None, name, None).await?;
        self.let_go::<Installation>(snapshot.installation.meta()).await?;
        tracing::info!("installation removed: no rail holds any more");
        Ok(Applied::All)
    }

    async fn keep<K: Resource<DynamicType = ()>>(
        &self,
        object: &kube::core::ObjectMeta,
    ) -> Result<(), OperatorError> {
        let finalizers = object.finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|f| f == FINALIZER) {
            return Ok(());
        }
        let with: Vec<_> = finalizers.into_iter().chain([FINALIZER.to_owned()]).collect();
        self.applier.set_finalizers(&ApiResource::erase::<K>(&()), object, &with).await
    }

    async fn let_go<K: Resource<DynamicType = ()>>(
        &self,
        object: &kube::core::ObjectMeta,
    ) -> Result<(), OperatorError> {
        let mut finalizers = object.finalizers.clone().unwrap_or_default();
        finalizers.retain(|f| f != FINALIZER);
        self.applier.set_finalizers(&ApiResource::erase::<K>(&()), object, &finalizers).await
    }

    async fn update_status(
        &mut self,
        snapshot: &Snapshot,
        wanted: &Wanted,
        cluster: &Cluster,
        applied: &Applied,
    ) -> Result<(), OperatorError> {
        self.measure(wanted);
        self.state_installation(snapshot, wanted, applied).await?;
        self.state_tenants(snapshot, wanted, applied).await?;
        if matches!(applied, Applied::All) && snapshot.installation.meta().deletion_timestamp.is_none() {
            self.state_requests(snapshot, wanted, cluster, applied).await?;
        }
        Ok(())
    }

    async fn state_installation(
        &self,
        snapshot: &Snapshot,
        wanted: &Wanted,
        applied: &Applied,
    ) -> Result<(), OperatorError> {
        let installation = &snapshot.installation;
        let leaving = installation.meta().deletion_timestamp.is_some();
        let status = if leaving && snapshot.tenants.is_empty() {
            return Ok(());
        } else if leaving {
            let names: Vec<_> = snapshot.tenants.iter().map(ResourceExt::name_any).collect();
            let message = format!(
                "tenants remain: {}. Delete them first, so that nobody is left unbounded",
                names.join(", ")
            );
            status::of_leaving_installation(installation, &message)
        } else {
            status::of_installation(installation, &wanted.model, wanted.desired.rail_status.clone(), applied)
        };
        if installation.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let resource = ApiResource::erase::<Installation>(&());
        self.applier.apply_status(&resource, None, &installation.name_any(), &status).await
    }

    async fn state_tenants(
        &self,
        snapshot: &Snapshot,
        wanted: &Wanted,
        applied: &Applied,
    ) -> Result<(), OperatorError> {
        let resource = ApiResource::erase::<Tenant>(&());
        let mut writes = Vec::new();
        for tenant in snapshot.tenants.iter().filter(|t| !wanted.leaving.contains(&t.name_any())) {
            let name = tenant.name_any();
            let facts = TenantFacts {
                model: &wanted.model,
                problem: wanted.problems.iter().find(|p| p.tenant == name),
                foreign: wanted.foreign.iter().filter(|g| g.tenant == name).collect(),
                requests: wanted.projections.iter().filter(|(b, _)| b.tenant.as_str() == name).count(),
                in_use: wanted.in_use.get(&name).cloned(),
                applied,
            };
            let status = status::of_tenant(tenant, &facts);
            if tenant.status.as_ref() != Some(&status) {
                writes.push(self.state_tenant(&resource, tenant, status).boxed());
            }
        }
        let results = stream::iter(writes).buffer_unordered(STATUS_WRITES).collect::<Vec<_>>().await;
        results.into_iter().find_map(Result::err).map_or(Ok(()), Err)
    }

    async fn state_tenant(
        &self,
        resource: &ApiResource,
        tenant: &Tenant,
        status: bailey_api::TenantStatus,
    ) -> Result<(), OperatorError> {
        self.tell_of_tenant(tenant, &status).await;
        self.applier.apply_status(resource, None, &tenant.name_any(), &status).await
    }

    async fn tell_of_tenant(&self, tenant: &Tenant, status: &bailey_api::TenantStatus) {
        let message_of = |conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition]| {
            conditions
                .iter()
                .find(|c| c.type_ == bailey_api::STALLED)
                .map(|c| (c.reason.clone(), c.message.clone()))
        };
        let before = tenant.status.as_ref().and_then(|s| message_of(&s.conditions));
        if let Some((reason, message)) =
            message_of(&status.conditions).filter(|now| Some(now) != before.as_ref())
        {
            self.events.publish(&tenant.object_ref(&()), &reason, &message, None, true).await;
        }
    }

    async fn state_requests(
        &mut self,
        snapshot: &Snapshot,
        wanted: &Wanted,
        cluster: &Cluster,
        applied: &Applied,
    ) -> Result<(), OperatorError> {
        let resource = ApiResource::erase::<AccessRequest>(&());
        let existing: HashMap<_, _> = snapshot
            .requests
            .iter()
            .map(|r| ((r.namespace().unwrap_or_default(), r.name_any()), r))
            .collect();
        let mut writes = Vec::new();
        for (binding, projection) in &wanted.projections {
            let place = (projection.namespace.to_string(), projection.request_name.clone());
            // One that was just created is in the next snapshot.
            let Some(old) = existing.get(&place) else { continue };
            let role = asked_role(cluster, binding);
            let status = status::of_request(Some(old), binding, role, projection, applied);
            if old.status.as_ref() != Some(&status) {
                writes.push((*old, place, status));
            }
        }
        for (old, (namespace, name), status) in writes {
            self.applier.apply_status(&resource, Some(&namespace), &name, &status).await?;
            let note = status.conditions.first().map(|c| c.message.clone()).unwrap_or_default();
            let key = (ObjectKind::AccessRequest, Some(namespace), name);
            if self.said.get(&key) != Some(&note) {
                let reason = status.conditions.first().map(|c| c.reason.clone()).unwrap_or_default();
                let warns = status.refused_count > 0;
                self.events.publish(&old.object_ref(&()), &reason, &note, None, warns).await;
                self.said.insert(key, note);
            }
        }
        Ok(())
    }

    fn measure(&self, wanted: &Wanted) {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.metrics.tenants.set(count(wanted.model.tenants.len()));
        self.metrics.invalid_tenants.set(count(wanted.problems.len()));
        self.metrics.requests.set(count(wanted.projections.len()));
        self.metrics.foreign_grants.set(count(wanted.foreign.len()));
        let mut refused = HashMap::<&'static str, usize>::new();
        for part in wanted.projections.iter().flat_map(|(_, p)| &p.scoped.refused) {
            *refused.entry(part.reason.as_str()).or_default() += 1;
        }
        self.metrics.refused.clear();
        for (reason, n) in refused {
            self.metrics.refused.get_or_create(&ReasonLabel { reason }).set(count(n));
        }
    }
}

fn binds(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::ClusterRoleBinding
            | ObjectKind::RoleBinding
            | ObjectKind::ValidatingPolicyBinding
            | ObjectKind::MutatingPolicyBinding
    )
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
