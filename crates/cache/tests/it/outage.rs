//! Upstreams that are away: what is here is served, what is not is 503, and nothing is ever said to be missing.

use std::time::Duration;

use bailey_oci::Digest;
use bailey_oci::freshness::{Freshness, Policy, StaleIfError};
use bailey_testkit::registry::{Fault, Flavour, Image, Layer, On};

use crate::site::{Site, Told};

fn image(seed: u64) -> Image {
    Image::new(Flavour::Oci, seed, &[Layer::random(seed, 20_000)])
}

/// A cache that has pulled `acme/app:v1`.
async fn warm() -> (Site, Image) {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.push("acme/app", "new", &self::image(2));
    site.node().pull("acme/app", "v1").await.unwrap();
    crate::site::until("all is kept", || image.blobs.iter().all(|blob| site.holds(blob.digest))).await;
    (site, image)
}

/// What a node must be told that asks for what is not here.
fn check_refusal(told: &Told, reasons: &[&str], what: &str) {
    assert_eq!(told.status, 503, "{what}: {}", told.text());
    let reason = told.header("bailey-reason").unwrap_or_default();
    assert!(reasons.contains(&reason) || reason == "UpstreamFailedLately", "{what}: {reason}");
    assert!(
        told.header("retry-after").is_some_and(|value| value.parse::<u64>().is_ok_and(|wait| wait > 0)),
        "{what}"
    );
    assert_eq!(told.header("www-authenticate"), None);
    let body: serde_json::Value = serde_json::from_slice(&told.body).unwrap();
    assert!(body["errors"][0]["code"].is_string());
}

/// Warm images failed in an outage, and 429 or 500 became 404: "the image does not exist".
async fn check(fault: Option<Fault>, reasons: &[&str]) {
    let (mut site, image) = warm().await;
    let what = format!("{fault:?}");
    match fault {
        Some(fault) => site.upstream.fault(On::path(""), fault),
        None => site.upstream.close().await,
    }
    for round in 0..3 {
        let pulled = site.node().pull("acme/app", "v1").await;
        assert_eq!(pulled.map(|pulled| pulled.digest), Ok(image.digest()), "{what} {round}");
        site.node().pull_digest("acme/app", image.digest()).await.unwrap();
    }
    let told = site.ask("GET", "acme/app/manifests/v1").await;
    assert!(told.header("warning").is_some() && told.header("age").is_some(), "{what}: stale without a word");
    let nowhere = Digest::of(bailey_oci::Algorithm::Sha256, b"nowhere");
    for (method, rest) in [
        ("GET", "acme/app/manifests/new".to_owned()),
        ("HEAD", "acme/app/manifests/new".to_owned()),
        ("GET", format!("acme/app/manifests/{nowhere}")),
        ("GET", format!("acme/app/blobs/{nowhere}")),
        ("HEAD", format!("acme/app/blobs/{nowhere}")),
        ("GET", "acme/app/tags/list".to_owned()),
        ("GET", format!("acme/app/referrers/{nowhere}")),
    ] {
        let told = site.ask(method, &rest).await;
        if method == "GET" {
            check_refusal(&told, reasons, &format!("{what} {rest}"));
        } else {
            assert_eq!(told.status, 503, "{what} {rest}");
        }
    }
}

#[tokio::test]
async fn a_closed_port_is_survived() {
    check(None, &["UpstreamUnreachable"]).await;
}

#[tokio::test]
async fn an_upstream_that_never_answers_is_survived() {
    check(Some(Fault::Hang), &["UpstreamUnreachable"]).await;
}

#[tokio::test]
async fn an_upstream_that_sends_its_head_byte_by_byte_is_survived() {
    check(Some(Fault::SlowHead(Duration::from_millis(30))), &["UpstreamUnreachable", "UpstreamError"]).await;
}

#[tokio::test]
async fn an_upstream_that_resets_is_survived() {
    check(Some(Fault::Reset), &["UpstreamUnreachable"]).await;
}

#[tokio::test]
async fn an_upstream_that_does_not_speak_http_is_survived() {
    check(Some(Fault::Garbage), &["UpstreamUnreachable", "UpstreamError"]).await;
}

