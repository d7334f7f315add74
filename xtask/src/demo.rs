//! `cargo xtask demo`: a management cluster with two customers, without Bailey and with it.
//!
//! Everything is real but the nodes: there are none, so pods stay pending. INVARIANT: when it ends, however
//! it ends, its processes and its folder are gone.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use tokio::signal::unix::{Signal, SignalKind, signal};

mod apps;
mod attacks;
mod audit;
mod look_around;
mod prepare;
mod reach;
mod releases;
mod report;
mod requests;
mod screen;
mod story;

use prepare::Prepared;
use report::Report;
use screen::{Screen, Tone};
use story::Story;

#[derive(clap::Args)]
pub struct Arguments {
    /// Ends after the story instead of leaving everything running.
    #[arg(long)]
    exit: bool,
    /// Writes outcomes and timings to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Runs this program instead of building Bailey.
    #[arg(long, value_name = "PROGRAM")]
    bailey: Option<PathBuf>,
}

/// Tells the story, and fails when an attack succeeds with Bailey or an app does not install.
pub fn run(arguments: &Arguments) -> Result<()> {
    let screen = Screen::detect();
    let mut report = Report::default();
    let started = Instant::now();
    let prepared = prepare::prepare(arguments.bailey.as_deref())?;
    let seconds = started.elapsed().as_secs_f64();
    screen.took("build", seconds);
    report.took("build", seconds);
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let folder = tempfile::Builder::new().prefix("bailey-demo-").tempdir()?;
        let shown = show(arguments, screen, report, &prepared, folder.path()).await;
        remove(folder).await?;
        shown
    })
}

/// Tells the story and leaves it running, both until a signal.
async fn show(
    arguments: &Arguments,
    screen: Screen,
    report: Report,
    prepared: &Prepared,
    folder: &Path,
) -> Result<()> {
    let mut signals = Signals::new()?;
    let mut story = tokio::select! {
        story = Story::tell(screen, report, prepared, folder) => story?,
        () = signals.any() => bail!("ended by a signal before the end of the story"),
    };
    if let Some(path) = &arguments.json {
        story.report.write(path)?;
    }
    if !story.failures.is_empty() {
        bail!("the demo failed:\n  {}", story.failures.join("\n  "));
    }
    if arguments.exit {
        screen.say("`make demo` without --exit leaves everything running for these.");
    } else {
        look_around::invite(&story, prepared, folder).await?;
        let mut looks = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                () = signals.any() => break,
                _ = looks.tick() => story.cluster.plane.check()?,
            }
        }
        screen.say_in(Tone::Faint, "ending");
    }
    // Waits for processes, which must not happen on a thread of the runtime.
    tokio::task::spawn_blocking(move || drop(story)).await.context("end the processes")
}

/// The signals that end the demo.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}

/// Removes the folder; a program that was killed a moment ago may still have written to it.
async fn remove(folder: TempDir) -> Result<()> {
    let path = folder.keep();
    let mut attempts_left = 20;
    loop {
        match tokio::fs::remove_dir_all(&path).await {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if attempts_left == 0 => {
                return Err(error).with_context(|| format!("remove `{}`", path.display()));
            }
            Err(_) => attempts_left -= 1,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
