//! What the issuer counts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The metrics of an issuer.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub(crate) issued: Family<PartyLabel, Counter>,
    pub(crate) refused: Family<ReasonLabel, Counter>,
    pub(crate) connections: Gauge,
}

/// For what kind of party.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct PartyLabel {
    pub party: &'static str,
}

/// Why none was issued.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ReasonLabel {
    pub reason: &'static str,
}

impl Metrics {
    /// Registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("bailey_issuer");
        registry.register("certificates", "Certificates that were issued", metrics.issued.clone());
        registry.register("refused", "Requests that got none, by reason", metrics.refused.clone());
        registry.register("connections", "Connections under way", metrics.connections.clone());
        metrics
    }

    /// Tells how many requests were refused for a reason.
    pub fn refusals(&self, reason: &'static str) -> u64 {
        self.refused.get_or_create(&ReasonLabel { reason }).get()
    }
}
