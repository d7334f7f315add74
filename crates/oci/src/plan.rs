//! Where image caches should be: one for all clusters, one in each, both, or none but the nodes' own.
//!
//! A model of bytes: every node pulls each part of its images once, and every cache fetches each part once. Times are
//! those of the narrowest link when all nodes pull at once and everything streams; they leave out latencies, unpacking
//! and what others send meanwhile, so they are least times. Evictions are left out: caches are as large as is said.
//!
//! INVARIANT: what is told of bytes is exact for caches that start empty and are asked for just this.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::digest::Digest;
use crate::image::Image;

/// The parts of an image and their bytes: manifests, configs, layers.
pub type Parts = BTreeMap<Digest, u64>;

/// What is pulled where.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub images: BTreeMap<Image, Parts>,
    pub clusters: Vec<Cluster>,
    /// Of the place where a shared cache is, in bytes per second.
    pub shared_uplink: Option<f64>,
    pub prices: Prices,
}

/// One cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub name: String,
    /// What each node pulls.
    pub nodes: Vec<BTreeSet<Image>>,
    /// Between the cluster and everything else, in bytes per second.
    pub uplink: Option<f64>,
    /// From a cache in the cluster to its nodes, together, in bytes per second.
    pub lan: Option<f64>,
}

/// What things cost, in any one currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// For 10⁹ bytes over a cluster's uplink.
    pub uplink_gb: f64,
    /// For 10⁹ bytes over the uplink of a shared cache.
    pub shared_uplink_gb: f64,
    /// For 10⁹ bytes kept for a month.
    pub storage_gb_month: f64,
    /// For running a cache for a month; the nodes' own cost nothing besides their storage.
    pub cache_month: f64,
    /// How often all of this is pulled anew in a month.
    pub rollouts_month: f64,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            uplink_gb: 0.0,
            shared_uplink_gb: 0.0,
            storage_gb_month: 0.0,
            cache_month: 0.0,
            rollouts_month: 1.0,
        }
    }
}

/// Where caches are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Choice {
    /// One in the management cluster for all.
    Shared,
    /// One in each cluster, which asks registries.
    PerCluster,
    /// One in each cluster, which asks one in the management cluster.
    Tiers,
    /// None but what each node keeps itself.
    PerNode,
}

impl Choice {
    pub const ALL: [Self; 4] = [Self::Shared, Self::PerCluster, Self::Tiers, Self::PerNode];

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Shared => "one shared cache",
            Self::PerCluster => "one cache per cluster",
            Self::Tiers => "one per cluster below a shared one",
            Self::PerNode => "each node for itself",
        }
    }
}

/// What a choice means.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    pub choice: Choice,
    /// What registries send: their limits and their egress.
    pub registry_bytes: u64,
    /// Over the uplinks of all clusters together.
    pub uplink_bytes: u64,
    /// In caches; what containerd keeps on the nodes comes on top with every choice.
    pub storage_bytes: u64,
    pub caches: usize,
    pub cost_month: f64,
    /// Nodes that cannot pull what their cluster pulled before while the most important cache is away.
    pub nodes_lost_with_cache: usize,
    /// New nodes that cannot pull what their cluster pulled before while uplinks are away.
    pub nodes_lost_with_uplink: usize,
    /// Until the last node of all clusters has everything, when all start at once, at least; absent without rates.
    pub ready_seconds: Option<f64>,
    /// Until one more node has what the node with the most needs, at least.
    pub next_node_seconds: Option<f64>,
}

/// What one cluster pulls.
struct Sums {
    /// Of all nodes together, parts counted for each.
    pulled: u64,
    /// Of all nodes together, parts counted once.
    unique: Parts,
    /// Of the node with the most.
    largest: u64,
    nodes: usize,
}

/// Compares all choices.
pub fn plan(scene: &Scene) -> Vec<Outcome> {
    let sums: Vec<_> = scene.clusters.iter().map(|cluster| sums(scene, cluster)).collect();
    Choice::ALL.into_iter().map(|choice| outcome(scene, &sums, choice)).collect()
}

