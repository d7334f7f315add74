//! Images pulled as a kubelet asks for it, through the CRI of real containerds: a new one, and that of Debian 12.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bailey_oci::hosts_toml::{ContainerdVersion, HostsToml, Subject};
use bailey_testkit::registry::{Flavour, Image};
use bailey_testkit::{Process, Tool, tools};

use crate::site::{REGISTRY, Site, until};

struct Node {
    crictl: PathBuf,
    folder: tempfile::TempDir,
    version: Option<ContainerdVersion>,
    _containerd: Process,
}

/// Debian's containerd, unpacked beside the built tools and not installed; None where it is not to be had.
fn containerd_of_debian(folder: &Path) -> Option<PathBuf> {
    let ran = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(folder).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !ran("apt-get", &["download", "containerd"]) {
        return None;
    }
    let found = std::fs::read_dir(folder).unwrap().flatten();
    let package =
        found.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "deb"))?;
    ran("dpkg-deb", &["--extract", &package.display().to_string(), "debian"])
        .then(|| folder.join("debian/usr/bin/containerd"))
}

impl Node {
    /// Starts a containerd with its CRI; `settings` are those of its images.
    async fn start(containerd: PathBuf, folder: tempfile::TempDir, settings: &str) -> Self {
        let output = Command::new(&containerd).arg("--version").output().unwrap();
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        // A build from the module does not know its version.
        let known = output.split_whitespace().nth(2).and_then(ContainerdVersion::parse);
        let version = known.filter(|version| version.major < 2).or(ContainerdVersion::parse("2.4.2"));
        println!("{output}");
        let schema = if known == version { 2 } else { 3 };
        let crictl = tokio::task::spawn_blocking(|| tools::path(Tool::Crictl)).await.unwrap().unwrap();
        let at = folder.path().display();
        let (registry, disabled) = match schema {
            2 => ("io.containerd.grpc.v1.cri", "io.containerd.tracing.processor.v1.otlp"),
            _ => ("io.containerd.cri.v1.images", "io.containerd.nri.v1.nri"),
        };
        let config = format!(
            "version = {schema}\nroot = \"{at}/root\"\nstate = \"{at}/state\"\n\
             disabled_plugins = [\"{disabled}\"]\n\
             [grpc]\naddress = \"{at}/grpc.sock\"\n[ttrpc]\naddress = \"{at}/ttrpc.sock\"\n\
             [plugins.\"io.containerd.internal.v1.opt\"]\npath = \"{at}/opt\"\n\
             [plugins.\"{registry}\".registry]\nconfig_path = \"{at}/certs.d\"\n{settings}"
        );
        std::fs::write(folder.path().join("config.toml"), config).unwrap();
        let mut process =
            Process::start("containerd", &containerd, ["--config", "config.toml"], folder.path()).unwrap();
        let socket = folder.path().join("grpc.sock");
        until("containerd listens", || {
            process.check().unwrap();
            socket.exists() && process.log().contains("successfully booted")
        })
        .await;
        Self { crictl, folder, version, _containerd: process }
    }

    /// Writes the file that `bailey cache hosts-toml` writes for this containerd.
    fn tell(&self, site: &Site, offline: bool) {
        let file = HostsToml {
            subject: Subject::Registry(REGISTRY.parse().unwrap()),
            cache: format!("http://{}", site.cache.listen).parse().unwrap(),
            offline,
            ca: None,
            client: None,
            dial_timeout: Duration::from_secs(2),
            containerd: self.version,
        };
        let path = self.folder.path().join("certs.d").join(file.subject.path());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.text()).unwrap();
    }

    async fn crictl(&self, arguments: &[&str]) -> Result<String, String> {
        let endpoint = format!("unix://{}/grpc.sock", self.folder.path().display());
        let mut command = tokio::process::Command::new(&self.crictl);
        command.args(["--timeout", "60s", "--image-endpoint", &endpoint, "--runtime-endpoint", &endpoint]);
        let output = command.args(arguments).kill_on_drop(true).output().await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Pulls an image, checks that it is this one, and takes it away again.
    async fn pulls(&self, repository: &str, image: &Image, told: &str) {
        let name = format!("{REGISTRY}/{repository}:v1");
        self.crictl(&["pull", &name]).await.unwrap_or_else(|error| panic!("{told}: {error}"));
        let known = self.crictl(&["inspecti", "-o", "json", &name]).await.unwrap();
        assert!(known.contains(&format!("@{}", image.digest())), "{told}: {known}");
        self.crictl(&["rmi", &name]).await.unwrap();
    }
}

/// Images that can be unpacked, whose bytes stand for programs.
fn images() -> (tempfile::TempDir, Vec<(&'static str, Image)>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "#!").unwrap();
    let image = |seed| Image::with_ballast(&["/file"], &[("file", &file)], seed, 3_000_000).unwrap();
    let index = Image::index(Flavour::Oci, &[image(2), image(3)]);
    let nested = Image::index(Flavour::Oci, &[Image::index(Flavour::Oci, &[image(4), image(5)]), image(6)]);
    let docker = Image::index(Flavour::Docker, &[image(7), image(8)]);
    (
        folder,
        vec![("cri/one", image(1)), ("cri/index", index), ("cri/nested", nested), ("cri/docker", docker)],
    )
}

fn cannot_run() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !root {
        eprintln!("skipped: containerd runs as root only");
    }
    !root
}

async fn pulls_everything(node: &Node) {
    let mut site = Site::new().await;
    node.tell(&site, false);
    let (_files, images) = images();
    for (repository, image) in &images {
        site.upstream.push(repository, "v1", image);
        node.pulls(repository, image, &format!("cold, {repository}")).await;
        for blob in &image.blobs {
            let sent = site.upstream.bytes_of(blob.digest);
            assert!(sent <= blob.size(), "{repository}: {} was fetched {sent} bytes", blob.digest);
        }
    }
    site.upstream.close().await;
    node.tell(&site, true);
    for (repository, image) in &images {
        node.pulls(repository, image, &format!("warm and offline, {repository}")).await;
    }

    let site = Site::new().await;
    node.tell(&site, true);
    site.upstream.shape(3_000_000);
    for (repository, image) in &images {
        site.upstream.push(repository, "v1", image);
        let (other, repository) = (site.node(), *repository);
        let other = tokio::spawn(async move { other.pull(repository, "v1").await });
        node.pulls(repository, image, &format!("filling, {repository}")).await;
        other.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_containerd_pulls_in_parallel_chunks_by_its_cri() {
    if cannot_run() {
        return;
    }
    let containerd = tokio::task::spawn_blocking(|| tools::path(Tool::Containerd)).await.unwrap().unwrap();
    let chunks = "[plugins.\"io.containerd.transfer.v1.local\"]\nconcurrent_layer_fetch_buffer = 1048576\n\
                  max_concurrent_downloads = 3\n";
    let node = Node::start(containerd, tempfile::tempdir().unwrap(), chunks).await;
    pulls_everything(&node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_containerd_of_debian_12_pulls_by_its_cri() {
    if cannot_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(containerd) = containerd_of_debian(folder.path()) else {
        eprintln!("skipped: `apt-get download containerd` gives nothing here");
        return;
    };
    let node = Node::start(containerd, folder, "").await;
    pulls_everything(&node).await;
}
