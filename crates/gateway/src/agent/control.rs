//! Hears from the gateway what the cluster may reach, and tells how that works, over a connection of its own: bulk on
//! the others does not delay it.

use std::sync::Arc;
use std::time::Duration;

use bailey_process::drain::Signal;
use bailey_process::telemetry::report;
use bailey_tunnel::backoff::Backoff;
use bailey_tunnel::control::{PATH, Report, Told};
use http::{Method, Request, StatusCode, Uri};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};

use super::connection::{Connection, connect};
use super::{Shared, skew};
use crate::wire::lines::{Lines, send};
use bailey_identity::clock::{now, random};
use bailey_identity::credentials::Credentials;

const OPEN: Duration = Duration::from_secs(10);
/// How often the agent reports.
const EVERY: Duration = Duration::from_secs(10);
/// The gateway says something every ten seconds.
const SILENCE: Duration = Duration::from_secs(40);
const GOOD: Duration = Duration::from_secs(10);

/// Why the gateway is not heard any more.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("cannot connect")]
    Connect(#[source] super::connection::ConnectError),
    #[error("the gateway does not take a control stream: {0}")]
    Refused(StatusCode),
    #[error("the stream broke")]
    Stream(#[from] h2::Error),
    #[error("the stream broke")]
    Line(#[from] crate::wire::lines::LineError),
    #[error("the gateway ended the stream")]
    Closed,
    #[error("the gateway is silent")]
    Silent,
}

/// Keeps a connection for this until the process ends.
pub(super) async fn keep(shared: &Arc<Shared>, signal: Signal) {
    let mut credentials = shared.credentials.clone();
    let mut failures = 0_u32;
    loop {
        let current = credentials.borrow_and_update().clone();
        let Some(current) = current else {
            tokio::select! {
                Ok(()) = credentials.changed() => continue,
                () = signal.started() => return,
            }
        };
        let since = Instant::now();
        let ended = tokio::select! {
            ended = talk(shared, &current) => ended,
            // With new credentials the session proves itself anew. What was told holds meanwhile.
            Ok(()) = credentials.changed() => continue,
        };
        failures = if since.elapsed() > GOOD { 0 } else { failures + 1 };
        tracing::info!(error = report(&ended), "the gateway is not heard");
        sleep(Backoff::DIAL.wait(failures, random(), None)).await;
    }
}

async fn talk(shared: &Arc<Shared>, credentials: &Arc<Credentials>) -> Ended {
    match connect(shared, credentials, shared.options.connections).await {
        Err(error) => Ended::Connect(error),
        Ok(connection) => converse(shared, credentials, connection).await.err().unwrap_or(Ended::Closed),
    }
}

async fn converse(
    shared: &Arc<Shared>,
    credentials: &Credentials,
    connection: Connection,
) -> Result<(), Ended> {
    let Connection { send: requests, drive, path, .. } = connection;
    let mut driven = JoinSet::new();
    driven.spawn(drive.run());
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(PATH);
    let opened = timeout(OPEN, async {
        let mut ready = requests.ready().await?;
        let (response, out) = ready.send_request(request, false)?;
        Ok::<_, h2::Error>((response.await?, out, ready))
    });
    let (response, mut out, _requests) = opened.await.map_err(|_| Ended::Silent)??;
    if response.status() != StatusCode::OK {
        return Err(Ended::Refused(response.status()));
    }
    let mut lines = Lines::new(response.into_body());
    let mut answers = shared.answers.subscribe();
    let mut every = interval(EVERY);
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            told = lines.next::<Told>() => {
                let told = told?.ok_or(Ended::Closed)?;
                heard = Instant::now();
                shared.metrics.skew.set(skew(told.now, now()));
                shared.told.send_replace(Some(told));
                continue;
            }
            Some(_) = driven.join_next() => return Err(Ended::Closed),
            Ok(()) = answers.changed() => {}
            _ = every.tick() => {}
        }
        if heard.elapsed() > SILENCE {
            return Err(Ended::Silent);
        }
        let report = Report {
            now: now(),
            certificate_not_after: credentials.certificate.not_after,
            bundle: credentials.bundle_hash.clone(),
            path,
            services: answers.borrow_and_update().clone(),
        };
        send(&mut out, &report).await?;
    }
}
