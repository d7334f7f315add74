//! The loop: wait for a change, make the answer, tell it, rest.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bailey_collect::{Watch, live::Live};
use bailey_process::{drain::Signal, telemetry::report};
use kube::Client;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    answer::{Answer, answer},
    error::AuditorError,
    metrics::{Metrics, ReasonLabel},
    status,
};

/// Changes come in bursts (a chart is many objects); one answer serves a burst.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// Repairs what no watch told of.
const RESYNC: Duration = Duration::from_secs(300);
const RETRY: Duration = Duration::from_secs(3);
/// How often what is served is looked at again, if something has changed.
const DISCOVER: Duration = Duration::from_secs(10);
/// How long the first answer waits for kinds that are still being read.
const PATIENCE: Duration = Duration::from_secs(120);
/// The share of its time that the auditor may work: after an answer it rests so many times as long as that one took.
const REST: u32 = 4;

/// Keeps the answer until the signal starts.
pub(crate) async fn run(client: Client, metrics: Metrics, signal: Signal) -> Result<(), AuditorError> {
    let auditor = Auditor { client, metrics };
    tokio::select! {
        () = signal.started() => {}
        () = auditor.work() => {}
    }
    Ok(())
}

struct Auditor {
    client: Client,
    metrics: Metrics,
}

impl Auditor {
    async fn work(&self) {
        let changed = Arc::new(Notify::new());
        let live = Live::new(self.client.clone());
        let mut watch = loop {
            match Watch::start(live.clone(), Arc::clone(&changed)).await {
                Ok(watch) => break watch,
                Err(error) => self.failed(&error.into()).await,
            }
        };
        self.first_lists(&watch, &changed).await;
        let mut discovered = Instant::now();
        let mut told: Option<Answer> = None;
        loop {
            let started = Instant::now();
            match self.answer(&live, &mut watch, &mut discovered, &mut told).await {
                Ok(()) => sleep(started.elapsed() * REST).await,
                Err(error) => {
                    self.failed(&error).await;
                    continue;
                }
            }
            let _ = timeout(RESYNC, changed.notified()).await;
            sleep(DEBOUNCE).await;
        }
    }

    /// Waits until each kind was read or refused.
    async fn first_lists(&self, watch: &Watch, changed: &Notify) {
        let deadline = Instant::now() + PATIENCE;
        while !watch.pending().is_empty() && Instant::now() < deadline {
            let _ = timeout(DEBOUNCE, changed.notified()).await;
        }
    }

    async fn answer(
        &self,
        live: &Live,
        watch: &mut Watch,
        discovered: &mut Instant,
        told: &mut Option<Answer>,
    ) -> Result<(), AuditorError> {
        if discovered.elapsed() > DISCOVER {
            watch.discover().await?;
            *discovered = Instant::now();
        }
        let kinds = watch.kinds().await?;
        let started = Instant::now();
        let made = tokio::task::spawn_blocking(move || answer(kinds.snapshot(None)))
            .await
            .map_err(|source| AuditorError::Answer { source })?;
        let seconds = started.elapsed().as_secs_f64();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.metrics.show(&made, seconds, now.as_secs_f64());
        let (objects, bytes) = watch.size();
        self.metrics.objects.set(i64::try_from(objects).unwrap_or(i64::MAX));
        self.metrics.object_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        let written = status::tell(live, &made).await?;
        if told.as_ref() != Some(&made) {
            let leaking = made.tenants.values().filter(|said| said.isolated.holds == Some(false)).count();
            tracing::info!(
                objects,
                tenants = made.tenants.len(),
                leaking,
                gaps = made.gaps.len(),
                written,
                seconds,
                "the answer has changed"
            );
        }
        *told = Some(made);
        Ok(())
    }

    async fn failed(&self, error: &AuditorError) {
        self.metrics.errors.get_or_create(&ReasonLabel { reason: error.reason() }).inc();
        tracing::warn!(error = report(error), "no answer, and it is tried again");
        sleep(RETRY).await;
    }
}
