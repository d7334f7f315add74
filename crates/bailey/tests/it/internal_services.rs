//! Services of a management cluster in a workload cluster, on two real control planes with the real binary.
//!
//! Needs root, for a mount namespace in which the gateway resolves the name of a Service: there is no DNS of the cluster.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bailey_testkit::{Access, ControlPlane, Options, Process, apps};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::chart::{chart, helm};
use crate::program;

const PATIENCE: Duration = Duration::from_secs(60);

async fn apply(access: &Access, object: &Value) {
    let output =
        access.kubectl(&["apply", "--server-side", "-f", "-"], Some(&object.to_string())).await.unwrap();
    output.stdout_of_success().unwrap();
}

async fn get(access: &Access, what: &[&str]) -> Value {
    let output = access.kubectl(&[&["get", "-o", "json"], what].concat(), None).await.unwrap();
    serde_json::from_str(&output.stdout).unwrap_or_default()
}

async fn until(access: &Access, what: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = get(access, what).await;
        if is_so(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "never so: {what:?}: {seen:#}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn ready(object: &Value) -> &Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready").unwrap_or(&Value::Null)
}

/// A port that was free a moment ago: two processes have to know each other's before they start.
async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

fn kubeconfig(access: &Access, folder: &Path, name: &str) -> String {
    let path = folder.join(format!("{name}.kubeconfig"));
    access.write_kubeconfig(&path).unwrap();
    path.display().to_string()
}

fn start(name: &'static str, folder: &Path, arguments: &[&str]) -> Process {
    Process::start(name, &program(), arguments, folder).unwrap()
}

/// A management cluster with the chart, its issuer and its gateway, and a workload cluster that knows nothing yet.
struct Site {
    management: ControlPlane,
    workload: ControlPlane,
    gateway: Process,
    issuer: Process,
}

impl Site {
    async fn start(backend: SocketAddr) -> Self {
        let (management, workload) =
            tokio::join!(ControlPlane::start(Options::default()), ControlPlane::start(Options::default()));
        let (management, workload) = (management.unwrap(), workload.unwrap());
        let admin = management.admin();
        let clusters = apps::cluster_api().unwrap().display().to_string();
        admin
            .kubectl(&["apply", "--server-side", "-f", &clusters], None)
            .await
            .unwrap()
            .stdout_of_success()
            .unwrap();
        let [issuer_port, gateway_port] = [free_port().await, free_port().await];
        let address = format!("127.0.0.1:{gateway_port}");
        let values = format!(
            "replicas=0,auditor.enabled=false,internalServices.enabled=true,internalServices.installation=atlas,\
             internalServices.address={address},internalServices.gateway.replicas=0,internalServices.issuer.replicas=0"
        );
        let chart = chart();
        let install =
            ["install", "bailey", &chart, "-n", "bailey-system", "--create-namespace", "--set", &values];
        helm(admin, &install).await.stdout_of_success().unwrap();
        let folder = management.dir().to_owned();
        let issuer = management.service_account("bailey-system", "bailey-issuer").await.unwrap();
        let issuer = kubeconfig(&issuer, &folder, "issuer");
        let listen = format!("127.0.0.1:{issuer_port}");
        let issuer = start(
            "issuer",
            &folder,
            &[
                "issuer",
                "--installation",
                "atlas",
                "--listen",
                &listen,
                "--admin",
                "127.0.0.1:0",
                "--gateway",
                &address,
                "--kubeconfig",
                &issuer,
            ],
        );
        let bundle = until(admin, &["configmap", "bailey-tunnel-ca", "-n", "bailey-system"], |seen| {
            seen["data"]["ca.crt"].is_string()
        })
        .await;
        let bundle_file = folder.join("tunnel-ca.crt");
        std::fs::write(&bundle_file, bundle["data"]["ca.crt"].as_str().unwrap()).unwrap();
        let gateway = gateway(&management, &bundle_file, &listen, &address, backend).await;
        Self { management, workload, gateway, issuer }
    }

