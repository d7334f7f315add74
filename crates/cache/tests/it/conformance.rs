//! The conformance suite of the distribution specification, run against the cache.
//!
//! Two of its ways are known: in read-only mode it ends in a panic after it has printed its results, and it asks for a
//! digest header on manifests in a way that no server passes. So its printed results count, and that switch is off.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Stdio;

use bailey_testkit::registry::{Flavour, Image, Layer};
use bailey_testkit::{Tool, tools};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::registry;
use crate::site::{REGISTRY, Site};

/// What came of each test of the suite. Several runs of one test have the same name.
type Results = BTreeMap<String, Outcomes>;

#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    passed: usize,
    failed: usize,
}

/// Runs the suite; what it printed, and what came of its tests.
async fn run(settings: &[(&str, String)]) -> (String, Results) {
    let program = tokio::task::spawn_blocking(|| tools::path(Tool::Conformance)).await.unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::new(program);
    command.current_dir(folder.path()).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder.path());
    command.env("OCI_RESULTS_DIR", folder.path()).env("OCI_TLS", "disabled");
    command.envs(settings.iter().map(|(name, value)| (*name, value)));
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let mut results = Results::new();
    for (name, outcome) in printed.lines().filter_map(|line| line.trim_end().rsplit_once(": ")) {
        let outcomes = results.entry(name.trim().to_owned()).or_default();
        match outcome {
            "Pass" => outcomes.passed += 1,
            "FAIL" | "Error" => outcomes.failed += 1,
            _ => {}
        }
    }
    (printed, results)
}

fn failed(results: &Results) -> Vec<&String> {
    results.iter().filter(|(_, outcomes)| outcomes.failed > 0).map(|(name, _)| name).collect()
}

fn passed(results: &Results) -> usize {
    results.values().map(|outcomes| outcomes.passed).sum()
}

#[tokio::test]
async fn reading_conforms_cold_and_warm() {
    let site = Site::with(|config| config.default_upstream = Some(REGISTRY.parse().unwrap())).await;
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, 20_000), Layer::random(2, 300)]);
    site.upstream.push("acme/app", "latest", &image);
    let signature = Image::artifact("application/vnd.example.signature", 3, Some(image.root()));
    site.upstream.push("acme/app", None, &signature);
    let blobs: Vec<_> = image.blobs.iter().map(|blob| blob.digest.to_string()).collect();
    let off = || "false".to_owned();
    for round in ["cold", "warm"] {
        let (printed, results) = run(&[
            ("OCI_REGISTRY", site.cache.listen.to_string()),
            ("OCI_REPO1", "acme/app".to_owned()),
            ("OCI_REPO2", "acme/app".to_owned()),
            ("OCI_API_PUSH", off()),
            ("OCI_API_BLOBS_DELETE", off()),
            ("OCI_API_MANIFESTS_DELETE", off()),
            ("OCI_API_TAGS_DELETE", off()),
            ("OCI_API_BLOBS_MOUNT_ANONYMOUS", off()),
            ("OCI_API_BLOBS_DIGEST_HEADER", "true".to_owned()),
            ("OCI_RO_DATA_TAGS", "latest".to_owned()),
            ("OCI_RO_DATA_MANIFESTS", image.digest().to_string()),
            ("OCI_RO_DATA_BLOBS", blobs.join(" ")),
            ("OCI_RO_DATA_REFERRERS", image.digest().to_string()),
        ])
        .await;
        assert_eq!(failed(&results), Vec::<&String>::new(), "{round}: {printed}");
        assert!(passed(&results) >= 18, "{round}: {printed}");
    }
}

/// Sends what reads to one server and what writes to another, a connection for each request.
async fn split(reads: SocketAddr, writes: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // A client that is gone ends its own request only.
                let _forwarded = forward(stream, reads, writes).await;
            });
        }
    });
    address
}

async fn forward(mut stream: TcpStream, reads: SocketAddr, writes: SocketAddr) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 2;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let body = buffer.split_off(end + 2);
    let is_read =
        (head.starts_with("GET ") || head.starts_with("HEAD ")) && !head.contains("/blobs/uploads/");
    let mut target = TcpStream::connect(if is_read { reads } else { writes }).await?;
    let kept = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let head: Vec<_> = kept.chain(["connection: close"]).collect();
    target.write_all(format!("{}\r\n\r\n", head.join("\r\n")).as_bytes()).await?;
    target.write_all(&body).await?;
    tokio::io::copy_bidirectional(&mut stream, &mut target).await?;
    Ok(())
}

/// The whole suite pushes as well. What the registry behind passes by itself, it passes when all is read through the
/// cache: ranges, sha512, blobs of no bytes, nested indexes, artifacts, subjects that are missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_registry_passes_by_itself_it_passes_through_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let (_process, registry) = registry::start(folder.path(), None).await;
    let site = Site::with(|config| {
        config.upstreams[0].url = format!("http://{registry}").parse().unwrap();
        config.default_upstream = Some(REGISTRY.parse().unwrap());
    })
    .await;
    let front = split(site.cache.listen, registry).await;
    let mut all = Vec::new();
    for (at, name) in [(registry, "alone"), (front, "cached")] {
        let off = || "false".to_owned();
        let (printed, results) = run(&[
            ("OCI_REGISTRY", at.to_string()),
            ("OCI_REPO1", format!("acme/{name}")),
            ("OCI_REPO2", format!("acme/{name}-other")),
            ("OCI_API_BLOBS_DELETE", off()),
            ("OCI_API_MANIFESTS_DELETE", off()),
            ("OCI_API_TAGS_DELETE", off()),
        ])
        .await;
        assert!(passed(&results) > 30, "{name}: {printed}");
        all.push((printed, results));
    }
    let [(_, alone), (printed, cached)] = all.as_slice() else { panic!() };
    let in_cache = |name: &String| cached.get(name).copied().unwrap_or_default();
    let worse: Vec<_> =
        alone.iter().filter(|(name, outcomes)| in_cache(name).passed < outcomes.passed).collect();
    assert!(worse.is_empty(), "{worse:#?}\n{printed}");
    println!("{} pass alone, {} cached", passed(alone), passed(cached));
}
