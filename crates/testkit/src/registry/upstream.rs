//! The upstream as a test sees it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use bailey_oci::Digest;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::connection;
use super::content::{Blob, Image};
use super::fault::{Fault, On};
use super::record::{Record, Seen};
use super::repository::Repositories;

/// A registry on a port of its own; gone when dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub repositories: Mutex<Repositories>,
    pub faults: Mutex<Vec<(On, Fault)>>,
    pub record: Record,
    pub settings: Mutex<Settings>,
    pub tokens: Mutex<HashMap<String, Instant>>,
    uplink: Mutex<Option<Instant>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub auth: Option<Auth>,
    pub no_referrers: bool,
    pub bytes_per_second: Option<u64>,
    /// Where blobs are, if not here.
    pub blobs_at: Option<String>,
}

/// How a client has to show who it is.
#[derive(Clone, Debug)]
pub enum Auth {
    /// `Authorization: Basic` with these.
    Basic { user: String, password: String },
    /// A token from this upstream's own `/token`, or from whatever realm is named.
    Token {
        realm: Option<String>,
        /// Whom tokens are given to; everyone if None.
        credentials: Option<(String, String)>,
        expires_in: Duration,
    },
}

impl Auth {
    /// Tokens for everyone, for five minutes.
    pub fn token() -> Self {
        Self::Token { realm: None, credentials: None, expires_in: Duration::from_secs(300) }
    }
}

impl Upstream {
    /// Starts an empty one.
    pub async fn start() -> anyhow::Result<Self> {
        let mut upstream =
            Self { address: ([127, 0, 0, 1], 0).into(), shared: Arc::new(Shared::default()), task: None };
        upstream.open().await?;
        Ok(upstream)
    }

    /// Listens again after [`Self::close`], at the same address.
    pub async fn open(&mut self) -> anyhow::Result<()> {
        let listener = TcpListener::bind(self.address).await.context("listening for the test's upstream")?;
        self.address = listener.local_addr()?;
        let shared = Arc::clone(&self.shared);
        self.task = Some(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let Ok((stream, _)) = accepted else { break };
                        let shared = Arc::clone(&shared);
                        connections.spawn(async move { connection::serve(stream, &shared).await });
                    }
                    Some(_ended) = connections.join_next() => {}
                }
            }
        }));
        Ok(())
    }

    /// Closes the port and all connections: whoever connects is refused.
    pub async fn close(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _aborted = task.await;
        }
    }

    /// `127.0.0.1:PORT`.
    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds an image, under a tag or by digest only.
    pub fn push(&self, repository: &str, tag: impl Into<Option<&'static str>>, image: &Image) {
        lock(&self.shared.repositories).push(repository, tag.into(), image);
    }

    pub fn push_blob(&self, repository: &str, blob: &Blob) {
        lock(&self.shared.repositories).push_blob(repository, blob);
    }

    pub fn untag(&self, repository: &str, tag: &str) {
        lock(&self.shared.repositories).untag(repository, tag);
    }

    /// Removes a repository with all that is in it.
    pub fn remove(&self, repository: &str) {
        lock(&self.shared.repositories).remove(repository);
    }

    /// Does something wrong. Of several faults for one request, the one that was added first happens.
    pub fn fault(&self, on: On, fault: Fault) {
        lock(&self.shared.faults).push((on, fault));
    }

    /// Does everything right again.
    pub fn heal(&self) {
        lock(&self.shared.faults).clear();
    }

    pub fn require(&self, auth: impl Into<Option<Auth>>) {
        lock(&self.shared.settings).auth = auth.into();
    }

    /// Makes all tokens that were given out invalid.
    pub fn forget_tokens(&self) {
        lock(&self.shared.tokens).clear();
    }

    /// Sends all bodies of all connections together at so many bytes a second.
    pub fn shape(&self, bytes_per_second: impl Into<Option<u64>>) {
        lock(&self.shared.settings).bytes_per_second = bytes_per_second.into();
    }

    /// Answers requests for referrers like a registry that does not know them.
    pub fn without_referrers(&self) {
        lock(&self.shared.settings).no_referrers = true;
    }

    /// Answers requests for blobs with a redirect to the same path at this URL.
    pub fn redirect_blobs(&self, to: impl Into<Option<String>>) {
        lock(&self.shared.settings).blobs_at = to.into();
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.record.all()
    }

    pub fn forget_requests(&self) {
        self.shared.record.clear();
    }

    /// How many requests of a method had this text in their path or query.
    pub fn count(&self, method: &str, path: impl ToString) -> usize {
        let path = path.to_string();
        let meant = |seen: &&Seen| seen.method == method && seen.target.contains(&path);
        self.requests().iter().filter(meant).count()
    }

    /// How many bytes of this blob went out, in all answers together.
    pub fn bytes_of(&self, digest: Digest) -> u64 {
        let part = format!("/blobs/{digest}");
        self.requests().iter().filter(|seen| seen.target.contains(&part)).map(Seen::bytes_sent).sum()
    }

    /// How many bytes of all blobs went out.
    pub fn blob_bytes(&self) -> u64 {
        self.requests().iter().filter(|seen| seen.target.contains("/blobs/")).map(Seen::bytes_sent).sum()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl Shared {
    /// The fault for this request, if one is due.
    pub fn fault(&self, method: &str, target: &str) -> Option<Fault> {
        lock(&self.faults).iter_mut().find_map(|(on, fault)| on.takes(method, target).then(|| fault.clone()))
    }

    pub fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    /// Waits until the uplink, which all connections share, has room for so many bytes.
    pub async fn pace(&self, bytes: u64) {
        let Some(rate) = self.settings().bytes_per_second else { return };
        let start = {
            let mut free_at = lock(&self.uplink);
            let start = free_at.unwrap_or_else(Instant::now).max(Instant::now());
            *free_at = Some(start + span(bytes, rate));
            start
        };
        tokio::time::sleep_until(start.into()).await;
    }
}

/// How long so many bytes take.
pub(super) fn span(bytes: u64, per_second: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / per_second.max(1))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