    /// Makes a Cluster as Cluster API has it, with the kubeconfig that it writes.
    async fn cluster(&self, name: &str) {
        let admin = self.management.admin();
        apply(admin, &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "org" } }))
            .await;
        apply(
            admin,
            &json!({
                "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
                "metadata": {
                    "name": format!("{name}-kubeconfig"), "namespace": "org",
                    "labels": { "cluster.x-k8s.io/cluster-name": name },
                },
                "stringData": { "value": self.workload.admin().kubeconfig() },
            }),
        )
        .await;
        apply(admin, &json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": name, "namespace": "org", "labels": { "env": "dev" } },
            "spec": {
                "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerCluster", "name": name },
            },
        }))
        .await;
    }

    /// Gives the workload cluster's API server another key for tokens; those from before are worth nothing.
    async fn rotate_signing_key(&mut self) {
        let folder = self.workload.dir();
        let key = rcgen::KeyPair::generate().unwrap();
        std::fs::write(folder.join("sa.key"), key.serialize_pem()).unwrap();
        std::fs::write(folder.join("sa.pub"), key.public_key_pem()).unwrap();
        self.workload.restart_api_server().await.unwrap();
    }

    /// Runs the agent as a pod of the workload cluster would, with the account and the file that it was given.
    async fn agent(&self, name: &'static str) -> Process {
        let folder = self.workload.dir();
        let given =
            until(self.workload.admin(), &["configmap", "bailey-agent", "-n", "bailey-tunnel"], |seen| {
                seen["data"]["agent.json"].is_string()
            })
            .await;
        let config: PathBuf = folder.join(format!("{name}.json"));
        std::fs::write(&config, given["data"]["agent.json"].as_str().unwrap()).unwrap();
        let account = self.workload.service_account("bailey-tunnel", "bailey-agent").await.unwrap();
        let kubeconfig = kubeconfig(&account, folder, name);
        start(
            name,
            folder,
            &[
                "agent",
                "--config",
                &config.display().to_string(),
                "--listen",
                "127.0.0.1",
                "--admin",
                "127.0.0.1:0",
                "--kubeconfig",
                &kubeconfig,
            ],
        )
    }
}

async fn gateway(
    management: &ControlPlane,
    bundle: &Path,
    issuer: &str,
    address: &str,
    backend: SocketAddr,
) -> Process {
    let folder = management.dir();
    let account = management.service_account("bailey-system", "bailey-gateway").await.unwrap();
    let kubeconfig = kubeconfig(&account, folder, "gateway");
    let hosts = folder.join("hosts");
    std::fs::write(&hosts, format!("127.0.0.1 localhost\n{} images.cache.svc\n", backend.ip())).unwrap();
    let script = format!(
        "mount --bind {} /etc/hosts && exec {} gateway --installation atlas --listen {address} --admin 127.0.0.1:0 \
         --issuer {issuer} --bundle {} --kubeconfig {kubeconfig}",
        hosts.display(),
        program().display(),
        bundle.display()
    );
    Process::start("gateway", Path::new("/usr/bin/unshare"), ["--mount", "sh", "-c", &script], folder)
        .unwrap()
}

async fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _over = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    address
}

fn service(port: u16, clusters: &Value) -> Value {
    json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "InternalService",
        "metadata": { "name": "images", "namespace": "bailey-system" },
        "spec": {
            "backend": { "namespace": "cache", "name": "images", "port": port }, "port": 5000, "clusters": clusters,
        },
    })
}

async fn say(stream: &mut TcpStream) {
    stream.write_all(b"hello").await.unwrap();
    let mut back = [0; 5];
    timeout(PATIENCE, stream.read_exact(&mut back)).await.expect("an echo").unwrap();
}

