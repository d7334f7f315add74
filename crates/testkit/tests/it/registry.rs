//! The scripted registry and the client against each other: what a fault says is what comes over the wire.

use std::net::SocketAddr;
use std::time::Duration;

use bailey_oci::Algorithm;
use bailey_testkit::registry::{
    Auth, BodyEnd, Containerd, Fault, Flavour, Http, Image, Layer, On, PullError, Upstream,
};

fn address(upstream: &Upstream) -> SocketAddr {
    upstream.authority().parse().unwrap()
}

fn image(flavour: Flavour, seed: u64) -> Image {
    let layers = [
        Layer::random(seed, 300_000),
        Layer::random(seed + 1, 0),
        Layer::random(seed + 2, 70_000).digested_with(Algorithm::Sha512),
        Layer::sparse(200_000),
    ];
    Image::new(flavour, seed, &layers)
}

#[tokio::test]
async fn images_of_all_kinds_are_pulled_and_counted() {
    let upstream = Upstream::start().await.unwrap();
    let (oci, docker) = (image(Flavour::Oci, 10), image(Flavour::Docker, 20));
    let nested = Image::index(
        Flavour::Oci,
        &[Image::index(Flavour::Docker, std::slice::from_ref(&docker)), oci.clone()],
    );
    for (tag, image) in [("oci", &oci), ("docker", &docker), ("nested", &nested)] {
        upstream.push("acme/app", tag, image);
    }
    let client = Containerd::new(address(&upstream));
    for (tag, image, manifests) in [("oci", &oci, 1), ("docker", &docker, 1), ("nested", &nested, 3)] {
        let pulled = client.pull("acme/app", tag).await.unwrap();
        assert_eq!(
            (pulled.digest, pulled.media_type.as_str()),
            (image.digest(), image.root().media_type.as_str())
        );
        assert_eq!(pulled.manifests.len(), manifests);
        assert_eq!(pulled.blobs.len(), 5);
    }
    assert_eq!(upstream.bytes_of(oci.layers()[0].digest), 300_000);
    assert_eq!(upstream.count("HEAD", "/manifests/"), 3);
    assert_eq!(client.pull("acme/app", "none").await.unwrap_err().status(), Some(404));
    let by_digest = client.in_chunks(40_000).pull_digest("acme/app", oci.digest()).await.unwrap();
    assert_eq!(by_digest.blobs.len(), 5);
}

#[tokio::test]
async fn faults_happen_as_said_as_often_as_said() {
    let upstream = Upstream::start().await.unwrap();
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, 200_000)]);
    upstream.push("a", "v1", &image);
    let digest = image.layers()[0].digest;
    let path = format!("/v2/a/blobs/{digest}");
    let http = Http::new(address(&upstream));
    let get = async |fault: Fault| {
        upstream.fault(On::path(digest).once(), fault);
        let answer = http.get(&path).await.unwrap();
        let (status, length) = (answer.status, answer.header("content-length").map(str::to_owned));
        let (found, got, end) = answer.hashed(Algorithm::Sha256).await;
        (status, length, found == digest, got, end)
    };
    let said = |length: &str| Some(length.to_owned());
    assert_eq!(get(Fault::FinAt(90_001)).await, (200, said("200000"), false, 90_001, BodyEnd::Cut));
    assert_eq!(get(Fault::ResetAt(90_001)).await.4, BodyEnd::Reset);
    assert_eq!(get(Fault::ShortAt(90_001)).await, (200, said("90001"), false, 90_001, BodyEnd::Complete));
    assert_eq!(get(Fault::WrongByte(90_001)).await, (200, said("200000"), false, 200_000, BodyEnd::Complete));
    assert_eq!(get(Fault::too_many(7)).await.0, 429);
    assert_eq!(
        get(Fault::Delay(Duration::from_millis(20))).await,
        (200, said("200000"), true, 200_000, BodyEnd::Complete)
    );
    for fault in [Fault::Reset, Fault::Garbage] {
        upstream.fault(On::path(digest).once(), fault);
        // On a fresh connection: one that was used before is tried again.
        assert!(Http::new(address(&upstream)).get(&path).await.is_err());
    }
    upstream.fault(On::path(digest).once(), Fault::Endless);
    let mut endless = http.get(&path).await.unwrap();
    assert_eq!(endless.header("content-length"), None);
    for _ in 0..20 {
        endless.piece().await.unwrap();
    }
    upstream.fault(On::path("").method("HEAD").after(1).times(2), Fault::status(500));
    let heads =
        [http.head(&path).await, http.head(&path).await, http.head(&path).await, http.head(&path).await];
    assert_eq!(heads.map(|answer| answer.unwrap().status), [200, 500, 500, 200]);
}

