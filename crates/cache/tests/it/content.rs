//! Byte for byte what the upstream has: cold, while it comes in, and warm.

use bailey_oci::{Algorithm, Digest};
use bailey_testkit::registry::content::{Blob, Stored};
use bailey_testkit::registry::{Flavour, Image, Layer};

use crate::site::{REGISTRY, Site, node};

fn small(flavour: Flavour, seed: u64) -> Image {
    Image::new(flavour, seed, &[Layer::random(seed, 40_000), Layer::random(seed + 100, 9_000)])
}

/// Images of all kinds, each with a tag.
fn all() -> Vec<(&'static str, Image)> {
    let (oci, docker) = (small(Flavour::Oci, 1), small(Flavour::Docker, 2));
    let index = Image::index(Flavour::Oci, &[small(Flavour::Oci, 3), small(Flavour::Oci, 4)]);
    let list = Image::index(Flavour::Docker, &[small(Flavour::Docker, 5), small(Flavour::Docker, 6)]);
    let hybrid = Image::index(Flavour::Oci, &[small(Flavour::Docker, 7), small(Flavour::Oci, 8)]);
    let nested = Image::index(Flavour::Oci, &[index.clone(), list.clone()]);
    let artifact = Image::artifact("application/vnd.example.sbom+json", 9, None);
    let signature = Image::artifact("application/vnd.example.signature", 10, Some(oci.root()));
    let helm = Image::artifact("application/vnd.cncf.helm.config.v1+json", 11, None);
    vec![
        ("oci", oci),
        ("docker", docker),
        ("index", index),
        ("list", list),
        ("hybrid", hybrid),
        ("nested", nested),
        ("artifact", artifact),
        ("signature", signature),
        ("helm", helm),
    ]
}

/// Rewritten or trimmed manifests: the digest changed, signatures failed, and the second pull had another media type.
#[tokio::test]
async fn manifests_are_those_of_the_upstream_by_tag_and_digest_cold_and_warm() {
    let site = Site::new().await;
    for (tag, image) in all() {
        site.upstream.push("acme/app", tag, &image);
        let digest = image.digest().to_string();
        for round in ["cold", "warm"] {
            for method in ["HEAD", "GET"] {
                for reference in [tag, &digest] {
                    let rest = format!("acme/app/manifests/{reference}");
                    let (ours, theirs) =
                        (site.ask(method, &rest).await, site.ask_upstream(method, &rest).await);
                    assert_eq!((ours.status, &ours.body), (200, &theirs.body), "{round} {method} {rest}");
                    for name in ["content-type", "docker-content-digest", "content-length"] {
                        assert_eq!(ours.header(name), theirs.header(name), "{round} {method} {rest}: {name}");
                    }
                    assert_eq!(ours.header("oci-namespace"), Some(REGISTRY));
                    assert_eq!(ours.header("content-encoding"), None);
                }
            }
        }
        for stored in &image.manifests {
            let told = site.ask("GET", &format!("acme/app/manifests/{}", stored.digest)).await;
            assert_eq!((told.status, &told.body), (200, &stored.bytes));
            assert_eq!(told.header("content-type"), Some(stored.media_type.as_str()));
        }
    }
}

#[tokio::test]
async fn images_of_all_kinds_are_pulled_cold_and_warm_whole_and_in_chunks() {
    let site = Site::new().await;
    for (tag, image) in all() {
        site.upstream.push("acme/app", tag, &image);
        for node in [site.node(), site.node(), site.node().in_chunks(7_000)] {
            let pulled = node.pull("acme/app", tag).await.unwrap();
            assert_eq!(
                (pulled.digest, &pulled.media_type),
                (image.digest(), &image.root().media_type),
                "{tag}"
            );
        }
    }
}

#[tokio::test]
async fn a_node_that_comes_while_a_blob_is_fetched_gets_the_same_bytes() {
    let site = Site::new().await;
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, 600_000)]);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.shape(1_500_000);
    let layer = image.layers()[0].digest;
    let path = format!("/v2/{REGISTRY}/acme/app/blobs/{layer}");
    let mut first = site.http().get(&path).await.unwrap();
    first.piece().await.unwrap();
    assert!(site.upstream.bytes_of(layer) < 600_000, "the first bytes come before the last were fetched");
    let pulled = site.node().pull("acme/app", "v1").await.unwrap();
    assert_eq!(pulled.digest, image.digest());
    assert_eq!(site.upstream.bytes_of(layer), 600_000);
}

