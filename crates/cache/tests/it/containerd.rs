//! A real containerd, told of the cache by the files that are written for it.
//!
//! Its images are of registries that do not exist, so whatever does not go through the cache fails.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use bailey_cache::config::UpstreamConfig;
use bailey_oci::hosts_toml::{self, ContainerdVersion, HostsToml, Subject};
use bailey_testkit::registry::{Fault, Flavour, Image, Layer, On};
use bailey_testkit::{Process, Tool, tools};

use crate::site::{Site, until};

struct Node {
    folder: tempfile::TempDir,
    ctr: PathBuf,
    _containerd: Process,
}

impl Node {
    /// Starts a containerd of its own, with nothing but its content store; None where that is not possible.
    async fn start() -> Option<Self> {
        // It wants mounts and a place for its socket.
        if !std::process::Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n") {
            eprintln!("skipped: containerd runs as root only");
            return None;
        }
        let programs = || (tools::path(Tool::Containerd).unwrap(), tools::path(Tool::Ctr).unwrap());
        let (containerd, ctr) = tokio::task::spawn_blocking(programs).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let config = format!(
            "version = 3\nroot = \"{at}/root\"\nstate = \"{at}/state\"\n\
             disabled_plugins = [\"io.containerd.cri.v1.images\", \"io.containerd.cri.v1.runtime\", \
             \"io.containerd.grpc.v1.cri\", \"io.containerd.nri.v1.nri\", \"io.containerd.internal.v1.opt\"]\n\
             [grpc]\naddress = \"{at}/grpc.sock\"\n[ttrpc]\naddress = \"{at}/ttrpc.sock\"\n"
        );
        std::fs::write(folder.path().join("config.toml"), config).unwrap();
        let arguments = ["--config", "config.toml"];
        let mut process = Process::start("containerd", &containerd, arguments, folder.path()).unwrap();
        let socket = folder.path().join("grpc.sock");
        until("containerd listens", || {
            process.check().unwrap();
            socket.exists() && process.log().contains("successfully booted")
        })
        .await;
        Some(Self { folder, ctr, _containerd: process })
    }

    fn hosts(&self) -> PathBuf {
        self.folder.path().join("certs.d")
    }

    /// Writes a file as `bailey cache hosts-toml` does, in place of all others.
    fn tell(&self, site: &Site, subject: Subject, offline: bool) {
        let file = HostsToml {
            subject,
            cache: format!("http://{}", site.cache.listen).parse().unwrap(),
            offline,
            ca: None,
            client: None,
            dial_timeout: Duration::from_secs(2),
            containerd: ContainerdVersion::parse("2.4.2"),
        };
        let text = file.text();
        assert_eq!(hosts_toml::check(&text), []);
        let _none = std::fs::remove_dir_all(self.hosts());
        let path = self.hosts().join(file.subject.path());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    async fn ctr(&self, arguments: &[&str]) -> Output {
        let mut command = tokio::process::Command::new(&self.ctr);
        command.arg("--address").arg(self.folder.path().join("grpc.sock")).args(["--namespace", "test"]);
        command.args(arguments).kill_on_drop(true).output().await.unwrap()
    }

    /// Fetches all of an image but unpacks nothing: its layers are no archives.
    async fn fetch(&self, hosts: &Path, image: &str) -> Result<(), String> {
        let hosts = hosts.display().to_string();
        let output =
            self.ctr(&["content", "fetch", "--hosts-dir", &hosts, "--platform", "linux/amd64", image]).await;
        let said = || {
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        };
        if output.status.success() { Ok(()) } else { Err(said()) }
    }

    async fn holds(&self, image: &Image) -> bool {
        let listed = self.ctr(&["content", "ls", "--quiet"]).await;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let digests = image
            .manifests
            .iter()
            .map(|stored| stored.digest)
            .chain(image.blobs.iter().map(|blob| blob.digest));
        digests.into_iter().all(|digest| listed.contains(&digest.to_string()))
    }
}

