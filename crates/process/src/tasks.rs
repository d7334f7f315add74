//! The tasks of a process: who owns them, and how the process ends.
//!
//! The first task that ends, or the first signal, starts the drain. The work then has a time to finish;
//! after it, or at a second signal, it is aborted. Only then does what outlives the work end.
//!
//! INVARIANT: `run` returns after every task was joined or found stuck, and says which.

use std::collections::HashMap;
use std::error::Error;
use std::future::{self, Future};
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use crate::drain::{Drain, Interrupts, Last, Signal};
use crate::telemetry::report;

/// How long an aborted task, or one that outlives the work, may take to end.
const CLOSE: Duration = Duration::from_secs(3);

/// The source of a task's failure.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Owns the tasks of a process.
#[derive(Debug, Default)]
pub struct Tasks {
    drain: Drain,
    work: Group,
    last: Group,
}

impl Tasks {
    /// Makes an empty set of tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a piece of work that finishes when its signal starts; it ending earlier ends the process.
    pub fn spawn<F, E>(&mut self, name: &'static str, task: impl FnOnce(Signal) -> F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        self.work.spawn(name, task(self.drain.signal()));
    }

    /// Starts a task that outlives the work, such as the admin server.
    pub fn spawn_last<F, E>(&mut self, name: &'static str, task: impl FnOnce(Last) -> F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        self.last.spawn(name, task(self.drain.last()));
    }

    /// Runs until a signal comes or a task ends, then drains; `grace` bounds the drain.
    ///
    /// Ok only when a signal started the drain and everything finished in time.
    pub async fn run(mut self, mut interrupts: Interrupts, grace: Duration) -> Result<(), TaskError> {
        let stopped = tokio::select! {
            signal = interrupts.next() => {
                tracing::info!(signal, grace_seconds = grace.as_secs(), "draining; a second signal forces the end");
                Ok(())
            }
            ended = self.work.next() => Err(ended.too_early()),
            ended = self.last.next() => Err(ended.too_early()),
        };
        if let Err(error) = &stopped {
            tracing::error!(reason = error.reason(), error = report(error), "draining after a task ended");
        }
        self.drain.start();
        let drained = self.finish_work(&mut interrupts, grace).await;
        self.drain.end();
        let closed = self.last.finish().await;
        stopped.and(drained).and(closed)
    }

    async fn finish_work(&mut self, interrupts: &mut Interrupts, grace: Duration) -> Result<(), TaskError> {
        let forced = tokio::select! {
            biased;
            result = async {
                let result = self.work.join().await;
                // A task may have passed its signal on, to connections for example.
                self.drain.finished().await;
                result
            } => return result,
            signal = interrupts.next() => Some(signal),
            () = sleep(grace) => None,
        };
        let tasks = self.work.names();
        self.work.abort().await;
        Err(match forced {
            Some(signal) => TaskError::Forced { signal, tasks },
            None => TaskError::Overdue { grace_seconds: grace.as_secs(), tasks },
        })
    }
}

/// Why the process did not end in order.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// A task failed.
    #[error("task `{task}` failed")]
    Failed {
        /// The task's name.
        task: &'static str,
        /// Why it failed.
        source: BoxError,
    },
    /// A task ended before it was asked to.
    #[error("task `{task}` ended before the process was asked to stop")]
    Ended {
        /// The task's name.
        task: &'static str,
    },
    /// A task panicked or was aborted.
    #[error("task `{task}` broke off; the lines before in the log say where")]
    Broken {
        /// The task's name.
        task: &'static str,
        /// How it broke off.
        source: JoinError,
    },
    /// The drain took too long.
    #[error(
        "still running {grace_seconds} s after the drain started and aborted: {tasks}; allow more time if that is expected"
    )]
    Overdue {
        /// The time the drain had.
        grace_seconds: u64,
        /// Which tasks were left.
        tasks: String,
    },
    /// A second signal broke the drain off.
    #[error("a second signal, {signal}, broke the drain off while these ran: {tasks}")]
    Forced {
        /// The signal's name.
        signal: &'static str,
        /// Which tasks were left.
        tasks: String,
    },
}

impl TaskError {
    /// Names the kind of error for metric labels and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Failed { .. } => "TaskFailed",
            Self::Ended { .. } => "TaskEnded",
            Self::Broken { .. } => "TaskBroken",
            Self::Overdue { .. } => "DrainOverdue",
            Self::Forced { .. } => "DrainForced",
        }
    }
}

#[derive(Debug, Default)]
struct Group {
    set: JoinSet<Result<(), BoxError>>,
    names: HashMap<Id, &'static str>,
}

impl Group {
    fn spawn<F, E>(&mut self, name: &'static str, task: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        let handle = self.set.spawn(async move { task.await.map_err(Into::into) });
        self.names.insert(handle.id(), name);
    }

    /// Waits for the next task that ends; for ever when there is none.
    async fn next(&mut self) -> Ended {
        match self.set.join_next_with_id().await {
            None => future::pending().await,
            Some(joined) => self.ended(joined),
        }
    }

    /// Waits for all tasks and gives the first failure; the others are logged.
    async fn join(&mut self) -> Result<(), TaskError> {
        let mut first = Ok(());
        while let Some(joined) = self.set.join_next_with_id().await {
            let result = self.ended(joined).in_drain();
            if let Err(error) = &result {
                tracing::error!(reason = error.reason(), error = report(error), "a task failed in the drain");
            }
            first = first.and(result);
        }
        first
    }

    /// Waits a short time for all tasks and aborts those that are left.
    async fn finish(&mut self) -> Result<(), TaskError> {
        match timeout(CLOSE, self.join()).await {
            Ok(result) => result,
            Err(_) => {
                let tasks = self.names();
                self.abort().await;
                Err(TaskError::Overdue { grace_seconds: CLOSE.as_secs(), tasks })
            }
        }
    }

    async fn abort(&mut self) {
        if timeout(CLOSE, self.set.shutdown()).await.is_err() {
            tracing::error!(tasks = self.names(), "aborted tasks do not yield; leaving them behind");
        }
    }

    fn names(&self) -> String {
        let mut names: Vec<_> = self.names.values().copied().collect();
        names.sort_unstable();
        if names.is_empty() { "connections".to_owned() } else { names.join(", ") }
    }

    fn ended(&mut self, joined: Result<(Id, Result<(), BoxError>), JoinError>) -> Ended {
        let (id, result) = match joined {
            Ok((id, result)) => (id, result.map_err(Failure::Error)),
            Err(error) => (error.id(), Err(Failure::Broken(error))),
        };
        Ended { task: self.names.remove(&id).unwrap_or("unnamed"), result }
    }
}

struct Ended {
    task: &'static str,
    result: Result<(), Failure>,
}

enum Failure {
    Error(BoxError),
    Broken(JoinError),
}

impl Ended {
    fn too_early(self) -> TaskError {
        let task = self.task;
        self.in_drain().err().unwrap_or(TaskError::Ended { task })
    }

    fn in_drain(self) -> Result<(), TaskError> {
        let task = self.task;
        self.result.map_err(|failure| match failure {
            Failure::Error(source) => TaskError::Failed { task, source },
            Failure::Broken(source) => TaskError::Broken { task, source },
        })
    }
}

#[cfg(test)]
mod tests;
