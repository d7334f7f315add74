//! Says in the status of each Tenant whether it is isolated, and writes only what changed.
//!
//! By server-side apply with a manager of its own, so that it owns its condition and numbers and the operator the rest.

use std::time::Duration;

use bailey_api::{TenantSecrets, merge_conditions};
use bailey_collect::live::{Answer as Reply, Call, Live, LiveError, path};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use serde_json::{Value, json};

use crate::{
    FIELD_MANAGER,
    answer::{Answer, Said},
};

/// Between two writes, so that hundreds of tenants do not come as one burst.
const PAUSE: Duration = Duration::from_millis(5);

/// Tells all Tenants. None is told if there are no Tenants at all, as where a preset names the customers.
pub(crate) async fn tell(live: &Live, answer: &Answer) -> Result<usize, LiveError> {
    let list = path(bailey_api::GROUP, bailey_api::VERSION, "tenants", None, None);
    let mut written = 0;
    for tenant in live.list(&list).await? {
        let name = tenant.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let Some(said) = answer.tenants.get(name) else { continue };
        let Some(status) = differing(&tenant, said) else { continue };
        let object = json!({
            "apiVersion": format!("{}/{}", bailey_api::GROUP, bailey_api::VERSION),
            "kind": "Tenant", "metadata": {"name": name}, "status": status,
        });
        let of = path(bailey_api::GROUP, bailey_api::VERSION, "tenants", None, Some(name));
        let target = format!("{of}/status?fieldManager={FIELD_MANAGER}&force=true");
        let call = Call::patch(target.clone(), "application/apply-patch+yaml", &object);
        let reply: Reply = live.send(call).await?;
        // One that went meanwhile needs no answer.
        if !reply.is_success() && reply.status != 404 {
            let message = reply.message();
            return Err(LiveError::Refused {
                request: format!("PATCH {of}/status"),
                status: reply.status,
                message,
            });
        }
        written += 1;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(written)
}

/// What to write, if it is not there already.
fn differing(tenant: &Value, said: &Said) -> Option<Value> {
    let read = |pointer: &str| tenant.pointer(pointer).cloned().unwrap_or_default();
    let old: Vec<Condition> = serde_json::from_value(read("/status/conditions")).unwrap_or_default();
    let secrets: Option<TenantSecrets> = serde_json::from_value(read("/status/secrets")).unwrap_or_default();
    let generation = tenant.pointer("/metadata/generation").and_then(Value::as_i64);
    let now = Timestamp::now();
    // The API keeps whole seconds; anything finer would differ on each read.
    let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let wanted = merge_conditions(&old, std::slice::from_ref(&said.isolated), generation, now);
    let is_there = |condition: &Condition| old.contains(condition);
    if secrets == Some(said.secrets) && wanted.iter().all(is_there) {
        return None;
    }
    Some(json!({"conditions": wanted, "secrets": said.secrets}))
}
