//! `cargo xtask check-report`: opens the HTML reports in a real browser, as `xtask/report/check.mjs` says.
//!
//! Needs Chromium, Node and npm, which not every machine has: without them it says that it is skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::command::{self, cargo, root};

/// Oldest Node that playwright-core runs on.
const NODE_MIN: u32 = 20;
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// The test that writes a page of each kind.
const WRITES_PAGES: &str = "analyse::html::tests::pages_are_written_where_asked";

#[derive(Default, clap::Args)]
pub struct Arguments {
    /// Keeps pictures of all pages in this folder, light and dark, wide and narrow.
    #[arg(long, value_name = "DIR")]
    screenshots: Option<PathBuf>,
    /// Fails where it would be skipped.
    #[arg(long)]
    required: bool,
}

/// Writes the pages of the samples and checks them.
pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = root().join("target/report");
    let browser = match prepare(&folder) {
        Ok(browser) => browser,
        Err(missing) if arguments.required => return Err(missing.context("the reports cannot be checked")),
        Err(missing) => {
            eprintln!("skipped: {missing:#}");
            return Ok(());
        }
    };
    let pages = folder.join("pages");
    empty(&pages)?;
    let write = ["test", "--package", "bailey-cli", "--lib", "--locked", "--quiet", WRITES_PAGES];
    command::run(cargo(&write).env("BAILEY_PAGES_DIR", &pages))?;

    let mut check = Command::new("node");
    check.current_dir(&folder).arg("check.mjs").arg(&pages).arg(browser);
    if let Some(screenshots) = &arguments.screenshots {
        std::fs::create_dir_all(screenshots).with_context(|| format!("create {}", screenshots.display()))?;
        check.arg(std::path::absolute(screenshots).context("find the folder for pictures")?);
    }
    command::run(&mut check)
}

/// Finds the programs and gets the packages; fails with what is missing.
fn prepare(folder: &Path) -> Result<PathBuf> {
    let browser = BROWSERS.iter().find_map(|name| in_path(name));
    let browser = browser.context("chromium is not installed (on Debian: apt-get install chromium)")?;
    let version = Command::new("node").arg("--version").stderr(Stdio::null()).output();
    let version =
        version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let major =
        version.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < NODE_MIN) || in_path("npm").is_none() {
        bail!("node {NODE_MIN} or newer and npm are not installed");
    }
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    for name in ["package.json", "package-lock.json", "check.mjs"] {
        let from = root().join("xtask/report").join(name);
        std::fs::copy(&from, folder.join(name)).with_context(|| format!("copy {}", from.display()))?;
    }
    let mut install = Command::new("npm");
    install.current_dir(folder).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    command::run(&mut install).context("axe-core and playwright-core cannot be had from the npm registry")?;
    Ok(browser)
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("empty {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))
}