#[tokio::test]
async fn a_cut_body_is_resumed_and_a_reset_one_fails() {
    let upstream = Upstream::start().await.unwrap();
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, 200_000)]);
    upstream.push("a", "v1", &image);
    let digest = image.layers()[0].digest;
    let client = Containerd::new(address(&upstream));
    upstream.fault(On::path(digest).once(), Fault::FinAt(120_000));
    let pulled = client.pull("a", "v1").await.unwrap();
    assert_eq!(pulled.blobs.iter().map(|blob| blob.resumed).sum::<usize>(), 1);
    assert_eq!(upstream.bytes_of(digest), 200_000);
    upstream.fault(On::path(digest).once(), Fault::ResetAt(120_000));
    let error = client.pull("a", "v1").await.unwrap_err();
    assert!(matches!(error, PullError::Broken { end: BodyEnd::Reset, .. }), "{error}");
    upstream.fault(On::path(digest), Fault::FinAt(0));
    let error = client.pull("a", "v1").await.unwrap_err();
    assert!(matches!(error, PullError::Broken { end: BodyEnd::Cut, got: 0, .. }), "{error}");
}

#[tokio::test]
async fn tokens_are_asked_for_given_and_forgotten() {
    let upstream = Upstream::start().await.unwrap();
    upstream.push("a", "v1", &image(Flavour::Oci, 1));
    upstream.require(Auth::token());
    let http = Http::new(address(&upstream));
    let refused = http.get("/v2/a/manifests/v1").await.unwrap();
    let challenge = refused.header("www-authenticate").unwrap();
    let expected =
        format!("Bearer realm=\"{}/token\",service=\"test\",scope=\"repository:a:pull\"", upstream.url());
    assert_eq!((refused.status, challenge), (401, expected.as_str()));
    let token = http.get("/token?service=test").await.unwrap().bytes().await.unwrap();
    let token: serde_json::Value = serde_json::from_slice(&token).unwrap();
    let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
    let with =
        async || http.send("GET", "/v2/a/manifests/v1", &[("authorization", &bearer)]).await.unwrap().status;
    assert_eq!(with().await, 200);
    upstream.forget_tokens();
    assert_eq!(with().await, 401);
    assert_eq!(upstream.requests().last().unwrap().authorization(), Some(bearer.as_str()));
}

#[tokio::test]
async fn lists_are_paged_and_referrers_filtered() {
    let upstream = Upstream::start().await.unwrap();
    let image = image(Flavour::Oci, 1);
    for tag in ["a", "b", "c"] {
        upstream.push("r", tag, &image);
    }
    for (seed, kind) in [(1, "application/one"), (2, "application/two")] {
        upstream.push("r", None, &Image::artifact(kind, seed, Some(image.root())));
    }
    let http = Http::new(address(&upstream));
    let page = http.get("/v2/r/tags/list?n=2").await.unwrap();
    assert_eq!(page.header("link"), Some("</v2/r/tags/list?n=2&last=b>; rel=\"next\""));
    assert_eq!(page.bytes().await.unwrap(), r#"{"name":"r","tags":["a","b"]}"#);
    let path = format!("/v2/r/referrers/{}?artifactType=application/two", image.digest());
    let answer = http.get(&path).await.unwrap();
    assert_eq!(answer.header("oci-filters-applied"), Some("artifactType"));
    let list: serde_json::Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(list["manifests"].as_array().unwrap().len(), 1);
    upstream.without_referrers();
    assert_eq!(http.get(&path).await.unwrap().status, 404);
}

#[tokio::test]
async fn a_closed_port_refuses_and_opens_again_at_the_same_address() {
    let mut upstream = Upstream::start().await.unwrap();
    upstream.push("a", "v1", &image(Flavour::Oci, 1));
    let client = Containerd::new(address(&upstream));
    client.pull("a", "v1").await.unwrap();
    upstream.close().await;
    assert!(client.pull("a", "v1").await.is_err());
    upstream.open().await.unwrap();
    client.pull("a", "v1").await.unwrap();
}
