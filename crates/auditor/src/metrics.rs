//! What the auditor counts.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::answer::Answer;

/// A verdict and how sure it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct VerdictLabels {
    verdict: &'static str,
    certainty: &'static str,
}

/// How bad findings are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct SeverityLabel {
    severity: &'static str,
}

/// A reason from a finite list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ReasonLabel {
    pub reason: &'static str,
}

/// A Tenant, and which of its Secrets: `exactly-one`, `shared`, `unknown`, or `others` that it reaches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TenantLabels {
    tenant: String,
    which: &'static str,
}

/// The metrics of the auditor.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    pub errors: Family<ReasonLabel, Counter>,
    pub duration: Histogram,
    pub objects: Gauge,
    pub object_bytes: Gauge,
    answers: Counter,
    answered: Gauge<f64, AtomicU64>,
    complete: Gauge,
    gaps: Gauge,
    secrets: Family<VerdictLabels, Gauge>,
    findings: Family<SeverityLabel, Gauge>,
    tenants: Family<TenantLabels, Gauge>,
}

impl Metrics {
    /// Registers all of them.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let seconds = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];
        let metrics = Self {
            errors: Family::default(),
            duration: Histogram::new(seconds),
            objects: Gauge::default(),
            object_bytes: Gauge::default(),
            answers: Counter::default(),
            answered: Gauge::default(),
            complete: Gauge::default(),
            gaps: Gauge::default(),
            secrets: Family::default(),
            findings: Family::default(),
            tenants: Family::default(),
        };
        let registry = registry.sub_registry_with_prefix("bailey_auditor");
        let m = metrics.clone();
        registry.register("errors", "Answers that could not be made or told, by reason", m.errors);
        registry.register("answer_seconds", "Time that making an answer takes", m.duration);
        registry.register("objects", "Objects that are kept of the cluster", m.objects);
        registry.register("object_bytes", "Bytes of the objects that are kept", m.object_bytes);
        registry.register("answers", "Answers that were made", m.answers);
        registry.register("answered_timestamp_seconds", "When the last answer was made", m.answered);
        registry.register(
            "complete",
            "Whether everything could be read that the last answer needs",
            m.complete,
        );
        registry.register("gaps", "What could not be read or was not followed", m.gaps);
        registry.register("secrets", "Secrets by verdict and how sure it is", m.secrets);
        registry.register("findings", "Findings by severity", m.findings);
        registry.register(
            "tenant_secrets",
            "Secrets of a tenant by who reaches them, and those of others that it reaches",
            m.tenants,
        );
        metrics
    }

    /// Shows an answer.
    pub(crate) fn show(&self, answer: &Answer, seconds: f64, at: f64) {
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.answers.inc();
        self.duration.observe(seconds);
        self.answered.set(at);
        self.complete.set(i64::from(answer.gaps.is_empty()));
        self.gaps.set(count(answer.gaps.len()));
        for ((verdict, certainty), n) in &answer.secrets {
            self.secrets.get_or_create(&VerdictLabels { verdict, certainty }).set(count(*n));
        }
        for (severity, n) in &answer.findings {
            self.findings.get_or_create(&SeverityLabel { severity }).set(count(*n));
        }
        self.tenants.clear();
        for (tenant, said) in &answer.tenants {
            let secrets = said.secrets;
            let counts = [
                ("exactly-one", secrets.exactly_one),
                ("shared", secrets.shared),
                ("unknown", secrets.unknown),
                ("others", secrets.others),
            ];
            for (which, n) in counts {
                self.tenants.get_or_create(&TenantLabels { tenant: tenant.clone(), which }).set(n);
            }
        }
    }
}
