//! Images that must be there whatever happens: fetched ahead, kept, found again after a restart.

use bailey_cache::cache::Pinned;
use bailey_cache::control::{ControlError, Request, ask};
use bailey_oci::{Image as Name, Target};
use bailey_testkit::registry::{Flavour, Image, Layer};

use crate::site::{REGISTRY, Site, until};

fn image(seed: u64) -> Image {
    Image::new(Flavour::Oci, seed, &[Layer::random(seed, 300_000), Layer::random(seed + 100, 1000)])
}

fn name(rest: &str) -> Name {
    format!("{REGISTRY}/{rest}").parse().unwrap()
}

async fn pin(site: &Site, images: &[&str]) -> Result<Vec<Pinned>, ControlError> {
    let images = images.iter().map(|rest| name(rest)).collect();
    ask(site.store(), Request::Pin { images, platforms: vec![Target::usual()] }).await
}

async fn list(site: &Site) -> Vec<Pinned> {
    ask(site.store(), Request::List).await.unwrap()
}

async fn until_ready(site: &Site) {
    for _ in 0..1500 {
        if list(site).await.iter().all(|pin| pin.ready) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("never ready: {:?}", list(site).await);
}

#[tokio::test]
async fn a_pinned_image_is_fetched_ahead_and_served_without_its_registry_after_a_restart() {
    let mut site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    pin(&site, &["acme/app:v1"]).await.unwrap();
    until_ready(&site).await;
    assert_eq!(site.upstream.bytes_of(image.layers()[0].digest), 300_000);
    let mut site = {
        site.upstream.close().await;
        site.restarted(|_| {}).await
    };
    until_ready(&site).await;
    let pulled = site.node().pull("acme/app", "v1").await.unwrap();
    assert_eq!(pulled.digest, image.digest());
    let shown =
        crate::site::ask(&bailey_testkit::registry::Http::new(site.cache.admin), "GET", "/", &[]).await;
    assert!(shown.text().contains("1 of 1 are here"), "{}", shown.text());
    assert!(shown.text().contains("<td>registry.example/acme/app:v1</td>"), "{}", shown.text());
    site.upstream.close().await;
}

/// Caches that evict by age alone lose what runs everywhere and is pulled nowhere.
#[tokio::test]
async fn a_pinned_image_is_never_evicted_and_an_unpinned_one_is() {
    let site = Site::sized(1_500_000, |_| {}).await;
    let kept = image(1);
    site.upstream.push("acme/app", "v1", &kept);
    pin(&site, &["acme/app:v1"]).await.unwrap();
    until_ready(&site).await;
    let flood = async |from: u64| {
        for seed in from..from + 8 {
            let other = Image::new(Flavour::Oci, seed, &[Layer::random(seed, 400_000)]);
            site.upstream.push(&format!("acme/other{seed}"), "v1", &other);
            site.node().pull(&format!("acme/other{seed}"), "v1").await.unwrap();
        }
    };
    flood(200).await;
    assert!(kept.blobs.iter().all(|blob| site.holds(blob.digest)), "all of it stays");
    ask(site.store(), Request::Unpin { images: vec![name("acme/app:v1")] }).await.unwrap();
    assert!(list(&site).await.is_empty());
    flood(300).await;
    assert!(!site.holds(kept.layers()[0].digest), "nobody asked for it again");
}

#[tokio::test]
async fn what_got_lost_of_a_pinned_image_is_fetched_again_at_the_next_start() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    pin(&site, &["acme/app:v1"]).await.unwrap();
    until_ready(&site).await;
    let layer = image.layers()[0].digest;
    let lost = site.file(layer);
    let site = site.restarted_after(|_| std::fs::remove_file(lost).unwrap()).await;
    until_ready(&site).await;
    assert!(site.holds(layer));
}

#[tokio::test]
async fn of_an_index_only_the_wanted_platforms_are_fetched() {
    let site = Site::new().await;
    let (first, second) = (image(1), image(2));
    let index = Image::index(Flavour::Oci, &[first.clone(), second.clone()]);
    site.upstream.push("acme/app", "v1", &index);
    pin(&site, &["acme/app:v1"]).await.unwrap();
    until_ready(&site).await;
    let here = |image: &Image| image.layers().iter().filter(|layer| site.holds(layer.digest)).count();
    assert_eq!((here(&first), here(&second)), (2, 0), "the index lists amd64 first");
    let pins = list(&site).await;
    assert_eq!(pins[0].digest, Some(index.digest()));
}

#[tokio::test]
async fn images_of_unknown_registries_are_refused_and_missing_ones_say_why() {
    let site = Site::new().await;
    let image = "other.example/acme/app:v1".parse().unwrap();
    let refused =
        ask(site.store(), Request::Pin { images: vec![image], platforms: vec![Target::usual()] }).await;
    assert!(refused.unwrap_err().to_string().contains("does not serve"));
    pin(&site, &["acme/none:v1"]).await.unwrap();
    for _ in 0..1500 {
        if list(&site).await[0].problem.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let pins = list(&site).await;
    assert!(!pins[0].ready && pins[0].problem.is_some(), "{pins:?}");
    // It is there later on: pins are tried again.
    let image = self::image(3);
    site.upstream.push("acme/none", "v1", &image);
    pin(&site, &["acme/none:v1"]).await.unwrap();
    until_ready(&site).await;
}

#[tokio::test]
async fn pins_of_the_configuration_come_and_go_with_it() {
    let site = Site::with(|_| {}).await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    let site = site.restarted(|config| config.pinned_images = vec![name("acme/app:v1")]).await;
    until("the image is here", || site.holds(image.layers()[0].digest)).await;
    let refused = ask(site.store(), Request::Unpin { images: vec![name("acme/app:v1")] }).await;
    assert!(refused.unwrap_err().to_string().contains("pinned by the configuration"));
    let site = site.restarted(|_| {}).await;
    assert!(list(&site).await.is_empty());
}

#[tokio::test]
async fn images_are_pinned_in_a_cache_that_does_not_run() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    let folder = site.store().to_owned();
    let site = site
        .restarted_after(move |_| {
            let images = vec![name("acme/app:v1")];
            let request = Request::Pin { images, platforms: vec![Target::usual()] };
            let asked = std::thread::spawn(move || {
                tokio::runtime::Runtime::new().unwrap().block_on(ask(&folder, request)).unwrap()
            });
            assert!(!asked.join().unwrap()[0].ready);
        })
        .await;
    until_ready(&site).await;
    assert!(site.holds(image.layers()[0].digest));
}
