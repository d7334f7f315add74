//! `cargo xtask bench`: what Bailey costs: its rails on a real control plane, its analyser on generated
//! clusters, its image cache and its tunnel beside others.
//!
//! What is compared runs interleaved on one control plane, and the ratio counts: the machine may be shared, so
//! a time alone says little. INVARIANT: nothing here fails because something is slow.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

mod access;
mod cache;
mod effect;
mod gateway;
mod machine;
mod operator;
mod rails;
mod requests;
mod scene;
mod stats;
mod table;
mod writes;

use crate::command::{self, cargo};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(clap::Subcommand)]
enum Benchmark {
    /// Measures writes with and without the rails, and the operator at 100 tenants of 20 namespaces.
    Guardrails(Guardrails),
    /// Measures how fast Bailey says who reaches which Secret, on generated clusters of four sizes.
    Access(access::Arguments),
    /// Measures the image cache beside nginx and the distribution registry.
    Cache(cache::Arguments),
    /// Measures the tunnel beside TLS for each stream, and nginx.
    Gateway(gateway::Arguments),
    /// Carries streams over TLS; a benchmark compares with it.
    #[command(hide = true)]
    Splice(gateway::SpliceArguments),
    /// Runs a program and prints what it used; the other benchmarks call it.
    #[command(hide = true)]
    Clock(access::ClockArguments),
}

#[derive(clap::Args)]
struct Guardrails {
    /// Takes a minute or two instead of a quarter of an hour; its ratios are rough.
    #[arg(long)]
    quick: bool,
    /// Writes everything that was measured to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measures one part only.
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Runs this program instead of building Bailey.
    #[arg(long, value_name = "PROGRAM")]
    bailey: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Writes to the API server, with and without the rails.
    Writes,
    /// The operator: from nothing to ready, memory, and time to effect.
    Operator,
}

/// Measures, in an optimised build of itself: a slow client would hide what the server does.
pub fn run(arguments: &Arguments) -> Result<()> {
    let bailey = match &arguments.benchmark {
        Benchmark::Guardrails(guardrails) => guardrails.bailey.as_deref(),
        Benchmark::Access(access) if access.generates_only() => return access::generate(access),
        Benchmark::Access(access) => access.bailey(),
        Benchmark::Cache(cache) => cache.bailey(),
        Benchmark::Gateway(gateway) => gateway.bailey(),
        Benchmark::Splice(splice) => return gateway::splice(splice),
        Benchmark::Clock(clock) => return access::clock(clock),
    };
    if cfg!(debug_assertions) {
        return optimised(bailey);
    }
    let Some(bailey) = bailey else { return optimised(None) };
    let bailey = bailey.canonicalize().with_context(|| format!("find `{}`", bailey.display()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match &arguments.benchmark {
        Benchmark::Guardrails(guardrails) => runtime.block_on(measure(guardrails, &bailey)),
        Benchmark::Access(access) => access::measure(access, &bailey, &runtime),
        Benchmark::Cache(cache) => runtime.block_on(cache::measure(cache, &bailey)),
        Benchmark::Gateway(gateway) => runtime.block_on(gateway::measure(gateway, &bailey)),
        Benchmark::Splice(splice) => gateway::splice(splice),
        Benchmark::Clock(clock) => access::clock(clock),
    }
}

async fn measure(arguments: &Guardrails, bailey: &Path) -> Result<()> {
    let machine = machine::facts();
    println!("{}", machine::line(&machine));
    let mut report = json!({ "machine": machine, "quick": arguments.quick });
    let wants = |part| arguments.part.is_none_or(|only| only == part);
    if wants(Part::Writes) {
        add(&mut report, "writes", writes::measure(arguments.quick).await?);
    }
    if wants(Part::Operator) {
        add(&mut report, "operator", operator::measure(bailey, arguments.quick).await?);
    }
    add(&mut report, "machineAfter", machine::facts());
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&report)? + "\n";
        tokio::fs::write(path, text).await.with_context(|| format!("write `{}`", path.display()))?;
    }
    Ok(())
}

fn add(report: &mut Value, name: &str, part: Value) {
    if let Some(report) = report.as_object_mut() {
        report.insert(name.to_owned(), part);
    }
}

/// Builds both programs with optimisation and runs the same command in the one of them.
fn optimised(bailey: Option<&Path>) -> Result<()> {
    eprintln!("building optimised programs; the first time takes some minutes");
    let arguments = [
        "build",
        "--release",
        "--locked",
        "--package",
        "xtask",
        "--package",
        "bailey",
        "--message-format=json-render-diagnostics",
    ];
    let messages = command::output(&mut cargo(&arguments)).context("build with optimisation")?;
    let messages = String::from_utf8_lossy(&messages).into_owned();
    let built = |name| program(&messages, name).with_context(|| format!("cargo names no program `{name}`"));
    let mut again = Command::new(built("xtask")?);
    again.args(std::env::args_os().skip(1));
    if bailey.is_none() {
        again.arg("--bailey").arg(built("bailey")?);
    }
    let status = again.status().context("start the optimised build")?;
    if !status.success() {
        bail!("the benchmark failed");
    }
    Ok(())
}

/// Finds a program among the messages of cargo, one JSON object a line.
fn program(messages: &str, name: &str) -> Option<PathBuf> {
    let values = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let named = values.filter(|value| value.pointer("/target/name").is_some_and(|found| found == name));
    named.filter_map(|value| Some(PathBuf::from(value.get("executable")?.as_str()?))).next_back()
}
