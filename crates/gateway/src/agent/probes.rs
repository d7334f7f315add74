//! Asks each service, through the whole path, whether it answers: a green light here would say nothing of it.

use std::sync::Arc;
use std::time::Duration;

use bailey_process::drain::Signal;
use bailey_tunnel::control::Answer;
use bailey_tunnel::names::ServiceName;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::metrics::ServiceLabel;
use super::{Shared, stream};
use bailey_identity::clock::random;

const EVERY: Duration = Duration::from_secs(10);
/// Probes at a time.
const AT_ONCE: usize = 8;

/// Probes until the drain; at once what is newly offered.
pub(super) async fn run(shared: &Arc<Shared>, signal: Signal) {
    let mut told = shared.told.subscribe();
    loop {
        let services: Vec<_> = told
            .borrow_and_update()
            .iter()
            .flat_map(|told| &told.services)
            .map(|offer| offer.name.clone())
            .collect();
        let answers = ask(&services, shared).await;
        for answer in &answers {
            let label = ServiceLabel { service: answer.name.to_string() };
            shared.metrics.ready.get_or_create(&label).set(i64::from(answer.ready));
        }
        shared.answers.send_if_modified(|last| {
            let gone = last.iter().filter(|old| !answers.iter().any(|new| new.name == old.name));
            for old in gone {
                shared.metrics.ready.remove(&ServiceLabel { service: old.name.to_string() });
            }
            let changed = *last != answers;
            *last = answers;
            changed
        });
        let known = services;
        tokio::select! {
            () = signal.started() => return,
            () = sleep(EVERY.mul_f64(0.9 + 0.2 * random())) => {}
            _ = told.wait_for(|told| {
                let now: Vec<_> = told.iter().flat_map(|told| &told.services).map(|offer| &offer.name).collect();
                now != known.iter().collect::<Vec<_>>()
            }) => {}
        }
    }
}

async fn ask(services: &[ServiceName], shared: &Arc<Shared>) -> Vec<Answer> {
    let (mut probes, mut answers) = (JoinSet::new(), Vec::new());
    let mut waiting = services.iter().cloned();
    loop {
        while probes.len() < AT_ONCE {
            let Some(service) = waiting.next() else { break };
            let shared = Arc::clone(shared);
            probes.spawn(async move {
                let reason =
                    stream::probe(&service, &shared).await.err().map(|error| error.reason().to_owned());
                Answer { name: service, ready: reason.is_none(), reason: reason.unwrap_or_default() }
            });
        }
        match probes.join_next().await {
            None => break,
            Some(Ok(answer)) => answers.push(answer),
            Some(Err(error)) => tracing::error!(%error, "a probe broke off"),
        }
    }
    answers.sort_by(|a, b| a.name.cmp(&b.name));
    answers
}
