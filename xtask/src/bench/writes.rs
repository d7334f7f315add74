//! Writes to the API server by three principals, without rails and with 1, 10 and 100 tenants in the index.
//!
//! A closed loop: one writer for latency, eight for throughput. Every write is real. All variants run in
//! every round, in rotated order, and are compared with `none` of the same round. Others may use the machine
//! too, so the API server's processor time per write is taken beside the time on the clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bailey_testkit::{ControlPlane, Options};
use futures::stream::{self, StreamExt as _};
use kube::Client;
use serde_json::{Value, json};

use super::rails::{self, Rails, Tenants};
use super::{machine, requests, scene, stats};

mod summary;

const VARIANTS: [Tenants; 4] = [None, Some(1), Some(10), Some(100)];
const SIZES: [usize; 3] = [1, 10, 100];
const WRITERS: usize = 8;
/// Marks what is written, to be removed between variants.
const MARK: &str = "bench";

/// How much is measured.
struct Amount {
    rounds: usize,
    alone: usize,
    together: usize,
}

const FULL: Amount = Amount { rounds: 5, alone: 40, together: 120 };
const QUICK: Amount = Amount { rounds: 2, alone: 20, together: 60 };

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Pod,
    ConfigMap,
    Secret,
    ClusterRole,
}

const KINDS: [Kind; 4] = [Kind::Pod, Kind::ConfigMap, Kind::Secret, Kind::ClusterRole];

/// Somebody who writes.
struct Principal {
    name: &'static str,
    client: Client,
    namespace: String,
}

/// What is compared: who writes what and how.
type Cell = (&'static str, Kind, &'static str);

/// What was seen of one cell with one variant, by round.
#[derive(Default)]
struct Seen {
    /// Milliseconds of every write of a lone writer.
    all: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    /// Writes per second of eight writers.
    rate: Vec<f64>,
    /// Milliseconds of the API server's processors per write of eight writers.
    processor: Vec<f64>,
}

/// What was seen of one cell in one visit.
struct Measured {
    latencies: Vec<f64>,
    rate: f64,
    processor: f64,
}

type Results = BTreeMap<(Cell, Tenants), Seen>;

/// Measures, prints the table, and returns everything.
pub async fn measure(quick: bool) -> Result<Value> {
    let amount = if quick { QUICK } else { FULL };
    let plane = ControlPlane::start(Options::default()).await?;
    let mut rails = Rails::prepare(&plane, &SIZES).await?;
    let principals = principals(&plane).await?;
    let admin = plane.admin().client().await?;
    let server = machine::running(&plane.process_ids(), "kube-apiserver").context("find the API server")?;
    // Connections, caches and the first compilation are not what is asked for.
    let mut serial = 0;
    rails.switch(None).await?;
    let warm = Amount { rounds: 1, alone: 12, together: 40 };
    visit(&principals, server, &warm, &mut serial, |_, _| {}).await?;
    clean(&admin, &principals).await?;
    let mut results = Results::new();
    for round in 0..amount.rounds {
        for variant in rotated(round) {
            rails.switch(variant).await?;
            visit(&principals, server, &amount, &mut serial, |cell, measured| {
                let seen = results.entry((cell, variant)).or_default();
                seen.p50.push(stats::median(&measured.latencies));
                seen.p99.push(stats::quantile(&measured.latencies, 0.99));
                seen.all.extend(measured.latencies);
                seen.rate.push(measured.rate);
                seen.processor.push(measured.processor);
            })
            .await?;
            clean(&admin, &principals).await?;
        }
        eprintln!("writes: round {} of {}", round + 1, amount.rounds);
    }
    plane.stop().await?;
    println!(
        "\nwrites: {} rounds of {} writes by 1 writer (ms) and {} by {WRITERS}, a quarter and half of it for roles; {} bindings switched",
        amount.rounds,
        amount.alone,
        amount.together,
        rails.count()
    );
    print!("{}", summary::text(&results));
    let bytes: BTreeMap<_, _> = rails.index_bytes().into_iter().map(|(n, b)| (n.to_string(), b)).collect();
    Ok(
        json!({ "indexBytes": bytes, "lines": summary::lines(&results), "verdict": summary::verdict(&results) }),
    )
}

fn rotated(round: usize) -> impl Iterator<Item = Tenants> {
    VARIANTS.into_iter().cycle().skip(round % VARIANTS.len()).take(VARIANTS.len())
}

async fn principals(plane: &ControlPlane) -> Result<Vec<Principal>> {
    let admin = plane.admin().client().await?;
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": scene::PLATFORM_NAMESPACE } });
    requests::apply(&admin, &format!("/api/v1/namespaces/{}", scene::PLATFORM_NAMESPACE), &namespace).await?;
    let account =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "bench-controller" } });
    requests::apply(&admin, "/api/v1/namespaces/kube-system/serviceaccounts/bench-controller", &account)
        .await?;
    let subject = json!({ "kind": "ServiceAccount", "namespace": "kube-system", "name": "bench-controller" });
    rails::bind_cluster_admin(&admin, "bench:controller", subject).await?;
    let tenant_namespace = scene::namespace(0, 0);
    for namespace in [scene::PLATFORM_NAMESPACE, &tenant_namespace] {
        wait_for_account(&admin, namespace).await?;
    }
    let platform = plane.user("pia@platform.example", &[scene::PLATFORM_GROUP])?;
    let controller = plane.service_account("kube-system", "bench-controller").await?;
    let tenant = plane.user("ines@t000.example", &[&scene::installers(0)])?;
    Ok(vec![
        Principal {
            name: "platform",
            client: platform.client().await?,
            namespace: scene::PLATFORM_NAMESPACE.to_owned(),
        },
        Principal {
            name: "controller",
            client: controller.client().await?,
            namespace: scene::PLATFORM_NAMESPACE.to_owned(),
        },
        Principal { name: "tenant", client: tenant.client().await?, namespace: tenant_namespace },
    ])
}

