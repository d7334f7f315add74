//! ImageCaches on a real control plane: what the operator makes of them, what the API server refuses, and, where a node
//! can run, the pods themselves, in the management cluster and as in a workload cluster.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bailey_testkit::node::{self, Node, NodeOptions};
use bailey_testkit::registry::{Http, Image, Upstream};
use bailey_testkit::{Access, ControlPlane, Options, Process};
use serde_json::{Value, json};

use crate::chart::{chart, helm};
use crate::offline_pod::straight_to;
use crate::program;

const IMAGE: &str = "registry.example/platform/bailey:test";
const PAUSE: &str = "registry.example/platform/pause:1";

/// A control plane with the chart, and the operator beside it.
struct Site {
    plane: ControlPlane,
    operator: Process,
}

impl Site {
    async fn start() -> Self {
        let plane = ControlPlane::start(Options::default()).await.unwrap();
        let values = "imageCaches.enabled=true,replicas=0,auditor.enabled=false";
        let chart = chart();
        let install = ["install", "bailey", &chart, "-n", "bailey-system", "--create-namespace"];
        let install = [&install[..], &["--set", values]].concat();
        helm(plane.admin(), &install).await.stdout_of_success().unwrap();
        let label = ["label", "ns", "bailey-system", "pod-security.kubernetes.io/enforce=restricted"];
        plane.admin().kubectl(&label, None).await.unwrap().stdout_of_success().unwrap();
        let account = plane.service_account("bailey-system", "bailey-operator").await.unwrap();
        let kubeconfig = plane.dir().join("operator.kubeconfig");
        account.write_kubeconfig(&kubeconfig).unwrap();
        let (image, program) = (format!("BAILEY_CACHE_IMAGE={IMAGE}"), program().display().to_string());
        let kubeconfig = kubeconfig.display().to_string();
        let arguments = [&image, &program, "operator", "--admin", "127.0.0.1:0", "--kubeconfig", &kubeconfig];
        let operator = Process::start("operator", Path::new("/usr/bin/env"), arguments, plane.dir()).unwrap();
        Self { plane, operator }
    }

    fn admin(&self) -> &Access {
        self.plane.admin()
    }

    async fn apply(&self, object: &Value) {
        let arguments = ["apply", "--server-side", "-f", "-"];
        let output = self.admin().kubectl(&arguments, Some(&object.to_string())).await.unwrap();
        output.stdout_of_success().unwrap();
    }

    async fn get(&self, what: &[&str]) -> Value {
        let arguments = [&["get", "-o", "json"], what].concat();
        let output = self.admin().kubectl(&arguments, None).await.unwrap();
        serde_json::from_str(&output.stdout).unwrap_or_default()
    }

