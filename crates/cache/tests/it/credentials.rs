//! Credentials of upstreams: used where they belong, and sent nowhere else.

use std::path::Path;
use std::time::Duration;

use bailey_cache::upstream::credentials::Source;
use bailey_oci::freshness::{Freshness, Policy};
use bailey_oci::visibility::{Audience, Grant};
use bailey_testkit::registry::{Auth, Fault, Flavour, Image, Layer, On, Upstream};
use tokio::task::JoinSet;

use crate::site::{Site, until};

fn image(seed: u64) -> Image {
    Image::new(Flavour::Oci, seed, &[Layer::random(seed, 50_000), Layer::random(seed + 50, 1_000)])
}

fn token_for(user: &str, password: &str) -> Auth {
    Auth::Token {
        realm: None,
        credentials: Some((user.to_owned(), password.to_owned())),
        expires_in: Duration::from_secs(300),
    }
}

/// A cache that knows a password, and where that stands.
async fn with_password(password: &str) -> (Site, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, password).unwrap();
    let site = Site::with(|config| {
        config.upstreams[0].credentials = Source::Password { username: "ann".to_owned(), file };
    })
    .await;
    (site, folder)
}

fn write(folder: &Path, password: &str) {
    std::fs::write(folder.join("password"), password).unwrap();
}

#[tokio::test]
async fn a_token_is_got_with_the_password_and_used_for_all_of_an_image() {
    let (site, _folder) = with_password("secret").await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.require(token_for("ann", "secret"));
    let mut pulls = JoinSet::new();
    for _ in 0..20 {
        let node = site.node();
        pulls.spawn(async move { node.pull("acme/app", "v1").await.unwrap() });
    }
    assert_eq!(pulls.join_all().await.len(), 20);
    assert_eq!(site.upstream.count("GET", "/token"), 1);
    for seen in site.upstream.requests() {
        let basic = seen.authorization().is_some_and(|value| value.starts_with("Basic "));
        assert_eq!(basic, seen.target.starts_with("/token"), "the password goes to the token service alone");
    }
}

#[tokio::test]
async fn tokens_that_were_revoked_are_got_anew_and_changed_passwords_used() {
    let (site, folder) = with_password("old").await;
    let (one, two, three) = (image(1), image(2), image(3));
    for (tag, image) in [("one", &one), ("two", &two), ("three", &three)] {
        site.upstream.push("acme/app", tag, image);
    }
    site.upstream.require(token_for("ann", "old"));
    site.node().pull("acme/app", "one").await.unwrap();
    site.upstream.forget_tokens();
    site.node().pull("acme/app", "two").await.unwrap();
    write(folder.path(), "new");
    site.upstream.forget_tokens();
    site.upstream.require(token_for("ann", "new"));
    site.node().pull("acme/app", "three").await.unwrap();
}

#[tokio::test]
async fn basic_authentication_works_and_a_wrong_password_is_503() {
    for (password, status) in [("secret", 200), ("wrong", 503)] {
        let (site, _folder) = with_password(password).await;
        site.upstream.push("acme/app", "v1", &image(1));
        site.upstream.require(Auth::Basic { user: "ann".to_owned(), password: "secret".to_owned() });
        let told = site.ask("GET", "acme/app/manifests/v1").await;
        assert_eq!((told.status, told.header("www-authenticate")), (status, None));
    }
}

/// A registry named a stranger as its token service, and got the credentials sent there.
#[tokio::test]
async fn a_realm_of_another_domain_gets_no_credential_and_is_not_asked() {
    let (site, _folder) = with_password("secret").await;
    site.upstream.push("acme/app", "v1", &image(1));
    let evil = Upstream::start().await.unwrap();
    evil.require(Auth::token());
    let port = evil.authority().rsplit(':').next().unwrap().to_owned();
    site.upstream.require(Auth::Token {
        realm: Some(format!("http://localhost:{port}/token")),
        credentials: None,
        expires_in: Duration::from_secs(300),
    });
    let told = site.ask("GET", "acme/app/manifests/v1").await;
    assert_eq!((told.status, told.header("bailey-reason")), (503, Some("RefusedByPolicy")));
    assert!(evil.requests().is_empty(), "{:?}", evil.requests());
}

