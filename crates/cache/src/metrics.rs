//! What the cache counts. Names start with `bailey_cache_`; every label has a bounded number of values.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bailey_oci::Registry;
use bailey_oci::pace;
use http::HeaderMap;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry as Metered;

use crate::store::Usage;
use crate::store::fill::Failure;
use crate::upstream::Upstream;

/// The counters and gauges of one cache; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub hits: Family<Of, Counter>,
    pub misses: Family<Of, Counter>,
    pub stale_served: Family<Of, Counter>,
    pub bytes_hit: Family<Of, Counter>,
    pub bytes_fetched: Family<Of, Counter>,
    pub failures: Family<Why, Counter>,
    pub answers: Family<Status, Counter>,
    pub passed: Counter,
    pub resumed: Counter,
    pub quota_remaining: Family<Of, Gauge>,
    pub answer_seconds: Family<Of, Gauge<f64, AtomicU64>>,
    pub away_seconds: Family<Of, Gauge<f64, AtomicU64>>,
    pub connections: Gauge,
    pub fills: Gauge,
    pub used: Gauge<u64, AtomicU64>,
    pub reserved: Gauge<u64, AtomicU64>,
    pub limit: Gauge<u64, AtomicU64>,
    pub blobs: Gauge<u64, AtomicU64>,
}

/// About one upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Of {
    upstream: Arc<str>,
}

/// A failure, by upstream and reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Why {
    upstream: Arc<str>,
    reason: &'static str,
}

/// An answer, by its status.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Status {
    status: u32,
}

impl Metrics {
    /// Makes the metrics of a cache and shows them in a registry.
    pub fn register(registry: &mut Metered) -> Self {
        let all = Self::default();
        let cache = registry.sub_registry_with_prefix("bailey_cache");
        cache.register("hits", "Answers from the store", all.hits.clone());
        cache.register("misses", "Answers that had to be fetched", all.misses.clone());
        cache.register("stale_served", "Answers that could not be checked", all.stale_served.clone());
        cache.register("hit_bytes", "Bytes of answers from the store", all.bytes_hit.clone());
        cache.register("fetched_bytes", "Bytes fetched from upstreams and kept", all.bytes_fetched.clone());
        cache.register("failures", "Fetches that failed", all.failures.clone());
        cache.register("answers", "Answers to clients by status", all.answers.clone());
        cache.register("passed", "Blobs streamed past the store for lack of room", all.passed.clone());
        cache.register("resumed", "Bodies of upstreams that broke off and were resumed", all.resumed.clone());
        cache.register(
            "upstream_quota_remaining",
            "What the upstream said is left of its limit",
            all.quota_remaining.clone(),
        );
        cache.register(
            "upstream_answer_seconds",
            "How long the upstream took to answer of late",
            all.answer_seconds.clone(),
        );
        cache.register(
            "upstream_away_seconds",
            "For how long the upstream has not answered; 0 while it does",
            all.away_seconds.clone(),
        );
        cache.register("connections", "Connections of clients", all.connections.clone());
        cache.register("fills", "Fetches of blobs under way", all.fills.clone());
        cache.register("used_bytes", "Bytes of committed blobs and of reservations", all.used.clone());
        cache.register("reserved_bytes", "Bytes reserved by fetches under way", all.reserved.clone());
        cache.register("budget_bytes", "Bytes that may be used", all.limit.clone());
        cache.register("blobs", "Blobs in the store", all.blobs.clone());
        all
    }

    pub fn hit(&self, upstream: &Registry, bytes: u64) {
        self.hits.get_or_create(&Of::new(upstream)).inc();
        self.bytes_hit.get_or_create(&Of::new(upstream)).inc_by(bytes);
    }

    pub fn miss(&self, upstream: &Registry) {
        self.misses.get_or_create(&Of::new(upstream)).inc();
    }

    pub fn stale(&self, upstream: &Registry) {
        self.stale_served.get_or_create(&Of::new(upstream)).inc();
    }

    pub fn filled(&self, upstream: &Registry, bytes: u64) {
        self.bytes_fetched.get_or_create(&Of::new(upstream)).inc_by(bytes);
    }

    pub fn failed(&self, upstream: &Registry, failure: &Failure) {
        let why = Why { upstream: upstream.as_str().into(), reason: failure.reason() };
        self.failures.get_or_create(&why).inc();
    }

    pub fn answered(&self, status: u16) {
        self.answers.get_or_create(&Status { status: status.into() }).inc();
    }

    /// Notes what an upstream says about its limit.
    pub fn quota(&self, upstream: &Registry, headers: &HeaderMap) {
        let said =
            headers.get("ratelimit-remaining").and_then(|value| value.to_str().ok()).and_then(pace::quota);
        if let Some(quota) = said {
            let left = i64::try_from(quota.count).unwrap_or(i64::MAX);
            self.quota_remaining.get_or_create(&Of::new(upstream)).set(left);
        }
    }

    pub fn usage(&self, usage: Usage, fills: usize) {
        self.used.set(usage.used_bytes);
        self.reserved.set(usage.reserved_bytes);
        self.limit.set(usage.bytes_max);
        self.blobs.set(usage.blobs as u64);
        self.fills.set(i64::try_from(fills).unwrap_or(i64::MAX));
    }

    /// Notes how fast an upstream answers, or for how long it has not.
    pub fn upstream(&self, upstream: &Upstream) {
        let of = Of::new(upstream.name());
        self.answer_seconds.get_or_create(&of).set(upstream.answer_millis() / 1000.0);
        self.away_seconds.get_or_create(&of).set(upstream.away_for().unwrap_or_default().as_secs_f64());
    }

    /// The value of a counter for one upstream.
    pub fn count(family: &Family<Of, Counter>, upstream: &Registry) -> u64 {
        family.get_or_create(&Of::new(upstream)).get()
    }
}

impl Of {
    fn new(upstream: &Registry) -> Self {
        Self { upstream: upstream.as_str().into() }
    }
}
