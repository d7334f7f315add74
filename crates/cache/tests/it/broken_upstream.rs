//! Upstreams that send too little, too much, or something else: none of it is kept, and no node takes it for right.

use std::time::Duration;

use bailey_oci::Digest;
use bailey_testkit::registry::{BodyEnd, Fault, Flavour, Image, Layer, On};

use crate::site::{REGISTRY, Site, bytes_below, until};

const SIZE: u64 = 500_000;
/// Where a body breaks: 70 %.
const AT: u64 = 350_000;

async fn site() -> (Site, Image, Digest) {
    let site = Site::new().await;
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, SIZE)]);
    site.upstream.push("acme/app", "v1", &image);
    let layer = image.layers()[0].digest;
    (site, image, layer)
}

/// Asks for the layer as a whole: the digest of what came, how much it was, and how it ended.
async fn fetch(site: &Site, layer: Digest) -> (u16, Digest, u64, BodyEnd) {
    let answer = site.http().get(&format!("/v2/{REGISTRY}/acme/app/blobs/{layer}")).await.unwrap();
    let status = answer.status;
    let (digest, length, end) = answer.hashed(layer.algorithm()).await;
    (status, digest, length, end)
}

/// Bytes were not hashed against the digest in the path: one bad answer poisoned a cache for good.
#[tokio::test]
async fn wrong_bytes_are_not_kept_and_no_node_gets_all_of_them() {
    let (site, image, layer) = site().await;
    for at in [0, AT, SIZE - 1] {
        site.upstream.fault(On::path(layer).once(), Fault::WrongByte(at));
        let (status, digest, length, end) = fetch(&site, layer).await;
        assert!(
            digest != layer && (end != BodyEnd::Complete || status != 200),
            "{at}: {status} {length} {end:?}"
        );
        assert!(!site.file(layer).exists(), "{at}");
        until("the fill is gone", || bytes_below(&site.store().join("fills")) == 0).await;
    }
    site.node().pull("acme/app", "v1").await.unwrap();
    until("it is kept", || site.holds(layer)).await;
    assert_eq!(image.layers().len(), 1);
}

#[tokio::test]
async fn a_body_that_is_cut_is_resumed_where_it_ended() {
    for fault in [Fault::FinAt(AT), Fault::ResetAt(AT)] {
        let (site, _, layer) = site().await;
        site.upstream.fault(On::path(layer).once(), fault.clone());
        assert_eq!(fetch(&site, layer).await, (200, layer, SIZE, BodyEnd::Complete), "{fault:?}");
        let ranges: Vec<_> = site.upstream.requests();
        let ranges: Vec<_> = ranges.iter().filter_map(|seen| seen.header("range")).collect();
        assert_eq!(ranges.len(), 1, "{ranges:?}");
        // What was on its way when a connection is reset is lost.
        if matches!(fault, Fault::FinAt(_)) {
            assert_eq!(site.upstream.bytes_of(layer), SIZE);
        }
        until("it is kept", || site.holds(layer)).await;
    }
}

/// A truncated read was served as a complete 200, and cached.
#[tokio::test]
async fn an_upstream_that_always_cuts_never_leaves_a_short_blob() {
    let (site, _, layer) = site().await;
    // Nothing beyond the first answer ever comes.
    site.upstream.fault(On::path(layer).once(), Fault::FinAt(AT));
    site.upstream.fault(On::path(layer), Fault::FinAt(0));
    let (status, digest, length, end) = fetch(&site, layer).await;
    assert_eq!((status, end), (200, BodyEnd::Cut), "a node resumes after FIN, and after nothing else");
    assert!(digest != layer && length <= AT);
    assert!(!site.file(layer).exists());
    site.upstream.heal();
    site.node().pull("acme/app", "v1").await.unwrap();
    until("it is kept", || site.holds(layer)).await;
}

#[tokio::test]
async fn a_node_that_was_cut_off_resumes_and_gets_the_rest() {
    let (site, image, layer) = site().await;
    site.upstream.fault(On::path(layer).once(), Fault::FinAt(AT));
    site.upstream.fault(On::path(layer).times(5), Fault::FinAt(0));
    let pulled = site.node().pull("acme/app", "v1").await.unwrap();
    assert_eq!(pulled.digest, image.digest());
    until("it is kept", || site.holds(layer)).await;
}

