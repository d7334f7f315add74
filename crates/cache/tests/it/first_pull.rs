//! The first pull of an image: what it fetches, how often, and what those who wait for it see.

use std::time::Duration;

use bailey_oci::Algorithm;
use bailey_testkit::registry::{Containerd, Flavour, Image, Layer};
use tokio::task::JoinSet;

use crate::site::{REGISTRY, Site, until};

const LAYER: u64 = 800_000;

fn image(seed: u64) -> Image {
    Image::new(Flavour::Oci, seed, &[Layer::random(seed, LAYER)])
}

async fn all(nodes: impl Iterator<Item = Containerd>, tag: &'static str) -> usize {
    let mut pulls = JoinSet::new();
    for node in nodes {
        pulls.spawn(async move { node.pull("acme/app", tag).await.unwrap() });
    }
    pulls.join_all().await.len()
}

/// The manifest was answered only after the whole image had been copied, and clients gave up waiting.
#[tokio::test]
async fn manifest_and_first_bytes_come_before_the_layer_is_fetched() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.shape(2_000_000);
    let layer = image.layers()[0].digest;
    let (digest, ..) = site.node().resolve("acme/app", "v1").await.unwrap();
    assert_eq!((digest, site.upstream.blob_bytes()), (image.digest(), 0));
    let mut answer = site.http().get(&format!("/v2/{REGISTRY}/acme/app/blobs/{layer}")).await.unwrap();
    answer.piece().await.unwrap();
    assert!(site.upstream.bytes_of(layer) < LAYER);
}

/// A herd of clients became a herd at the upstream.
#[tokio::test]
async fn a_hundred_nodes_at_once_cost_the_upstream_one_fetch_of_each_thing() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.shape(4_000_000);
    assert_eq!(all((0..100).map(|_| site.node()), "v1").await, 100);
    for blob in &image.blobs {
        assert_eq!(site.upstream.count("GET", blob.digest), 1);
        assert_eq!(site.upstream.bytes_of(blob.digest), blob.size());
    }
}

/// Parallel chunks, each an open-ended range that is left after its part, were as many fetches.
#[tokio::test]
async fn nodes_that_fetch_in_chunks_cost_one_fetch_too() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.shape(4_000_000);
    assert_eq!(all((1..9).map(|n| site.node().in_chunks(n * 50_000)), "v1").await, 8);
    assert_eq!(site.upstream.bytes_of(image.layers()[0].digest), LAYER);
}

/// When the first client went away, those who waited for it hung for ever.
#[tokio::test]
async fn a_leader_that_leaves_takes_nothing_from_those_who_wait() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.shape(2_000_000);
    let layer = image.layers()[0].digest;
    let mut leader = site.http().get(&format!("/v2/{REGISTRY}/acme/app/blobs/{layer}")).await.unwrap();
    leader.piece().await.unwrap();
    let waiting = all((0..50).map(|_| site.node()), "v1");
    let leave = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(leader);
    };
    let (count, ()) = tokio::join!(waiting, leave);
    assert_eq!(count, 50);
    assert_eq!(site.upstream.bytes_of(layer), LAYER);
    site.node().pull("acme/app", "v1").await.unwrap();
}

/// A lone client that left threw away what was fetched so far.
#[tokio::test]
async fn what_a_lone_client_began_is_finished_and_kept() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.shape(4_000_000);
    let layer = image.layers()[0].digest;
    let mut lone = site.http().get(&format!("/v2/{REGISTRY}/acme/app/blobs/{layer}")).await.unwrap();
    lone.piece().await.unwrap();
    drop(lone);
    until("the blob is kept", || site.holds(layer)).await;
    assert_eq!(site.upstream.bytes_of(layer), LAYER);
}

/// Every tag downloaded everything again, shared base layers too.
#[tokio::test]
async fn a_second_tag_costs_what_is_new_in_it() {
    let site = Site::new().await;
    let base = Layer::random(1, LAYER);
    let (one, two) = (
        Image::new(Flavour::Oci, 1, &[base, Layer::random(2, 3_000)]),
        Image::new(Flavour::Oci, 2, &[base, Layer::random(3, 4_000)]),
    );
    site.upstream.push("acme/app", "one", &one);
    site.upstream.push("acme/other", "two", &two);
    site.node().pull("acme/app", "one").await.unwrap();
    site.upstream.forget_requests();
    site.node().pull("acme/other", "two").await.unwrap();
    let new = two.blobs[0].size() + two.layers()[1].size();
    assert_eq!(site.upstream.blob_bytes(), new);
}

/// All platforms were fetched and stored for the one that was wanted.
#[tokio::test]
async fn of_an_index_only_the_platform_that_is_pulled_is_fetched() {
    let site = Site::new().await;
    let platforms: Vec<_> = (1..7).map(image).collect();
    let index = Image::index(Flavour::Oci, &platforms);
    site.upstream.push("acme/app", "v1", &index);
    site.node().pull("acme/app", "v1").await.unwrap();
    assert_eq!(site.upstream.blob_bytes(), platforms[0].blob_bytes());
    for other in &platforms[1..] {
        assert_eq!(site.upstream.count("GET", other.digest()), 0);
    }
}

#[tokio::test]
async fn a_warm_pull_by_digest_asks_the_upstream_nothing() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.node().pull("acme/app", "v1").await.unwrap();
    until("all is kept", || image.blobs.iter().all(|blob| site.holds(blob.digest))).await;
    site.upstream.forget_requests();
    site.node().pull_digest("acme/app", image.digest()).await.unwrap();
    assert!(site.upstream.requests().is_empty(), "{:?}", site.upstream.requests());
}

/// Memory grew with the layer: here it is written and read in pieces, and nobody keeps it whole.
#[tokio::test]
async fn a_large_sparse_layer_goes_to_several_nodes_at_once() {
    let site = Site::new().await;
    let image = Image::new(Flavour::Oci, 1, &[Layer::sparse(64 << 20)]);
    site.upstream.push("acme/app", "v1", &image);
    assert_eq!(all((0..4).map(|_| site.node()), "v1").await, 4);
    let layer = image.layers()[0].digest;
    assert_eq!(site.upstream.bytes_of(layer), 64 << 20);
    let answer = site.http().get(&format!("/v2/{REGISTRY}/acme/app/blobs/{layer}")).await.unwrap();
    assert_eq!(answer.hashed(Algorithm::Sha256).await.0, layer);
}
