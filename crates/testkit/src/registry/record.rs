//! What was asked of an upstream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub at: Instant,
    sent: Arc<AtomicU64>,
}

impl Seen {
    pub(super) fn new(method: String, target: String, headers: Vec<(String, String)>) -> Self {
        Self { method, target, headers, at: Instant::now(), sent: Arc::default() }
    }

    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn authorization(&self) -> Option<&str> {
        self.header("authorization")
    }

    /// How many bytes of the body went out so far.
    pub fn bytes_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) fn add_sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// All requests in the order they came.
#[derive(Debug, Default)]
pub(super) struct Record(Mutex<Vec<Seen>>);

impl Record {
    pub fn add(&self, seen: Seen) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }

    pub fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
