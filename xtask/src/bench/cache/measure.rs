//! What is asked of each server, in turn, round by round.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bailey_testkit::registry::{Blob, Flavour, Image, Layer, Upstream};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustls::ClientConfig;
use serde::Serialize;
use tokio::task::JoinSet;

use super::client::{Answer, Connection, get};
use super::server::{Certificate, Kind, Server};

const KINDS: [Kind; 4] = [Kind::Bailey, Kind::Nginx, Kind::Distribution, Kind::Sendfile];
/// What the upstream gives in a second while whole pulls are measured.
const UPLINK: u64 = 100_000_000;
const FIRST_BYTES: usize = 5;
const MANIFEST_CONNECTIONS: usize = 16;

/// How large everything is.
pub struct Sizes {
    pulls: Vec<u64>,
    crowd: Vec<usize>,
    crowd_blob: u64,
    warm: u64,
    manifests_for: Duration,
}

impl Sizes {
    pub fn full() -> Self {
        Self {
            pulls: vec![100_000_000, 1_000_000_000],
            crowd: vec![1, 10, 100, 1000],
            crowd_blob: 5_000_000,
            warm: 1_000_000_000,
            manifests_for: Duration::from_secs(3),
        }
    }

    pub fn quick() -> Self {
        Self {
            pulls: vec![20_000_000],
            crowd: vec![1, 100],
            crowd_blob: 1_000_000,
            warm: 100_000_000,
            manifests_for: Duration::from_secs(1),
        }
    }
}

/// One line of the table.
#[derive(Serialize)]
pub struct Row {
    pub what: String,
    pub unit: &'static str,
    /// Whether less is better.
    pub less: bool,
    /// What was measured, in the order of rounds.
    pub servers: BTreeMap<&'static str, Vec<f64>>,
}

/// All lines, in the order in which they were measured first.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub struct Results {
    pub rows: Vec<Row>,
}

impl Results {
    fn add(&mut self, kind: Kind, what: &str, unit: &'static str, less: bool, value: f64) {
        let at = self.rows.iter().position(|row| row.what == what).unwrap_or_else(|| {
            self.rows.push(Row { what: what.to_owned(), unit, less, servers: BTreeMap::new() });
            self.rows.len() - 1
        });
        if let Some(row) = self.rows.get_mut(at) {
            row.servers.entry(kind.name()).or_default().push(value);
        }
    }
}

/// Measures everything.
pub async fn all(bailey: &Path, sizes: &Sizes, repeats: u16) -> Result<Results> {
    // A thousand clients, and as many connections of servers, take more files than a shell may open.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).context("ask how many files may be open")?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most).context("let more files be open")?;
    let upstream = Upstream::start().await?;
    let certificate = Certificate::new()?;
    let mut servers = Vec::new();
    for kind in KINDS {
        match tokio::task::block_in_place(|| Server::start(kind, bailey, &upstream, &certificate))? {
            Some(server) => servers.push(server),
            None => eprintln!("left out: {}, whose program is not on PATH", kind.name()),
        }
    }
    let mut bench = Bench { upstream, trust: certificate.trust, sizes, next: 1, results: Results::default() };
    let (warm, manifest) = (bench.blob(sizes.warm), bench.image());
    for server in &servers {
        bench.warm_up(server, &warm, &manifest).await?;
    }
    for round in 1..=repeats {
        for server in &servers {
            eprintln!("round {round} of {repeats}: {}", server.kind.name());
            let kind = server.kind;
            if kind.is_cache()
                && let Err(error) = bench.cold(server).await
            {
                eprintln!("{}: no answer: {error:#}", kind.name());
            }
            bench.warm(server, &warm).await?;
            bench.manifests(server, &manifest).await?;
        }
    }
    for server in &servers {
        bench.results.add(server.kind, "memory of its own", "MiB", true, server.memory());
    }
    Ok(bench.results)
}

struct Bench<'a> {
    upstream: Upstream,
    trust: Arc<ClientConfig>,
    sizes: &'a Sizes,
    /// The seed of the next content, so that nobody has it yet.
    next: u64,
    results: Results,
}

