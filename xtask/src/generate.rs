//! `cargo xtask gen`: the files that are made from the code and committed.
//!
//! A new generated file is one more entry in `files`; `--check` is what CI runs. INVARIANT: the same checkout
//! gives the same bytes, wherever and whenever it is run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::command::root;

mod api;
mod attacks;
mod chart;
mod cli;
mod edges;
mod markdown;
mod messages;
mod rails;

/// Folders that hold generated files only, so that a file left over from before is one too many.
const FOLDERS: [&str; 2] = [chart::CRDS, SCHEMAS];
/// Where the JSON Schemas of answers are.
const SCHEMAS: &str = "crates/cli/schemas";

#[derive(clap::Args)]
pub struct Arguments {
    /// Changes nothing and fails when a file differs from what would be written.
    #[arg(long)]
    pub check: bool,
}

/// Writes or checks every generated file.
pub fn run(arguments: &Arguments) -> Result<()> {
    let files = files()?;
    let mut different = Vec::new();
    for (path, text) in &files {
        let file = root().join(path);
        if fs::read(&file).is_ok_and(|present| present == text.as_bytes()) {
            continue;
        }
        if arguments.check {
            different.push(path.clone());
        } else {
            write(&file, text).with_context(|| format!("write `{path}`"))?;
            println!("wrote {path}");
        }
    }
    for path in left_over(&files)? {
        if arguments.check {
            different.push(format!("{path} (to be removed)"));
        } else {
            fs::remove_file(root().join(&path)).with_context(|| format!("remove `{path}`"))?;
            println!("removed {path}");
        }
    }
    if !different.is_empty() {
        bail!("generated files differ; run `cargo xtask gen` and commit: {}", different.join(", "));
    }
    Ok(())
}

/// Every generated file: its path below the root, and its text.
fn files() -> Result<BTreeMap<String, String>> {
    let mut files = chart::crds()?;
    files.insert("crates/cli/src/install.yaml".to_owned(), chart::manifests()?);
    files.insert("docs/reference/cli.md".to_owned(), cli::page());
    files.insert("docs/reference/rails.md".to_owned(), rails::page()?);
    files.insert("docs/reference/attacks.md".to_owned(), attacks::page()?);
    files.insert("docs/reference/api.md".to_owned(), api::page()?);
    files.insert("docs/reference/edges.md".to_owned(), edges::page()?);
    for (name, schema) in bailey_cli::schemas() {
        files.insert(format!("{SCHEMAS}/{name}"), serde_json::to_string_pretty(&schema)? + "\n");
    }
    Ok(files)
}

fn left_over(files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let entries = fs::read_dir(root().join(folder)).with_context(|| format!("read `{folder}`"))?;
        for entry in entries {
            let path = format!("{folder}/{}", entry?.file_name().to_string_lossy());
            if !files.contains_key(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(file, text)?)
}
