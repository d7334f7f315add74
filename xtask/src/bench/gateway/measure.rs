//! What is measured, path after path in each round.

use std::collections::BTreeMap;
use std::path::Path as FilePath;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;
use tokio::task::JoinSet;

use super::backend;
use super::load;
use super::path::{Backends, Clusters, Kind, Path};
use super::splice::stranger;
use crate::bench::stats::quantile;

/// One thing that was measured, of each path.
#[derive(Serialize)]
pub struct Row {
    pub what: String,
    pub unit: &'static str,
    /// Whether less is better.
    pub less: bool,
    pub paths: BTreeMap<&'static str, Vec<f64>>,
}

/// One thing that was measured of the tunnel alone.
#[derive(Serialize)]
pub struct Own {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    /// What was wanted, as text.
    pub wanted: &'static str,
}

#[derive(Serialize, Default)]
pub struct Results {
    pub rows: Vec<Row>,
    pub own: Vec<Own>,
}

struct Sizes {
    bytes: u64,
    rounds: usize,
    opens: usize,
    closes: usize,
}

/// Measures everything so often.
pub async fn all(bailey: &FilePath, quick: bool, repeats: u16) -> Result<Results> {
    let backends = Backends { source: backend::source().await?, echo: backend::echo().await? };
    let sizes = if quick {
        Sizes { bytes: 128 << 20, rounds: 500, opens: 800, closes: 4_000 }
    } else {
        Sizes { bytes: 1 << 30, rounds: 2_000, opens: 4_000, closes: 100_000 }
    };
    let mut rows = Rows::default();
    for round in 0..repeats {
        eprintln!("round {} of {repeats}", round + 1);
        for kind in Kind::ALL {
            match Path::start(kind, bailey, backends)? {
                Some(path) => of_path(&path, &sizes, &mut rows)
                    .await
                    .with_context(|| format!("measure {}", kind.name()))?,
                None => eprintln!("{} is not there, and is left out", kind.name()),
            }
        }
    }
    let mut results = Results { rows: rows.0, own: Vec::new() };
    shares(bailey, backends, &mut results).await?;
    strangers(bailey, backends, quick, &mut results).await?;
    memory(bailey, backends, &sizes, &mut results).await?;
    Ok(results)
}

#[derive(Default)]
struct Rows(Vec<Row>);

impl Rows {
    fn add(&mut self, what: &str, unit: &'static str, less: bool, kind: Kind, value: f64) {
        let row = match self.0.iter_mut().find(|row| row.what == what) {
            Some(row) => row,
            None => {
                self.0.push(Row { what: what.to_owned(), unit, less, paths: BTreeMap::new() });
                let Some(row) = self.0.last_mut() else { return };
                row
            }
        };
        row.paths.entry(kind.name()).or_default().push(value);
    }
}

