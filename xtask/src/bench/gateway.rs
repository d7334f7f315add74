//! `cargo xtask bench gateway`: the tunnel beside plain TCP, TLS for each stream, and nginx with TLS, in one run.
//!
//! All lead from a local port to the same backend on loopback, are used in turn, and share the machine with the backend
//! and the clients: the ratio counts. INVARIANT: nothing here fails because something is slow.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;

mod backend;
mod load;
mod measure;
mod path;
mod report;
mod splice;

pub use self::splice::{Arguments as SpliceArguments, run as splice};
use super::machine;

const HELP: &str = "\
What is measured, for each path, the median and the worst of the rounds:
  throughput     of 1, 8 and 64 streams, and processor time of both ends for each GB
  small          a request and an answer of 1 KiB, 1 and 16 at a time: median and p99
  opens          streams opened, used for one byte and closed, in a second
Of the tunnel alone:
  shares         one cluster with 64 streams beside nine with one each: what the least of the nine gets of its share
  strangers      greetings that belong to nobody beside an enrolled load: what is left of that
  memory         of agent and gateway with 0, 100 and 1,000 idle streams, and after many were opened and closed

TLS for each stream is done by a small program of this benchmark's own. nginx needs its stream module
(`apt-get install nginx-light libnginx-mod-stream`); what is not there is left out.

Examples:
  cargo xtask bench gateway --quick                 a minute or two, after building
  cargo xtask bench gateway --json gateway.json     some minutes";

#[derive(clap::Args)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Moves less in one round; its ratios are rough.
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

/// Measures all paths that are there.
pub async fn measure(arguments: &Arguments, bailey: &Path) -> Result<()> {
    let facts = machine::facts();
    println!("{}", machine::line(&facts));
    let repeats = if arguments.quick { 1 } else { arguments.repeats };
    let results = measure::all(bailey, arguments.quick, repeats).await?;
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
