//! The operator at size: from nothing to ready, what it uses, and how soon a new binding is in effect.
//!
//! The Tenants exist and the operator waits; the clock starts with the Installation. The operator creates the
//! namespaces. Ready is what the status of every Tenant says.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bailey_testkit::{ManagementCluster, Options};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde_json::{Value, json};

use super::machine::{self, Usage};
use super::{effect, requests, scene};

const TENANTS: usize = 100;
const QUICK_TENANTS: usize = 10;
const BINDINGS: usize = 20;
const QUICK_BINDINGS: usize = 5;
const ROOT: &str = "/apis/bailey.dev/v1alpha1";
const DEADLINE: Duration = Duration::from_secs(600);
/// Idle is this long without work.
const IDLE: Duration = Duration::from_secs(5);
const WANTED_SECONDS: f64 = 30.0;
const WANTED_MIB: u64 = 100;

/// Measures, prints, and returns everything.
pub async fn measure(program: &Path, quick: bool) -> Result<Value> {
    let tenants = if quick { QUICK_TENANTS } else { TENANTS };
    let mut cluster = ManagementCluster::stock(program, Options::default(), "bench").await?;
    let admin = cluster.plane.admin().client().await?;
    prepare(&cluster, &admin, tenants).await?;
    cluster.start_operator().await?;
    let operator = cluster.operator_id().context("the operator has no process")?;
    idle(operator).await?;
    let servers = Servers::of(&cluster);
    let (before, servers_before) = (machine::usage(operator), servers.seconds());
    let started = Instant::now();
    requests::create(&admin, &format!("{ROOT}/installations"), &scene::installation()).await?;
    let ready = ready(&admin, tenants, started).await?;
    let at_ready = machine::usage(operator);
    let servers_used = servers.seconds().used_since(&servers_before);
    idle(operator).await?;
    let settled = machine::usage(operator);
    let counts = scrape(&cluster).await?;
    let queues = queues(&admin).await?;
    let effect = effect::measure(&cluster, if quick { QUICK_BINDINGS } else { BINDINGS }).await?;
    idle(operator).await?;
    let after = machine::usage(operator);
    let report = json!({
        "tenants": tenants, "namespaces": tenants * scene::NAMESPACES, "namespacesCreatedByOperator": true,
        "secondsUntilReady": ready, "writesByKind": counts.writes, "writes": counts.total,
        "writesPerSecond": counts.total / ready, "reconciliations": counts.reconciliations,
        "reconciliationSeconds": counts.seconds, "errors": counts.errors,
        "operator": {
            "residentMiBWaiting": mebibytes(before.resident), "residentMiB": mebibytes(settled.resident),
            "residentMiBPeak": mebibytes(settled.peak), "residentMiBAfterBindings": mebibytes(after.resident),
            "processorSecondsUntilReady": at_ready.seconds - before.seconds,
            "processorSecondsUntilIdle": settled.seconds - before.seconds,
        },
        "serversProcessorSecondsUntilReady": servers_used.0, "flowControl": queues, "effect": effect.document(),
    });
    print(&report, &effect, &settled, ready);
    // Waits for processes, which must not happen on a thread of the runtime.
    tokio::task::spawn_blocking(move || drop(cluster)).await.context("end the processes")?;
    Ok(report)
}

/// Installs what `bailey install` prints, and creates the Tenants; nothing acts yet.
async fn prepare(cluster: &ManagementCluster, admin: &Client, tenants: usize) -> Result<()> {
    let manifests = cluster.bailey(&["install"]).await?.stdout_of_success()?;
    cluster.apply(&manifests).await.context("apply what `bailey install` prints")?;
    let crds = cluster.bailey(&["crds"]).await?.stdout_of_success()?;
    let wait = ["wait", "--for=condition=Established", "--timeout=30s", "-f", "-"];
    cluster.plane.admin().kubectl(&wait, Some(&crds)).await?.stdout_of_success()?;
    let collection = format!("{ROOT}/tenants");
    stream::iter(0..tenants)
        .map(|number| {
            let collection = &collection;
            async move { requests::create(admin, collection, &scene::tenant(number)).await.map(drop) }
        })
        .buffer_unordered(8)
        .try_collect::<()>()
        .await
}