fn sums(scene: &Scene, cluster: &Cluster) -> Sums {
    let (mut pulled, mut largest, mut unique) = (0, 0, Parts::new());
    for images in &cluster.nodes {
        let parts: Parts =
            images.iter().filter_map(|image| scene.images.get(image)).flatten().map(own).collect();
        let bytes = parts.values().sum();
        pulled += bytes;
        largest = largest.max(bytes);
        unique.extend(parts);
    }
    Sums { pulled, unique, largest, nodes: cluster.nodes.len() }
}

fn own((digest, bytes): (&Digest, &u64)) -> (Digest, u64) {
    (*digest, *bytes)
}

fn outcome(scene: &Scene, sums: &[Sums], choice: Choice) -> Outcome {
    let unique = |sums: &Sums| sums.unique.values().sum::<u64>();
    let all: u64 = sums.iter().flat_map(|sums| &sums.unique).map(own).collect::<Parts>().values().sum();
    let pulled: u64 = sums.iter().map(|sums| sums.pulled).sum();
    let in_clusters: u64 = sums.iter().map(unique).sum();
    let nodes: usize = sums.iter().map(|sums| sums.nodes).sum();
    let largest_cluster = sums.iter().map(|sums| sums.nodes).max().unwrap_or(0);
    let clusters = sums.len();
    let (registry_bytes, uplink_bytes, storage_bytes, caches) = match choice {
        Choice::Shared => (all, pulled, all, 1),
        Choice::PerCluster => (in_clusters, in_clusters, in_clusters, clusters),
        Choice::Tiers => (all, in_clusters, all + in_clusters, clusters + 1),
        Choice::PerNode => (pulled, pulled, 0, 0),
    };
    let (nodes_lost_with_cache, nodes_lost_with_uplink) = match choice {
        Choice::Shared => (nodes, nodes),
        Choice::PerCluster | Choice::Tiers => (largest_cluster, 0),
        Choice::PerNode => (0, nodes),
    };
    let prices = &scene.prices;
    let shared_bytes = if choice.has_shared() { all } else { 0 };
    let sent = gb(uplink_bytes) * prices.uplink_gb + gb(shared_bytes) * prices.shared_uplink_gb;
    let kept = gb(storage_bytes) * prices.storage_gb_month + caches as f64 * prices.cache_month;
    Outcome {
        choice,
        registry_bytes,
        uplink_bytes,
        storage_bytes,
        caches,
        cost_month: sent * prices.rollouts_month + kept,
        nodes_lost_with_cache,
        nodes_lost_with_uplink,
        ready_seconds: ready(scene, sums, choice, all),
        next_node_seconds: next_node(scene, sums, choice),
    }
}

impl Choice {
    fn has_shared(self) -> bool {
        matches!(self, Self::Shared | Self::Tiers)
    }

    fn is_in_clusters(self) -> bool {
        matches!(self, Self::PerCluster | Self::Tiers)
    }
}

/// The time of the narrowest link; None when the rate of one that matters is not known.
fn ready(scene: &Scene, sums: &[Sums], choice: Choice, all: u64) -> Option<f64> {
    let mut slowest = if choice.has_shared() { all as f64 / scene.shared_uplink? } else { 0.0 };
    for (cluster, sums) in scene.clusters.iter().zip(sums) {
        let unique: u64 = sums.unique.values().sum();
        let over_uplink = if choice.is_in_clusters() { unique } else { sums.pulled };
        slowest = slowest.max(over_uplink as f64 / cluster.uplink?);
        if choice.is_in_clusters() {
            slowest = slowest.max(sums.pulled as f64 / cluster.lan?);
        }
    }
    Some(slowest)
}

fn next_node(scene: &Scene, sums: &[Sums], choice: Choice) -> Option<f64> {
    let mut slowest = 0.0_f64;
    for (cluster, sums) in scene.clusters.iter().zip(sums) {
        let rate = if choice.is_in_clusters() { cluster.lan? } else { cluster.uplink? };
        slowest = slowest.max(sums.largest as f64 / rate);
    }
    Some(slowest)
}

fn gb(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

#[cfg(test)]
mod tests;
