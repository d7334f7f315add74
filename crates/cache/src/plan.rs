//! Reads what `bailey cache plan` plans for: clusters, what their nodes pull, what that consists of, and prices.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bailey_oci::image::ImageError;
use bailey_oci::plan::{Cluster, Parts, Prices, Scene};
use bailey_oci::{Digest, Image};
use serde::Deserialize;

use crate::prefetch::Prefetch;
use crate::upstream::Problem;

/// More nodes than any installation has; each is a list in memory.
const NODES_MAX: usize = 100_000;

/// The file, as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanFile {
    pub clusters: Vec<FileCluster>,
    /// What images consist of; a cache is asked about all others.
    #[serde(default)]
    pub images: BTreeMap<String, Vec<FilePart>>,
    pub shared_uplink_mbps: Option<f64>,
    #[serde(default)]
    pub prices: FilePrices,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileCluster {
    pub name: String,
    /// How many nodes pull `images`.
    pub nodes: Option<usize>,
    #[serde(default)]
    pub images: Vec<String>,
    /// A log of pulls, `NODE IMAGE` on each line, beside this file; instead of `nodes` and `images`.
    pub pulls: Option<PathBuf>,
    pub uplink_mbps: Option<f64>,
    pub lan_mbps: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilePart {
    pub digest: Digest,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilePrices {
    #[serde(default)]
    pub uplink_per_gb: f64,
    /// That of `uplinkPerGb` if absent.
    pub shared_uplink_per_gb: Option<f64>,
    #[serde(default)]
    pub storage_per_gb_month: f64,
    #[serde(default)]
    pub cache_per_month: f64,
    /// How often everything is pulled anew in a month; once if absent.
    pub rollouts_per_month: Option<f64>,
}

/// Why nothing can be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("cannot read `{path}`")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("`{path}` cannot be understood: {message}")]
    Syntax { path: PathBuf, message: String },
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("line {line} of `{path}` is not of the form `NODE IMAGE`")]
    Line { path: PathBuf, line: usize },
    #[error("cluster `{0}` names no pulls; give it `nodes` and `images`, or `pulls`, a log, and not both")]
    Pulls(String),
    #[error("cluster `{0}` has more nodes than are taken")]
    Nodes(String),
    #[error("`{field}` is {value}; write a number of at least 0, and of rates a greater one")]
    Number { field: String, value: f64 },
    #[error(
        "what `{0}` consists of is not known; say it under `images`, or name a cache that may be asked with `--cache`"
    )]
    Unknown(Image),
    #[error("what `{image}` consists of cannot be asked")]
    Ask { image: Image, source: Box<Problem> },
}

impl PlanFile {
    /// Reads a file. Blocks.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let text = read(path)?;
        serde_saphyr::from_str(&text)
            .map_err(|error| PlanError::Syntax { path: path.to_owned(), message: error.to_string() })
    }

    /// Puts together what is planned for; `beside` is the folder that logs are named from. Asks `cache` what images
    /// consist of that the file does not say it of.
    pub async fn scene(self, beside: &Path, cache: Option<&Prefetch>) -> Result<Scene, PlanError> {
        let mut images = BTreeMap::new();
        for (name, parts) in &self.images {
            let parts: Parts = parts.iter().map(|part| (part.digest, part.bytes)).collect();
            images.insert(Image::short(name)?, parts);
        }
        let mut clusters = Vec::new();
        for cluster in self.clusters {
            clusters.push(cluster.read(beside)?);
        }
        for image in clusters.iter().flat_map(|cluster| &cluster.nodes).flatten() {
            if images.contains_key(image) {
                continue;
            }
            let cache = cache.ok_or_else(|| PlanError::Unknown(image.clone()))?;
            let asked = cache.parts(image).await;
            let parts =
                asked.map_err(|source| PlanError::Ask { image: image.clone(), source: Box::new(source) })?;
            images.insert(image.clone(), parts);
        }
        let shared_uplink = rate("sharedUplinkMbps", self.shared_uplink_mbps)?;
        Ok(Scene { images, clusters, shared_uplink, prices: self.prices.read()? })
    }
}

