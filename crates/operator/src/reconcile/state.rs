//! Update status: what is said of the Installation, Tenants and AccessRequests, and to whom.

use std::collections::HashMap;

use bailey_api::{AccessRequest, Installation, Tenant};
use bailey_guardrails::ObjectKind;
use futures::{FutureExt, StreamExt, stream};
use kube::{Resource, ResourceExt, core::ApiResource};

use super::{Reconciler, Snapshot, Wanted};
use crate::{
    error::OperatorError,
    metrics::ReasonLabel,
    status::{self, Applied, TenantFacts},
};

const STATUS_WRITES: usize = 16;

impl Reconciler {
    pub(super) async fn update_status(
        &mut self,
        snapshot: &Snapshot,
        wanted: &Wanted,
        applied: &Applied,
    ) -> Result<(), OperatorError> {
        self.measure(wanted);
        self.state_installation(snapshot, wanted, applied).await?;
        self.state_tenants(snapshot, wanted, applied).await?;
        if matches!(applied, Applied::All) && snapshot.installation.meta().deletion_timestamp.is_none() {
            self.state_requests(snapshot, wanted, applied).await?;
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
            if status::own_of(tenant).as_ref() != Some(&status) {
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
            let status = status::of_request(Some(old), binding, projection, applied);
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