#[tokio::test]
async fn a_realm_that_is_listed_is_asked() {
    let service = Upstream::start().await.unwrap();
    let port = service.authority().rsplit(':').next().unwrap().to_owned();
    let site = Site::with(|config| config.upstreams[0].trust.realm_hosts.push("localhost".to_owned())).await;
    site.upstream.push("acme/app", "v1", &image(1));
    site.upstream.require(Auth::Token {
        realm: Some(format!("http://localhost:{port}/token")),
        credentials: None,
        expires_in: Duration::from_secs(300),
    });
    service.require(Auth::token());
    // The service's tokens are not the upstream's, so this ends in a refusal; but it was asked.
    assert_eq!(site.ask("GET", "acme/app/manifests/v1").await.status, 503);
    assert_eq!(service.count("GET", "/token"), 1);
}

/// A redirect to another port or host got the credentials as well; object stores then refuse.
#[tokio::test]
async fn a_redirect_elsewhere_gets_no_authorization() {
    let (site, _folder) = with_password("secret").await;
    let image = image(1);
    let elsewhere = Upstream::start().await.unwrap();
    site.upstream.push("acme/app", "v1", &image);
    elsewhere.push("acme/app", "v1", &image);
    for auth in
        [token_for("ann", "secret"), Auth::Basic { user: "ann".to_owned(), password: "secret".to_owned() }]
    {
        site.upstream.require(auth);
        site.upstream.redirect_blobs(elsewhere.url());
        for blob in &image.blobs {
            let told = site.ask("GET", &format!("acme/app/blobs/{}", blob.digest)).await;
            assert_eq!((told.status, told.body.len() as u64), (200, blob.size()));
            until("it is kept", || site.holds(blob.digest)).await;
            std::fs::remove_file(site.file(blob.digest)).unwrap();
        }
    }
    assert_eq!(elsewhere.count("GET", "/blobs/"), 2 * image.blobs.len());
    for seen in elsewhere.requests() {
        assert_eq!(seen.authorization(), None, "{}", seen.target);
    }
}

#[tokio::test]
async fn a_redirect_to_a_private_host_is_followed_only_where_that_is_listed() {
    for listed in [false, true] {
        let site = Site::with(|config| {
            if listed {
                config.upstreams[0].trust.private_hosts.push("localhost".to_owned());
            }
        })
        .await;
        let image = image(1);
        let inside = Upstream::start().await.unwrap();
        inside.push("acme/app", "v1", &image);
        site.upstream.push("acme/app", "v1", &image);
        let port = inside.authority().rsplit(':').next().unwrap().to_owned();
        site.upstream.redirect_blobs(format!("http://localhost:{port}"));
        let told = site.ask("GET", &format!("acme/app/blobs/{}", image.blobs[0].digest)).await;
        assert_eq!(told.status, if listed { 200 } else { 503 }, "{}", told.text());
        assert_eq!(inside.requests().len(), usize::from(listed));
    }
}

#[tokio::test]
async fn redirects_end() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    let url = format!("{}/v2/acme/app/blobs/{}", site.upstream.url(), image.blobs[0].digest);
    site.upstream.fault(On::path("/blobs/"), Fault::redirect(307, &url));
    let told = site.ask("GET", &format!("acme/app/blobs/{}", image.blobs[0].digest)).await;
    assert_eq!(told.status, 503);
    assert!(site.upstream.requests().len() < 20, "{}", site.upstream.requests().len());
}

