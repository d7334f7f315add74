//! Whether what `bailey cache plan` says is what caches do: three clusters of five nodes, with each choice of caches.

use std::collections::BTreeSet;

use bailey_cache::Bound;
use bailey_oci::manifest::Descriptor;
use bailey_oci::plan::{Choice, Cluster, Outcome, Parts, Scene, plan};
use bailey_testkit::registry::{Containerd, Flavour, Http, Image, Layer, Upstream};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::site::{REGISTRY, ask, bytes_below, node, start, until};

const CLUSTERS: usize = 3;
const NODES: usize = 5;
const IMAGES: [&str; 4] = ["acme/a", "acme/b", "acme/c", "acme/d"];

/// Four images of one base.
fn images() -> Vec<Image> {
    let base = || Layer::random(1, 400_000);
    (0..IMAGES.len() as u64)
        .map(|n| Image::new(Flavour::Oci, 10 + n, &[base(), Layer::random(20 + n, 50_000 * (n + 1))]))
        .collect()
}

/// Which images a node pulls: clusters differ, and so do nodes.
fn wanted(cluster: usize, node: usize) -> Vec<usize> {
    if node.is_multiple_of(2) { vec![0, cluster + 1] } else { vec![cluster + 1] }
}

/// What is planned; blobs only, which the upstream counts exactly.
fn scene() -> Scene {
    let images = images();
    let name = |n: usize| format!("{REGISTRY}/{}:v1", IMAGES[n]).parse::<bailey_oci::Image>().unwrap();
    let parts =
        |image: &Image| -> Parts { image.blobs.iter().map(|blob| (blob.digest, blob.size())).collect() };
    let cluster = |cluster: usize| Cluster {
        name: cluster.to_string(),
        nodes: (0..NODES)
            .map(|node| wanted(cluster, node).into_iter().map(name).collect::<BTreeSet<_>>())
            .collect(),
        ..Cluster::default()
    };
    Scene {
        images: images.iter().enumerate().map(|(n, image)| (name(n), parts(image))).collect(),
        clusters: (0..CLUSTERS).map(cluster).collect(),
        ..Scene::default()
    }
}

async fn cache(upstream: &Upstream, parent: Option<&Bound>) -> (Bound, TempDir) {
    let store = tempfile::tempdir().unwrap();
    let parent = parent.map(|parent| format!("http://{}", parent.listen).parse().unwrap());
    (start(upstream, store.path(), 1 << 30, |config| config.parent = parent).await, store)
}

/// Pulls everything everywhere at once; gives the bytes of blobs that nodes took.
async fn pull_all(front: impl Fn(usize) -> Containerd) -> u64 {
    let mut pulls = JoinSet::new();
    for cluster in 0..CLUSTERS {
        for node in 0..NODES {
            let client = front(cluster);
            pulls.spawn(async move {
                // As in a node's own store, what is there is not pulled again.
                let mut seen = BTreeSet::new();
                let mut bytes = 0;
                for n in wanted(cluster, node) {
                    for blob in &images()[n].blobs {
                        let media_type = String::new();
                        let descriptor = Descriptor { digest: blob.digest, size: blob.size(), media_type };
                        if seen.insert(blob.digest) {
                            bytes += client.blob(IMAGES[n], &descriptor).await.unwrap().size;
                        }
                    }
                }
                bytes
            });
        }
    }
    pulls.join_all().await.into_iter().sum()
}

/// What caches of clusters fetched, each over its uplink.
async fn fetched(caches: &[(Bound, TempDir)]) -> u64 {
    let mut sum = 0;
    for (cache, _) in caches {
        let shown = ask(&Http::new(cache.admin), "GET", "/metrics", &[]).await.text();
        let name = format!("bailey_cache_fetched_bytes_total{{upstream=\"{REGISTRY}\"}} ");
        let line = shown.lines().find_map(|line| line.strip_prefix(&name)).unwrap();
        sum += line.parse::<u64>().unwrap();
    }
    sum
}

/// Registry, uplink and storage, as caches had it.
async fn measure(choice: Choice) -> (u64, u64, u64) {
    let upstream = Upstream::start().await.unwrap();
    for (image, name) in images().iter().zip(IMAGES) {
        upstream.push(name, "v1", image);
    }
    let shared = match choice {
        Choice::Shared | Choice::Tiers => Some(cache(&upstream, None).await),
        Choice::PerCluster | Choice::PerNode => None,
    };
    let mut own = Vec::new();
    if matches!(choice, Choice::PerCluster | Choice::Tiers) {
        for _ in 0..CLUSTERS {
            own.push(cache(&upstream, shared.as_ref().map(|(cache, _)| cache)).await);
        }
    }
    let direct = upstream.authority().parse().unwrap();
    let pulled = pull_all(|cluster| match (own.get(cluster), &shared) {
        (Some((cache, _)), _) | (None, Some((cache, _))) => node(cache),
        (None, None) => Containerd::new(direct),
    })
    .await;
    let stores: Vec<_> = own.iter().chain(&shared).map(|(_, store)| store.path().join("blobs")).collect();
    let stored = || stores.iter().map(|store| bytes_below(store)).sum::<u64>();
    // A blob is renamed into the store just after its last byte went out.
    until("all blobs are in the store", || {
        stores.iter().all(|store| bytes_below(&store.with_file_name("fills")) == 0)
    })
    .await;
    let uplink = if own.is_empty() { pulled } else { fetched(&own).await };
    (upstream.blob_bytes(), uplink, stored())
}

/// Redundancy that one model counts and another does not is how a choice looks better than it is.
#[tokio::test]
async fn what_is_planned_is_what_caches_and_nodes_move_and_keep() {
    for Outcome { choice, registry_bytes, uplink_bytes, storage_bytes, .. } in plan(&scene()) {
        let measured = measure(choice).await;
        println!(
            "{}: planned {:?}, measured {measured:?}",
            choice.title(),
            (registry_bytes, uplink_bytes, storage_bytes)
        );
        assert_eq!(measured, (registry_bytes, uplink_bytes, storage_bytes), "{choice:?}");
    }
}