    /// Asks again and again until it is so.
    async fn until(&mut self, what: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            self.operator.check().unwrap();
            let seen = self.get(what).await;
            if is_so(&seen) {
                return seen;
            }
            if Instant::now() > deadline {
                let pods = self.admin().kubectl(&["describe", "pods", "-A"], None).await.unwrap();
                panic!("never so: {what:?}: {seen:#}\n{}\n{}", self.operator.log_end(), pods.stdout);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// What the API server says to a change of an ImageCache; nothing is stored.
    async fn refusal(&self, object: &Value) -> String {
        let arguments = ["create", "--dry-run=server", "-f", "-"];
        let output = self.admin().kubectl(&arguments, Some(&object.to_string())).await.unwrap();
        assert!(!output.success(), "accepted: {object}");
        output.stderr
    }
}

fn cache(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "bailey.dev/v1alpha1", "kind": "ImageCache",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "storage": { "size": "1Gi" },
            "upstreams": [
                { "name": "registry.example", "url": "http://registry.example:5000", "dockerConfigSecret": "login" },
                { "name": "docker.io" },
            ],
        },
    })
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_makes_what_runs_a_cache_and_says_how_it_is() {
    let mut site = Site::start().await;
    let made = cache("images", "bailey-system");
    site.apply(&made).await;
    let ns = ["-n", "bailey-system"];
    for kind in ["statefulset", "service", "configmap", "poddisruptionbudget", "networkpolicy"] {
        let what = [&[kind, "images"][..], &ns].concat();
        let seen = site.until(&what, |seen| seen["kind"].is_string()).await;
        assert_eq!(seen["metadata"]["ownerReferences"][0]["kind"], "ImageCache", "{kind}");
    }
    let what = ["imagecache", "images", "-n", "bailey-system"];
    let seen = site.until(&what, |seen| condition(seen, "Ready")["status"] == "False").await;
    assert_eq!(condition(&seen, "Reconciling")["status"], "True");
    let message = condition(&seen, "Ready")["message"].as_str().unwrap();
    assert!(
        message.starts_with("0 of 1 replicas serve. See: kubectl -n bailey-system describe pod"),
        "{message}"
    );
    assert_eq!(seen["status"]["address"], "http://images.bailey-system.svc:5000");
    let columns = site.admin().kubectl(&["get", "imagecaches", "-n", "bailey-system"], None).await.unwrap();
    assert!(columns.stdout.contains("921MiB"), "{}", columns.stdout);

    // It is told to start again when its configuration changes.
    let annotation = |set: &Value| {
        set.pointer("/spec/template/metadata/annotations/bailey.dev~1config").unwrap_or(&Value::Null).clone()
    };
    let before = annotation(&site.get(&[&["statefulset", "images"][..], &ns].concat()).await);
    let mut fresher = made.clone();
    fresher["spec"]["freshness"] = json!({ "tags": "10s" });
    site.apply(&fresher).await;
    let set = [&["statefulset", "images"][..], &ns].concat();
    site.until(&set, |set| !annotation(set).is_null() && annotation(set) != before).await;

    // The operator writes in its own namespace, and says so of an ImageCache elsewhere.
    site.apply(&cache("images", "default")).await;
    let what = ["imagecache", "images", "-n", "default"];
    let seen = site.until(&what, |seen| condition(seen, "Stalled")["status"] == "True").await;
    let message = condition(&seen, "Ready")["message"].as_str().unwrap();
    assert!(message.contains("`bailey-system` only"), "{message}");
    for (question, answer) in [
        ("create statefulsets.apps -n bailey-system", "yes"),
        ("create statefulsets.apps -n default", "no"),
        ("delete statefulsets.apps -n bailey-system", "no"),
        ("get secrets -n bailey-system", "no"),
        ("get configmaps -n bailey-system", "no"),
        ("create pods -n bailey-system", "no"),
    ] {
        let account = site.plane.service_account("bailey-system", "bailey-operator").await.unwrap();
        let words: Vec<_> = ["auth", "can-i"].into_iter().chain(question.split(' ')).collect();
        let output = account.kubectl(&words, None).await.unwrap();
        assert_eq!(output.stdout.trim(), answer, "{question}");
    }

    // What it owns goes with it.
    let delete = ["delete", "imagecache", "images", "-n", "bailey-system"];
    site.admin().kubectl(&delete, None).await.unwrap().stdout_of_success().unwrap();
    site.until(&[&["networkpolicy", "images"][..], &ns].concat(), Value::is_null).await;
    site.until(&set, Value::is_null).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_image_caches_are_refused_with_the_way_out() {
    let site = Site::start().await;
    let cases = [
        ("/spec/storage/budget", json!("2Gi"), "make it at most `size`"),
        ("/spec/storage/size", json!("1G"), "should match"),
        ("/spec/defaultUpstream", json!("quay.io"), "name one of `upstreams`"),
        ("/spec/pins", json!(["debian:13"]), "REGISTRY/REPOSITORY:TAG"),
        ("/spec/bootstrap", json!(["quay.io/acme/dns:1"]), "none of `upstreams`"),
        ("/spec/bootstrap", json!(["registry.example/acme/dns"]), "REGISTRY/REPOSITORY:TAG"),
        ("/spec/clients", json!(["everyone"]), "such as 10.0.0.0/8"),
        ("/spec/upstreams/0/url", json!("ftp://registry.example"), "write it as https://HOST"),
        (
            "/spec/upstreams/0/basicAuth",
            json!({ "username": "u", "passwordSecret": "s" }),
            "either `dockerConfigSecret` or `basicAuth`",
        ),
        (
            "/spec/workloadClusters",
            json!({ "storage": { "size": "1Gi" }, "offline": true }),
            "name the registries it is for",
        ),
        (
            "/spec/workloadClusters",
            json!({ "storage": { "size": "1Gi" }, "parentCaConfigMap": "ca" }),
            "it is for `parent`",
        ),
        ("/metadata/name", json!("9-images"), "a letter first"),
    ];
    for (pointer, value, said) in cases {
        let mut wrong = cache("images", "bailey-system");
        let (above, field) = pointer.rsplit_once('/').unwrap();
        wrong.pointer_mut(above).unwrap()[field] = value.clone();
        let refusal = site.refusal(&wrong).await;
        assert!(refusal.contains(said), "{pointer} = {value}: {refusal}");
    }
    site.apply(&cache("images", "bailey-system")).await;
    let patch = r#"{"spec":{"storage":{"size":"2Gi"}}}"#;
    let patch = ["patch", "imagecache", "images", "-n", "bailey-system", "--type=merge", "-p", patch];
    let refused = site.admin().kubectl(&patch, None).await.unwrap();
    assert!(refused.stderr.contains("make a second ImageCache"), "{}", refused.stderr);
}

/// The example of the documentation: accepted as it is, and what is printed of it is taken by an API server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_is_accepted_and_what_is_printed_of_it_as_well() {
    let site = Site::start().await;
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/cache/image-cache.yaml");
    let example = example.display().to_string();
    let create = ["create", "--dry-run=server", "-f", &example];
    site.admin().kubectl(&create, None).await.unwrap().stdout_of_success().unwrap();
    let namespace = ["create", "namespace", "bailey-images"];
    site.admin().kubectl(&namespace, None).await.unwrap().stdout_of_success().unwrap();
    for (site_name, objects) in [("wc", 7), ("mc", 5)] {
        let printed = Command::new(program())
            .args(["cache", "manifests", "-f", &example, "--for", site_name, "--image", IMAGE])
            .output()
            .unwrap();
        assert!(printed.status.success(), "{printed:?}");
        let printed = String::from_utf8(printed.stdout).unwrap();
        let apply =
            ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"];
        let taken = site.admin().kubectl(&apply, Some(&printed)).await.unwrap().stdout_of_success().unwrap();
        assert_eq!(taken.lines().count(), objects, "{taken}");
    }
}

