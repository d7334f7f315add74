//! A cache behind a cache: that of a workload cluster asks the one of the management cluster.

use bailey_cache::Bound;
use bailey_testkit::registry::{Containerd, Flavour, Http, Image, Layer};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::registry;
use crate::site::{REGISTRY, Site, ask, node, start, until};

fn image(seed: u64) -> Image {
    Image::new(Flavour::Oci, seed, &[Layer::random(seed, 300_000)])
}

/// A cache below another, with a store of its own.
async fn below(site: &Site) -> (Bound, TempDir) {
    let store = tempfile::tempdir().unwrap();
    let parent = format!("http://{}", site.cache.listen);
    let cache = start(&site.upstream, store.path(), 1 << 30, |config| {
        config.parent = Some(parent.parse().unwrap());
        // Whoever asks the upstream past the parent fails.
        config.upstreams[0].url = "http://127.0.0.1:1".parse().unwrap();
    })
    .await;
    (cache, store)
}

/// The lower cache asked by HEAD for a blob, and the upper one said 404 for what it had not fetched yet.
#[tokio::test]
async fn images_are_pulled_through_two_caches_cold_and_warm() {
    let site = Site::new().await;
    let index = Image::index(Flavour::Docker, &[image(1), image(2)]);
    site.upstream.push("acme/app", "v1", &index);
    let (lower, _store) = below(&site).await;
    let http = Http::new(lower.listen);
    let blob = format!("/v2/{REGISTRY}/acme/app/blobs/{}", index.blobs[1].digest);
    let head = ask(&http, "HEAD", &blob, &[]).await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("300000")));
    for round in ["cold", "warm"] {
        for node in [node(&lower), node(&lower).in_chunks(70_000)] {
            let pulled = node.pull("acme/app", "v1").await.unwrap();
            assert_eq!(
                (pulled.digest, &pulled.media_type),
                (index.digest(), &index.root().media_type),
                "{round}"
            );
        }
    }
    assert_eq!(site.upstream.count("HEAD", "/blobs/"), 0);
    let missing = ask(&http, "GET", &format!("/v2/{REGISTRY}/acme/app/manifests/none"), &[]).await;
    assert_eq!(missing.status, 404);
}

#[tokio::test]
async fn many_clusters_at_once_cost_the_upstream_one_fetch() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.shape(2_000_000);
    let mut lower = Vec::new();
    for _ in 0..5 {
        lower.push(below(&site).await);
    }
    let mut pulls = JoinSet::new();
    for n in 0..25 {
        let node = node(&lower[n % 5].0);
        pulls.spawn(async move { node.pull("acme/app", "v1").await.unwrap() });
    }
    assert_eq!(pulls.join_all().await.len(), 25);
    assert_eq!(site.upstream.bytes_of(image.layers()[0].digest), 300_000);
}

#[tokio::test]
async fn the_lower_cache_serves_what_it_has_while_the_upper_one_is_away() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.push("acme/app", "new", &self::image(2));
    let (lower, store) = below(&site).await;
    node(&lower).pull("acme/app", "v1").await.unwrap();
    let held = |digest: bailey_oci::Digest| {
        let hex = digest.hex();
        store.path().join("blobs/sha256").join(&hex[..2]).join(hex).exists()
    };
    until("all is kept", || image.blobs.iter().all(|blob| held(blob.digest))).await;
    site.cache.stop().await.unwrap();
    for _ in 0..3 {
        assert_eq!(node(&lower).pull("acme/app", "v1").await.unwrap().digest, image.digest());
        let cold =
            ask(&Http::new(lower.listen), "GET", &format!("/v2/{REGISTRY}/acme/app/manifests/new"), &[])
                .await;
        assert_eq!((cold.status, cold.header("www-authenticate")), (503, None));
    }
}

/// What the upper cache cannot get is not missing for the lower one either.
#[tokio::test]
async fn an_outage_above_stays_an_outage_below() {
    let mut site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    let (lower, _store) = below(&site).await;
    site.upstream.close().await;
    let told =
        ask(&Http::new(lower.listen), "GET", &format!("/v2/{REGISTRY}/acme/app/manifests/v1"), &[]).await;
    assert_eq!(told.status, 503);
    site.upstream.open().await.unwrap();
}

/// Other caches above and below: the distribution registry asks by HEAD for each blob before it fetches it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_cache_stands_above_or_below() {
    let folder = tempfile::tempdir().unwrap();
    let mut site = Site::with(|config| config.default_upstream = Some(REGISTRY.parse().unwrap())).await;
    let (below_us, above_us) = (folder.path().join("below"), folder.path().join("above"));
    for folder in [&below_us, &above_us] {
        std::fs::create_dir(folder).unwrap();
    }
    let (one, two) = (Image::index(Flavour::Docker, &[image(1)]), image(2));
    site.upstream.push("acme/app", "one", &one);
    site.upstream.push("acme/app", "two", &two);

    let cache = format!("http://{}", site.cache.listen);
    let (_below, at) = registry::start(&below_us, Some(&cache)).await;
    for round in ["cold", "warm"] {
        let pulled = Containerd::new(at).pull("acme/app", "one").await;
        assert_eq!(pulled.map(|pulled| pulled.digest), Ok(one.digest()), "below, {round}");
    }
    assert_eq!(site.upstream.count("HEAD", "/blobs/"), 0);

    let (_above, at) = registry::start(&above_us, Some(&site.upstream.url())).await;
    site = site.restarted(|config| config.upstreams[0].url = format!("http://{at}").parse().unwrap()).await;
    for round in ["cold", "warm"] {
        let pulled = site.node().pull("acme/app", "two").await;
        assert_eq!(pulled.map(|pulled| pulled.digest), Ok(two.digest()), "above, {round}");
    }
}
