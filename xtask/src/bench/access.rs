//! `cargo xtask bench access`: how fast and how right Bailey says who reaches which Secret.
//!
//! Clusters of four sizes are generated from a seed, so anybody gets the same ones. Bailey and its peers are run as
//! programs, in turn, each in a process that measures it alone. INVARIANT: nothing here fails because something is slow.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::runtime::Runtime;

mod bindings;
mod check;
mod clock;
mod fixed;
mod generate;
mod growth;
mod lists;
mod measure;
mod objects;
mod peers;
mod plan;
mod pods;
mod random;
mod report;
mod rules;
mod server;
mod size;
mod tool;

use self::generate::Options;
use self::lists::Layout;
use self::measure::Bench;
use self::peers::Peers;
use self::size::Size;
pub use clock::{ClockArguments, clock};

const HELP: &str = "\
What is measured, at each size:
  audit          cold: from the Lists on disk to the full answer
  reach, why     one subject; `query` is the time in the graph alone
  who-can-read   one Secret
  what-if        a chart of 30 RBAC objects on top
  incremental    200 bindings changed one by one, p99
  planted        25 subjects with a known answer: who reads what, and who must not
Processor time is what to compare on a busy machine; wall time is a record of it. Memory is
the most that the kernel counted for the program alone. The Lists are in the page cache, as
they were just written.

With --peers, kubectl-who-can (built from its Go module, a few minutes the first time) says who
may `get` Secrets, from a stand-in API server on loopback, and Python decodes the Lists. Neither
follows a detour. With -A, kubectl-who-can asks that server twice about each namespace, at five
requests a second: its wall time is its own pace, 400 s at L, and at 4L it is not asked.

Sizes need 4, 43, 217 and 870 MB of disk while they are measured.

Examples:
  cargo xtask bench access --size S --size M --peers      a few minutes
  cargo xtask bench access --json access.json             all four sizes
  cargo xtask bench access --generate-only --size L --dir /tmp/cluster
  bailey audit --dump /tmp/cluster/dump                   asks about what was generated";

#[derive(clap::Args)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Measures this size only; may be given more than once [default: all four].
    #[arg(long, value_enum, value_name = "SIZE")]
    size: Vec<Size>,
    /// Draws the clusters from this number: the same one gives the same bytes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Asks each question this often.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    repeats: u16,
    /// Ends a run after this many seconds and counts it as no answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    cap: u64,
    /// Measures kubectl-who-can and Python's JSON decoder beside Bailey.
    #[arg(long)]
    peers: bool,
    /// Writes everything that was measured to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Generates one cluster into --dir and measures nothing.
    #[arg(long, requires = "dir", conflicts_with_all = ["peers", "json"])]
    generate_only: bool,
    /// Generates below this folder instead of the folder for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Lays the Lists out as kubectl does, about twice as large.
    #[arg(long, requires = "generate_only")]
    indent: bool,
    /// Packs the Lists into one dump.tar.gz.
    #[arg(long, requires = "generate_only")]
    gzip: bool,
    /// Runs this program instead of building Bailey.
    #[arg(long, value_name = "PROGRAM")]
    bailey: Option<PathBuf>,
}

impl Arguments {
    /// Whether there is nothing to measure, and so nothing to optimise.
    pub fn generates_only(&self) -> bool {
        self.generate_only
    }

    /// Returns the program to measure, where one is given.
    pub fn bailey(&self) -> Option<&Path> {
        self.bailey.as_deref()
    }

    fn sizes(&self) -> Vec<Size> {
        let mut sizes = if self.size.is_empty() { Size::ALL.to_vec() } else { self.size.clone() };
        sizes.sort();
        sizes.dedup();
        sizes
    }
}

/// Generates one cluster and says where it is.
pub fn generate(arguments: &Arguments) -> Result<()> {
    let folder = arguments.dir.as_deref().context("say where with --dir")?;
    let layout = if arguments.indent { Layout::Indented } else { Layout::Compact };
    let sizes = arguments.sizes();
    let [size] = sizes.as_slice() else { anyhow::bail!("say which one size to generate with --size") };
    let options = Options { size: *size, seed: arguments.seed, layout, gzip: arguments.gzip };
    let cluster = generate::generate(&options, folder)?;
    let rows: Vec<Vec<String>> = cluster
        .lists
        .iter()
        .map(|(plural, bytes, objects)| {
            vec![(*plural).to_owned(), objects.to_string(), format!("{:.2}", *bytes as f64 / 1e6)]
        })
        .collect();
    print!("{}", super::table::render(&["list", "objects", "MB"], &rows));
    println!("\n{:.1} MB of Lists in {}", cluster.bytes() as f64 / 1e6, cluster.dump.display());
    println!(
        "known answers in {}, a chart to ask about in {}",
        cluster.answers.display(),
        cluster.chart.display()
    );
    println!("ask: bailey audit --dump {}", cluster.dump.display());
    Ok(())
}

/// Measures all sizes that were asked for.
pub fn measure(arguments: &Arguments, bailey: &Path, runtime: &Runtime) -> Result<()> {
    let machine = super::machine::facts();
    println!("{}", super::machine::line(&machine));
    let peers = if arguments.peers { Some(Peers::ready()?) } else { None };
    let folder = folder(arguments.dir.as_deref(), runtime)?;
    let bench = Bench {
        bailey,
        peers,
        runtime,
        seed: arguments.seed,
        repeats: arguments.repeats.into(),
        seconds_max: arguments.cap,
        folder: folder.path(),
    };
    let mut all = Vec::new();
    for size in arguments.sizes() {
        let measured = bench.size(size)?;
        print!("{}", report::size(&measured));
        all.push(measured);
    }
    print!("{}{}", report::growth(&all), report::targets(&all));
    if let Some(path) = &arguments.json {
        let after = super::machine::facts();
        let report = json!({"machine": machine, "seed": arguments.seed, "sizes": all, "machineAfter": after});
        let text = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(path, text).with_context(|| format!("write `{}`", path.display()))?;
    }
    Ok(())
}

/// Makes a folder that goes with this process, also when Ctrl-C ends it: what is in it is large.
fn folder(parent: Option<&Path>, runtime: &Runtime) -> Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("bailey-bench-access-");
    let folder = match parent {
        Some(parent) => std::fs::create_dir_all(parent).and_then(|()| builder.tempdir_in(parent)),
        None => builder.tempdir(),
    };
    let folder = folder.context("make a folder for generated clusters")?;
    let path = folder.path().to_owned();
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            // Programs that were being measured got the same signal; there is nobody to tell if this fails.
            let _removed = std::fs::remove_dir_all(path);
            std::process::exit(130);
        }
    });
    Ok(folder)
}