#[tokio::test]
async fn errors_of_the_upstream_are_survived() {
    for status in [500, 502, 503, 504, 418] {
        check(Some(Fault::status(status)), &["UpstreamError"]).await;
    }
}

#[tokio::test]
async fn an_upstream_that_limits_is_survived() {
    check(Some(Fault::too_many(60)), &["UpstreamRateLimited"]).await;
}

#[tokio::test]
async fn an_upstream_that_refuses_is_survived_and_never_passed_on_as_401() {
    check(Some(Fault::unauthorized("Basic realm=\"x\"")), &["UpstreamUnauthorized"]).await;
    check(Some(Fault::status(403)), &["UpstreamForbidden"]).await;
}

#[tokio::test]
async fn a_host_name_or_certificate_that_does_not_work_is_survived() {
    for url in ["http://no-such-host.invalid", "https://127.0.0.1:1", "https://UPSTREAM"] {
        let (mut site, image) = warm().await;
        let url = url.replace("UPSTREAM", &site.upstream.authority());
        site = site.restarted(|config| config.upstreams[0].url = url.parse().unwrap()).await;
        let pulled = site.node().pull("acme/app", "v1").await;
        assert_eq!(pulled.map(|pulled| pulled.digest), Ok(image.digest()), "{url}");
        check_refusal(&site.ask("GET", "acme/app/manifests/new").await, &["UpstreamUnreachable"], &url);
    }
}

/// A cache that needed the Internet to start was no help without it.
#[tokio::test]
async fn a_cache_starts_and_serves_while_the_upstream_is_away() {
    let (mut site, image) = warm().await;
    site.upstream.close().await;
    site = site.restarted(|_| {}).await;
    for reference in ["v1".to_owned(), image.digest().to_string()] {
        assert_eq!(site.node().pull("acme/app", &reference).await.unwrap().digest, image.digest());
    }
}

/// The tag check was limited, so the image that was here was not served; and each pull asked again.
#[tokio::test]
async fn an_upstream_that_wants_to_be_left_alone_is_left_alone() {
    let (site, image) = warm().await;
    site.upstream.fault(On::path(""), Fault::too_many(600));
    site.upstream.forget_requests();
    for _ in 0..20 {
        assert_eq!(site.node().pull("acme/app", "v1").await.unwrap().digest, image.digest());
    }
    assert_eq!(site.upstream.requests().len(), 1, "{:?}", site.upstream.requests());
}

#[tokio::test]
async fn while_the_upstream_is_away_it_is_probed_and_not_hammered() {
    let (site, _) = warm().await;
    site.upstream.fault(On::path(""), Fault::status(502));
    site.upstream.forget_requests();
    let mut asks = tokio::task::JoinSet::new();
    for n in 0..100 {
        let node = site.node();
        asks.spawn(async move { node.resolve("acme/app", if n % 2 == 0 { "v1" } else { "new" }).await });
    }
    asks.join_all().await;
    // Three outages open the breaker; those that were on their way by then count on top, one for each thing asked.
    assert!(site.upstream.requests().len() <= 6, "{}", site.upstream.requests().len());
}

#[tokio::test]
async fn an_upstream_that_comes_back_is_asked_again() {
    let (mut site, _) = warm().await;
    site.upstream.close().await;
    for _ in 0..5 {
        assert_eq!(site.ask("GET", "acme/app/manifests/new").await.status, 503);
    }
    site.upstream.open().await.unwrap();
    for _ in 0..200 {
        if site.ask("GET", "acme/app/manifests/new").await.status == 200 {
            site.node().pull("acme/app", "new").await.unwrap();
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the upstream is never asked again");
}

#[tokio::test]
async fn a_tag_that_may_not_be_stale_is_refused_and_its_digest_served() {
    let policy = Policy {
        otherwise: Freshness::For(Duration::ZERO),
        stale_if_error: StaleIfError::Never,
        ..Policy::default()
    };
    let mut site = Site::with(|config| config.freshness = policy).await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.node().pull("acme/app", "v1").await.unwrap();
    site.upstream.close().await;
    assert_eq!(site.ask("GET", "acme/app/manifests/v1").await.status, 503);
    assert_eq!(site.ask("GET", &format!("acme/app/manifests/{}", image.digest())).await.status, 200);
}
