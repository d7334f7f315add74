//! Images that a node can unpack and run: layers are archives, and the config names them.

use std::path::Path;

use anyhow::{Context as _, Result};
use bailey_oci::Algorithm;
use serde_json::json;

use super::content::{Blob, Image, Stored, descriptor, spaced};
use super::{Flavour, Layer};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

impl Image {
    /// An image for linux on amd64 that starts `entrypoint`, with one layer for each list of files.
    ///
    /// A file is its path in the image and where it is on this machine; it may be executed.
    pub fn runnable(entrypoint: &[&str], layers: &[Vec<(&str, &Path)>]) -> Result<Self> {
        let layers = layers.iter().map(|files| archive(files)).collect::<Result<Vec<_>>>()?;
        Ok(Self::of_archives(entrypoint, layers))
    }

    /// The same with another layer on top, which holds nothing but so many random bytes.
    pub fn with_ballast(entrypoint: &[&str], files: &[(&str, &Path)], seed: u64, bytes: u64) -> Result<Self> {
        let ballast = tempfile::NamedTempFile::new()?;
        if let super::content::Content::Bytes(random) = Layer::random(seed, bytes).blob().content {
            std::fs::write(ballast.path(), random)?;
        }
        Self::runnable(entrypoint, &[files.to_vec(), vec![("ballast", ballast.path())]])
    }

    fn of_archives(entrypoint: &[&str], layers: Vec<Blob>) -> Self {
        let named: Vec<_> = layers.iter().map(|layer| layer.digest.to_string()).collect();
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": { "Entrypoint": entrypoint },
            // The layers are not compressed, so each is known by one digest.
            "rootfs": { "type": "layers", "diff_ids": named },
        });
        let config = Blob::of(Algorithm::Sha256, spaced(&config));
        let described: Vec<_> = layers.iter().map(|layer| descriptor(layer, LAYER)).collect();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": Flavour::Oci.manifest(),
            "config": descriptor(&config, Flavour::Oci.config()),
            "layers": described,
        });
        let manifest = Stored::of(Flavour::Oci.manifest(), spaced(&manifest));
        Self { manifests: vec![manifest], blobs: [config].into_iter().chain(layers).collect() }
    }
}

fn archive(files: &[(&str, &Path)]) -> Result<Blob> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, path) in files {
        let bytes = std::fs::read(path).with_context(|| format!("read `{}`", path.display()))?;
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o755);
        archive.append_data(&mut header, name.trim_start_matches('/'), bytes.as_slice())?;
    }
    Ok(Blob::of(Algorithm::Sha256, archive.into_inner()?))
}
