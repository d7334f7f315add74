//! `cargo xtask bench cache`: the image cache beside nginx and the distribution registry, in one run.
//!
//! All stand in front of the same scripted upstream on loopback, are asked in turn, and share the machine with it and with
//! the clients: the ratio counts. INVARIANT: nothing here fails because something is slow.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;

mod client;
mod measure;
mod report;
mod server;

use self::measure::Sizes;
use super::machine;

const HELP: &str = "\
What is measured, for each server, the minimum and the median of the rounds:
  first byte     of a manifest and of a blob that are not there yet
  whole pull     of what is not there yet, while the upstream gives 100 MB/s: time over the least there is
  amplification  bytes of the upstream over the blob's, when so many clients want it at once
  warm           bytes in a second of a blob that is there, by 1 and 8 clients, plain and with TLS,
                 and processor time of the server for each GB
  manifests      requests in a second for a manifest that is there, on 16 connections
  memory         what of the server's memory is its own, after all that

nginx stands for two: with proxy_cache, and with sendfile from a folder, which caches nothing and is what
sending costs at least. It has to be on PATH (`apt-get install nginx-light`); what is not there is left out.

Examples:
  cargo xtask bench cache --quick                   a minute or two, after building
  cargo xtask bench cache --json cache.json         some minutes; 3 GB of disk while it runs";

#[derive(clap::Args)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Measures small blobs in one round; its ratios are rough.
    #[arg(long)]
    quick: bool,
    /// Measures everything this often.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    repeats: u16,
    /// Writes everything that was measured to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Runs this program instead of building Bailey.
    #[arg(long, value_name = "PROGRAM")]
    bailey: Option<PathBuf>,
}

impl Arguments {
    /// The program to measure, if one was named.
    pub fn bailey(&self) -> Option<&Path> {
        self.bailey.as_deref()
    }
}

/// Measures all servers that are there.
pub async fn measure(arguments: &Arguments, bailey: &Path) -> Result<()> {
    let facts = machine::facts();
    println!("{}", machine::line(&facts));
    let (sizes, repeats) =
        if arguments.quick { (Sizes::quick(), 1) } else { (Sizes::full(), arguments.repeats) };
    let results = measure::all(bailey, &sizes, repeats).await?;
    print!("{}", report::text(&results));
    if let Some(path) = &arguments.json {
        let report = json!({
            "machine": facts, "quick": arguments.quick, "repeats": repeats, "results": results,
            "machineAfter": machine::facts(),
        });
        let text = serde_json::to_string_pretty(&report)? + "\n";
        tokio::fs::write(path, text).await.with_context(|| format!("write `{}`", path.display()))?;
    }
    Ok(())
}
