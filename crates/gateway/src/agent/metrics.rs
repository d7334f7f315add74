//! What an agent counts.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::sleep;

use super::Shared;

/// The metrics of an agent.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub(super) dials: Family<ResultLabel, Counter>,
    pub(super) connections: Gauge,
    pub(super) streams: Family<StreamLabels, Counter>,
    pub(super) ready: Family<ServiceLabel, Gauge>,
    pub(super) open: Gauge,
    pub(super) held: Gauge,
    pub(super) skew: Gauge,
    pub(super) not_after: Gauge,
}

/// What came of a dial.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResultLabel {
    pub result: &'static str,
}

/// Which service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ServiceLabel {
    pub service: String,
}

/// Which stream, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StreamLabels {
    pub service: String,
    pub result: String,
}

impl Metrics {
    /// Registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("bailey_agent");
        registry.register("dials", "Tries to reach a gateway, by what came of them", metrics.dials.clone());
        registry.register("connections", "Connections for streams", metrics.connections.clone());
        registry.register("streams", "Streams that ended, by what came of them", metrics.streams.clone());
        registry.register(
            "service_ready",
            "Whether a service answered last, through the whole path",
            metrics.ready.clone(),
        );
        registry.register("streams_open", "Streams that copy now", metrics.open.clone());
        registry.register("held_bytes", "Bytes held for readers that stand still", metrics.held.clone());
        registry.register(
            "clock_skew_seconds",
            "How far the management cluster's clock is ahead",
            metrics.skew.clone(),
        );
        registry.register(
            "certificate_not_after_seconds",
            "When the certificate is over, since 1970",
            metrics.not_after.clone(),
        );
        metrics
    }
}

/// Tells what is under way, now and then.
pub(super) async fn gauges(shared: &Shared) {
    let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    loop {
        let (streams, held) = shared.ledger.load();
        shared.metrics.open.set(whole(streams));
        shared.metrics.held.set(whole(held));
        shared.metrics.connections.set(whole(shared.pool.live()));
        let not_after = shared.credentials.borrow().as_ref().map(|current| current.certificate.not_after);
        shared.metrics.not_after.set(not_after.and_then(|moment| i64::try_from(moment).ok()).unwrap_or(0));
        sleep(Duration::from_secs(1)).await;
    }
}