fn image(seed: u64) -> Image {
    Image::new(Flavour::Oci, seed, &[Layer::random(seed, 300_000), Layer::random(seed + 50, 20_000)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_containerd_pulls_by_each_kind_of_file() {
    let Some(node) = Node::start().await else { return };
    let site = Site::with(|config| {
        let url = config.upstreams[0].url.clone();
        config.upstreams.push(UpstreamConfig::anonymous("docker.io".parse().unwrap(), url));
        config.default_upstream = Some("docker.io".parse().unwrap());
    })
    .await;
    let cases = [
        ("registry.example", false, "registry.example/acme/one:v1", "acme/one"),
        ("registry.example", true, "registry.example/acme/two:v1", "acme/two"),
        ("docker.io", false, "docker.io/library/three:v1", "library/three"),
        ("docker.io", true, "docker.io/library/four:v1", "library/four"),
        ("_default", false, "registry.example/acme/five:v1", "acme/five"),
        ("_default", true, "registry.example/acme/six:v1", "acme/six"),
    ];
    for (seed, (subject, offline, name, repository)) in (1..).zip(cases) {
        let image = image(seed);
        site.upstream.push(repository, "v1", &image);
        let subject = if subject == "_default" {
            Subject::Default
        } else {
            Subject::Registry(subject.parse().unwrap())
        };
        node.tell(&site, subject, offline);
        let fetched = node.fetch(&node.hosts(), name).await;
        assert!(fetched.is_ok() && node.holds(&image).await, "{name} offline={offline}: {fetched:?}");
        for blob in &image.blobs {
            assert_eq!(site.upstream.bytes_of(blob.digest), blob.size(), "{name}");
        }
    }
}

/// What the client of these tests claims about containerd, asked of containerd itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_containerd_resumes_after_a_cut_and_goes_on_offline() {
    let Some(node) = Node::start().await else { return };
    let mut site = Site::new().await;
    let (cut, index) = (image(1), Image::index(Flavour::Docker, &[image(2), image(3)]));
    let amd64 = image(2);
    site.upstream.push("acme/cut", "v1", &cut);
    site.upstream.push("acme/index", "v1", &index);
    node.tell(&site, Subject::Registry("registry.example".parse().unwrap()), true);
    // The cache has nothing more to give after 200,000 bytes, so it ends the body, and the node asks for the rest.
    let layer = cut.layers()[0].digest;
    site.upstream.fault(On::path(layer).once(), Fault::FinAt(200_000));
    site.upstream.fault(On::path(layer).times(5), Fault::FinAt(0));
    let fetched = node.fetch(&node.hosts(), "registry.example/acme/cut:v1").await;
    assert!(fetched.is_ok() && node.holds(&cut).await, "{fetched:?}");

    // This client of containerd also fetches the manifests of other platforms.
    site.node().pull("acme/index", "v1").await.unwrap();
    let platforms = &index.manifests[..2];
    for stored in platforms {
        site.node().pull_digest("acme/index", stored.digest).await.unwrap();
    }
    until("all is kept", || index.blobs.iter().all(|blob| site.holds(blob.digest))).await;
    site.upstream.close().await;
    let fetched = node.fetch(&node.hosts(), "registry.example/acme/index:v1").await;
    assert!(fetched.is_ok() && node.holds(&amd64).await, "{fetched:?}");
    let missing = node.fetch(&node.hosts(), "registry.example/acme/other:v1").await.unwrap_err();
    assert!(missing.contains("503"), "{missing}");
}

/// What an upstream sent wrong once must not keep a node from the image for long.
///
/// containerd keeps the bytes of a layer that failed, and goes on from them, until its next collection of garbage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_containerd_gets_an_image_right_after_it_was_wrong_once() {
    let Some(node) = Node::start().await else { return };
    let site = Site::new().await;
    let image = image(1);
    site.upstream.push("acme/app", "v1", &image);
    node.tell(&site, Subject::Registry("registry.example".parse().unwrap()), true);
    site.upstream.fault(On::path(image.layers()[0].digest).once(), Fault::WrongByte(10));
    let mut fetched = node.fetch(&node.hosts(), "registry.example/acme/app:v1").await;
    assert!(fetched.as_ref().is_err_and(|said| said.contains("unexpected commit digest")), "{fetched:?}");
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fetched = node.fetch(&node.hosts(), "registry.example/acme/app:v1").await;
        if fetched.is_ok() {
            break;
        }
    }
    assert!(fetched.is_ok() && node.holds(&image).await, "{fetched:?}");
}
