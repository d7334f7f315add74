//! How registries and repositories may be written, and what an upstream's refusal looks like to a node.

use bailey_cache::config::UpstreamConfig;
use bailey_testkit::registry::{Containerd, Fault, Flavour, Image, Layer, On};

use crate::site::{REGISTRY, Site, ask};

fn image(seed: u64) -> Image {
    Image::new(Flavour::Oci, seed, &[Layer::random(seed, 2_000)])
}

/// A cache for Docker Hub, by default, and for [`REGISTRY`], both at the same upstream.
async fn with_hub() -> Site {
    Site::with(|config| {
        let url = config.upstreams[0].url.clone();
        config.upstreams.push(UpstreamConfig::anonymous("docker.io".parse().unwrap(), url));
        config.default_upstream = Some("docker.io".parse().unwrap());
    })
    .await
}

/// `library/` was missing, or added to all registries alike; aliases of the hub were strangers.
#[tokio::test]
async fn short_names_mean_docker_hub_and_only_there_library() {
    let site = with_hub().await;
    let (hub, other) = (image(1), image(2));
    site.upstream.push("library/debian", "12", &hub);
    site.upstream.push("debian", "12", &other);
    let http = site.http();
    let of_hub = [
        "/v2/debian/manifests/12",
        "/v2/library/debian/manifests/12",
        "/v2/debian/manifests/12?ns=docker.io",
        "/v2/library/debian/manifests/12?ns=index.docker.io",
        "/v2/debian/manifests/12?ns=registry-1.docker.io",
        "/v2/docker.io/debian/manifests/12",
        "/v2/index.docker.io/library/debian/manifests/12",
        "/v2/registry-1.docker.io/debian/manifests/12",
    ];
    for target in of_hub {
        let told = ask(&http, "GET", target, &[]).await;
        assert_eq!((told.status, &told.body), (200, &hub.root().bytes), "{target}");
        assert_eq!(told.header("oci-namespace"), Some("docker.io"), "{target}");
    }
    for target in ["/v2/debian/manifests/12?ns=registry.example", "/v2/registry.example/debian/manifests/12"]
    {
        let told = ask(&http, "GET", target, &[]).await;
        assert_eq!((told.status, &told.body), (200, &other.root().bytes), "{target}");
        assert_eq!(told.header("oci-namespace"), Some(REGISTRY), "{target}");
    }
    let pulled = Containerd::new(site.cache.listen).pull("library/debian", "12").await.unwrap();
    assert_eq!(pulled.digest, hub.digest());
}

/// Some caches dial what `ns` says.
#[tokio::test]
async fn a_registry_that_is_not_listed_is_never_dialled() {
    let site = with_hub().await;
    let stranger = bailey_testkit::registry::Upstream::start().await.unwrap();
    stranger.push("acme/app", "v1", &image(1));
    let at = stranger.authority();
    for target in [
        format!("/v2/acme/app/manifests/v1?ns={at}"),
        format!("/v2/acme/app/manifests/v1?ns=http://{at}/"),
        format!("/v2/{at}/acme/app/manifests/v1"),
        "/v2/other.example/acme/app/manifests/v1".to_owned(),
    ] {
        let told = ask(&site.http(), "GET", &target, &[]).await;
        assert_eq!(told.status, 403, "{target}: {}", told.text());
        assert!(told.text().contains("DENIED"), "{}", told.text());
    }
    assert!(stranger.requests().is_empty() && site.upstream.requests().is_empty());
}

#[tokio::test]
async fn names_that_cannot_be_are_refused_with_their_code_and_not_asked_for() {
    let site = Site::new().await;
    for (rest, status, code) in [
        ("Acme/manifests/v1", 400, "NAME_INVALID"),
        ("acme//app/manifests/v1", 400, "NAME_INVALID"),
        ("acme/app/manifests/sha256:abc", 400, "DIGEST_INVALID"),
        ("acme/app/blobs/sha999:abc", 400, "DIGEST_INVALID"),
        ("acme/app/manifests/.v1", 400, "NAME_INVALID"),
        ("acme/app/unknown/v1", 404, "UNSUPPORTED"),
    ] {
        let told = site.ask("GET", rest).await;
        assert_eq!(told.status, status, "{rest}");
        assert!(told.text().contains(code), "{rest}: {}", told.text());
    }
    assert!(site.upstream.requests().is_empty());
}

/// An upstream's 401 or 403 became 500, or was lost: here the reason stays visible.
#[tokio::test]
async fn what_the_upstream_refused_is_told_apart_and_never_500() {
    for (fault, status, reason) in [
        (Fault::status(401), 503, "UpstreamUnauthorized"),
        (Fault::status(403), 503, "UpstreamForbidden"),
        (Fault::status(404), 404, "UpstreamNotFound"),
        (Fault::status(429), 503, "UpstreamRateLimited"),
        (Fault::status(500), 503, "UpstreamError"),
    ] {
        let site = Site::new().await;
        site.upstream.push("acme/app", "v1", &image(1));
        site.upstream.fault(On::path(""), fault.clone());
        let told = site.ask("GET", "acme/app/manifests/v1").await;
        assert_eq!((told.status, told.header("bailey-reason")), (status, Some(reason)), "{fault:?}");
    }
}

#[tokio::test]
async fn requests_that_are_not_http_or_too_large_end_only_their_own_connection() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let site = Site::new().await;
    site.upstream.push("acme/app", "v1", &image(1));
    let long = format!("GET /v2/{} HTTP/1.1\r\n", "a".repeat(200_000));
    let headers = format!("GET /v2/ HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(20_000));
    for request in [
        "\r\n\r\n\r\n",
        "SSH-2.0-x\r\n",
        "GET /v2/\r\n\r\n",
        "GET  HTTP/9.9\r\n\r\n",
        "\0\0\0\0",
        &long,
        &headers,
    ] {
        let mut stream = tokio::net::TcpStream::connect(site.cache.listen).await.unwrap();
        // The server may close before all is sent.
        let _sent = stream.write_all(request.as_bytes()).await;
        let _closed = stream.shutdown().await;
        let mut answer = Vec::new();
        let _read = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    site.node().pull("acme/app", "v1").await.unwrap();
}

#[tokio::test]
async fn requests_that_come_together_on_one_connection_are_answered_in_order() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    let mut stream = tokio::net::TcpStream::connect(site.cache.listen).await.unwrap();
    let path = format!("/v2/{REGISTRY}/acme/app");
    let digest = image.layers()[0].digest;
    let requests = format!(
        "HEAD {path}/manifests/v1 HTTP/1.1\r\nhost: a\r\n\r\nGET {path}/blobs/{digest} HTTP/1.1\r\nhost: a\r\n\r\n\
         GET /v2/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(requests.as_bytes()).await.unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).await.unwrap();
    let answers = String::from_utf8_lossy(&answers);
    let manifest = answers.find("docker-content-digest: ").unwrap();
    assert!(answers[manifest..].starts_with(&format!("docker-content-digest: {}", image.digest())));
    let blob = answers.find(&format!("docker-content-digest: {digest}")).unwrap();
    assert!(manifest < blob && answers.ends_with("{}"), "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 3);
}