/// Seconds until every Tenant is ready.
async fn ready(admin: &Client, tenants: usize, started: Instant) -> Result<f64> {
    let mut said = 0;
    loop {
        let list = requests::get(admin, &format!("{ROOT}/tenants")).await?.unwrap_or_default();
        let items = list.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let count = items.iter().filter(|tenant| is_ready(tenant)).count();
        let seconds = started.elapsed().as_secs_f64();
        if count == tenants {
            return Ok(seconds);
        }
        if count > said {
            eprintln!("operator: {count} of {tenants} tenants ready after {seconds:.1} s");
            said = count;
        }
        if started.elapsed() > DEADLINE {
            bail!("{count} of {tenants} tenants are ready after {seconds:.0} s");
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// Whether the status says so of the newest spec.
pub fn is_ready(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    object.pointer("/status/observedGeneration") == object.pointer("/metadata/generation")
        && conditions.into_iter().flatten().any(|condition| {
            condition.get("type").is_some_and(|kind| kind == "Ready")
                && condition.get("status").is_some_and(|status| status == "True")
        })
}

/// Waits until a process has used next to nothing for a while.
async fn idle(id: u32) -> Result<()> {
    let started = Instant::now();
    let mut before = machine::usage(id).seconds;
    while started.elapsed() < DEADLINE {
        tokio::time::sleep(IDLE).await;
        let now = machine::usage(id).seconds;
        if now - before < 0.05 {
            return Ok(());
        }
        before = now;
    }
    bail!("the operator is still busy after {} s", DEADLINE.as_secs());
}

/// The processes of the control plane.
struct Servers(Vec<u32>);

/// Processor time of controller manager, API server and etcd.
struct Seconds(Vec<f64>);

impl Servers {
    fn of(cluster: &ManagementCluster) -> Self {
        Self(cluster.plane.process_ids())
    }

    fn seconds(&self) -> Seconds {
        Seconds(self.0.iter().map(|id| machine::usage(*id).seconds).collect())
    }
}

impl Seconds {
    fn used_since(&self, before: &Self) -> Self {
        Self(super::stats::paired(&self.0, &before.0, |now, before| now - before))
    }
}

/// What the operator has counted.
#[derive(Default)]
struct Counts {
    writes: BTreeMap<String, f64>,
    total: f64,
    reconciliations: f64,
    seconds: f64,
    errors: f64,
}

/// Reads the operator's metrics; its log says where they are.
async fn scrape(cluster: &ManagementCluster) -> Result<Counts> {
    let log = tokio::fs::read_to_string(cluster.plane.dir().join("operator.log")).await?;
    let address = log.split("admin=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let address: String =
        address.unwrap_or_default().chars().filter(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
    let mut config =
        kube::Config::new(format!("http://{address}").parse().context("the log names no address")?);
    config.connect_timeout = Some(Duration::from_secs(5));
    let text =
        Client::try_from(config)?.request_text(http::Request::get("/metrics").body(Vec::new())?).await?;
    let mut counts = Counts::default();
    for (name, labels, value) in samples(&text) {
        match name {
            "bailey_operator_writes_total" => {
                let kind = labels.split('"').nth(1).unwrap_or_default().to_owned();
                counts.total += value;
                counts.writes.insert(kind, value);
            }
            "bailey_operator_reconciliations_total" => counts.reconciliations = value,
            "bailey_operator_reconciliation_seconds_sum" => counts.seconds = value,
            "bailey_operator_errors_total" => counts.errors += value,
            _ => {}
        }
    }
    Ok(counts)
}

/// The seconds that requests waited in the queues of priority and fairness, and how many were turned away.
async fn queues(admin: &Client) -> Result<Value> {
    let text = admin.request_text(http::Request::get("/metrics").body(Vec::new())?).await?;
    let mut levels = BTreeMap::<String, (f64, f64, f64)>::new();
    for (name, labels, value) in samples(&text) {
        let level = labels.split("priority_level=\"").nth(1).and_then(|l| l.split('"').next());
        let Some(level) = level else { continue };
        let entry = levels.entry(level.to_owned()).or_default();
        match name {
            "apiserver_flowcontrol_request_wait_duration_seconds_sum" => entry.0 += value,
            "apiserver_flowcontrol_dispatched_requests_total" => entry.1 += value,
            "apiserver_flowcontrol_rejected_requests_total" => entry.2 += value,
            _ => {}
        }
    }
    levels.retain(|_, (_, dispatched, _)| *dispatched > 0.0);
    Ok(levels
        .into_iter()
        .map(|(level, (waited, dispatched, rejected))| {
            (level, json!({ "secondsWaited": waited, "dispatched": dispatched, "rejected": rejected }))
        })
        .collect::<serde_json::Map<_, _>>()
        .into())
}

/// Name, labels and value of each line of a metrics page.
fn samples(text: &str) -> impl Iterator<Item = (&str, &str, f64)> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        Some((name, labels, value.parse().ok()?))
    })
}

fn mebibytes(kibibytes: u64) -> u64 {
    kibibytes / 1024
}

fn print(report: &Value, effect: &effect::Effect, settled: &Usage, ready: f64) {
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or_default();
    println!(
        "\noperator: {} tenants x {} namespaces from nothing; the operator creates the namespaces",
        number("/tenants"),
        scene::NAMESPACES
    );
    println!(
        "  ready after {ready:.1} s (wanted {WANTED_SECONDS} s): {} writes, {:.0}/s, in {} reconciliations of {:.1} s in all; {} failed",
        number("/writes"),
        number("/writesPerSecond"),
        number("/reconciliations"),
        number("/reconciliationSeconds"),
        number("/errors")
    );
    println!("  written: {}", report.get("writesByKind").unwrap_or_default());
    println!(
        "  memory: {} MiB idle afterwards (wanted {WANTED_MIB} MB), {} MiB at most, {} MiB before the Installation, {} MiB after the bindings",
        number("/operator/residentMiB"),
        mebibytes(settled.peak),
        number("/operator/residentMiBWaiting"),
        number("/operator/residentMiBAfterBindings")
    );
    println!(
        "  processor: {:.1} s until ready, {:.1} s until idle; controller manager, API server, etcd until ready: {} s",
        number("/operator/processorSecondsUntilReady"),
        number("/operator/processorSecondsUntilIdle"),
        report.get("serversProcessorSecondsUntilReady").unwrap_or_default()
    );
    println!("  flow control: {}", report.get("flowControl").unwrap_or_default());
    print!("{}", effect.table());
    if ready > WANTED_SECONDS {
        println!("missed: ready after {ready:.1} s, wanted {WANTED_SECONDS}");
    }
    if settled.resident * 1024 > WANTED_MIB * 1_000_000 {
        println!("missed: {} MiB resident, wanted {WANTED_MIB} MB", mebibytes(settled.resident));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metrics_page_is_read() {
        let text = "# HELP x y\nx_total{kind=\"Role\"} 3\ny 0.5\n";
        let all: Vec<_> = samples(text).collect();
        assert_eq!(all, [("x_total", "kind=\"Role\"}", 3.0), ("y", "", 0.5)]);
    }

    #[test]
    fn ready_is_what_the_newest_status_says() {
        let object = |observed| {
            json!({
                "metadata": { "generation": 2 },
                "status": { "observedGeneration": observed, "conditions": [{ "type": "Ready", "status": "True" }] },
            })
        };
        assert!(is_ready(&object(2)));
        assert!(!is_ready(&object(1)));
        assert!(!is_ready(&json!({})));
    }
}
