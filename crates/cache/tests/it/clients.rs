//! Real clients of registries, given the cache in place of one: what they get is what the registry has, byte for byte,
//! whether the cache has it already, is just fetching it, or has never heard of it.
//!
//! Clients check digests themselves; the tests check what lies on the disk afterwards against the registry.

use std::path::{Path, PathBuf};
use std::process::Output;

use bailey_oci::Digest;
use bailey_testkit::registry::{Flavour, Image, Layer};
use bailey_testkit::{Tool, tools};

use crate::registry;
use crate::site::{REGISTRY, Site};

/// Repositories of each kind of content, and what is in them under `v1`.
struct Kinds {
    all: Vec<(&'static str, Image)>,
}

impl Kinds {
    fn push(site: &Site) -> Self {
        let image = |flavour, seed| {
            Image::new(flavour, seed, &[Layer::random(seed, 300_000), Layer::random(seed + 50, 20_000)])
        };
        let index = Image::index(Flavour::Docker, &[image(Flavour::Docker, 3), image(Flavour::Docker, 4)]);
        let inner = Image::index(Flavour::Oci, &[image(Flavour::Oci, 5), image(Flavour::Oci, 6)]);
        let nested = Image::index(Flavour::Oci, &[inner, image(Flavour::Oci, 7)]);
        let signed = image(Flavour::Oci, 8);
        let signature =
            Image::artifact("application/vnd.dev.cosign.artifact.sig.v1+json", 9, Some(signed.root()));
        let attestation = Image::artifact("application/vnd.in-toto+json", 10, Some(signed.root()));
        let all = vec![
            ("kinds/oci", image(Flavour::Oci, 1)),
            ("kinds/docker", image(Flavour::Docker, 2)),
            ("kinds/index", index),
            ("kinds/nested", nested),
            ("kinds/signed", signed),
        ];
        for (repository, image) in &all {
            site.upstream.push(repository, "v1", image);
        }
        site.upstream.push("kinds/signed", "signature", &signature);
        site.upstream.push("kinds/signed", "attestation", &attestation);
        Self { all }
    }

    fn named(&self, repository: &str) -> &Image {
        &self.all.iter().find(|(name, _)| *name == repository).unwrap().1
    }
}

/// Does something when the cache has nothing, while it fetches, and when it has all and its upstream is away.
async fn in_each_state(check: impl AsyncFn(&Site, &Kinds, &str)) {
    let mut site = Site::new().await;
    let kinds = Kinds::push(&site);
    check(&site, &kinds, "cold").await;
    site.upstream.close().await;
    check(&site, &kinds, "warm, offline").await;

    let site = Site::new().await;
    let kinds = Kinds::push(&site);
    site.upstream.shape(1_500_000);
    let mut pulls = tokio::task::JoinSet::new();
    for (repository, _) in &kinds.all {
        let (node, repository) = (site.node(), *repository);
        pulls.spawn(async move { node.pull(repository, "v1").await });
    }
    check(&site, &kinds, "filling").await;
    for pulled in pulls.join_all().await {
        pulled.unwrap();
    }
    for (repository, image) in &kinds.all {
        for blob in &image.blobs {
            let sent = site.upstream.bytes_of(blob.digest);
            assert!(sent <= blob.size(), "{repository}: {} was fetched {sent} bytes", blob.digest);
        }
    }
}

/// A client and a folder for what it keeps.
struct Client {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Client {
    async fn built(tool: Tool) -> Self {
        let program = tokio::task::spawn_blocking(move || tools::path(tool)).await.unwrap().unwrap();
        Self { program, folder: tempfile::tempdir().unwrap() }
    }

    async fn output(&self, arguments: &[&str]) -> Output {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(arguments).current_dir(self.folder.path()).env("HOME", self.folder.path());
        command.env_remove("XDG_RUNTIME_DIR").env_remove("XDG_CACHE_HOME").env_remove("XDG_CONFIG_HOME");
        command.kill_on_drop(true).output().await.unwrap()
    }