/// A pod is refused until its namespace has its account.
async fn wait_for_account(admin: &Client, namespace: &str) -> Result<()> {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
    let started = Instant::now();
    while requests::get(admin, &path).await?.is_none() {
        anyhow::ensure!(
            started.elapsed() < Duration::from_secs(30),
            "namespace `{namespace}` has no account"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Measures every cell once with the rails as they are.
async fn visit(
    principals: &[Principal],
    server: u32,
    amount: &Amount,
    serial: &mut usize,
    mut saw: impl FnMut(Cell, Measured),
) -> Result<()> {
    for principal in principals {
        for kind in KINDS {
            let (alone, together) = amount.of(kind);
            let (first, second) = (*serial, *serial + alone);
            *serial = second + together;
            for verb in ["create", "update"] {
                let latencies = lone(principal, kind, verb, first..second).await?;
                let before = machine::nanoseconds(server);
                let rate = crowd(principal, kind, verb, second..*serial).await?;
                let used = u32::try_from(machine::nanoseconds(server).saturating_sub(before) / 1000)?;
                let processor = f64::from(used) / 1000.0 / f64::from(u32::try_from(together)?);
                saw((principal.name, kind, verb), Measured { latencies, rate, processor });
            }
        }
    }
    Ok(())
}

impl Amount {
    /// Writes by one writer and by all. A tenant waits about 100 ms for each role, whatever the rails: RBAC's
    /// check for escalation lists bindings consistently, and etcd is asked for its progress that often.
    fn of(&self, kind: Kind) -> (usize, usize) {
        match kind {
            Kind::ClusterRole => (self.alone / 4, self.together / 2),
            _ => (self.alone, self.together),
        }
    }
}

/// Milliseconds of each write of one writer.
async fn lone(
    principal: &Principal,
    kind: Kind,
    verb: &str,
    numbers: std::ops::Range<usize>,
) -> Result<Vec<f64>> {
    let mut latencies = Vec::new();
    for number in numbers {
        let started = Instant::now();
        write(principal, kind, verb, number).await?;
        latencies.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(latencies)
}

/// Writes per second of eight writers.
async fn crowd(
    principal: &Principal,
    kind: Kind,
    verb: &str,
    numbers: std::ops::Range<usize>,
) -> Result<f64> {
    let count = u32::try_from(numbers.len())?;
    let started = Instant::now();
    let mut writes =
        stream::iter(numbers).map(|number| write(principal, kind, verb, number)).buffer_unordered(WRITERS);
    while let Some(written) = writes.next().await {
        written?;
    }
    Ok(f64::from(count) / started.elapsed().as_secs_f64())
}

async fn write(principal: &Principal, kind: Kind, verb: &str, number: usize) -> Result<()> {
    let collection = kind.collection(&principal.namespace);
    let name = format!("bench-{number:07}");
    let json = "application/json";
    let client = &principal.client;
    let written = if verb == "create" {
        requests::succeed(client, "POST", &collection, json, kind.body(&name).to_string().into_bytes()).await
    } else {
        let patch = br#"{"metadata":{"annotations":{"bench.example/seen":"yes"}}}"#.to_vec();
        requests::succeed(client, "PATCH", &format!("{collection}/{name}"), requests::MERGE, patch).await
    };
    written.map(drop).with_context(|| format!("{verb} {kind:?} as {}", principal.name))
}

impl Kind {
    fn collection(self, namespace: &str) -> String {
        match self {
            Self::Pod => format!("/api/v1/namespaces/{namespace}/pods"),
            Self::ConfigMap => format!("/api/v1/namespaces/{namespace}/configmaps"),
            Self::Secret => format!("/api/v1/namespaces/{namespace}/secrets"),
            Self::ClusterRole => "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(),
        }
    }

    /// An object of a usual size. The role asks for what a tenant holds anyway, so that it may also be
    /// created where nothing scopes it.
    fn body(self, name: &str) -> Value {
        let metadata = json!({ "name": name, "labels": { MARK: "yes", "app.kubernetes.io/name": "bench" } });
        let text = "value ".repeat(40);
        match self {
            Self::Pod => json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                "spec": { "automountServiceAccountToken": false, "containers": [{
                    "name": "app", "image": "registry.example/app:1",
                    "resources": { "requests": { "cpu": "10m", "memory": "16Mi" } },
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "runAsNonRoot": true,
                        "capabilities": { "drop": ["ALL"] }, "seccompProfile": { "type": "RuntimeDefault" },
                    },
                }]},
            }),
            Self::ConfigMap => {
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "a": text, "b": text } })
            }
            Self::Secret => {
                json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": { "a": text, "b": text } })
            }
            Self::ClusterRole => json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata,
                "rules": [{
                    "apiGroups": [bailey_api::GROUP], "resources": ["tenants"],
                    "resourceNames": [scene::tenant_name(0)], "verbs": ["get"],
                }],
            }),
        }
    }
}

/// Removes what was written, so that every variant starts from the same.
async fn clean(admin: &Client, principals: &[Principal]) -> Result<()> {
    let mut collections: Vec<_> =
        principals.iter().flat_map(|p| KINDS.map(|kind| kind.collection(&p.namespace))).collect();
    collections.sort();
    collections.dedup();
    for collection in collections {
        let path = format!("{collection}?labelSelector={MARK}&gracePeriodSeconds=0");
        requests::delete(admin, &path).await?;
    }
    Ok(())
}
