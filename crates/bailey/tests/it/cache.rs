//! The image cache as a process: killed at any moment, asked to end, and watched for what it needs.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bailey_oci::Digest;
use bailey_testkit::Process;
use bailey_testkit::registry::{BodyEnd, Containerd, Flavour, Http, Image, Layer, Upstream};
use tokio::task::JoinSet;

use crate::operator::until;
use crate::program;

const REGISTRY: &str = "registry.example";

pub struct Cache {
    pub process: Process,
    pub listen: SocketAddr,
    admin: SocketAddr,
}

/// Starts a cache of some folder and waits until it says where it listens.
fn start(folder: &Path, upstream: &Upstream) -> Cache {
    start_at(folder, upstream, ([127, 0, 0, 1], 0).into())
}

/// The same at an address that is known before.
pub fn start_at(folder: &Path, upstream: &Upstream, listen: SocketAddr) -> Cache {
    let log = folder.join("cache.log");
    // What an earlier process said is none of this one's.
    let _none = std::fs::remove_file(&log);
    let store = folder.join("store").display().to_string();
    let upstream = format!("{REGISTRY}={}", upstream.url());
    let arguments = [
        "cache",
        "--listen",
        &listen.to_string(),
        "--admin",
        "127.0.0.1:0",
        "--budget",
        "2GiB",
        "--store",
        &store,
        "--upstream",
        &upstream,
    ];
    let mut process = Process::start("cache", &program(), arguments, folder).unwrap();
    let ready: serde_json::Value = until("a line with addresses", || {
        process.check().unwrap();
        let log = process.log();
        log.lines().find_map(|line| serde_json::from_str(line).ok())
    });
    let address = |name: &str| ready[name].as_str().unwrap().parse().unwrap();
    Cache { process, listen: address("listen"), admin: address("admin") }
}

impl Cache {
    fn node(&self) -> Containerd {
        Containerd::new(self.listen).of(REGISTRY)
    }

    /// The most memory that the process had, in bytes.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

/// Every file that lies where a blob belongs.
fn blobs(store: &Path) -> Vec<(Digest, Vec<u8>)> {
    let mut found = Vec::new();
    for shard in std::fs::read_dir(store.join("blobs/sha256")).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(shard.path()).unwrap().flatten() {
            let digest = format!("sha256:{}", file.file_name().to_string_lossy()).parse().unwrap();
            found.push((digest, std::fs::read(file.path()).unwrap()));
        }
    }
    found
}

fn fills(store: &Path) -> usize {
    std::fs::read_dir(store.join("fills")).map_or(0, |files| files.flatten().count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_that_is_killed_at_any_moment_starts_again_without_a_wrong_byte() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let upstream = Upstream::start().await.unwrap();
    let tags = ["a", "b", "c", "d"];
    let images: Vec<_> = (1..5)
        .map(|n| Image::new(Flavour::Oci, n, &[Layer::random(n, 400_000), Layer::random(n + 10, 150_000)]))
        .collect();
    for (tag, image) in tags.iter().zip(&images) {
        upstream.push("acme/app", *tag, image);
    }
    upstream.shape(3_000_000);
    let mut cut_short = 0;
    for round in 0..8 {
        let mut cache = start(folder.path(), &upstream);
        assert_eq!(fills(&store), 0, "leftovers of round {round}");
        let mut pulls = JoinSet::new();
        for tag in tags {
            let node = cache.node();
            pulls.spawn(async move { node.pull("acme/app", tag).await });
        }
        tokio::time::sleep(Duration::from_millis(20 + 60 * round)).await;
        cache.process.kill();
        cut_short += pulls.join_all().await.iter().filter(|pull| pull.is_err()).count();
        for (digest, bytes) in blobs(&store) {
            assert_eq!(Digest::of(digest.algorithm(), &bytes), digest, "round {round}");
        }
    }
    assert!(cut_short > 0, "no round was cut short, so none tested anything");
    upstream.shape(None);
    let cache = start(folder.path(), &upstream);
    for (tag, image) in tags.iter().zip(&images) {
        assert_eq!(cache.node().pull("acme/app", tag).await.unwrap().digest, image.digest());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_under_way_is_finished_before_the_cache_ends() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start().await.unwrap();
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, 600_000)]);
    upstream.push("acme/app", "v1", &image);
    upstream.shape(1_000_000);
    let mut cache = start(folder.path(), &upstream);
    let layer = image.layers()[0].digest;
    let path = format!("/v2/{REGISTRY}/acme/app/blobs/{layer}");
    let mut answer = Http::new(cache.listen).get(&path).await.unwrap();
    let first = answer.piece().await.unwrap();
    let ended = tokio::task::spawn_blocking(move || cache.process.terminate().unwrap());
    let (rest, end) = answer.body().await;
    assert_eq!((first.len() + rest.len(), end), (600_000, BodyEnd::Complete));
    assert!(ended.await.unwrap().success());
    assert_eq!(fills(&folder.path().join("store")), 0);
}

/// Memory that grew with the layer, or with the number of nodes, ended other caches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_grows_neither_with_the_layer_nor_with_the_nodes() {
    const LAYER: u64 = 256 << 20;
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start().await.unwrap();
    let image = Image::new(Flavour::Oci, 1, &[Layer::sparse(LAYER)]);
    upstream.push("acme/app", "v1", &image);
    let cache = start(folder.path(), &upstream);
    let path = format!("/v2/{REGISTRY}/acme/app/blobs/{}", image.layers()[0].digest);
    let at_start = cache.memory();
    let mut nodes = JoinSet::new();
    for _ in 0..12 {
        let (http, path) = (Http::new(cache.listen), path.clone());
        nodes.spawn(async move {
            let mut answer = http.get(&path).await.unwrap();
            let mut length = 0;
            while let Ok(piece) = answer.piece().await {
                length += piece.len() as u64;
            }
            length
        });
    }
    assert_eq!(nodes.join_all().await, [LAYER; 12]);
    assert_eq!(upstream.blob_bytes(), LAYER);
    let most = cache.memory();
    println!("{} MiB at the start, {} MiB at most", at_start >> 20, most >> 20);
    assert!(most < 64 << 20, "{} MiB", most >> 20);
    assert!(most < LAYER / 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_admin_port_tells_what_the_cache_did() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start().await.unwrap();
    upstream.push("acme/app", "v1", &Image::new(Flavour::Oci, 1, &[Layer::random(1, 10_000)]));
    let cache = start(folder.path(), &upstream);
    for _ in 0..2 {
        cache.node().pull("acme/app", "v1").await.unwrap();
    }
    let admin = Http::new(cache.admin);
    for path in ["/livez", "/readyz"] {
        assert_eq!(admin.get(path).await.unwrap().status, 200, "{path}");
    }
    let metrics = admin.get("/metrics").await.unwrap().bytes().await.unwrap();
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    assert!(metrics.contains("bailey_build_info") && metrics.contains("bailey_cache_"), "{metrics}");
    let page = admin.get("/").await.unwrap();
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let page = page.bytes().await.unwrap();
    assert!(String::from_utf8_lossy(&page).contains(REGISTRY));
}
