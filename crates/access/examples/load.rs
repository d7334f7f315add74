//! Loads dumps and says what was read, how fast, and in how much memory:
//! `cargo run --release -p bailey-access --example load -- FILE...`
//!
//! CPU time and memory are read as Linux tells them, and left out elsewhere.

use std::error::Error;
use std::fs::{self, File};
use std::time::Instant;

use bailey_access::{Loader, Snapshot};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<_> = std::env::args().skip(1).collect();
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None);
    let (start, mut bytes) = (Instant::now(), 0);
    for file in &files {
        bytes += fs::metadata(file)?.len();
        loader.source(file);
        loader.load(File::open(file)?)?;
    }
    for ((api_version, kind), count) in loader.counts() {
        println!("{count:>8} {api_version} {kind}");
    }
    loader.finish();
    let wall = start.elapsed().as_secs_f64();
    for gap in &snapshot.gaps {
        println!("gap: {}: {}", gap.what, gap.why);
    }
    let megabytes = bytes as f64 / 1e6;
    println!(
        "{megabytes:.1} MB, {wall:.3} s, {:.0} MB/s, {} names",
        megabytes / wall,
        snapshot.symbols.len()
    );
    if let Some((seconds, peak)) = resources() {
        println!("{seconds:.2} s of CPU, {peak:.1} MB at the peak");
    }
    Ok(())
}

/// CPU seconds and peak memory in MB of this process.
fn resources() -> Option<(f64, f64)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<f64>().ok());
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak: f64 = peak.trim().trim_end_matches(" kB").parse().ok()?;
    Some(((ticks(11)? + ticks(12)?) / 100.0, peak / 1024.0))
}
