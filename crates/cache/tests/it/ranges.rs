//! Parts of blobs, as RFC 9110 has them: of a blob that is not here, that is coming in, and that is here.

use bailey_testkit::registry::content::Content;
use bailey_testkit::registry::{Flavour, Image, Layer};
use bytes::Bytes;

use crate::site::{REGISTRY, Site, Told, until};

const SIZE: usize = 300_000;

struct Blob {
    rest: String,
    bytes: Bytes,
}

async fn site(seed: u64) -> (Site, Blob) {
    let site = Site::new().await;
    let image = Image::new(Flavour::Oci, seed, &[Layer::random(seed, SIZE as u64)]);
    site.upstream.push("acme/app", "v1", &image);
    let layer = &image.layers()[0];
    let Content::Bytes(bytes) = layer.content.clone() else { panic!("no bytes") };
    (site, Blob { rest: format!("acme/app/blobs/{}", layer.digest), bytes })
}

async fn part(site: &Site, blob: &Blob, range: &str) -> Told {
    site.ask_with("GET", &blob.rest, &[("range", range)]).await
}

/// A range and the bytes that it stands for; None where 416 is due.
fn table() -> Vec<(&'static str, Option<std::ops::Range<usize>>)> {
    vec![
        ("bytes=0-", Some(0..SIZE)),
        ("bytes=0-0", Some(0..1)),
        ("bytes=100-199", Some(100..200)),
        ("bytes=250000-", Some(250_000..SIZE)),
        ("bytes=299999-", Some(SIZE - 1..SIZE)),
        ("bytes=299999-400000", Some(SIZE - 1..SIZE)),
        ("bytes=-1", Some(SIZE - 1..SIZE)),
        ("bytes=-400000", Some(0..SIZE)),
        ("bytes=300000-", None),
        ("bytes=300000-300001", None),
        ("bytes=-0", None),
        ("bytes=5-3", None),
    ]
}

fn check(told: &Told, blob: &Blob, range: &str, expected: Option<std::ops::Range<usize>>, when: &str) {
    match expected {
        Some(expected) => {
            let content_range = format!("bytes {}-{}/{SIZE}", expected.start, expected.end - 1);
            assert_eq!(
                (told.status, told.header("content-range")),
                (206, Some(content_range.as_str())),
                "{when} {range}"
            );
            assert_eq!(told.header("content-length"), Some(expected.len().to_string().as_str()));
            assert_eq!(told.body, blob.bytes.slice(expected), "{when} {range}");
        }
        None => {
            let content_range = format!("bytes */{SIZE}");
            assert_eq!(
                (told.status, told.header("content-range")),
                (416, Some(content_range.as_str())),
                "{when} {range}"
            );
        }
    }
}

/// A range was ignored, or answered 200 with Content-Range.
#[tokio::test]
async fn ranges_of_a_blob_that_is_not_here_are_answered() {
    for (seed, (range, expected)) in (1..).zip(table()) {
        let (site, blob) = site(seed).await;
        let told = part(&site, &blob, range).await;
        check(&told, &blob, range, expected, "cold");
    }
}

#[tokio::test]
async fn ranges_of_a_blob_that_is_coming_in_are_answered_and_cost_nothing_more() {
    for (seed, (range, expected)) in (1..).zip(table()) {
        let (site, blob) = site(seed).await;
        site.upstream.shape(2_000_000);
        let mut first = site.http().get(&format!("/v2/{REGISTRY}/{}", blob.rest)).await.unwrap();
        first.piece().await.unwrap();
        let told = part(&site, &blob, range).await;
        check(&told, &blob, range, expected, "filling");
        until("it is fetched", || site.upstream.blob_bytes() == SIZE as u64).await;
    }
}

#[tokio::test]
async fn ranges_of_a_blob_that_is_here_are_answered_without_the_upstream() {
    let (mut site, blob) = site(1).await;
    assert_eq!(site.ask("GET", &blob.rest).await.body, blob.bytes);
    site.upstream.close().await;
    for (range, expected) in table() {
        let told = part(&site, &blob, range).await;
        check(&told, &blob, range, expected, "warm");
    }
    for range in [
        "bytes=a-b",
        "items=0-1",
        "bytes",
        "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16,18-18,20-20,22-22,24-24,26-26,28-28,30-30,32-32",
    ] {
        let told = part(&site, &blob, range).await;
        assert_eq!((told.status, &told.body), (200, &blob.bytes), "{range}");
    }
    let head = site.ask_with("HEAD", &blob.rest, &[("range", "bytes=0-0")]).await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("300000")));
    assert_eq!(head.header("accept-ranges"), Some("bytes"));
}

/// podman asks for several pieces at once; object stores and their gateways answer 200, 416 or 501.
#[tokio::test]
async fn several_pieces_are_answered_from_what_is_here_or_coming_in() {
    let (site, blob) = site(1).await;
    for when in ["cold", "warm"] {
        let told = part(&site, &blob, "bytes=0-9,100-104,-2").await;
        assert_eq!(told.status, 206, "{when}");
        let kind = told.header("content-type").unwrap();
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap();
        let mut expected = Vec::new();
        for (first, last) in [(0, 9), (100, 104), (SIZE - 2, SIZE - 1)] {
            let start = if expected.is_empty() { "" } else { "\r\n" };
            let head = format!(
                "{start}--{boundary}\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes {first}-{last}/{SIZE}\r\n\r\n"
            );
            expected.extend(head.bytes());
            expected.extend(&blob.bytes[first..=last]);
        }
        expected.extend(format!("\r\n--{boundary}--\r\n").bytes());
        assert_eq!(told.body, expected, "{when}");
    }
    assert_eq!(site.upstream.blob_bytes(), SIZE as u64);
}

#[tokio::test]
async fn a_range_on_condition_of_another_state_is_answered_whole() {
    let (site, blob) = site(1).await;
    let etag = site.ask("HEAD", &blob.rest).await.header("etag").unwrap().to_owned();
    for (condition, status) in
        [(etag.as_str(), 206), ("\"other\"", 200), ("Sun, 06 Nov 1994 08:49:37 GMT", 200)]
    {
        let told = site.ask_with("GET", &blob.rest, &[("range", "bytes=0-0"), ("if-range", condition)]).await;
        assert_eq!(told.status, status, "{condition}");
    }
}

#[tokio::test]
async fn a_blob_of_no_bytes_has_no_part() {
    let site = Site::new().await;
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, 0)]);
    site.upstream.push("acme/app", "v1", &image);
    let rest = format!("acme/app/blobs/{}", image.layers()[0].digest);
    for when in ["cold", "warm"] {
        let told = site.ask_with("GET", &rest, &[("range", "bytes=0-")]).await;
        assert_eq!((told.status, told.header("content-range")), (416, Some("bytes */0")), "{when}");
        let told = site.ask("GET", &rest).await;
        assert_eq!((told.status, told.header("content-length")), (200, Some("0")), "{when}");
    }
}
