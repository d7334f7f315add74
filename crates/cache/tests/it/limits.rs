//! A cache that several clusters share: one full of short-lived nodes that pull all day must not slow the others down.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bailey_cache::config::{Config, File};
use bailey_testkit::registry::{Flavour, Http, Image, Layer};
use tokio::task::JoinSet;

use crate::site::{REGISTRY, Site, ask};

/// Reads the part of a configuration that is about limits.
fn limits(yaml: &str) -> impl FnOnce(&mut Config) {
    let text = format!("store: /s\nbudget: 1GiB\nupstreams: [{{name: {REGISTRY}}}]\nlimits:\n{yaml}");
    let Config { shares, networks, .. } = File::parse(&text).unwrap().config().unwrap();
    move |config| (config.shares, config.networks) = (shares, networks)
}

/// Clients of two clusters on one machine, told apart by their addresses.
fn client(site: &Site, cluster: u8) -> Http {
    site.http().coming_from(IpAddr::from([127, 0, cluster, 1]))
}

const TWO: &str = "  clusters:
  - {name: storm, networks: [127.0.1.0/24]}
  - {name: calm, networks: [127.0.2.0/24]}
";

fn blob(image: &Image, layer: usize) -> String {
    format!("/v2/{REGISTRY}/acme/app/blobs/{}", image.layers()[layer].digest)
}

#[tokio::test]
async fn a_cluster_that_asks_for_ever_new_things_is_told_to_wait_and_others_are_not() {
    let yaml = "  clusters:
  - {name: storm, networks: [127.0.1.0/24], missesPerMinute: 12}
";
    let site = Site::with(limits(yaml)).await;
    let layers: Vec<_> = (0..8).map(|seed| Layer::random(seed, 1_000)).collect();
    let image = Image::new(Flavour::Oci, 1, &layers);
    site.upstream.push("acme/app", "v1", &image);
    let (storm, calm) = (client(&site, 1), client(&site, 2));
    // A sixth of a minute's share may be taken at once; one more comes every five seconds, which is too long to wait.
    let mut told = Vec::new();
    for layer in 0..4 {
        told.push(ask(&storm, "GET", &blob(&image, layer), &[]).await);
    }
    let statuses: Vec<u16> = told.iter().map(|told| told.status).collect();
    assert_eq!(statuses[..2], [200, 200]);
    let refused = told.iter().find(|told| told.status != 200).expect("none of four was refused");
    assert_eq!((refused.status, refused.header("bailey-reason")), (503, Some("ClusterOverLimit")));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=5).contains(&wait), "{wait}");
    assert!(refused.text().contains("missesPerMinute"), "{}", refused.text());
    for layer in 4..8 {
        assert_eq!(ask(&calm, "GET", &blob(&image, layer), &[]).await.status, 200);
    }
    // What is here costs nothing.
    for _ in 0..20 {
        assert_eq!(ask(&storm, "GET", &blob(&image, 0), &[]).await.status, 200);
    }
}

/// What a client reads until it is stopped or done, added up as it comes.
async fn read(http: Http, target: String, bytes: Arc<AtomicU64>) {
    let mut answer = http.get(&target).await.unwrap();
    assert_eq!(answer.status, 200);
    while let Ok(piece) = answer.piece().await {
        if piece.is_empty() {
            break;
        }
        bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_one_cluster_leaves_half_of_a_scarce_link_to_another() {
    const SIZE: u64 = 12 << 20;
    let site = Site::with(limits(&format!("  egress: 16MiB\n{TWO}"))).await;
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, SIZE)]);
    site.upstream.push("acme/app", "v1", &image);
    let target = blob(&image, 0);
    ask(&site.http(), "GET", &target, &[]).await;
    let (storm, calm) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut pulls = JoinSet::new();
    for _ in 0..40 {
        pulls.spawn(read(client(&site, 1), target.clone(), storm.clone()));
    }
    while storm.load(Ordering::Relaxed) < 4 << 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let before = storm.load(Ordering::Relaxed);
    read(client(&site, 2), target, calm.clone()).await;
    let meanwhile = storm.load(Ordering::Relaxed) - before;
    assert_eq!(calm.load(Ordering::Relaxed), SIZE);
    // What lies in sockets is not read in the order that it was sent in.
    assert!(meanwhile < SIZE * 3 / 2, "the storm had {meanwhile} bytes while the other cluster had {SIZE}");
    pulls.abort_all();
}

#[tokio::test]
async fn a_cluster_has_no_more_fetches_at_a_time_than_its_limit() {
    let yaml = "  clusters:
  - {name: storm, networks: [127.0.1.0/24], fetches: 2}
";
    let site = Site::with(limits(yaml)).await;
    let layers: Vec<_> = (0..6).map(|seed| Layer::random(seed, 200_000)).collect();
    let image = Image::new(Flavour::Oci, 1, &layers);
    site.upstream.push("acme/app", "v1", &image);
    site.upstream.shape(100_000);
    let mut pulls = JoinSet::new();
    for layer in 0..5 {
        let (http, target) = (client(&site, 1), blob(&image, layer));
        pulls.spawn(async move { ask(&http, "GET", &target, &[]).await.status });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(site.upstream.count("GET", "/blobs/"), 2);
    // Another cluster does not stand behind them.
    let other = client(&site, 2).get(&blob(&image, 5)).await.unwrap();
    assert_eq!(other.status, 200);
    site.upstream.shape(None);
    pulls.abort_all();
}

#[test]
fn limits_that_cannot_be_are_refused_with_their_field() {
    let wrong = |yaml: &str| {
        let text = format!("store: /s\nbudget: 1GiB\nupstreams: [{{name: {REGISTRY}}}]\nlimits: {yaml}");
        match File::parse(&text) {
            Ok(file) => file.config().unwrap_err().to_string(),
            Err(message) => message,
        }
    };
    assert!(wrong("{egress: fast}").contains("`limits.egress` is `fast`"));
    assert!(wrong("{each: {fetches: 0}}").contains("`limits.each.fetches` is `0`"));
    assert!(wrong("{clusters: [{name: a, networks: [10.0.0.0]}]}").contains("`limits.clusters.a.networks`"));
    assert!(wrong("{clusters: [{name: a}, {name: a}]}").contains("names `a` twice"));
    assert!(wrong("{clusters: [{network: []}]}").contains("network"));
}