async fn of_path(path: &Path, sizes: &Sizes, rows: &mut Rows) -> Result<()> {
    let kind = path.kind;
    // The near end may listen before the far end does.
    let mut tries = 0;
    while let Err(error) = load::bulk(path.source, 4, sizes.bytes / 8).await {
        tries += 1;
        if tries == 20 {
            return Err(error.context("warm up"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for streams in [1, 8, 64] {
        let before = path.cpu();
        let time = load::bulk(path.source, streams, sizes.bytes).await?;
        let gigabytes = sizes.bytes as f64 / 1e9;
        rows.add(&format!("{streams} streams"), "MB/s", false, kind, gigabytes * 1e3 / time.as_secs_f64());
        if kind != Kind::Tcp {
            let what = format!("{streams} streams: processor");
            rows.add(&what, "s/GB", true, kind, (path.cpu() - before) / gigabytes);
        }
    }
    for streams in [1, 16] {
        let times = load::small(path.echo, streams, sizes.rounds / streams.min(4)).await?;
        rows.add(&format!("1 KiB, {streams} at a time: median"), "µs", true, kind, quantile(&times, 0.5));
        rows.add(&format!("1 KiB, {streams} at a time: p99"), "µs", true, kind, quantile(&times, 0.99));
    }
    rows.add("opens", "1/s", false, kind, load::opens(path.echo, sizes.opens).await?);
    Ok(())
}

/// One cluster with 64 streams beside nine with one each.
async fn shares(bailey: &FilePath, backends: Backends, results: &mut Results) -> Result<()> {
    let clusters = Clusters::start(bailey, backends, 10)?;
    let mut streams = Vec::new();
    for (number, (source, _)) in clusters.services.iter().enumerate() {
        for _ in 0..if number == 0 { 64 } else { 1 } {
            streams.push((number, load::ready(*source).await?));
        }
    }
    let mut tasks = JoinSet::new();
    for (number, stream) in streams {
        tasks.spawn(async move { anyhow::Ok((number, load::drink(stream, Duration::from_secs(5)).await?)) });
    }
    let mut sums = vec![0_u64; clusters.services.len()];
    while let Some(done) = tasks.join_next().await {
        let (number, bytes) = done??;
        if let Some(sum) = sums.get_mut(number) {
            *sum += bytes;
        }
    }
    let all: u64 = sums.iter().sum();
    let least = sums.iter().skip(1).min().copied().unwrap_or_default();
    let fair = all as f64 / sums.len() as f64;
    results.own.push(Own {
        what: "64 streams beside 9 × 1: least share of the nine".to_owned(),
        value: least as f64 / fair,
        unit: "of fair",
        wanted: "≥ 0.9",
    });
    results.own.push(Own {
        what: "64 streams beside 9 × 1: all together".to_owned(),
        value: all as f64 / 5e6,
        unit: "MB/s",
        wanted: "",
    });
    Ok(())
}

async fn strangers(bailey: &FilePath, backends: Backends, quick: bool, results: &mut Results) -> Result<()> {
    let clusters = Clusters::start(bailey, backends, 1)?;
    let Some((source, _)) = clusters.services.first().copied() else { return Ok(()) };
    let (rate, span) = (100_000_000, Duration::from_secs(if quick { 2 } else { 5 }));
    let alone = load::paced(source, rate, span).await?;
    let count = if quick { 5_000 } else { 50_000 };
    let flood = tokio::spawn(load::strangers(clusters.gateway, stranger()?, count));
    let beside = load::paced(source, rate, span).await?;
    let still = !flood.is_finished();
    let knocks = flood.await?;
    let told = if still { "" } else { " (the flood ended earlier)" };
    results.own.push(Own {
        what: format!("100 MB/s beside strangers: what is left{told}"),
        value: beside as f64 / alone.max(1) as f64,
        unit: "of alone",
        wanted: "≥ 0.95",
    });
    results.own.push(Own { what: "strangers refused".to_owned(), value: knocks, unit: "1/s", wanted: "" });
    Ok(())
}

async fn memory(bailey: &FilePath, backends: Backends, sizes: &Sizes, results: &mut Results) -> Result<()> {
    let clusters = Clusters::start(bailey, backends, 1)?;
    let Some((source, echo)) = clusters.services.first().copied() else { return Ok(()) };
    let mut open = Vec::new();
    for count in [0, 100, 1_000] {
        while open.len() < count {
            open.push(load::ready(source).await?);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (agent, gateway) = clusters.memory();
        let wanted = if count == 100 { "< 64" } else { "" };
        results.own.push(Own {
            what: format!("agent with {count} idle streams"),
            value: agent,
            unit: "MiB",
            wanted,
        });
        let what = format!("gateway with {count} idle streams");
        results.own.push(Own { what, value: gateway, unit: "MiB", wanted: "" });
    }
    drop(open);
    load::opens(echo, sizes.closes / 10).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = clusters.memory();
    load::opens(echo, sizes.closes).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = clusters.memory();
    let count = sizes.closes;
    results.own.push(Own {
        what: format!("agent: growth over {count} streams opened and closed"),
        value: after.0 - before.0,
        unit: "MiB",
        wanted: "≈ 0",
    });
    results.own.push(Own {
        what: format!("gateway: growth over {count} streams opened and closed"),
        value: after.1 - before.1,
        unit: "MiB",
        wanted: "≈ 0",
    });
    Ok(())
}