    /// What it prints when it succeeds.
    async fn run(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.output(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn fresh(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        let _none = std::fs::remove_dir_all(&folder);
        folder
    }
}

fn reference(site: &Site, repository: &str, rest: &str) -> String {
    format!("{}/{REGISTRY}/{repository}{rest}", site.cache.listen)
}

/// All manifests and blobs of an image are in an OCI layout, with their own bytes.
fn assert_in_layout(folder: &Path, image: &Image, told: &str) {
    let path = |digest: Digest| folder.join("blobs").join(digest.algorithm().as_str()).join(digest.hex());
    for stored in &image.manifests {
        let found = std::fs::read(path(stored.digest)).unwrap_or_default();
        assert_eq!(found, stored.bytes, "{told}: manifest {}", stored.digest);
    }
    for blob in &image.blobs {
        let found = std::fs::read(path(blob.digest)).unwrap_or_default();
        assert_eq!(
            Digest::of(blob.digest.algorithm(), &found),
            blob.digest,
            "{told}: blob of {}",
            blob.size()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crane_gets_what_the_registry_has() {
    let crane = Client::built(Tool::Crane).await;
    in_each_state(async |site, kinds, state| {
        for (repository, image) in &kinds.all {
            let by_tag = reference(site, repository, ":v1");
            let told = format!("crane, {state}, {repository}");
            let digest = crane.run(&["digest", "--insecure", &by_tag]).await;
            assert_eq!(String::from_utf8_lossy(&digest).trim(), image.digest().to_string(), "{told}");
            let manifest = crane.run(&["manifest", "--insecure", &by_tag]).await;
            assert_eq!(manifest, image.root().bytes, "{told}");
            let folder = crane.fresh("layout");
            let to = folder.display().to_string();
            crane.run(&["pull", "--insecure", "--format=oci", &by_tag, &to]).await;
            assert_in_layout(&folder, image, &told);
            let by_digest = reference(site, repository, &format!("@{}", image.blobs[0].digest));
            let blob = crane.run(&["blob", "--insecure", &by_digest]).await;
            assert_eq!(Digest::of(bailey_oci::Algorithm::Sha256, &blob), image.blobs[0].digest, "{told}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skopeo_gets_what_the_registry_has() {
    let Some(program) = tools::on_path("skopeo") else {
        eprintln!("skipped: `skopeo` is not on PATH; on Debian install it with `apt-get install skopeo`");
        return;
    };
    let skopeo = Client { program, folder: tempfile::tempdir().unwrap() };
    in_each_state(async |site, kinds, state| {
        for (repository, image) in &kinds.all {
            let from = format!("docker://{}", reference(site, repository, ":v1"));
            let told = format!("skopeo, {state}, {repository}");
            let manifest = skopeo.run(&["inspect", "--raw", "--tls-verify=false", &from]).await;
            assert_eq!(manifest, image.root().bytes, "{told}");
            if *repository == "kinds/nested" {
                // It copies no index of indexes, from nowhere.
                continue;
            }
            let folder = skopeo.fresh("copied");
            let to = format!("dir:{}", folder.display());
            let copy = ["--insecure-policy", "copy", "--quiet", "--all", "--preserve-digests"];
            skopeo.run(&[&copy[..], &["--src-tls-verify=false", &from, &to]].concat()).await;
            let copied = std::fs::read(folder.join("manifest.json")).unwrap();
            assert_eq!(copied, image.root().bytes, "{told}");
            for blob in &image.blobs {
                let found = std::fs::read(folder.join(blob.digest.hex())).unwrap_or_default();
                assert_eq!(Digest::of(blob.digest.algorithm(), &found), blob.digest, "{told}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oras_gets_images_with_their_signatures_and_attestations() {
    let oras = Client::built(Tool::Oras).await;
    in_each_state(async |site, kinds, state| {
        for (repository, image) in &kinds.all {
            let told = format!("oras, {state}, {repository}");
            let by_tag = reference(site, repository, ":v1");
            let descriptor = oras.run(&["manifest", "fetch", "--descriptor", "--plain-http", &by_tag]).await;
            let descriptor: serde_json::Value = serde_json::from_slice(&descriptor).unwrap();
            assert_eq!(descriptor["mediaType"], image.root().media_type, "{told}");
            assert_eq!(descriptor["digest"], image.digest().to_string(), "{told}");
            let folder = oras.fresh("copied");
            let to = format!("{}:v1", folder.display());
            oras.run(&["copy", "-r", "--from-plain-http", &by_tag, "--to-oci-layout", &to]).await;
            assert_in_layout(&folder, image, &told);
        }
        let signed = kinds.named("kinds/signed");
        let by_digest = reference(site, "kinds/signed", &format!("@{}", signed.digest()));
        let found = oras.run(&["discover", "--plain-http", "--format", "json", &by_digest]).await;
        let found = String::from_utf8_lossy(&found);
        for kind in ["application/vnd.dev.cosign.artifact.sig.v1+json", "application/vnd.in-toto+json"] {
            assert!(found.contains(kind), "{state}: {kind} is not among {found}");
        }
        for tag in [":signature", ":attestation"] {
            let folder = oras.fresh("artifact");
            let to = format!("{}:it", folder.display());
            let from = reference(site, "kinds/signed", tag);
            oras.run(&["copy", "--from-plain-http", &from, "--to-oci-layout", &to]).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn helm_pulls_a_chart_that_was_pushed_to_the_registry_behind() {
    let helm = Client::built(Tool::Helm).await;
    let folder = tempfile::tempdir().unwrap();
    let (mut registry, address) = registry::start(folder.path(), None).await;
    let site =
        Site::with(|config| config.upstreams[0].url = format!("http://{address}").parse().unwrap()).await;
    helm.run(&["create", "demo"]).await;
    helm.run(&["package", "demo"]).await;
    helm.run(&["push", "demo-0.1.0.tgz", &format!("oci://{address}/charts"), "--plain-http"]).await;
    let pushed = std::fs::read(helm.folder.path().join("demo-0.1.0.tgz")).unwrap();
    let from = format!("oci://{}/{REGISTRY}/charts/demo", site.cache.listen);
    for state in ["cold", "warm, offline"] {
        let to = helm.fresh("pulled");
        std::fs::create_dir(&to).unwrap();
        let arguments = ["pull", &from, "--version", "0.1.0", "--plain-http", "--destination", "pulled"];
        helm.run(&arguments).await;
        assert_eq!(std::fs::read(to.join("demo-0.1.0.tgz")).unwrap(), pushed, "{state}");
        registry.kill();
    }
}
