//! `cargo xtask tools`: makes the real programs and app sources available.

use anyhow::Result;
use bailey_testkit::{App, Tool, apps, tools};

/// Builds every tool, gets every app's source, and prints where they are.
pub fn run() -> Result<()> {
    for tool in Tool::ALL {
        println!("{:24} {}", tool.name(), tools::path(tool)?.display());
    }
    for app in App::ALL {
        println!("{:24} {}", app.name(), apps::source(app)?.display());
    }
    Ok(())
}
