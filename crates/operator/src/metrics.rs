//! What the operator counts.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// A reason from a finite list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ReasonLabel {
    pub reason: &'static str,
}

/// A kind of object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct KindLabel {
    pub kind: &'static str,
}

/// The metrics of the operator.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    pub reconciliations: Counter,
    pub errors: Family<ReasonLabel, Counter>,
    pub duration: Histogram,
    pub writes: Family<KindLabel, Counter>,
    pub removals: Family<KindLabel, Counter>,
    pub tenants: Gauge,
    pub invalid_tenants: Gauge,
    pub requests: Gauge,
    pub refused: Family<ReasonLabel, Gauge>,
    pub foreign_grants: Gauge,
    pub watch_errors: Counter,
    pub boundary_bytes: Gauge<f64, AtomicU64>,
}

impl Metrics {
    /// Registers all of them.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let seconds = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];
        let metrics = Self {
            reconciliations: Counter::default(),
            errors: Family::default(),
            duration: Histogram::new(seconds),
            writes: Family::default(),
            removals: Family::default(),
            tenants: Gauge::default(),
            invalid_tenants: Gauge::default(),
            requests: Gauge::default(),
            refused: Family::default(),
            foreign_grants: Gauge::default(),
            watch_errors: Counter::default(),
            boundary_bytes: Gauge::default(),
        };
        let registry = registry.sub_registry_with_prefix("bailey_operator");
        let m = metrics.clone();
        registry.register("reconciliations", "Reconciliations of the whole installation", m.reconciliations);
        registry.register("errors", "Failed reconciliations by reason", m.errors);
        registry.register("reconciliation_seconds", "Time that a reconciliation takes", m.duration);
        registry.register("writes", "Objects written, by kind", m.writes);
        registry.register("removals", "Objects removed, by kind", m.removals);
        registry.register("tenants", "Tenants in effect", m.tenants);
        registry.register(
            "tenants_invalid",
            "Tenants left out because they contradict something",
            m.invalid_tenants,
        );
        registry.register("access_requests", "Bindings of tenants that ask for rights", m.requests);
        registry.register("access_refused", "Refused parts of requests, by reason", m.refused);
        registry.register("foreign_grants", "Rights of tenants beyond their boundary", m.foreign_grants);
        registry.register("watch_errors", "Errors of watches, each tried again", m.watch_errors);
        registry.register(
            "boundary_bytes",
            "Size of the index that the rails look things up in",
            m.boundary_bytes,
        );
        metrics
    }
}