impl Bench<'_> {
    fn seed(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A blob that nobody has, of about this size.
    fn blob(&mut self, size: u64) -> Blob {
        let seed = self.seed();
        // Zeros take no memory of this process; their length makes them another blob.
        let layer = if size > 10_000_000 { Layer::sparse(size + seed) } else { Layer::random(seed, size) };
        let blob = layer.blob();
        self.upstream.push_blob("acme/app", &blob);
        blob
    }

    fn image(&mut self) -> Image {
        let seed = self.seed();
        let image = Image::new(Flavour::Oci, seed, &[Layer::random(seed, 1000)]);
        self.upstream.push("acme/app", None, &image);
        image
    }

    async fn warm_up(&self, server: &Server, blob: &Blob, image: &Image) -> Result<()> {
        let (blob_rest, manifest_rest) = (blob_of(blob), manifest_of(image));
        if !server.kind.is_cache() {
            server.put(&blob_rest, &vec![0; usize::try_from(blob.size())?])?;
            server.put(&manifest_rest, &image.root().bytes)?;
        }
        for rest in [blob_rest, manifest_rest] {
            let path = server.path(&rest);
            get(server.plain, None, &path).await.with_context(|| server.kind.name())?;
            if let Some(address) = server.tls {
                get(address, Some(&self.trust), &path).await.with_context(|| server.kind.name())?;
            }
        }
        Ok(())
    }

    async fn cold(&mut self, server: &Server) -> Result<()> {
        for _ in 0..FIRST_BYTES {
            let image = self.image();
            let answer = self.ask(server, &manifest_of(&image)).await?;
            self.milliseconds(server, "first byte of a manifest", answer.first_byte);
            let blob = self.blob(5_000_000);
            let answer = self.ask(server, &blob_of(&blob)).await?;
            self.milliseconds(server, "first byte of a blob", answer.first_byte);
        }
        for size in self.sizes.pulls.clone() {
            let blob = self.blob(size);
            self.upstream.shape(UPLINK);
            let answer = self.ask(server, &blob_of(&blob)).await;
            self.upstream.shape(None);
            let answer = answer?;
            let least = answer.bytes as f64 / UPLINK as f64;
            let what = format!("whole pull of {} MB", size / 1_000_000);
            self.results.add(server.kind, &what, "× least", true, answer.whole.as_secs_f64() / least);
        }
        for count in self.sizes.crowd.clone() {
            let blob = self.blob(self.sizes.crowd_blob);
            let mut clients = JoinSet::new();
            for _ in 0..count {
                let (address, path) = (server.plain, server.path(&blob_of(&blob)));
                clients.spawn(async move { get(address, None, &path).await });
            }
            let mut failed = 0;
            while let Some(answer) = clients.join_next().await {
                failed += usize::from(answer.context("a client broke off")?.is_err());
            }
            if failed > 0 {
                eprintln!("{}: {failed} of {count} clients got no whole answer", server.kind.name());
            }
            let amplified = self.upstream.bytes_of(blob.digest) as f64 / blob.size() as f64;
            let what = format!("amplification, {count} clients");
            self.results.add(server.kind, &what, "×", true, amplified);
        }
        self.upstream.forget_requests();
        Ok(())
    }

    async fn ask(&self, server: &Server, rest: &str) -> Result<Answer> {
        get(server.plain, None, &server.path(rest)).await
    }

    fn milliseconds(&mut self, server: &Server, what: &str, took: Duration) {
        self.results.add(server.kind, what, "ms", true, took.as_secs_f64() * 1000.0);
    }

    async fn warm(&mut self, server: &Server, blob: &Blob) -> Result<()> {
        let path = server.path(&blob_of(blob));
        let trust = self.trust.clone();
        let addresses = [("plain", Some(server.plain), None), ("TLS", server.tls, Some(&trust))];
        for (how, address, tls) in addresses {
            let Some(address) = address else { continue };
            for count in [1_usize, 8] {
                let (started, cpu) = (Instant::now(), server.cpu());
                let mut clients = JoinSet::new();
                for _ in 0..count {
                    let (path, tls) = (path.clone(), tls.cloned());
                    clients.spawn(async move { get(address, tls.as_ref(), &path).await });
                }
                let mut bytes = 0;
                while let Some(answer) = clients.join_next().await {
                    bytes += answer.context("a client broke off")??.bytes;
                }
                let (took, cpu) = (started.elapsed().as_secs_f64(), server.cpu() - cpu);
                let clients = if count == 1 { "1 client" } else { "8 clients" };
                let megabytes = bytes as f64 / 1e6;
                self.results.add(
                    server.kind,
                    &format!("warm, {clients}, {how}"),
                    "MB/s",
                    false,
                    megabytes / took,
                );
                if count == 8 {
                    let what = format!("processor time, {how}");
                    self.results.add(server.kind, &what, "s/GB", true, cpu / megabytes * 1000.0);
                }
            }
        }
        Ok(())
    }

    async fn manifests(&mut self, server: &Server, image: &Image) -> Result<()> {
        let until = Instant::now() + self.sizes.manifests_for;
        let mut clients = JoinSet::new();
        for _ in 0..MANIFEST_CONNECTIONS {
            let (address, path) = (server.plain, server.path(&manifest_of(image)));
            clients.spawn(async move {
                let mut connection = Connection::open(address, None).await?;
                let mut count = 0_u64;
                while Instant::now() < until {
                    connection.get(&path).await?;
                    count += 1;
                }
                anyhow::Ok(count)
            });
        }
        let mut count = 0;
        while let Some(answered) = clients.join_next().await {
            count += answered.context("a client broke off")??;
        }
        let rate = count as f64 / self.sizes.manifests_for.as_secs_f64();
        self.results.add(server.kind, "manifests that are there", "1/s", false, rate);
        Ok(())
    }
}

fn blob_of(blob: &Blob) -> String {
    format!("blobs/{}", blob.digest)
}

fn manifest_of(image: &Image) -> String {
    format!("manifests/{}", image.digest())
}
