//! The CRDs of the chart, and what `bailey install` holds of the chart.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context as _, Result};
use bailey_testkit::{Tool, tools};

use crate::command::{self, root};

/// Where the chart keeps its CRDs, one file each.
pub(super) const CRDS: &str = "charts/bailey/files/crds";

/// A file for each CRD.
pub(super) fn crds() -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for crd in bailey_api::crds() {
        let name = crd.metadata.name.clone().context("a CRD has a name")?;
        let yaml = bailey_cli::output::yaml(&crd).with_context(|| format!("write CRD `{name}`"))?;
        let text = format!("# Generated from crates/api by `cargo xtask gen`.\n{yaml}");
        files.insert(format!("{CRDS}/{name}.yaml"), text);
    }
    Ok(files)
}

/// The chart with its default values and without its CRDs.
pub(super) fn manifests() -> Result<String> {
    let mut helm = Command::new(tools::path(Tool::Helm)?);
    helm.current_dir(root()).env_remove("KUBECONFIG");
    helm.args(["template", "bailey", "charts/bailey", "-n", "bailey-system", "--set", "crds.install=false"]);
    String::from_utf8(command::output(&mut helm)?).context("read what `helm template` prints")
}
