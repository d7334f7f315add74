//! `bailey gateway` and `bailey agent` from files, as processes: what they say, how they end, and what they refuse.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use bailey_issuer::authority::Authority;
use bailey_testkit::Process;
use bailey_tunnel::names::{ClusterUid, Identity, InstallationName, Party};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::program;

const UID: &str = "0b4c2e5a-0a3c-4f43-8c9e-0d5b7a1e9f11";
const LABEL: &str = "5f1e0c9a7b3d4e2f8a6c1b0d9e7f3a25";
const PATIENCE: Duration = Duration::from_secs(30);

/// Writes certificates, and the directory with a service at a backend.
fn files(folder: &Path, backend: SocketAddr) {
    let installation = InstallationName::new("atlas").unwrap();
    let kept = Authority::create(&installation, SystemTime::now()).unwrap();
    let authority = Authority::open(installation.clone(), &kept).unwrap();
    std::fs::write(folder.join("ca.crt"), authority.bundle()).unwrap();
    for (name, party) in
        [("gateway", Party::Gateway), ("agent", Party::Cluster(ClusterUid::new(UID).unwrap()))]
    {
        let identity = Identity { installation: installation.clone(), party };
        let (certificate, key) =
            authority.own(&identity, SystemTime::now(), Duration::from_secs(3600)).unwrap();
        std::fs::write(folder.join(format!("{name}.crt")), certificate).unwrap();
        std::fs::write(folder.join(format!("{name}.key")), key.as_bytes()).unwrap();
    }
    directory(folder, backend, &[UID]);
}

fn directory(folder: &Path, backend: SocketAddr, clusters: &[&str]) {
    let clusters = clusters.join(", ");
    let text = format!(
        "installation: atlas\nclusters:\n  - {{uid: {UID}, name: org/edge, sniLabel: {LABEL}}}\nservices:\n  \
         - {{name: images, backend: '{backend}', agentPort: 0, clusters: [{clusters}]}}\n"
    );
    std::fs::write(folder.join("directory.yaml"), text).unwrap();
}

fn gateway(folder: &Path) -> Process {
    let arguments = [
        "gateway",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--directory",
        "directory.yaml",
        "--certificate",
        "gateway.crt",
        "--key",
        "gateway.key",
        "--bundle",
        "ca.crt",
    ];
    Process::start("gateway", &program(), arguments, folder).unwrap()
}

fn agent(folder: &Path, gateway: &str) -> Process {
    let bundle = std::fs::read_to_string(folder.join("ca.crt")).unwrap();
    let config = json!({
        "installation": "atlas", "cluster": UID, "sniLabel": LABEL, "gateways": [gateway], "bundle": bundle,
    });
    std::fs::write(folder.join("agent.json"), config.to_string()).unwrap();
    let arguments = [
        "agent",
        "--config",
        "agent.json",
        "--certificate",
        "agent.crt",
        "--key",
        "agent.key",
        "--listen",
        "127.0.0.1",
        "--admin",
        "127.0.0.1:0",
    ];
    Process::start("agent", &program(), arguments, folder).unwrap()
}

/// Waits for a line in the log of a process, and gives what is found in it.
fn told<T>(process: &mut Process, find: impl Fn(&str) -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        process.check().unwrap();
        if let Some(found) = process.log().lines().find_map(&find) {
            return found;
        }
        assert!(Instant::now() < deadline, "never said: {}", process.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn address(line: &str, key: &str) -> Option<String> {
    serde_json::from_str::<Value>(line).ok()?.get(key)?.as_str().map(str::to_owned)
}

fn offered(line: &str) -> Option<SocketAddr> {
    line.contains("offers a service")
        .then(|| line.split("address=").nth(1))??
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_and_agent_run_from_files_and_end_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let backend = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _over = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    files(folder.path(), backend);
    let mut gateway = gateway(folder.path());
    let listens = told(&mut gateway, |line| address(line, "listen"));
    let mut agent = agent(folder.path(), &listens);
    let service = told(&mut agent, offered);
    let mut client = TcpStream::connect(service).await.unwrap();
    client.write_all(b"hello").await.unwrap();
    let mut back = [0; 5];
    tokio::time::timeout(PATIENCE, client.read_exact(&mut back)).await.unwrap().unwrap();

    // What Prometheus reads of both, and whether they are ready.
    for (process, metric) in
        [(&mut gateway, "bailey_gateway_sessions"), (&mut agent, "bailey_agent_service_ready")]
    {
        let admin = told(process, |line| address(line, "admin"));
        let ready = ask(&admin, "/readyz").await;
        assert!(ready.contains("200 OK"), "{ready}");
        assert!(ask(&admin, "/metrics").await.contains(metric));
    }

    // A directory that is none leaves the last; one that grants nothing ends what goes on.
    std::fs::write(folder.path().join("directory.yaml"), "installation: [").unwrap();
    told(&mut gateway, |line| line.contains("the last directory is kept").then_some(()));
    client.write_all(b"still").await.unwrap();
    tokio::time::timeout(PATIENCE, client.read_exact(&mut back)).await.unwrap().unwrap();
    directory(folder.path(), backend, &[]);
    let end = tokio::time::timeout(PATIENCE, client.read(&mut back)).await.unwrap();
    assert!(matches!(end, Ok(0) | Err(_)));

    assert!(agent.terminate().unwrap().success());
    assert!(gateway.terminate().unwrap().success());
    for process in [&agent, &gateway] {
        assert!(!process.log().contains("PRIVATE KEY"));
    }
}

async fn ask(admin: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(admin).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[test]
fn what_cannot_be_used_is_refused_by_name_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path(), "127.0.0.1:1".parse().unwrap());
    let run = |arguments: &[&str]| {
        let output = Command::new(program()).args(arguments).current_dir(folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let gateway = |directory, certificate| {
        let files = [
            "--directory",
            directory,
            "--certificate",
            certificate,
            "--key",
            "gateway.key",
            "--bundle",
            "ca.crt",
        ];
        run(&[&["gateway", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"][..], &files].concat())
    };
    std::fs::write(folder.path().join("typo.yaml"), "installation: atlas\nclusterz: []\n").unwrap();
    let twice = "installation: atlas\nservices: [{name: a, backend: b, agentPort: 1}, {name: a, backend: b, agentPort: 2}]";
    std::fs::write(folder.path().join("twice.yaml"), twice).unwrap();
    std::fs::write(folder.path().join("agent.json"), r#"{"installation":"atlas","cluster":"x"}"#).unwrap();
    for ((code, text), said) in [
        (gateway("none.yaml", "gateway.crt"), "none.yaml"),
        (gateway("typo.yaml", "gateway.crt"), "clusterz"),
        (gateway("twice.yaml", "gateway.crt"), "the service `a` is there twice"),
        (gateway("directory.yaml", "agent.crt"), "the key does not go with the certificate"),
        (gateway("directory.yaml", "directory.yaml"), "there is no certificate in the PEM"),
        (run(&["agent", "--config", "agent.json"]), "`x` is no UID of a Cluster"),
        (run(&["agent", "--config", "none.json"]), "none.json"),
        (run(&["gateway", "--bundle", "ca.crt"]), "--installation"),
        (
            run(&["issuer", "--installation", "Atlas!", "--gateway", "x:1", "--kubeconfig", "none"]),
            "label of DNS",
        ),
    ] {
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(said), "`{said}` is not in: {text}");
    }
}