/// Short, with a Content-Length that says so: only the digest shows it.
#[tokio::test]
async fn a_body_that_is_short_and_says_so_is_not_kept() {
    let (site, _, layer) = site().await;
    site.upstream.fault(On::path(layer).once(), Fault::ShortAt(AT));
    let (status, digest, _, end) = fetch(&site, layer).await;
    assert!(digest != layer && (status != 200 || end == BodyEnd::Cut), "{status} {end:?}");
    assert!(!site.file(layer).exists());
    assert_eq!(fetch(&site, layer).await, (200, layer, SIZE, BodyEnd::Complete));
    until("it is kept", || site.holds(layer)).await;
}

#[tokio::test]
async fn an_upstream_that_knows_no_ranges_is_resumed_from_the_start() {
    let (site, _, layer) = site().await;
    site.upstream.fault(On::path(layer).once(), Fault::FinAt(AT));
    site.upstream.fault(On::path(layer), Fault::NoRanges);
    assert_eq!(fetch(&site, layer).await, (200, layer, SIZE, BodyEnd::Complete));
}

#[tokio::test]
async fn a_body_without_length_and_end_is_not_kept() {
    let (site, _, layer) = site().await;
    // Its manifest says how long the layer is.
    site.ask("GET", "acme/app/manifests/v1").await;
    site.upstream.fault(On::path(layer).once(), Fault::Endless);
    let (status, digest, ..) = fetch(&site, layer).await;
    assert!(digest != layer, "{status}");
    assert!(!site.file(layer).exists());
    assert_eq!(fetch(&site, layer).await, (200, layer, SIZE, BodyEnd::Complete));
}

#[tokio::test]
async fn a_wrong_manifest_is_never_served_nor_kept() {
    for fault in [Fault::WrongByte(20), Fault::ShortAt(100), Fault::FinAt(100)] {
        let (site, image, _) = site().await;
        site.upstream.fault(On::path("/manifests/").method("GET"), fault.clone());
        for reference in ["v1".to_owned(), image.digest().to_string()] {
            let told = site.ask("GET", &format!("acme/app/manifests/{reference}")).await;
            assert_eq!(told.status, 503, "{fault:?} {reference}: {}", told.text());
        }
        assert_eq!(bytes_below(&site.store().join("blobs")), 0);
        site.upstream.heal();
        let mut told = site.ask("GET", &format!("acme/app/manifests/{}", image.digest())).await;
        for _ in 0..200 {
            // Its breaker may be open for a moment.
            if told.status == 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            told = site.ask("GET", &format!("acme/app/manifests/{}", image.digest())).await;
        }
        assert_eq!((told.status, &told.body), (200, &image.root().bytes), "{fault:?}");
    }
}

#[tokio::test]
async fn a_digest_that_the_upstream_lies_about_is_not_believed() {
    let (site, image, _) = site().await;
    let lie = Digest::of(bailey_oci::Algorithm::Sha256, b"lie").to_string();
    site.upstream.fault(On::path("/manifests/v1"), Fault::Header("docker-content-digest", lie.clone()));
    let told = site.ask("GET", "acme/app/manifests/v1").await;
    assert!(
        told.status == 503
            || told.header("docker-content-digest") == Some(image.digest().to_string().as_str())
    );
    assert_ne!(told.header("docker-content-digest"), Some(lie.as_str()));
}

/// Some upstreams leave the digest out, or call a manifest text.
#[tokio::test]
async fn a_manifest_without_digest_or_with_a_useless_type_is_served_with_both() {
    for fault in [
        Fault::Without("docker-content-digest"),
        Fault::Header("content-type", "text/plain; charset=utf-8".to_owned()),
        Fault::Without("content-type"),
    ] {
        let (site, image, _) = site().await;
        site.upstream.fault(On::path("/manifests/"), fault.clone());
        for _ in 0..2 {
            let told = site.ask("HEAD", "acme/app/manifests/v1").await;
            assert_eq!(told.status, 200, "{fault:?}");
            assert_eq!(
                told.header("docker-content-digest"),
                Some(image.digest().to_string().as_str()),
                "{fault:?}"
            );
            assert_eq!(told.header("content-type"), Some(image.root().media_type.as_str()), "{fault:?}");
        }
        site.node().pull("acme/app", "v1").await.unwrap();
    }
}

#[tokio::test]
async fn a_manifest_that_is_too_large_is_refused() {
    let (site, ..) = site().await;
    let mut image = Image::new(Flavour::Oci, 2, &[]);
    let mut bytes = image.root().bytes.to_vec();
    bytes.extend(vec![b' '; 5 << 20]);
    image.manifests = vec![bailey_testkit::registry::content::Stored::of(Flavour::Oci.manifest(), bytes)];
    site.upstream.push("acme/app", "large", &image);
    assert_eq!(site.ask("GET", "acme/app/manifests/large").await.status, 503);
}
