//! Child processes that cannot be left behind.
//!
//! A child is killed when its owner drops it, and by the kernel when this whole process dies, however it
//! dies. The second needs `setpriv` (util-linux); where there is none, only the first holds.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};

use anyhow::{Context as _, Result};

use crate::tools;

/// A running child with its log file.
pub struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program whose output is appended to `NAME.log` in a folder.
    pub fn start<I, S>(name: &'static str, program: &Path, args: I, folder: &Path) -> Result<Self>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let log = folder.join(format!("{name}.log"));
        let output: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("open `{}`", log.display()))?;
        let mut command = match tools::on_path("setpriv") {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL", "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args(args).current_dir(folder).stdin(Stdio::null());
        command.stdout(output.try_clone()?).stderr(output);
        // A group of its own: Ctrl-C reaches the owner, who ends its children in order.
        command.process_group(0);
        let child = spawn(command).with_context(|| format!("start {name}"))?;
        Ok(Self { name, child, log })
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails with the end of the log when the process has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait().with_context(|| format!("look at {}", self.name))? {
            None => Ok(()),
            Some(status) => anyhow::bail!("{} ended early: {status}\n{}", self.name, self.log_end()),
        }
    }

    /// Returns the last lines of the log.
    pub fn log_end(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines.iter().skip(lines.len().saturating_sub(20)).map(|line| format!("{line}\n")).collect()
    }

    /// Asks the process to end, as a kubelet does, and returns how it ended.
    pub fn terminate(&mut self) -> Result<std::process::ExitStatus> {
        let id = self.id().to_string();
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .with_context(|| format!("signal {}", self.name))?;
        self.child.wait().with_context(|| format!("wait for {}", self.name))
    }

    /// Returns the whole log.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Kills the process and waits until it is gone.
    pub fn kill(&mut self) {
        // It may have ended by itself; either way the wait below collects it.
        let _killed = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Spawn {
    command: Command,
    reply: mpsc::SyncSender<io::Result<Child>>,
}

/// Starts a command from a thread that lives as long as this process.
///
/// The kernel sends the parent-death signal when the *thread* that forked ends, and a test's thread ends
/// long before a control plane that it shares with other tests.
fn spawn(command: Command) -> Result<Child> {
    // One place is enough: each caller waits for its reply.
    static SPAWNER: OnceLock<mpsc::SyncSender<Spawn>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (requests, queue) = mpsc::sync_channel::<Spawn>(1);
        std::thread::spawn(move || {
            for Spawn { mut command, reply } in queue {
                // The caller waits on the other end of this channel.
                let _sent = reply.send(command.spawn());
            }
        });
        requests
    });
    let (reply, child) = mpsc::sync_channel(1);
    spawner.send(Spawn { command, reply }).ok().context("the thread that starts processes has ended")?;
    Ok(child.recv().context("the thread that starts processes has ended")??)
}