impl FileCluster {
    fn read(self, beside: &Path) -> Result<Cluster, PlanError> {
        let nodes = match (self.nodes, &self.pulls) {
            (Some(count), _) if count > NODES_MAX => return Err(PlanError::Nodes(self.name)),
            (Some(count), None) if !self.images.is_empty() => {
                let images = self.images.iter().map(|text| Image::short(text));
                vec![images.collect::<Result<BTreeSet<_>, _>>()?; count]
            }
            (None, Some(log)) if self.images.is_empty() => pulls(&beside.join(log))?,
            _ => return Err(PlanError::Pulls(self.name)),
        };
        let uplink = rate(&format!("clusters.{}.uplinkMbps", self.name), self.uplink_mbps)?;
        let lan = rate(&format!("clusters.{}.lanMbps", self.name), self.lan_mbps)?;
        Ok(Cluster { name: self.name, nodes, uplink, lan })
    }
}

impl FilePrices {
    fn read(self) -> Result<Prices, PlanError> {
        let price = |field: &str, value: f64| {
            let fits = value.is_finite() && value >= 0.0;
            if fits { Ok(value) } else { Err(PlanError::Number { field: format!("prices.{field}"), value }) }
        };
        let shared = self.shared_uplink_per_gb.unwrap_or(self.uplink_per_gb);
        Ok(Prices {
            uplink_gb: price("uplinkPerGb", self.uplink_per_gb)?,
            shared_uplink_gb: price("sharedUplinkPerGb", shared)?,
            storage_gb_month: price("storagePerGbMonth", self.storage_per_gb_month)?,
            cache_month: price("cachePerMonth", self.cache_per_month)?,
            rollouts_month: price("rolloutsPerMonth", self.rollouts_per_month.unwrap_or(1.0))?,
        })
    }
}

/// Reads a rate of 10⁶ bits per second; gives bytes per second.
fn rate(field: &str, mbps: Option<f64>) -> Result<Option<f64>, PlanError> {
    match mbps {
        Some(value) if !value.is_finite() || value <= 0.0 => {
            Err(PlanError::Number { field: field.to_owned(), value })
        }
        Some(value) => Ok(Some(value * 1e6 / 8.0)),
        None => Ok(None),
    }
}

/// What each node pulled, as a log says.
fn pulls(path: &Path) -> Result<Vec<BTreeSet<Image>>, PlanError> {
    let mut nodes: BTreeMap<String, BTreeSet<Image>> = BTreeMap::new();
    for (number, line) in read(path)?.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [node, image] => drop(nodes.entry((*node).to_owned()).or_default().insert(Image::short(image)?)),
            _ => return Err(PlanError::Line { path: path.to_owned(), line: number + 1 }),
        }
    }
    Ok(nodes.into_values().collect())
}

fn read(path: &Path) -> Result<String, PlanError> {
    std::fs::read_to_string(path).map_err(|source| PlanError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn scene(text: &str) -> Result<Scene, PlanError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("log"), "n1 debian:13 # at noon\n\nn2 debian:13\nn1 debian:13\n")
            .unwrap();
        let path = folder.path().join("plan.yaml");
        std::fs::write(&path, text).unwrap();
        PlanFile::read(&path)?.scene(folder.path(), None).await
    }

    const IMAGES: &str = "images: {'docker.io/library/debian:13': [{digest: 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', bytes: 5}]}";

    #[tokio::test]
    async fn clusters_are_lists_or_logs() {
        let text = format!(
            "clusters: [{{name: a, nodes: 3, images: [debian:13], uplinkMbps: 8}}, {{name: b, pulls: log}}]\n{IMAGES}"
        );
        let scene = scene(&text).await.unwrap();
        let counts: Vec<_> = scene.clusters.iter().map(|cluster| cluster.nodes.len()).collect();
        assert_eq!((counts, scene.clusters[0].uplink), (vec![3, 2], Some(1e6)));
        assert_eq!(bailey_oci::plan::plan(&scene)[3].registry_bytes, 25);
    }

    #[tokio::test]
    async fn what_is_wrong_is_named() {
        let one = |cluster: &str| format!("clusters: [{{name: a, {cluster}}}]\n{IMAGES}");
        for (text, words) in [
            (one("nodes: 3"), "cluster `a`"),
            (one("nodes: 3, images: [debian:13], pulls: log"), "cluster `a`"),
            (one("pulls: none"), "cannot read"),
            (one("nodes: 1, images: [debian:12]"), "docker.io/library/debian:12"),
            (one("nodes: 1, images: [debian:13], lanMbps: 0"), "clusters.a.lanMbps"),
            (one("nodes: 1, images: [debian:13]") + "\nprices: {cachePerMonth: -1}", "prices.cachePerMonth"),
            (one("nodes: 1, images: [debian:13]") + "\nprice: {}", "plan.yaml"),
        ] {
            let error = scene(&text).await.unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
