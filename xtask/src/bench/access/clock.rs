//! Runs a program once and says what it used.
//!
//! The kernel counts the memory of whoever starts a program into that program's peak until it runs, and adds all
//! children of a process up. So each run has a small process of its own that starts just that one: `bench clock`.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

/// How often the end of a program is looked for, which is how exact its wall time is.
const LOOK: Duration = Duration::from_micros(500);

#[derive(clap::Args)]
pub struct ClockArguments {
    /// Ends the program after this many seconds.
    #[arg(long)]
    seconds_max: u64,
    #[arg(long)]
    stdout: PathBuf,
    #[arg(long)]
    stderr: PathBuf,
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    line: Vec<OsString>,
}

/// What a program used.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Used {
    /// Seconds from its start to its end.
    pub wall: f64,
    /// Seconds of processor time in the program and what it waited for.
    pub user: f64,
    pub system: f64,
    /// Its most resident memory in bytes.
    pub peak: u64,
    /// Its exit code; none where a signal ended it.
    pub exit: Option<i32>,
    /// Whether it was ended because it took too long.
    pub capped: bool,
}

impl Used {
    /// Processor time in seconds, of the program and the kernel for it.
    pub fn cpu(&self) -> f64 {
        self.user + self.system
    }
}

/// A program to run, with files for what it prints.
pub struct Run<'a> {
    pub program: &'a Path,
    pub arguments: &'a [OsString],
    pub environment: &'a [(&'a str, OsString)],
    pub stdout: &'a Path,
    pub stderr: &'a Path,
    pub seconds_max: u64,
}

impl Run<'_> {
    /// Runs it in a process that measures it.
    pub fn measure(&self) -> Result<Used> {
        let mut clock = Command::new(std::env::current_exe().context("find this program")?);
        clock.args(["bench", "clock", "--seconds-max", &self.seconds_max.to_string()]);
        clock.arg("--stdout").arg(self.stdout).arg("--stderr").arg(self.stderr).arg("--");
        clock.arg(self.program).args(self.arguments);
        clock.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output =
            clock.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("start the clock")?;
        if !output.status.success() {
            bail!("measure `{}`: {}", self.program.display(), output.status);
        }
        serde_json::from_slice(&output.stdout).context("read what the clock says")
    }
}

/// The measuring process: runs one program and prints a line about it.
pub fn clock(arguments: &ClockArguments) -> Result<()> {
    let (program, rest) = arguments.line.split_first().context("a program to run")?;
    let file = |path: &Path| File::create(path).with_context(|| format!("create `{}`", path.display()));
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null());
    command.stdout(file(&arguments.stdout)?).stderr(file(&arguments.stderr)?);
    let used = timed(&mut command, Duration::from_secs(arguments.seconds_max));
    let used = used.with_context(|| format!("run `{}`", Path::new(program).display()))?;
    println!("{}", serde_json::to_string(&used)?);
    Ok(())
}

/// Runs a command to its end. Right only in a process that has waited for no child before.
fn timed(command: &mut Command, cap: Duration) -> io::Result<Used> {
    let start = Instant::now();
    let mut child = command.spawn()?;
    let mut capped = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > cap {
            capped = true;
            child.kill()?;
            break child.wait()?;
        }
        std::thread::sleep(LOOK);
    };
    let wall = start.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(io::Error::from)?;
    // Linux counts in KiB, macOS in bytes.
    let unit = if cfg!(target_os = "linux") { 1024 } else { 1 };
    Ok(Used {
        wall,
        user: seconds(usage.user_time()),
        system: seconds(usage.system_time()),
        peak: u64::try_from(usage.max_rss()).unwrap_or_default() * unit,
        exit: status.code(),
        capped,
    })
}

fn seconds(time: TimeVal) -> f64 {
    // Far below 2^52 in both.
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, cap: Duration) -> Used {
        timed(Command::new("sh").args(["-c", script]).stdout(Stdio::null()), cap).unwrap()
    }

    // One test, since the kernel adds all children of this process up.
    #[test]
    fn a_run_is_counted_and_ended_at_its_cap() {
        let minute = Duration::from_secs(60);
        let quick = shell("exit 7", minute);
        assert_eq!((quick.exit, quick.capped), (Some(7), false));
        assert!(quick.peak > 100 * 1024, "{quick:?}");
        let busy = shell("i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done", minute);
        assert!(busy.cpu() > quick.cpu() && busy.wall > 0.0, "{busy:?}");
        let endless = shell("exec sleep 60", Duration::from_millis(50));
        assert_eq!((endless.exit, endless.capped), (None, true));
    }
}
