//! What a gateway counts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The metrics of a gateway.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub(super) accepted: Counter,
    pub(super) refused: Family<ReasonLabel, Counter>,
    pub(super) signatures: Counter,
    pub(super) sessions: Family<ClusterLabel, Gauge>,
    pub(super) streams: Family<StreamLabels, Counter>,
    pub(super) sent: Family<ClusterLabel, Counter>,
    pub(super) received: Family<ClusterLabel, Counter>,
    pub(super) open: Gauge,
    pub(super) held: Gauge,
    pub(super) in_flight: Gauge,
    pub(super) waiting: Gauge,
    pub(super) handshakes: Gauge,
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReasonLabel {
    pub reason: &'static str,
}

/// Which cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ClusterLabel {
    pub cluster: String,
}

/// Which stream, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StreamLabels {
    pub cluster: String,
    /// A service that exists; refused names are the client's and are not kept.
    pub service: String,
    pub result: &'static str,
}

impl Metrics {
    /// Registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("bailey_gateway");
        registry.register("connections", "Connections that were accepted", metrics.accepted.clone());
        registry.register("refused", "Connections and sessions that were refused", metrics.refused.clone());
        registry.register(
            "signatures",
            "Handshakes that went as far as a signature of the gateway",
            metrics.signatures.clone(),
        );
        registry.register("sessions", "Sessions of agents", metrics.sessions.clone());
        registry.register("streams", "Streams that ended, by what came of them", metrics.streams.clone());
        registry.register("sent_bytes", "Bytes sent to agents", metrics.sent.clone());
        registry.register("received_bytes", "Bytes received from agents", metrics.received.clone());
        registry.register("streams_open", "Streams that copy now", metrics.open.clone());
        registry.register("held_bytes", "Bytes held for readers that stand still", metrics.held.clone());
        registry.register("in_flight_bytes", "Bytes that have their turn", metrics.in_flight.clone());
        registry.register("chunks_waiting", "Chunks that wait for their turn", metrics.waiting.clone());
        registry.register("handshakes_open", "Handshakes under way", metrics.handshakes.clone());
        metrics
    }

    /// Tells how many connections and sessions were refused for a reason.
    pub fn refusals(&self, reason: &'static str) -> u64 {
        self.refused.get_or_create(&ReasonLabel { reason }).get()
    }

    /// Tells for how many connections the gateway has signed.
    pub fn signed(&self) -> u64 {
        self.signatures.get()
    }

    pub(super) fn refuse(&self, reason: &'static str) {
        self.refused.get_or_create(&ReasonLabel { reason }).inc();
    }
}
