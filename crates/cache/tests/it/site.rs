//! One upstream, one cache in front of it, and nodes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bailey_cache::config::UpstreamConfig;
use bailey_cache::{Bound, Config};
use bailey_oci::Digest;
use bailey_oci::freshness::{Freshness, Policy};
use bailey_testkit::registry::{Containerd, Http, Upstream};
use bytes::Bytes;
use tempfile::TempDir;

/// The registry that the upstream stands for.
pub const REGISTRY: &str = "registry.example";
/// Room for everything that is no test of the budget.
const BUDGET: u64 = 1 << 30;

pub struct Site {
    pub upstream: Upstream,
    pub cache: Bound,
    store: TempDir,
    bytes_max: u64,
}

/// What a node was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Told {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Site {
    /// A cache that serves [`REGISTRY`] and asks it about tags each time.
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// The same with something else in its configuration.
    pub async fn with(tweak: impl FnOnce(&mut Config)) -> Self {
        Self::sized(BUDGET, tweak).await
    }

    /// The same with a budget of so many bytes.
    pub async fn sized(bytes_max: u64, tweak: impl FnOnce(&mut Config)) -> Self {
        let upstream = Upstream::start().await.unwrap();
        let store = tempfile::tempdir().unwrap();
        let cache = start(&upstream, store.path(), bytes_max, tweak).await;
        Self { upstream, cache, store, bytes_max }
    }

    /// Stops the cache and starts it again on the same store.
    pub async fn restarted(self, tweak: impl FnOnce(&mut Config)) -> Self {
        let Self { upstream, cache, store, bytes_max } = self;
        // A cache that had to cut answers off says so, and has stopped all the same.
        let _stopped = cache.stop().await;
        let cache = start(&upstream, store.path(), bytes_max, tweak).await;
        Self { upstream, cache, store, bytes_max }
    }

    /// Stops the cache, does something to its store, and starts it again.
    pub async fn restarted_after(self, change: impl FnOnce(&Path)) -> Self {
        let Self { upstream, cache, store, bytes_max } = self;
        cache.stop().await.unwrap();
        change(store.path());
        let cache = start(&upstream, store.path(), bytes_max, |_| {}).await;
        Self { upstream, cache, store, bytes_max }
    }

    /// Starts a cache on what a crash at this moment would leave, while this one goes on.
    pub async fn crashed(&self) -> (Bound, TempDir) {
        let left = tempfile::tempdir().unwrap();
        copy(self.store.path(), left.path());
        let cache = start(&self.upstream, left.path(), self.bytes_max, |_| {}).await;
        (cache, left)
    }

    /// A node whose containerd names [`REGISTRY`].
    pub fn node(&self) -> Containerd {
        node(&self.cache)
    }

    pub fn http(&self) -> Http {
        Http::new(self.cache.listen)
    }

    /// What the cache answers to a request for this path of [`REGISTRY`], which has to be complete.
    pub async fn ask(&self, method: &str, rest: &str) -> Told {
        self.ask_with(method, rest, &[]).await
    }

    pub async fn ask_with(&self, method: &str, rest: &str, headers: &[(&str, &str)]) -> Told {
        ask(&self.http(), method, &format!("/v2/{REGISTRY}/{rest}"), headers).await
    }

    /// What the upstream itself answers.
    pub async fn ask_upstream(&self, method: &str, rest: &str) -> Told {
        let http = Http::new(self.upstream.authority().parse().unwrap());
        ask(&http, method, &format!("/v2/{rest}"), &[]).await
    }

    pub fn store(&self) -> &Path {
        self.store.path()
    }

    /// Where a blob lies in the store.
    pub fn file(&self, digest: Digest) -> PathBuf {
        let hex = digest.hex();
        self.store().join("blobs").join(digest.algorithm().as_str()).join(&hex[..2]).join(&hex)
    }

    /// Whether the blob is in the store, and right.
    pub fn holds(&self, digest: Digest) -> bool {
        std::fs::read(self.file(digest)).is_ok_and(|bytes| Digest::of(digest.algorithm(), &bytes) == digest)
    }
}

/// A cache in front of an upstream.
pub async fn start(
    upstream: &Upstream,
    store: &Path,
    bytes_max: u64,
    tweak: impl FnOnce(&mut Config),
) -> Bound {
    let upstream = UpstreamConfig::anonymous(REGISTRY.parse().unwrap(), upstream.url().parse().unwrap());
    let mut config = Config::local(store, bytes_max, vec![upstream]);
    config.freshness = Policy { otherwise: Freshness::For(Duration::ZERO), ..Policy::default() };
    tweak(&mut config);
    bailey_cache::start(config).await.unwrap()
}

pub fn node(cache: &Bound) -> Containerd {
    Containerd::new(cache.listen).of(REGISTRY)
}

pub async fn ask(http: &Http, method: &str, target: &str, headers: &[(&str, &str)]) -> Told {
    let answer = http.send(method, target, headers).await.unwrap();
    let (status, headers) = (answer.status, answer.headers.clone());
    Told { status, headers, body: answer.bytes().await.unwrap() }
}

/// How many bytes the files below some folders take.
pub fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        // It went while it was looked at.
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy(&entry.path(), &target),
            _ => drop(std::fs::copy(entry.path(), target)),
        }
    }
}

/// Waits until something is so; what never becomes so fails the test.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}
