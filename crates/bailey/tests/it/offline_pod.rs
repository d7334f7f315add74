//! Pods on real nodes that get their images through shim and cache: kubelet, containerd and runc, no step left out.
//!
//! The registry is of a name that does not exist, so whatever does not go through the cache fails.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use bailey_testkit::node::{self, Node, NodeOptions};
use bailey_testkit::registry::{Image, Upstream};
use bailey_testkit::{ControlPlane, Options, Process};
use serde_json::{Value, json};

use crate::cache;
use crate::operator::until;
use crate::program;

const REGISTRY: &str = "registry.example";
const PAUSE: &str = "registry.example/platform/pause:1";
const APP: &str = "registry.example/acme/app";

struct Site {
    plane: ControlPlane,
    upstream: Upstream,
    app: Image,
    folder: tempfile::TempDir,
    cache: cache::Cache,
    shim: Process,
}

impl Site {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pause = node::pause_program(folder.path()).unwrap();
        let upstream = Upstream::start().await.unwrap();
        let files = [("pause", pause.as_path())];
        upstream.push("platform/pause", "1", &Image::runnable(&["/pause"], &[files.to_vec()]).unwrap());
        let app = Image::with_ballast(&["/pause"], &files, 1, 20_000_000).unwrap();
        upstream.push("acme/app", "v1", &app);
        let cache = cache::start_at(folder.path(), &upstream, ([127, 0, 0, 1], 0).into());
        let to = cache.listen.to_string();
        let arguments = ["cache", "shim", "--listen", "127.0.0.1:0", "--cache", &to];
        let shim = Process::start("shim", &program(), arguments, folder.path()).unwrap();
        let plane = ControlPlane::start(Options::default()).await.unwrap();
        Self { plane, upstream, app, folder, cache, shim }
    }

    /// Writes what containerd is told with the tool that writes it on nodes.
    fn hosts(&self, to: &str) -> std::path::PathBuf {
        let folder = self.folder.path().join(format!("hosts-{}", to.replace(['/', ':'], "-")));
        let output = Command::new(program())
            .args(["cache", "hosts-toml", "--offline", "--containerd", "2.4", "--registry", REGISTRY])
            .args(["--cache", to, "--dir"])
            .arg(&folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        folder
    }

    fn shim_address(&mut self) -> String {
        let shim = &mut self.shim;
        let ready: Value = until("the shim's address", || {
            shim.check().unwrap();
            shim.log().lines().find_map(|line| serde_json::from_str(line).ok())
        });
        format!("http://{}", ready["listen"].as_str().unwrap())
    }

    async fn node(&self, name: &str, hosts: &Path) -> Node {
        let mut options = NodeOptions::new(name, PAUSE);
        options.certs_d = Some(hosts.to_owned());
        Node::start(&self.plane, options).await.unwrap()
    }

    /// Runs a pod of an image on a node until it runs, and says how long that took and what image it has.
    async fn pod(&self, node: &Node, name: &str, image: &str) -> (Duration, String) {
        let started = Instant::now();
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "nodeName": node.name(), "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": false,
                "containers": [{ "name": "app", "image": image, "imagePullPolicy": "Always" }],
            },
        });
        let admin = self.plane.admin();
        let output = admin.kubectl(&["apply", "-f", "-"], Some(&pod.to_string())).await.unwrap();
        output.stdout_of_success().unwrap();
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        while started.elapsed() < Duration::from_secs(60) {
            let (_, body) = admin.send("GET", &path, None, None).await.unwrap();
            let pod: Value = serde_json::from_str(&body).unwrap();
            if pod["status"]["phase"] == "Running" {
                let address = pod["status"]["podIP"].as_str().unwrap();
                assert!(address.starts_with("10."), "the pod has no address of its own: {address}");
                let image = pod["status"]["containerStatuses"][0]["imageID"].as_str().unwrap();
                return (started.elapsed(), image.to_owned());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let described = admin.kubectl(&["describe", "pod", name], None).await.unwrap();
        panic!("pod {name} does not run:\n{described:?}\n{}", node.log_end());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_starts_on_an_empty_node_while_the_registry_is_away() {
    if let Some(why) = node::why_not() {
        eprintln!("skipped: {why}");
        return;
    }
    let mut site = Site::start().await;
    let direct = site.folder.path().join("direct");
    straight_to(&site.upstream, &direct);
    let shim = site.shim_address();
    let through = site.hosts(&shim);
    let (by_tag, by_digest) = (format!("{APP}:v1"), format!("{APP}@{}", site.app.digest()));

    let node = site.node("direct", &direct).await;
    let (took, _) = site.pod(&node, "direct", &by_tag).await;
    println!("a pod straight from its registry: {} ms", took.as_millis());
    drop(node);

    site.upstream.forget_requests();
    let node = site.node("first", &through).await;
    let (took, image) = site.pod(&node, "first", &by_tag).await;
    println!("through an empty cache: {} ms", took.as_millis());
    assert!(image.ends_with(&site.app.digest().to_string()), "{image}");
    for blob in &site.app.blobs {
        assert_eq!(site.upstream.bytes_of(blob.digest), blob.size());
    }
    drop(node);

    // The uplink is cut, and the node comes back with nothing on its disk.
    site.upstream.close().await;
    let node = site.node("second", &through).await;
    for (name, image) in [("tag", &by_tag), ("digest", &by_digest)] {
        let (took, image) = site.pod(&node, name, image).await;
        println!("offline, an empty node, by {name}: {} ms", took.as_millis());
        assert!(image.ends_with(&site.app.digest().to_string()), "{image}");
    }
    drop(node);

    // And now the cache has to start without the uplink as well.
    let listen = site.cache.listen;
    site.cache.process.kill();
    site.cache = cache::start_at(site.folder.path(), &site.upstream, listen);
    let node = site.node("third", &through).await;
    let (took, image) = site.pod(&node, "third", &by_tag).await;
    println!("offline, an empty node, the cache just started: {} ms", took.as_millis());
    assert!(image.ends_with(&site.app.digest().to_string()), "{image}");
}

/// Writes what lets a node find the registry itself.
pub fn straight_to(upstream: &Upstream, folder: &Path) {
    let folder = folder.join(REGISTRY);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("server = \"{}\"\ncapabilities = [\"pull\", \"resolve\"]\n[host]\n", upstream.url());
    std::fs::write(folder.join("hosts.toml"), text).unwrap();
}
