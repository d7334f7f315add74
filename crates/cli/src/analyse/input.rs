//! From the flags to what the analyser works on: dumps or a cluster, and what belongs to whom.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use bailey_access::{Access, Customers, Ledger, Preset, SecretValues, Snapshot};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};

use super::args::{DumpArgument, FingerprintArguments, InputArguments, WhoseArguments};
use super::{fingerprint, select::Names};
use crate::args::Global;
use crate::dump::load_dumps;
use crate::{CliError, report};

/// What was read, and how what belongs to whom is known.
pub struct Loaded {
    /// What was read.
    pub snapshot: Snapshot,
    /// What belongs to whom.
    pub customers: Customers,
    /// Which credentials lie where, if that was asked for.
    pub ledger: Option<Ledger>,
    /// What people should know of it.
    pub hints: Vec<String>,
}

impl Loaded {
    /// Reads the dumps, or the cluster if there are none.
    pub async fn read(
        global: &Global,
        arguments: &InputArguments,
        clock: &mut Clock,
    ) -> Result<Self, CliError> {
        let mut ledger = fingerprint::ledger(&arguments.fingerprint)?;
        let values = ledger.as_mut().map(|ledger| ledger as &mut dyn SecretValues);
        let mut snapshot = if arguments.dumps.is_empty() {
            live(global, arguments.chunk.chunk_size, values).await?
        } else {
            if global.as_user.is_some() || global.context.is_some() || global.kubeconfig.is_some() {
                let message = "with --dump no cluster is asked, so --kubeconfig, --context and --as mean nothing; leave them out";
                return Err(CliError::Usage(message.to_owned()));
            }
            dumps(&arguments.dumps, values)?
        };
        if let Some(ledger) = &ledger {
            snapshot.gaps.extend(ledger.gaps(&snapshot));
        }
        clock.lap("load");
        Self::of(snapshot, ledger, &arguments.whose)
    }

    /// Reads a dump.
    pub fn dump(
        path: &Path,
        whose: &WhoseArguments,
        fingerprint: &FingerprintArguments,
    ) -> Result<Self, CliError> {
        let mut ledger = fingerprint::ledger(fingerprint)?;
        let values = ledger.as_mut().map(|ledger| ledger as &mut dyn SecretValues);
        let mut snapshot = dumps(&[DumpArgument { name: None, path: path.to_owned() }], values)?;
        if let Some(ledger) = &ledger {
            snapshot.gaps.extend(ledger.gaps(&snapshot));
        }
        Self::of(snapshot, ledger, whose)
    }

    /// Says what of a snapshot belongs to whom.
    pub fn of(snapshot: Snapshot, ledger: Option<Ledger>, whose: &WhoseArguments) -> Result<Self, CliError> {
        let (customers, hints) = customers(&snapshot, whose)?;
        Ok(Self { snapshot, customers, ledger, hints })
    }

    /// The names that a filter may have.
    pub fn names(&self) -> Names {
        let namespaces = self.snapshot.clusters.iter().flat_map(|cluster| &cluster.namespaces);
        let name = |symbol| self.snapshot.symbols.name(symbol).to_owned();
        Names {
            namespaces: namespaces.map(|namespace| name(namespace.name)).collect(),
            customers: self.customers.customers.keys().cloned().collect::<BTreeSet<_>>(),
        }
    }

    /// The analysis.
    pub fn close(self, clock: &mut Clock) -> Access {
        let access = Access::new(self.snapshot, self.customers);
        Self::closed(access, self.ledger.as_ref(), clock)
    }

    /// The analysis of a state that another has become.
    pub fn close_after(self, before: &Access, clock: &mut Clock) -> Access {
        let access = before.then(self.snapshot, self.customers);
        Self::closed(access, self.ledger.as_ref(), clock)
    }

    fn closed(mut access: Access, ledger: Option<&Ledger>, clock: &mut Clock) -> Access {
        if let Some(ledger) = ledger {
            access = access.with_credentials(ledger);
        }
        clock.lap("close");
        let (nodes, edges, conjunctions) = access.size();
        clock.graph = json!({"nodes": nodes, "edges": edges, "conjunctions": conjunctions});
        access
    }
}

