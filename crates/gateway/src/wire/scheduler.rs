//! Gives turns to chunks: [`Turns`] behind a lock, and a task for what only time brings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bailey_tunnel::names::ClusterUid;
use bailey_tunnel::turns::{Limits, Ticket, Turns};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};

/// The turns of all clusters of a gateway.
#[derive(Debug)]
pub struct Scheduler {
    /// Never held across an await.
    state: Mutex<State>,
    start: Instant,
    waits: Notify,
}

#[derive(Debug)]
struct State {
    turns: Turns<ClusterUid>,
    /// One entry for each ticket that waits.
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
}

impl Scheduler {
    /// Starts with nobody.
    pub fn new(limits: Limits) -> Arc<Self> {
        let state = State { turns: Turns::new(limits), waiting: HashMap::new() };
        Arc::new(Self { state: Mutex::new(state), start: Instant::now(), waits: Notify::new() })
    }

    /// Waits until a chunk of so many bytes may go.
    pub async fn turn(self: &Arc<Self>, cluster: &ClusterUid, bytes: usize) -> Turn {
        let (sender, granted) = oneshot::channel();
        let now = self.now();
        let turn = {
            let mut state = self.lock();
            let ticket = state.turns.ask(cluster, bytes, now);
            state.waiting.insert(ticket, sender);
            Turn { scheduler: Arc::clone(self), cluster: cluster.clone(), ticket }
        };
        if self.grant(now) {
            self.waits.notify_one();
        }
        // The sender is only dropped with the turn itself, so an error cannot come.
        let _granted = granted.await;
        turn
    }

    /// Grants what only time allows; runs as long as the gateway.
    pub async fn run(&self) {
        loop {
            let pause = self.lock().turns.pause(self.now());
            match pause {
                None => self.waits.notified().await,
                Some(pause) => {
                    sleep(pause.max(Duration::from_millis(1))).await;
                    self.grant(self.now());
                }
            }
        }
    }

    /// Tells how many bytes are in flight and how many chunks wait.
    pub fn load(&self) -> (usize, usize) {
        self.lock().turns.load()
    }

    /// Wakes whoever has a turn; true if somebody still waits.
    fn grant(&self, now: Duration) -> bool {
        let mut state = self.lock();
        while let Some(ticket) = state.turns.next(now) {
            if let Some(sender) = state.waiting.remove(&ticket) {
                // Nobody listens if the stream is gone; its turn gives itself back.
                let _unheard = sender.send(());
            }
        }
        !state.waiting.is_empty()
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chunk's turn; the next one comes when it is dropped.
#[derive(Debug)]
pub struct Turn {
    scheduler: Arc<Scheduler>,
    cluster: ClusterUid,
    ticket: Ticket,
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut state = self.scheduler.lock();
            if state.waiting.remove(&self.ticket).is_some() {
                state.turns.cancel(&self.cluster, self.ticket);
            } else {
                state.turns.done(&self.cluster, self.ticket);
            }
        }
        self.scheduler.grant(self.scheduler.now());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop")]

    use super::*;

    fn uid(digit: u8) -> ClusterUid {
        ClusterUid::new(format!("{digit:08x}")).unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn every_turn_comes_whoever_is_cancelled() {
        let scheduler = Scheduler::new(Limits { process: 256 << 10, ..Limits::default() });
        let timer = tokio::spawn({
            let scheduler = Arc::clone(&scheduler);
            async move { scheduler.run().await }
        });
        let tasks: Vec<_> = (0..64_u8)
            .map(|task| {
                let scheduler = Arc::clone(&scheduler);
                tokio::spawn(async move {
                    let uid = uid(task % 5);
                    for round in 0..200 {
                        let turn = scheduler.turn(&uid, 64 << 10);
                        if (round + u32::from(task)) % 7 == 0 {
                            let _cut = tokio::time::timeout(Duration::from_micros(50), turn).await;
                        } else {
                            let turn = turn.await;
                            tokio::task::yield_now().await;
                            drop(turn);
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(scheduler.load(), (0, 0));
        timer.abort();
    }
}
