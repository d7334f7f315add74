use super::*;
use crate::digest::Algorithm;

fn image(name: &str) -> Image {
    format!("registry.example/{name}:v1").parse().unwrap()
}

fn parts(layers: &[(&str, u64)]) -> Parts {
    layers.iter().map(|(name, bytes)| (Digest::of(Algorithm::Sha256, name.as_bytes()), *bytes)).collect()
}

/// Two images that share a base of 100 bytes; three clusters of 2, 2 and 1 nodes.
fn scene() -> Scene {
    let images =
        [(image("a"), parts(&[("base", 100), ("a", 10)])), (image("b"), parts(&[("base", 100), ("b", 20)]))];
    let cluster = |name: &str, nodes: &[&[&str]]| Cluster {
        name: name.to_owned(),
        nodes: nodes.iter().map(|names| names.iter().map(|name| image(name)).collect()).collect(),
        uplink: Some(10.0),
        lan: Some(100.0),
    };
    Scene {
        images: images.into(),
        clusters: vec![
            cluster("one", &[&["a", "b"], &["a", "b"]]),
            cluster("two", &[&["a"], &["b"]]),
            cluster("three", &[&["a"]]),
        ],
        shared_uplink: Some(50.0),
        prices: Prices {
            uplink_gb: 1e9,
            shared_uplink_gb: 0.5e9,
            storage_gb_month: 0.1e9,
            cache_month: 7.0,
            rollouts_month: 2.0,
        },
    }
}

fn of(choice: Choice) -> Outcome {
    plan(&scene()).into_iter().find(|outcome| outcome.choice == choice).unwrap()
}

#[test]
fn a_part_counts_once_for_each_cache_and_once_for_each_node() {
    // Nodes pull 130 + 130, 110 + 120, 110; clusters hold 130, 130, 110; all of it together is 130.
    let bytes = |choice| {
        let outcome = of(choice);
        (outcome.registry_bytes, outcome.uplink_bytes, outcome.storage_bytes, outcome.caches)
    };
    assert_eq!(bytes(Choice::Shared), (130, 600, 130, 1));
    assert_eq!(bytes(Choice::PerCluster), (370, 370, 370, 3));
    assert_eq!(bytes(Choice::Tiers), (130, 370, 500, 4));
    assert_eq!(bytes(Choice::PerNode), (600, 600, 0, 0));
}

#[test]
fn a_cache_for_all_takes_all_with_it_and_one_for_a_cluster_its_cluster() {
    let lost = |choice| {
        let outcome = of(choice);
        (outcome.nodes_lost_with_cache, outcome.nodes_lost_with_uplink)
    };
    assert_eq!(lost(Choice::Shared), (5, 5));
    assert_eq!(lost(Choice::PerCluster), (2, 0));
    assert_eq!(lost(Choice::Tiers), (2, 0));
    assert_eq!(lost(Choice::PerNode), (0, 5));
}

#[test]
fn a_month_costs_its_rollouts_its_storage_and_its_caches() {
    let cost = |choice| of(choice).cost_month;
    assert!((cost(Choice::Shared) - (2.0 * (600.0 + 65.0) + 13.0 + 7.0)).abs() < 1e-6);
    assert!((cost(Choice::PerCluster) - (2.0 * 370.0 + 37.0 + 21.0)).abs() < 1e-6);
    assert!((cost(Choice::Tiers) - (2.0 * (370.0 + 65.0) + 50.0 + 28.0)).abs() < 1e-6);
    assert!((cost(Choice::PerNode) - 2.0 * 600.0).abs() < 1e-6);
}

#[test]
fn the_narrowest_link_says_when_all_are_ready() {
    let times = |choice| {
        let outcome = of(choice);
        (outcome.ready_seconds.unwrap(), outcome.next_node_seconds.unwrap())
    };
    assert_eq!(times(Choice::Shared), (26.0, 13.0));
    assert_eq!(times(Choice::PerCluster), (13.0, 1.3));
    assert_eq!(times(Choice::Tiers), (13.0, 1.3));
    assert_eq!(times(Choice::PerNode), (26.0, 13.0));
    let mut slow = scene();
    slow.shared_uplink = Some(1.0);
    assert_eq!(plan(&slow)[2].ready_seconds, Some(130.0));
}

#[test]
fn without_rates_there_are_no_times_and_without_clusters_nothing() {
    let mut scene = scene();
    scene.clusters[1].lan = None;
    let outcomes = plan(&scene);
    assert!(outcomes[0].ready_seconds.is_some());
    assert_eq!((outcomes[1].ready_seconds, outcomes[1].next_node_seconds), (None, None));
    let nothing = plan(&Scene::default());
    assert!(nothing.iter().all(|outcome| outcome.registry_bytes == 0 && outcome.cost_month == 0.0));
}