/// What belongs to whom: by a file, a preset, the Tenants, or the preset that this looks like, in this order.
fn customers(snapshot: &Snapshot, whose: &WhoseArguments) -> Result<(Customers, Vec<String>), CliError> {
    if let Some(path) = &whose.tenants {
        let text = read(path)?;
        let file = Customers::from_file(&text, &path.display().to_string())
            .map_err(|error| CliError::Usage(first_line(&report(&error))))?;
        let mut customers = file.customers;
        customers.add_clusters(snapshot);
        // People list namespaces and groups; that a repository has the customer's name says the rest.
        customers.add_sources_by_name(snapshot, &[]);
        return Ok((customers, file.hints));
    }
    if let Some(name) = &whose.preset {
        let preset = Preset::named(name)
            .ok_or_else(|| CliError::Usage(format!("there is no preset `{name}`; see --help")))?;
        return Ok((preset.customers(snapshot), Vec::new()));
    }
    if let Some(mut customers) = Customers::from_objects(snapshot) {
        customers.add_clusters(snapshot);
        return Ok((customers, Vec::new()));
    }
    if let Some(preset) = Preset::detect(snapshot) {
        let hint = format!(
            "there are no Tenants; what belongs to whom is taken from the labels of {} (--preset {}); say it yourself with --tenants FILE",
            preset.title, preset.name
        );
        return Ok((preset.customers(snapshot), vec![hint]));
    }
    let hint = "nothing says what belongs to whom: there are no Tenants, and no labels of a known platform; \
                say it with --tenants FILE";
    Ok((Customers::default(), vec![hint.to_owned()]))
}

/// A file of text.
pub fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|source| CliError::File {
        action: "read",
        path: path.to_owned(),
        source,
    })
}

/// What is wrong, without the lines around it, which may hold a credential.
fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

/// How long the parts of an answer took, for `--timings`.
pub struct Clock {
    start: Instant,
    last: Instant,
    laps: Map<String, Value>,
    graph: Value,
    /// How long changes took, in seconds.
    pub changes: Vec<f64>,
}

impl Clock {
    /// Starts.
    pub fn start() -> Self {
        let now = Instant::now();
        Self { start: now, last: now, laps: Map::new(), graph: Value::Null, changes: Vec::new() }
    }

    /// Ends a part.
    pub fn lap(&mut self, name: &str) {
        let now = Instant::now();
        self.laps.insert(name.to_owned(), json!(seconds(now.duration_since(self.last).as_secs_f64())));
        self.last = now;
    }

    /// The line: seconds of each part and in all, the most memory that was in use, the size of the graph.
    pub fn line(&self, verb: &str) -> String {
        let total = seconds(self.last.duration_since(self.start).as_secs_f64());
        let mut line = json!({
            "schema": "bailey.timings/v1",
            "verb": verb,
            "seconds": self.laps,
            "total": total,
            "peakBytes": peak_bytes(),
            "graph": self.graph,
        });
        if !self.changes.is_empty() {
            let mut sorted = self.changes.clone();
            sorted.sort_by(f64::total_cmp);
            let at = |percent: usize| sorted.get((sorted.len() - 1) * percent / 100).copied().map(seconds);
            let quantiles = [("incremental_p50", at(50)), ("incremental_p99", at(99))];
            if let Some(line) = line.as_object_mut() {
                line.extend(quantiles.map(|(name, value)| (name.to_owned(), json!(value))));
            }
        }
        line.to_string()
    }
}

/// To the microsecond: more is noise.
fn seconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// The most memory that this process has had, where the system tells it.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The snapshot of dumps.
fn dumps(dumps: &[DumpArgument], values: Option<&mut dyn SecretValues>) -> Result<Snapshot, CliError> {
    let named = dumps.iter().map(|dump| (dump.name.as_deref(), dump.path.as_path()));
    let bar = progress();
    let mut told = |path: &Path, bytes: u64| {
        if !bar.is_hidden() {
            bar.set_message(format!("{}, {} MB", path.display(), bytes / 1_000_000));
            bar.tick();
        }
    };
    let snapshot = load_dumps(named, values, &mut told);
    bar.finish_and_clear();
    let mut snapshot = snapshot?;
    snapshot.read_about();
    Ok(snapshot)
}

/// Says on standard error what is being read, where that is a terminal.
fn progress() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} reading {msg}") {
        bar.set_style(style);
    }
    bar
}

/// The snapshot of the cluster that the flags name.
async fn live(
    global: &Global,
    chunk: u32,
    values: Option<&mut dyn SecretValues>,
) -> Result<Snapshot, CliError> {
    let live = crate::client::connect(global).await?.in_chunks(chunk);
    let bar = crate::client::progress();
    let mut progress = |done, all, what: &str| crate::client::advance(&bar, done, all, what);
    let snapshot = bailey_collect::snapshot(&live, global.context.as_deref(), values, &mut progress).await?;
    bar.finish_and_clear();
    Ok(snapshot)
}

#[cfg(test)]
mod tests;
