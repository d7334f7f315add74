//! Runs the programs that tasks are made of.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Returns the root of the checkout.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Returns a `cargo` command in the root of the checkout.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Runs a command to its end and fails when it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    let status = command.status().with_context(|| format!("start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// Runs a command to its end and returns its standard output.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let line = line(command);
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.with_context(|| format!("start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed: {}", output.status);
    }
    Ok(output.stdout)
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words: Vec<_> =
        std::iter::once(program).chain(command.get_args()).map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