#[tokio::test]
async fn a_restart_keeps_bytes_media_types_and_tags() {
    let mut site = Site::new().await;
    for (tag, image) in all() {
        site.upstream.push("acme/app", tag, &image);
        site.node().pull("acme/app", tag).await.unwrap();
    }
    site = site.restarted(|_| {}).await;
    site.upstream.close().await;
    for (tag, image) in all() {
        let pulled = site.node().pull("acme/app", tag).await.unwrap();
        assert_eq!((pulled.digest, &pulled.media_type), (image.digest(), &image.root().media_type), "{tag}");
    }
}

/// sha512 digests, blobs of no bytes, images without layers, long names: each broke some cache.
#[tokio::test]
async fn odd_but_allowed_images_are_served() {
    let site = Site::new().await;
    let odd = Image::new(
        Flavour::Oci,
        1,
        &[Layer::random(1, 5_000).digested_with(Algorithm::Sha512), Layer::random(2, 0), Layer::random(3, 1)],
    );
    let bare = Image::new(Flavour::Oci, 2, &[]);
    // A cache that puts the registry in front of the name still takes the longest one.
    let long = format!("{}/{}", "a".repeat(127), ["b"; 64].join("/"));
    assert_eq!(long.len(), 255);
    let tag: &'static str = Box::leak("t".repeat(128).into_boxed_str());
    for (repository, tag, image) in [("acme/odd", "odd", &odd), ("bare", "bare", &bare), (&long, tag, &odd)] {
        site.upstream.push(repository, tag, image);
        for round in 0..2 {
            let pulled = site.node().pull(repository, tag).await.unwrap();
            assert_eq!(pulled.digest, image.digest(), "{repository} {round}");
        }
    }
    for layer in odd.layers() {
        for (method, length) in [("HEAD", 0), ("GET", layer.size())] {
            let told = site.ask(method, &format!("acme/odd/blobs/{}", layer.digest)).await;
            assert_eq!((told.status, told.body.len() as u64), (200, length));
            assert_eq!(told.header("content-length"), Some(layer.size().to_string().as_str()));
        }
    }
}

#[tokio::test]
async fn a_manifest_under_a_sha512_digest_is_served() {
    let site = Site::new().await;
    let mut image = small(Flavour::Oci, 1);
    let root = image.root();
    let stored = Stored::digested_with(Algorithm::Sha512, &root.media_type, root.bytes.clone());
    image.manifests = vec![stored.clone()];
    site.upstream.push("acme/app", None, &image);
    for round in ["cold", "warm"] {
        let told = site.ask("GET", &format!("acme/app/manifests/{}", stored.digest)).await;
        assert_eq!((told.status, &told.body), (200, &stored.bytes), "{round}");
        assert_eq!(told.header("docker-content-digest"), Some(stored.digest.to_string().as_str()));
    }
}

/// HEAD asks for headers; a blob that is not here is not fetched for it, and the upstream is not asked by HEAD.
#[tokio::test]
async fn head_of_a_blob_tells_its_size_and_fetches_nothing() {
    let site = Site::new().await;
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, 500_000)]);
    site.upstream.push("acme/app", "v1", &image);
    let layer = &image.layers()[0];
    let rest = format!("acme/app/blobs/{}", layer.digest);
    for round in ["unknown", "its manifest is known"] {
        let told = site.ask("HEAD", &rest).await;
        assert_eq!((told.status, told.header("content-length")), (200, Some("500000")), "{round}");
        assert_eq!(told.header("docker-content-digest"), Some(layer.digest.to_string().as_str()));
        site.ask("GET", "acme/app/manifests/v1").await;
    }
    assert_eq!(site.upstream.count("HEAD", "/blobs/"), 0);
    assert!(!site.file(layer.digest).exists());
    let missing = Digest::of(Algorithm::Sha256, b"nowhere");
    assert_eq!(site.ask("HEAD", &format!("acme/app/blobs/{missing}")).await.status, 404);
}

