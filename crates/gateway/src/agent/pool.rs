//! The connections for streams: each place keeps one, makes the next before it gives one up, and never stops trying.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bailey_process::drain::Signal;
use bailey_process::telemetry::report;
use bailey_tunnel::backoff::Backoff;
use bytes::Bytes;
use futures::FutureExt as _;
use h2::client::SendRequest;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use super::Shared;
use super::connection::{ConnectError, Connection, connect};
use crate::wire::meter::Meter;
use bailey_identity::clock::random;

/// How soon a connection that takes no more streams is noticed.
const LOOK: Duration = Duration::from_millis(250);
/// A connection that lived this long was good, and the next wait is a short one again.
const GOOD: Duration = Duration::from_secs(10);
/// Connections of one place that still carry old streams.
const OLD_MAX: usize = 8;

/// The places.
#[derive(Debug)]
pub(super) struct Pool {
    /// Never held across an await.
    places: Mutex<Vec<Option<Live>>>,
    changed: Notify,
}

/// A connection that takes streams.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub send: SendRequest<Bytes>,
    pub meter: Meter,
    /// Streams on it.
    pub open: Arc<AtomicUsize>,
}

impl Pool {
    pub(super) fn new(places: usize) -> Self {
        Self { places: Mutex::new(vec![None; places]), changed: Notify::new() }
    }

    /// Gives the connection with the fewest streams; waits while there is none.
    pub(super) async fn pick(&self) -> Live {
        loop {
            let changed = self.changed.notified();
            let least = {
                let places = self.lock();
                places.iter().flatten().min_by_key(|live| live.open.load(Ordering::Relaxed)).cloned()
            };
            match least {
                Some(live) => return live,
                None => changed.await,
            }
        }
    }

    /// Tells how many connections take streams.
    pub(super) fn live(&self) -> usize {
        self.lock().iter().flatten().count()
    }

    /// Takes a connection out that was found not to take streams.
    pub(super) fn retire(&self, live: &Live) {
        for place in self.lock().iter_mut() {
            if place.as_ref().is_some_and(|other| Arc::ptr_eq(&other.open, &live.open)) {
                *place = None;
            }
        }
    }

    fn set(&self, place: usize, live: Option<Live>) {
        if let Some(slot) = self.lock().get_mut(place) {
            *slot = live;
        }
        self.changed.notify_waiters();
    }

    fn holds(&self, place: usize, live: &Live) -> bool {
        let places = self.lock();
        places.get(place).and_then(Option::as_ref).is_some_and(|other| Arc::ptr_eq(&other.open, &live.open))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Live>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a connection in a place until the process ends. Old ones are driven on while they carry streams.
pub(super) async fn keep(place: usize, shared: &Arc<Shared>, signal: Signal) {
    let mut credentials = shared.credentials.clone();
    let mut driven = JoinSet::new();
    let mut failures = 0_u32;
    loop {
        let current = credentials.borrow_and_update().clone();
        let Some(current) = current else {
            tokio::select! {
                Ok(()) = credentials.changed() => continue,
                () = signal.started() => return,
            }
        };
        match connect(shared, &current, place).await {
            Ok(Connection { send, meter, drive, .. }) => {
                let live = Live { send, meter, open: Arc::default() };
                let run = driven.spawn(drive.run());
                // The old one takes no more streams from here on; those that it has go on.
                shared.pool.set(place, Some(live.clone()));
                let since = Instant::now();
                let mut look = interval(LOOK);
                loop {
                    tokio::select! {
                        Ok(()) = credentials.changed() => break,
                        Some(_) = driven.join_next() => {
                            if run.is_finished() { break }
                        }
                        _ = look.tick() => {
                            let takes = live.send.clone().ready().now_or_never();
                            if matches!(takes, Some(Err(_))) || !shared.pool.holds(place, &live) { break }
                        }
                    }
                }
                while driven.len() > OLD_MAX {
                    driven.join_next().await;
                }
                if !run.is_finished() {
                    // It carries its streams to their end beside the next one.
                    failures = 0;
                    continue;
                }
                shared.pool.retire(&live);
                if since.elapsed() > GOOD {
                    failures = 0;
                } else {
                    failures += 1;
                    shared.refused.notify_one();
                }
            }
            Err(error) => {
                failures += 1;
                let reason = error.reason();
                if matches!(error, ConnectError::Handshake(_) | ConnectError::Http(_)) {
                    shared.refused.notify_one();
                }
                tracing::warn!(place, reason, error = report(&error), "cannot connect, and go on trying");
            }
        }
        sleep(Backoff::DIAL.wait(failures.saturating_sub(1), random(), None)).await;
    }
}