/// A token service that was limited made images that exist 404.
#[tokio::test]
async fn a_token_service_in_trouble_is_an_outage_and_not_a_missing_image() {
    for fault in [
        Fault::too_many(60),
        Fault::status(500),
        Fault::status(404),
        Fault::status(403),
        Fault::Reset,
        Fault::Hang,
    ] {
        let site = Site::new().await;
        let image = image(1);
        site.upstream.push("acme/app", "v1", &image);
        site.upstream.push("acme/app", "new", &self::image(2));
        site.upstream.require(Auth::token());
        site.node().pull("acme/app", "v1").await.unwrap();
        site.upstream.forget_tokens();
        site.upstream.fault(On::path("/token"), fault.clone());
        let told = site.ask("GET", "acme/app/manifests/new").await;
        assert_eq!((told.status, told.header("www-authenticate")), (503, None), "{fault:?}: {}", told.text());
        let pulled = site.node().pull("acme/app", "v1").await;
        assert_eq!(pulled.map(|pulled| pulled.digest), Ok(image.digest()), "{fault:?}");
    }
}

/// A node may send what it has for the registry; it is not this cache's to use or to pass on.
#[tokio::test]
async fn what_a_node_sends_as_authorization_goes_nowhere() {
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    let headers = [("authorization", "Basic bm9kZTpzZWNyZXQ="), ("cookie", "a=b")];
    for rest in ["acme/app/manifests/v1".to_owned(), format!("acme/app/blobs/{}", image.blobs[0].digest)] {
        assert_eq!(site.ask_with("GET", &rest, &headers).await.status, 200);
    }
    for seen in site.upstream.requests() {
        assert_eq!((seen.authorization(), seen.header("cookie")), (None, None), "{}", seen.target);
        assert!(seen.header("accept-encoding").is_none_or(|value| value == "identity"), "{:?}", seen.headers);
    }
}

/// Whoever knew a digest could read private blobs through any repository.
#[tokio::test]
async fn a_private_blob_is_not_read_through_another_repository() {
    let mut site = Site::new().await;
    let (private, public) = (image(1), image(2));
    site.upstream.push("acme/private", "v1", &private);
    site.upstream.push("acme/public", "v1", &public);
    site.node().pull("acme/private", "v1").await.unwrap();
    let nobody =
        Grant { images: "registry.example/acme/private".parse().unwrap(), audience: Audience::nobody() };
    site = site
        .restarted(|config| {
            config.visibility.grants = vec![nobody];
            config.freshness = Policy { otherwise: Freshness::Immutable, ..Policy::default() };
        })
        .await;
    site.upstream.forget_requests();
    let digests = [private.digest(), private.blobs[0].digest, private.layers()[0].digest];
    for (digest, kind) in digests.iter().zip(["manifests", "blobs", "blobs"]) {
        for method in ["GET", "HEAD"] {
            let told = site.ask(method, &format!("acme/private/{kind}/{digest}")).await;
            assert_eq!(told.status, 503, "{method} {kind}");
            assert_eq!(told.header("bailey-reason"), Some("RefusedByPolicy"));
        }
    }
    assert_eq!(site.ask("GET", "acme/private/manifests/v1").await.status, 503);
    assert_eq!(site.ask("GET", "acme/private/tags/list").await.status, 503);
    assert!(site.upstream.requests().is_empty(), "what is refused is not asked for");
    for (digest, kind) in digests.iter().zip(["manifests", "blobs", "blobs"]) {
        for method in ["GET", "HEAD"] {
            let told = site.ask(method, &format!("acme/public/{kind}/{digest}")).await;
            assert_eq!(
                told.status,
                404,
                "the upstream has no such thing there: {method} {kind} {}",
                told.text()
            );
        }
    }
    // What the upstream gives out through the other repository as well is served.
    site.upstream.push("acme/public", "both", &private);
    let told = site.ask("GET", &format!("acme/public/blobs/{}", private.layers()[0].digest)).await;
    assert_eq!((told.status, told.body.len()), (200, 50_000));
}
