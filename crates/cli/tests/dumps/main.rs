//! The analyser's verbs on dumps, through the command line: hostile archives, and faults of other tools that are about
//! what is shown. No API server is needed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy knows test functions, not the functions that they call"
)]

mod archives;
mod shown;

use std::path::{Path, PathBuf};

use bailey_cli::output::Output;
use bailey_cli::{Cli, CliError, Command, answer};
use clap::Parser as _;

/// A folder of files that goes with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, bytes) in files {
            std::fs::write(folder.path(name), bytes).unwrap();
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// What a verb answers about a dump.
fn bailey(arguments: &[&str], dump: &Path) -> Result<Output, CliError> {
    let common = ["bailey", "--color", "never"];
    let dump = ["--dump", dump.to_str().unwrap()];
    let cli = Cli::try_parse_from(common.iter().chain(arguments).chain(&dump)).unwrap();
    let Command::Verb(verb) = &cli.command else { panic!("no verb is a role") };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(answer(&cli.global, verb))
}