async fn reached(port: u16) -> TcpStream {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await {
            let sent = stream.write_all(b"x").await;
            let read = timeout(Duration::from_secs(15), stream.read(&mut [0])).await;
            if sent.is_ok() && matches!(read, Ok(Ok(1))) {
                return stream;
            }
        }
        assert!(Instant::now() < deadline, "the service is never reached on port {port}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// From nothing to a client in the workload cluster that reaches the service, and back to nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workload_cluster_is_enrolled_from_nothing_and_cut_off_within_a_second() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("skipped: needs root, for a mount namespace in which the gateway finds the backend");
        return;
    }
    let backend = backend().await;
    let mut site = Site::start(backend).await;
    site.cluster("one").await;
    let admin = site.management.admin();
    // Nothing is granted by default.
    apply(admin, &service(backend.port(), &json!({}))).await;
    let seen =
        until(admin, &["internalservice", "images", "-n", "bailey-system"], |seen| ready(seen).is_object())
            .await;
    assert!(ready(&seen)["message"].as_str().unwrap().contains("choose some in spec.clusters"), "{seen:#}");
    let agent = site.agent("agent").await;
    until(admin, &["workloadcluster", "org.one", "-n", "bailey-system"], |seen| {
        ready(seen)["status"] == "True"
    })
    .await;
    let given = get(site.workload.admin(), &["services", "-n", "bailey-tunnel"]).await;
    assert_eq!(
        given["items"].as_array().map(Vec::len),
        Some(0),
        "a service that is not granted is not even known"
    );

    apply(admin, &service(backend.port(), &json!({ "selector": { "matchLabels": { "env": "dev" } } }))).await;
    let inside = until(site.workload.admin(), &["service", "images", "-n", "bailey-tunnel"], |seen| {
        seen["spec"]["ports"][0]["port"] == 5000
    })
    .await;
    let port = u16::try_from(inside["spec"]["ports"][0]["targetPort"].as_u64().unwrap()).unwrap();
    let mut client = reached(port).await;
    say(&mut client).await;
    let seen = until(admin, &["workloadcluster", "org.one", "-n", "bailey-system"], |seen| {
        seen["status"]["services"][0]["ready"] == true
    })
    .await;
    assert_eq!(seen["status"]["path"], "Direct");
    assert!(seen["status"]["certificateNotAfter"].is_string(), "{seen:#}");
    let listed = admin.run_program(&program(), &["clusters", "--color", "never"], None).await.unwrap();
    assert!(listed.success(), "{}", listed.stderr);
    assert!(listed.stdout.contains("org/one  yes    Direct  59m"), "{}", listed.stdout);
    assert!(listed.stdout.contains("1/1       its service answers"), "{}", listed.stdout);
    nothing_secret(&site).await;

    // A key that somebody may have is worth nothing from a moment on; the agent comes back by itself.
    let cut = Instant::now();
    let now = json!({ "spec": { "revokedBefore": now_rfc3339() } }).to_string();
    let patch = ["patch", "workloadcluster", "org.one", "-n", "bailey-system", "--type", "merge", "-p", &now];
    admin.kubectl(&patch, None).await.unwrap().stdout_of_success().unwrap();
    let end = timeout(Duration::from_secs(5), client.read(&mut [0])).await.expect("the session ends");
    assert!(matches!(end, Ok(0) | Err(_)));
    println!("from kubectl patch to the end of the session: {:?}", cut.elapsed());

    let mut client = reached(port).await;
    say(&mut client).await;

    // Its API server changes the key that signs tokens, by itself and without a word.
    drop(agent);
    site.rotate_signing_key().await;
    let admin = site.management.admin();
    let mut agent = site.agent("agent-after-rotation").await;
    let mut client = reached(port).await;
    say(&mut client).await;

    // The Cluster goes, and with it all that its agent could use.
    admin
        .kubectl(&["delete", "cluster", "one", "-n", "org"], None)
        .await
        .unwrap()
        .stdout_of_success()
        .unwrap();
    let end = timeout(Duration::from_secs(5), client.read(&mut [0])).await.expect("the session ends");
    assert!(matches!(end, Ok(0) | Err(_)));
    until(admin, &["workloadclusters", "-n", "bailey-system"], |seen| {
        seen["items"].as_array().is_some_and(Vec::is_empty)
    })
    .await;
    // Made again under its name it is another cluster: the old agent gets nothing.
    site.cluster("one").await;
    until(admin, &["workloadcluster", "org.one", "-n", "bailey-system"], |seen| seen["spec"].is_object())
        .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let old = TcpStream::connect(("127.0.0.1", port)).await;
    if let Ok(mut old) = old {
        let _sent = old.write_all(b"x").await;
        let read = timeout(Duration::from_secs(15), old.read(&mut [0])).await.expect("an end");
        assert!(matches!(read, Ok(0) | Err(_)), "the old agent reaches nothing");
    }
    agent.check().unwrap();
    site.gateway.check().unwrap();
    site.issuer.check().unwrap();
    // What was there is left in order.
    assert!(agent.terminate().unwrap().success());
    assert!(site.issuer.terminate().unwrap().success());
}

/// What the workload cluster was given, and what all three say, holds no key and no token.
async fn nothing_secret(site: &Site) {
    let kinds = "namespaces,serviceaccounts,roles,rolebindings,configmaps,services,secrets";
    let given = get(site.workload.admin(), &[kinds, "-n", "bailey-tunnel"]).await.to_string();
    assert!(given.contains("sniLabel"), "{given}");
    let authority = get(site.management.admin(), &["secret", "bailey-issuer", "-n", "bailey-system"]).await;
    let key = authority["data"]["tls.key"].as_str().unwrap();
    for text in [given, site.gateway.log_end(), site.issuer.log_end()] {
        assert!(!text.contains("PRIVATE KEY") && !text.contains(&key[60..100]), "{text}");
        assert!(!text.contains("eyJhbGciOi"), "a token: {text}");
    }
}

fn now_rfc3339() -> String {
    let output = std::process::Command::new("date")
        .args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d", "+1 second"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
