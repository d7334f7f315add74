//! `cargo xtask gen`: the files that are made from the code and committed.
//!
//! A new generated file is one more line in `FILES`; `--check` is what CI runs.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::command::{self, cargo, root};

/// A file below the root, and the arguments of `bailey` that print it.
const FILES: &[(&str, &[&str])] = &[("charts/bailey/crds/crds.yaml", &["crds"])];

#[derive(clap::Args)]
pub struct Arguments {
    /// Changes nothing and fails when a file differs from what would be written.
    #[arg(long)]
    pub check: bool,
}

/// Writes or checks every generated file.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut different = Vec::new();
    for (path, bailey) in FILES {
        let text = command::output(
            cargo(&["run", "--quiet", "--locked", "--package", "bailey", "--"]).args(*bailey),
        )?;
        if text.is_empty() {
            bail!("make `{path}`: `bailey {}` printed nothing", bailey.join(" "));
        }
        let file = root().join(path);
        if fs::read(&file).is_ok_and(|present| present == text) {
            continue;
        }
        if arguments.check {
            different.push(*path);
            continue;
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).with_context(|| format!("make `{}`", folder.display()))?;
        }
        fs::write(&file, text).with_context(|| format!("write `{path}`"))?;
        println!("wrote {path}");
    }
    if !different.is_empty() {
        bail!("generated files differ, run `cargo xtask gen`: {}", different.join(", "));
    }
    Ok(())
}