/// The binary and the libraries that it needs, as an image.
fn image_of_bailey(folder: &Path) -> Image {
    let stripped = folder.join("bailey");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(program()).status();
    if !strip.is_ok_and(|status| status.success()) {
        std::fs::copy(program(), &stripped).unwrap();
    }
    let listed = Command::new("ldd").arg(program()).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let libraries: Vec<PathBuf> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect();
    let names: Vec<_> = libraries.iter().map(|path| path.to_str().unwrap()).collect();
    let mut files = vec![("bailey", stripped.as_path())];
    files.extend(names.iter().zip(&libraries).map(|(name, path)| (*name, path.as_path())));
    Image::runnable(&["/bailey"], &[files]).unwrap()
}

/// A volume for a cache, of no class.
fn volume(name: &str, folder: &Path) -> Value {
    let path = folder.join(name);
    std::fs::create_dir(&path).unwrap();
    // The cache is not root.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&path, open).unwrap();
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "hostPath": { "path": path },
        },
    })
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caches_shims_and_files_of_containerd_come_to_a_real_node() {
    if let Some(why) = node::why_not() {
        eprintln!("skipped: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let upstream = Upstream::start().await.unwrap();
    let pause = node::pause_program(folder.path()).unwrap();
    upstream.push(
        "platform/pause",
        "1",
        &Image::runnable(&["/pause"], &[vec![("pause", pause.as_path())]]).unwrap(),
    );
    upstream.push("platform/bailey", "test", &image_of_bailey(folder.path()));
    straight_to(&upstream, &folder.path().join("hosts"));
    let mut site = Site::start().await;
    site.plane.start_scheduler().await.unwrap();
    let mut options = NodeOptions::new("node", PAUSE);
    options.certs_d = Some(folder.path().join("hosts"));
    let node = Node::start(&site.plane, options).await.unwrap();

    let port = free_port();
    let mut wanted = cache("images", "bailey-system");
    wanted["spec"]["upstreams"] = json!([{ "name": "docker.io" }, { "name": "quay.io" }]);
    wanted["spec"]["workloadClusters"] = json!({
        "storage": { "size": "1Gi" }, "nodePort": port, "registries": ["quay.io"], "offline": true,
        "containerd": "2.4", "parent": "http://images.bailey-system.svc:5000",
    });
    for name in ["one", "two"] {
        site.apply(&volume(name, folder.path())).await;
    }
    site.apply(&wanted).await;
    let what = ["imagecache", "images", "-n", "bailey-system"];
    let seen = site.until(&what, |seen| condition(seen, "Ready")["status"] == "True").await;
    assert_eq!(seen["status"]["readyReplicas"], 1);
    let pod = site.get(&["pod", "images-0", "-n", "bailey-system"]).await;
    let address = format!("{}:5000", pod["status"]["podIP"].as_str().unwrap());
    let answer = Http::new(address.parse().unwrap()).get("/v2/").await.unwrap();
    assert_eq!(answer.status, 200);

    let file = folder.path().join("image-cache.json");
    std::fs::write(&file, wanted.to_string()).unwrap();
    let printed = Command::new(program())
        .args(["cache", "manifests", "--image", IMAGE, "-f"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(printed.status.success(), "{printed:?}");
    let printed = String::from_utf8(printed.stdout).unwrap();
    let apply = ["apply", "--server-side", "-f", "-"];
    site.admin().kubectl(&apply, Some(&printed)).await.unwrap().stdout_of_success().unwrap();
    let ready = |seen: &Value, field: &str| seen["status"][field] == 1;
    site.until(&["statefulset", "images", "-n", "bailey-images"], |seen| ready(seen, "readyReplicas")).await;
    site.until(&["daemonset", "images-shim", "-n", "bailey-images"], |seen| ready(seen, "numberReady")).await;
    let written = node.etc("containerd/certs.d/quay.io/hosts.toml").unwrap();
    assert!(written.contains(&format!("server = \"http://127.0.0.1:{port}/v2/quay.io\"")), "{written}");
    assert!(node.etc("containerd/certs.d/docker.io/hosts.toml").is_none());
    // There is no DNS in this cluster, so no cache can be reached: the shim answers all the same, by closing.
    let node_side = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    tokio::net::TcpStream::connect(node_side).await.unwrap();
    assert!(Http::new(node_side).get("/v2/").await.is_err());
}
