//! A cache that was killed: what is left on the disk holds nobody up, and no byte of it is wrong.

use bailey_testkit::registry::{Flavour, Image, Layer};

use crate::site::{REGISTRY, Site, bytes_below, node, until};

const SIZE: u64 = 600_000;

fn image(seed: u64) -> Image {
    Image::new(Flavour::Oci, seed, &[Layer::random(seed, SIZE)])
}

/// After a crash in the middle of a fetch, some caches waited for its leftovers, for ever.
#[tokio::test]
async fn a_crash_in_the_middle_of_a_fetch_leaves_nothing_that_is_in_the_way() {
    let site = Site::new().await;
    let (done, half) = (image(1), image(2));
    site.upstream.push("acme/app", "done", &done);
    site.upstream.push("acme/app", "half", &half);
    site.upstream.push("acme/other", "half", &half);
    site.node().pull("acme/app", "done").await.unwrap();
    until("it is kept", || site.holds(done.layers()[0].digest)).await;
    site.upstream.shape(600_000);
    let layer = half.layers()[0].digest;
    let path = format!("/v2/{REGISTRY}/acme/app/blobs/{layer}");
    let mut reader = site.http().get(&path).await.unwrap();
    reader.piece().await.unwrap();
    assert!(bytes_below(&site.store().join("fills")) > 0);

    let (mut crashed, left) = site.crashed().await;
    site.upstream.shape(None);
    assert!(crashed.opened.fills_swept >= 1, "{:?}", crashed.opened);
    assert_eq!(bytes_below(&left.path().join("fills")), 0);
    for (repository, tag, image) in
        [("acme/app", "done", &done), ("acme/app", "half", &half), ("acme/other", "half", &half)]
    {
        let pulled = node(&crashed).pull(repository, tag).await.unwrap();
        assert_eq!(pulled.digest, image.digest());
    }
    until("nothing is half done", || bytes_below(&left.path().join("fills")) == 0).await;
    crashed.stop().await.unwrap();
    crashed = crate::site::start(&site.upstream, left.path(), 1 << 30, |_| {}).await;
    assert_eq!((crashed.opened.fills_swept, crashed.opened.damaged), (0, 0));
    crashed.stop().await.unwrap();
}

#[tokio::test]
async fn a_stop_in_the_middle_of_a_fetch_leaves_no_half_file() {
    let mut site = Site::with(|config| config.grace = std::time::Duration::from_millis(100)).await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.shape(600_000);
    let layer = image.layers()[0].digest;
    let mut reader = site.http().get(&format!("/v2/{REGISTRY}/acme/app/blobs/{layer}")).await.unwrap();
    reader.piece().await.unwrap();
    drop(reader);
    site = site.restarted(|_| {}).await;
    assert_eq!((site.cache.opened.fills_swept, bytes_below(&site.store().join("fills"))), (0, 0));
    site.upstream.shape(None);
    site.node().pull("acme/app", "v1").await.unwrap();
}

/// Metadata that could not be rebuilt made all blobs unknown.
#[tokio::test]
async fn a_lost_or_damaged_index_costs_no_blob() {
    for damage in ["lost", "damaged"] {
        let mut site = Site::new().await;
        let image = image(1);
        site.upstream.push("acme/app", "v1", &image);
        site.node().pull("acme/app", "v1").await.unwrap();
        until("all is kept", || image.blobs.iter().all(|blob| site.holds(blob.digest))).await;
        site = site
            .restarted_after(|store| {
                let index = store.join("index.redb");
                if damage == "lost" {
                    std::fs::remove_file(index).unwrap();
                } else {
                    let mut bytes = std::fs::read(&index).unwrap();
                    for byte in bytes.iter_mut().step_by(97) {
                        *byte ^= 0x5a;
                    }
                    std::fs::write(index, bytes).unwrap();
                }
            })
            .await;
        site.upstream.forget_requests();
        let pulled = site.node().pull("acme/app", "v1").await.unwrap();
        assert_eq!(
            (pulled.digest, &pulled.media_type),
            (image.digest(), &image.root().media_type),
            "{damage}"
        );
        // The upstream is asked once whether it gives each blob out here, and for no more than that.
        assert!(site.upstream.blob_bytes() <= 2, "{damage}: {}", site.upstream.blob_bytes());
    }
}

/// A power cut may leave a name with fewer bytes than it had.
#[tokio::test]
async fn files_that_are_not_what_they_were_are_fetched_again() {
    let mut site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.node().pull("acme/app", "v1").await.unwrap();
    let layer = image.layers()[0].digest;
    until("it is kept", || site.holds(layer)).await;
    let file = site.file(layer);
    site = site.restarted_after(|_| std::fs::write(&file, b"short").unwrap()).await;
    assert_eq!(site.cache.opened.damaged, 1);
    site.node().pull("acme/app", "v1").await.unwrap();
    until("it is kept again", || site.holds(layer)).await;
}

#[tokio::test]
async fn a_store_that_is_in_use_is_not_opened_twice() {
    let site = Site::new().await;
    let upstream = bailey_cache::config::UpstreamConfig::anonymous(
        REGISTRY.parse().unwrap(),
        "http://127.0.0.1:1".parse().unwrap(),
    );
    let second =
        bailey_cache::start(bailey_cache::Config::local(site.store(), 1 << 30, vec![upstream])).await;
    assert!(second.unwrap_err().to_string().contains("in use"));
}
