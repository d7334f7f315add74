//! Where the sources of real apps are: charts and manifests read from the Go module cache.
//!
//! `tools/apps.json` declares module, version and hash; nothing is copied into the repository.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::tools;

/// Returns an app's chart folder or manifest, downloading its module first when the cache lacks it.
pub fn source(app: App) -> Result<PathBuf> {
    source_of(app.name())
}

/// Returns the definition of Clusters, as Cluster API ships it.
pub fn cluster_api() -> Result<PathBuf> {
    source_of("cluster-api")
}

fn source_of(name: &str) -> Result<PathBuf> {
    let declared = declared(name)?;
    let downloaded = download(&declared)?;
    if downloaded.sum != declared.sum {
        bail!(
            "get {}@{}: its hash is `{}`, and `tools/apps.json` declares `{}`",
            declared.module,
            declared.version,
            downloaded.sum,
            declared.sum
        );
    }
    let path = downloaded.dir.join(&declared.path);
    if !path.exists() {
        bail!("{}@{} has no `{}`", declared.module, declared.version, declared.path);
    }
    Ok(path)
}

/// Returns the declared version of an app.
pub fn version(app: App) -> Result<String> {
    Ok(declared(app.name())?.version)
}

/// An app as its own project ships it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum App {
    /// One manifest.
    ArgoCd,
    /// A chart folder.
    SealedSecrets,
    /// A chart folder.
    ExternalDns,
    /// One manifest.
    PrometheusOperator,
}

impl App {
    /// Every app.
    pub const ALL: [Self; 4] =
        [Self::ArgoCd, Self::SealedSecrets, Self::ExternalDns, Self::PrometheusOperator];

    /// Returns the app's name, as `tools/apps.json` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ArgoCd => "argo-cd",
            Self::SealedSecrets => "sealed-secrets",
            Self::ExternalDns => "external-dns",
            Self::PrometheusOperator => "prometheus-operator",
        }
    }
}

#[derive(Deserialize)]
struct Declared {
    name: String,
    module: String,
    version: String,
    sum: String,
    path: String,
}

/// What `go mod download -json` prints.
#[derive(Deserialize)]
struct Downloaded {
    #[serde(rename = "Dir", default)]
    dir: PathBuf,
    #[serde(rename = "Sum", default)]
    sum: String,
    #[serde(rename = "Error", default)]
    error: String,
}

fn declared(name: &str) -> Result<Declared> {
    let path = tools::declarations().join("apps.json");
    let text = fs::read_to_string(&path).with_context(|| format!("read `{}`", path.display()))?;
    let all: Vec<Declared> =
        serde_json::from_str(&text).with_context(|| format!("parse `{}`", path.display()))?;
    all.into_iter()
        .find(|declared| declared.name == name)
        .with_context(|| format!("`tools/apps.json` declares no `{name}`"))
}

fn download(declared: &Declared) -> Result<Downloaded> {
    let module = format!("{}@{}", declared.module, declared.version);
    // Run outside any module, so that no go.mod around the working directory has a say.
    let output = Command::new(tools::require("go")?)
        .args(["mod", "download", "-json", &module])
        .current_dir(tools::declarations())
        .output()
        .with_context(|| format!("get {module}"))?;
    let downloaded: Downloaded = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("get {module}: {}", String::from_utf8_lossy(&output.stderr)))?;
    if !downloaded.error.is_empty() {
        bail!("get {module}: {}", downloaded.error);
    }
    Ok(downloaded)
}
