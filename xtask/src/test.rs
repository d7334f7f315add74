//! `cargo xtask test`: everything that CI runs, cheapest first.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::command::{self, cargo};
use crate::{generate, report, tools};

/// Runs each check in turn and stops at the first that fails.
pub fn run() -> Result<()> {
    step("format", || command::run(&mut cargo(&["fmt", "--all", "--check"])))?;
    step("lint", || {
        let lint = ["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"];
        command::run(&mut cargo(&lint))
    })?;
    step("dependencies", dependencies)?;
    step("browser", browser)?;
    step("generated files", || generate::run(&generate::Arguments { check: true }))?;
    step("documentation", || {
        let mut document = cargo(&["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
        command::run(document.env("RUSTDOCFLAGS", "--deny warnings"))
    })?;
    step("real programs", tools::run)?;
    step("demo", || command::run(&mut cargo(&["xtask", "demo", "--exit"])))?;
    step("tests", || command::run(&mut cargo(&["test", "--workspace", "--locked"])))?;
    step("reports", || report::run(&report::Arguments::default()))
}

/// Checks licences and bans where cargo-deny is installed, and says so where it is not.
fn dependencies() -> Result<()> {
    let mut probe = cargo(&["deny", "--version"]);
    let installed = silent(&mut probe).status().is_ok_and(|status| status.success());
    if !installed {
        eprintln!("skipped: cargo-deny is not installed (`cargo install --locked cargo-deny`)");
        return Ok(());
    }
    // Advisories need a download of their own, and change without a change here.
    command::run(&mut cargo(&["deny", "--workspace", "check", "licenses", "bans", "sources"]))
}

/// Crates that decide without a cluster, so that a browser can, too.
const IN_BROWSER: [&str; 3] = ["bailey-access", "bailey-guardrails", "bailey-oci"];
const BROWSER: &str = "wasm32-unknown-unknown";

/// Checks that pure crates build for a browser where its target is installed, and says so where it is not.
fn browser() -> Result<()> {
    let mut probe = Command::new("rustc");
    let output = probe.args(["--print", "target-libdir", "--target", BROWSER]).output();
    let folder = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if !folder.is_ok_and(|folder| Path::new(&folder).is_dir()) {
        eprintln!("skipped: the target {BROWSER} is not installed (`rustup target add {BROWSER}`)");
        return Ok(());
    }
    for name in IN_BROWSER {
        command::run(&mut cargo(&["check", "--package", name, "--target", BROWSER, "--locked", "--quiet"]))?;
    }
    Ok(())
}

fn silent(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::null()).stderr(Stdio::null())
}

fn step(name: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("== {name}");
    let started = Instant::now();
    check().with_context(|| format!("check {name}"))?;
    eprintln!("== {name}: passed in {} s", started.elapsed().as_secs());
    Ok(())
}
