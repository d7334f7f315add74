//! What the numbers were measured on, and how busy it was.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

/// The machine's processors, memory and load now.
pub fn facts() -> Value {
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let memory = kilobytes(&read("/proc/meminfo"), "MemTotal:").unwrap_or_default();
    json!({
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "processor": model.map_or("unknown", |(_, name)| name.trim()),
        "memoryMiB": memory / 1024,
        "load": read("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" "),
    })
}

/// The facts in a line.
pub fn line(facts: &Value) -> String {
    let text =
        |key: &str| facts.get(key).map(|v| v.to_string().trim_matches('"').to_owned()).unwrap_or_default();
    format!(
        "machine: {} cores ({}), {} MiB; load {} before the start",
        text("cores"),
        text("processor"),
        text("memoryMiB"),
        text("load"),
    )
}

/// What a process has used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Resident memory in KiB.
    pub resident: u64,
    /// The most resident memory so far, in KiB.
    pub peak: u64,
    /// Processor time in seconds.
    pub seconds: f64,
}

/// Reads what a process has used so far; nothing where there is no `/proc`.
pub fn usage(id: u32) -> Usage {
    let status = read(&format!("/proc/{id}/status"));
    let stat = read(&format!("/proc/{id}/stat"));
    // The name in parentheses may hold spaces; user and system time are the 12th and 13th word after it.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: u32 = after.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u32>().ok()).sum();
    Usage {
        resident: kilobytes(&status, "VmRSS:").unwrap_or_default(),
        peak: kilobytes(&status, "VmHWM:").unwrap_or_default(),
        // USER_HZ, which Linux fixes at 100 for programs.
        seconds: f64::from(ticks) / 100.0,
    }
}

/// Nanoseconds of processor time of all threads of a process; finer than [`usage`].
pub fn nanoseconds(id: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else { return 0 };
    let of_thread = |path: PathBuf| {
        let text = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        text.split_whitespace().next().and_then(|first| first.parse::<u64>().ok()).unwrap_or_default()
    };
    threads.flatten().map(|thread| of_thread(thread.path())).sum()
}

/// The first of some processes that runs this program.
pub fn running(ids: &[u32], program: &str) -> Option<u32> {
    ids.iter().copied().find(|id| read(&format!("/proc/{id}/comm")).trim() == program)
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