/// Clients were shown the tags that happened to be here.
#[tokio::test]
async fn lists_of_tags_and_referrers_are_those_of_the_upstream_and_the_last_seen_offline() {
    let mut site = Site::new().await;
    let image = small(Flavour::Oci, 1);
    for tag in ["v1", "v2", "v3"] {
        site.upstream.push("acme/app", tag, &image);
    }
    for (seed, kind) in [(1, "application/one"), (2, "application/two")] {
        site.upstream.push("acme/app", None, &Image::artifact(kind, seed, Some(image.root())));
    }
    let subject = image.digest();
    let lists = [
        "acme/app/tags/list".to_owned(),
        format!("acme/app/referrers/{subject}"),
        format!("acme/app/referrers/{subject}?artifactType=application/two"),
        format!("acme/app/referrers/{}", Digest::of(Algorithm::Sha256, b"alone")),
    ];
    let mut seen = Vec::new();
    for list in &lists {
        let (ours, theirs) = (site.ask("GET", list).await, site.ask_upstream("GET", list).await);
        assert_eq!((ours.status, &ours.body), (200, &theirs.body), "{list}");
        for name in ["content-type", "oci-filters-applied"] {
            assert_eq!(ours.header(name), theirs.header(name), "{list}");
        }
        seen.push(ours.body);
    }
    site.upstream.close().await;
    for (list, seen) in lists.iter().zip(&seen) {
        let told = site.ask("GET", list).await;
        assert_eq!((told.status, &told.body), (200, seen), "{list}");
    }
    let fresh = site.ask("GET", "acme/other/tags/list").await;
    assert_eq!(fresh.status, 503);
}

#[tokio::test]
async fn pages_of_tags_lead_through_the_cache() {
    let site = Site::new().await;
    for tag in ["a", "b", "c"] {
        site.upstream.push("acme/app", tag, &small(Flavour::Oci, 1));
    }
    let first = site.ask("GET", "acme/app/tags/list?n=2").await;
    let next = format!("</v2/{REGISTRY}/acme/app/tags/list?n=2&last=b>; rel=\"next\"");
    assert_eq!((first.text().contains("\"b\""), first.header("link")), (true, Some(next.as_str())));
    let second = site.ask("GET", "acme/app/tags/list?n=2&last=b").await;
    assert_eq!((second.text().contains("[\"c\"]"), second.header("link")), (true, None));
}

#[tokio::test]
async fn an_upstream_without_referrers_is_passed_on_as_it_is() {
    let site = Site::new().await;
    let image = small(Flavour::Oci, 1);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.without_referrers();
    assert_eq!(site.ask("GET", &format!("acme/app/referrers/{}", image.digest())).await.status, 404);
}

/// Blobs that no manifest here lists, as a client asks for that knows the digest from elsewhere.
#[tokio::test]
async fn a_blob_is_served_without_its_manifest() {
    let site = Site::new().await;
    let blob = Blob::of(Algorithm::Sha256, "alone");
    site.upstream.push_blob("acme/app", &blob);
    for round in ["cold", "warm"] {
        let told = site.ask("GET", &format!("acme/app/blobs/{}", blob.digest)).await;
        assert_eq!((told.status, told.text().as_str()), (200, "alone"), "{round}");
        assert_eq!(told.header("content-type"), Some("application/octet-stream"));
    }
}

#[tokio::test]
async fn pushes_are_refused_as_not_supported() {
    let site = Site::new().await;
    for (method, rest) in [
        ("POST", "acme/app/blobs/uploads/"),
        ("PUT", "acme/app/manifests/v1"),
        ("PATCH", "acme/app/blobs/uploads/1"),
        ("DELETE", "acme/app/manifests/v1"),
    ] {
        let told = site.ask(method, rest).await;
        assert_eq!(told.status, 405, "{method}");
        assert!(told.text().contains("UNSUPPORTED"));
    }
    assert!(site.upstream.requests().is_empty());
    // A node that got 405 to HEAD would ask again by GET.
    assert_eq!(node(&site.cache).http().head("/v2/").await.unwrap().status, 200);
}
