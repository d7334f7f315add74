//! When a process stops: running, then draining, then ended.
//!
//! Work holds a [`Signal`] and the drain is over when the last one is dropped. What must outlive the
//! work (the admin server) holds a [`Last`], which does not count. Who starts the drain, and what
//! happens when it takes too long, is decided in [`crate::tasks`].
//!
//! INVARIANT: a phase never goes back.

use std::future;
use std::io;

use tokio::signal::unix::{self, SignalKind};
use tokio::sync::{mpsc, watch};

/// Owns the phase of the process.
#[derive(Debug)]
pub struct Drain {
    phase: watch::Sender<Phase>,
    /// Every [`Signal`] holds a receiver, so that this closes with the last of them.
    held: watch::Sender<()>,
}

impl Drain {
    /// Makes the drain of a process that runs.
    pub fn new() -> Self {
        Self { phase: watch::Sender::new(Phase::Running), held: watch::Sender::new(()) }
    }

    /// Gives a signal to a piece of work, which the drain then waits for.
    pub fn signal(&self) -> Signal {
        Signal { phase: self.phase.subscribe(), _held: self.held.subscribe() }
    }

    /// Gives a signal to what must outlive the work.
    pub fn last(&self) -> Last {
        Last { phase: self.phase.subscribe() }
    }

    /// Asks all work to finish.
    pub fn start(&self) {
        self.reach(Phase::Draining);
    }

    /// Waits until no work holds a signal.
    pub async fn finished(&self) {
        self.held.closed().await;
    }

    /// Ends what outlived the work.
    pub fn end(&self) {
        self.reach(Phase::Ended);
    }

    fn reach(&self, wanted: Phase) {
        self.phase.send_if_modified(|phase| {
            let later = *phase < wanted;
            if later {
                *phase = wanted;
            }
            later
        });
    }
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

/// Tells a piece of work to finish, and keeps the drain open while it lives.
#[derive(Clone, Debug)]
pub struct Signal {
    phase: watch::Receiver<Phase>,
    _held: watch::Receiver<()>,
}

impl Signal {
    /// Waits until the work should finish.
    pub async fn started(&self) {
        reached(&self.phase, Phase::Draining).await;
    }

    /// Says whether the work should finish.
    pub fn is_started(&self) -> bool {
        has_reached(&self.phase, Phase::Draining)
    }
}

/// Tells what outlives the work how far the process is.
#[derive(Clone, Debug)]
pub struct Last {
    phase: watch::Receiver<Phase>,
}

impl Last {
    /// Says whether the drain has started.
    pub fn is_draining(&self) -> bool {
        has_reached(&self.phase, Phase::Draining)
    }

    /// Waits until the work is over.
    pub async fn ended(&self) {
        reached(&self.phase, Phase::Ended).await;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    Draining,
    Ended,
}

/// A dropped [`Drain`] counts as every phase reached: nobody is left to end the work in order.
async fn reached(phase: &watch::Receiver<Phase>, wanted: Phase) {
    if phase.clone().wait_for(|phase| *phase >= wanted).await.is_err() {
        tracing::trace!("the drain is gone");
    }
}

fn has_reached(phase: &watch::Receiver<Phase>, wanted: Phase) -> bool {
    *phase.borrow() >= wanted || phase.has_changed().is_err()
}

/// The requests to stop that reach the process.
#[derive(Debug)]
pub struct Interrupts(Source);

#[derive(Debug)]
enum Source {
    Process { terminate: unix::Signal, interrupt: unix::Signal },
    Channel(mpsc::Receiver<&'static str>),
}

impl Interrupts {
    /// Listens to SIGTERM and SIGINT, which from now on do not end the process by themselves.
    pub fn install() -> Result<Self, InterruptError> {
        let listen = |kind| unix::signal(kind).map_err(|source| InterruptError { source });
        let (terminate, interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        Ok(Self(Source::Process { terminate, interrupt }))
    }

    /// Listens to a channel, for a role that runs inside another process.
    ///
    /// Two places are enough: the first starts the drain, the second forces it, more say nothing new.
    pub fn channel() -> (mpsc::Sender<&'static str>, Self) {
        let (sender, receiver) = mpsc::channel(2);
        (sender, Self(Source::Channel(receiver)))
    }

    /// Waits for the next request and names it.
    pub async fn next(&mut self) -> &'static str {
        let name = match &mut self.0 {
            Source::Process { terminate, interrupt } => tokio::select! {
                received = terminate.recv() => received.map(|()| "SIGTERM"),
                received = interrupt.recv() => received.map(|()| "SIGINT"),
            },
            Source::Channel(receiver) => receiver.recv().await,
        };
        match name {
            Some(name) => name,
            None => future::pending().await,
        }
    }
}

/// Signals cannot be listened to.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen to SIGTERM and SIGINT, so the process could not drain; check the sandbox it runs in")]
pub struct InterruptError {
    source: io::Error,
}

impl InterruptError {
    /// Names the kind of error for metric labels and logs.
    pub fn reason(&self) -> &'static str {
        "SignalsUnavailable"
    }
}

#[cfg(test)]
mod tests;
