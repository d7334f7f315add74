//! Which parts of a process are not ready yet, as guards that become ready when they are dropped.
//!
//! A part that is never started keeps its guard and so keeps the process unready: forgetting is visible.
//! Draining is not known here; the admin server adds it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts what must still happen before the process takes work.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    /// How many guards are alive by name. The lock is never held across an await.
    pending: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl Readiness {
    /// Makes a readiness on which nothing waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the process unready, by this name, until the guard is dropped.
    #[must_use = "dropping the guard says that the part is ready"]
    pub fn register(&self, name: &'static str) -> Guard {
        self.change(|pending| *pending.entry(name).or_default() += 1);
        Guard { name, readiness: self.clone() }
    }

    /// Lists what is not ready, in order of name; empty when the process is ready.
    pub fn pending(&self) -> Vec<&'static str> {
        self.change(|pending| pending.keys().copied().collect())
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<&'static str, usize>) -> T) -> T {
        // A panic of another holder cannot leave the map half changed: each change is one step.
        change(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keeps the process unready while it lives.
#[derive(Debug)]
pub struct Guard {
    name: &'static str,
    readiness: Readiness,
}

impl Guard {
    /// Says that the part is ready: the same as dropping the guard, but easier to read.
    pub fn ready(self) {}
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.readiness.change(|pending| {
            let left = pending.get(self.name).copied().unwrap_or_default().saturating_sub(1);
            if left == 0 {
                pending.remove(self.name);
            } else {
                pending.insert(self.name, left);
            }
        });
        tracing::debug!(part = self.name, "ready");
    }
}

#[cfg(test)]
mod tests;
