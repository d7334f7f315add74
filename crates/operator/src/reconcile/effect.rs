//! Apply: in which order objects are written and removed.

use std::{collections::HashSet, time::Instant};

use bailey_api::{Enforcement, Installation, TENANT_LABEL, Tenant};
use bailey_guardrails::{Object, ObjectKind};
use kube::{Resource, ResourceExt, core::ApiResource};

use super::{FINALIZER, Reconciler, SETTLE, Snapshot, Wanted};
use crate::{
    apply::{Key, Live, key},
    cluster::Cluster,
    error::OperatorError,
    status::Applied,
};

impl Reconciler {
    /// Rails go before the rights that need them, and rights before the rails that they need.
    pub(super) async fn apply(
        &mut self,
        snapshot: &Snapshot,
        wanted: &Wanted,
        cluster: &Cluster,
    ) -> Result<Applied, OperatorError> {
        let live = &Live::new(cluster, &snapshot.requests);
        if snapshot.installation.meta().deletion_timestamp.is_none() {
            self.keep::<Installation>(snapshot.installation.meta()).await?;
        } else if snapshot.tenants.is_empty() {
            return self.remove_installation(snapshot, live).await;
        }
        for tenant in snapshot.tenants.iter().filter(|t| t.meta().deletion_timestamp.is_none()) {
            self.keep::<Tenant>(tenant.meta()).await?;
        }
        self.applier.write_boundary(&wanted.desired.boundary, cluster).await?;
        self.applier.apply_all([&wanted.desired.platform], live).await.1.map_or(Ok(()), Err)?;
        let keys = self.keys(wanted, snapshot);
        if snapshot.installation.spec.enforcement == Enforcement::Enforce {
            self.apply_rails(&wanted.desired.rails, live).await?;
            if self.rails_written.is_some_and(|at| at.elapsed() < SETTLE) {
                return Ok(Applied::Partly(
                    "the rails are written; the rights that need them follow".to_owned(),
                ));
            }
            self.apply_grants(wanted, live).await?;
            self.remove(&keys, live).await?;
        } else {
            self.apply_grants(wanted, live).await?;
            self.remove(&keys, live).await?;
            self.apply_rails(&wanted.desired.rails, live).await?;
        }
        self.release(wanted, snapshot, live).await?;
        Ok(Applied::All)
    }

    async fn apply_rails(&mut self, rails: &[Object], live: &Live<'_>) -> Result<(), OperatorError> {
        let is_policy =
            |o: &&Object| matches!(o.kind, ObjectKind::ValidatingPolicy | ObjectKind::MutatingPolicy);
        let (policies, bindings): (Vec<_>, Vec<_>) = rails.iter().partition(is_policy);
        for group in [policies, bindings] {
            let (written, error) = self.applier.apply_all(group, live).await;
            if written > 0 {
                self.rails_written = Some(Instant::now());
            }
            error.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Roles go before what binds them, so that a binding is never refused for lack of its role.
    async fn apply_grants(&self, wanted: &Wanted, live: &Live<'_>) -> Result<(), OperatorError> {
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
            let (_, error) = self.applier.apply_all(of(kinds), live).await;
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

    async fn remove(&self, keys: &Option<HashSet<Key>>, live: &Live<'_>) -> Result<(), OperatorError> {
        let Some(keys) = keys else { return Ok(()) };
        let (mut bindings, mut rest): (Vec<_>, Vec<_>) =
            live.orphans(keys).into_iter().partition(|o| binds(o.key.0));
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
        live: &Live<'_>,
    ) -> Result<(), OperatorError> {
        let kept: HashSet<_> = wanted.desired.namespaces.iter().map(|n| n.name.as_str()).collect();
        for namespace in live.namespaces() {
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
        live: &Live<'_>,
    ) -> Result<Applied, OperatorError> {
        self.remove(&Some(HashSet::new()), live).await?;
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
