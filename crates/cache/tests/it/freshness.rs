//! Tags that move, tags that never do, and tags that are gone.

use std::time::Duration;

use bailey_oci::freshness::{Freshness, Gone, Policy, Rule, Tags};
use bailey_oci::{Digest, Pattern};
use bailey_testkit::registry::{Flavour, Image, Layer};

use crate::site::Site;

fn image(seed: u64) -> Image {
    Image::new(Flavour::Oci, seed, &[Layer::random(seed, 2_000)])
}

/// What HEAD and GET say that a tag is: always the same.
async fn digest(site: &Site, tag: &str) -> Option<Digest> {
    let rest = format!("acme/app/manifests/{tag}");
    let (head, get) = (site.ask("HEAD", &rest).await, site.ask("GET", &rest).await);
    assert_eq!(
        (head.status, head.header("docker-content-digest")),
        (get.status, get.header("docker-content-digest"))
    );
    let digest = get.header("docker-content-digest")?.parse().ok()?;
    assert_eq!(Digest::of(bailey_oci::Algorithm::Sha256, &get.body), digest);
    Some(digest)
}

async fn with(policy: Policy) -> Site {
    Site::with(|config| config.freshness = policy).await
}

/// Tags were never updated, or HEAD said another digest than GET.
#[tokio::test]
async fn a_tag_that_moved_is_seen_by_head_and_get_once_its_time_is_over() {
    let site = Site::new().await;
    let (old, new) = (image(1), image(2));
    site.upstream.push("acme/app", "v1", &old);
    assert_eq!(digest(&site, "v1").await, Some(old.digest()));
    site.upstream.push("acme/app", "v1", &new);
    assert_eq!(digest(&site, "v1").await, Some(new.digest()));
    site.upstream.push("acme/app", "v1", &old);
    assert_eq!(digest(&site, "v1").await, Some(old.digest()));
}

#[tokio::test]
async fn a_tag_within_its_time_is_not_asked_for_again() {
    let policy = Policy { otherwise: Freshness::For(Duration::from_secs(3600)), ..Policy::default() };
    let site = with(policy).await;
    let (old, new) = (image(1), image(2));
    site.upstream.push("acme/app", "v1", &old);
    assert_eq!(digest(&site, "v1").await, Some(old.digest()));
    site.upstream.push("acme/app", "v1", &new);
    site.upstream.forget_requests();
    assert_eq!(digest(&site, "v1").await, Some(old.digest()));
    assert!(site.upstream.requests().is_empty());
}

/// Every request walked the whole tree of manifests at the upstream again.
#[tokio::test]
async fn a_check_is_one_head_and_costs_no_budget_of_the_upstream() {
    let site = Site::new().await;
    site.upstream.push("acme/app", "v1", &Image::index(Flavour::Oci, &[image(1), image(2)]));
    site.node().pull("acme/app", "v1").await.unwrap();
    site.upstream.forget_requests();
    site.node().pull("acme/app", "v1").await.unwrap();
    assert_eq!((site.upstream.requests().len(), site.upstream.count("HEAD", "/manifests/v1")), (1, 1));
}

#[tokio::test]
async fn immutable_tags_are_asked_for_once() {
    let rules = vec![Rule { images: Pattern::any(), tags: Tags::Versions, freshness: Freshness::Immutable }];
    let site = with(Policy { rules, otherwise: Freshness::For(Duration::ZERO), ..Policy::default() }).await;
    site.upstream.push("acme/app", "1.2.3", &image(1));
    site.upstream.push("acme/app", "1.2", &image(1));
    for tag in ["1.2.3", "1.2"] {
        digest(&site, tag).await.unwrap();
        site.upstream.forget_requests();
        digest(&site, tag).await.unwrap();
        let asked = site.upstream.requests().len();
        assert_eq!(asked, if tag == "1.2" { 2 } else { 0 }, "{tag}");
    }
}

/// A vendor removed its tags, and with them the copies that clusters ran on.
#[tokio::test]
async fn a_tag_that_the_upstream_deleted_is_kept_or_follows() {
    for gone in [Gone::Keep, Gone::Follow] {
        let site =
            with(Policy { otherwise: Freshness::For(Duration::ZERO), gone, ..Policy::default() }).await;
        let image = image(1);
        site.upstream.push("acme/app", "v1", &image);
        site.node().pull("acme/app", "v1").await.unwrap();
        site.upstream.untag("acme/app", "v1");
        let told = site.ask("GET", "acme/app/manifests/v1").await;
        match gone {
            Gone::Keep => {
                assert_eq!((told.status, &told.body), (200, &image.root().bytes));
                assert_eq!(told.header("bailey-reason"), Some("UpstreamNotFound"));
                assert!(told.header("warning").is_some());
            }
            Gone::Follow => {
                assert_eq!(told.status, 404);
                assert!(told.text().contains("MANIFEST_UNKNOWN"));
            }
        }
        // Digests that are here stay.
        site.node().pull_digest("acme/app", image.digest()).await.unwrap();
    }
}

#[tokio::test]
async fn what_was_missing_is_found_as_soon_as_the_upstream_has_it() {
    let site = Site::new().await;
    site.upstream.push("acme/app", "other", &image(2));
    assert_eq!(site.ask("GET", "acme/app/manifests/v1").await.status, 404);
    site.upstream.push("acme/app", "v1", &image(1));
    assert_eq!(digest(&site, "v1").await, Some(image(1).digest()));
}
