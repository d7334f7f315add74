//! Where the real programs are: built on first use from the Go modules declared under `tools/`.
//!
//! The cache is outside the checkout and keyed by what goes into a build, so a changed `go.mod`, `go.sum`
//! or flag makes a new entry and never changes one that a running test uses. One build runs at a time on
//! a machine, whatever the number of test processes that ask.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Returns the path of a tool's program, building it first when the cache lacks it.
pub fn path(tool: Tool) -> Result<PathBuf> {
    let program = cached(tool)?;
    if program.is_file() {
        return Ok(program);
    }
    let root = cache_root()?;
    fs::create_dir_all(&root).with_context(|| format!("make the tools cache `{}`", root.display()))?;
    let lock_path = root.join("build.lock");
    let lock = File::create(&lock_path).with_context(|| format!("open `{}`", lock_path.display()))?;
    lock.lock().with_context(|| format!("lock `{}`", lock_path.display()))?;
    // Another process may have built it while this one waited for the lock.
    if !program.is_file() {
        build(tool, &program)?;
    }
    Ok(program)
}

/// Returns where a tool's program is or would be, without building it.
pub fn cached(tool: Tool) -> Result<PathBuf> {
    let component = tool.component();
    let mut hasher = blake3::Hasher::new();
    for file in ["go.mod", "go.sum"] {
        let path = component_folder(component).join(file);
        let text = fs::read(&path).with_context(|| format!("read `{}`", path.display()))?;
        hasher.update(&(text.len() as u64).to_le_bytes()).update(&text);
    }
    for part in tool.flags().iter().copied().chain([std::env::consts::OS, std::env::consts::ARCH]) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let hash = hasher.finalize().to_hex();
    let key: String = hash.chars().take(16).collect();
    Ok(cache_root()?.join(format!("{component}-{key}")).join(tool.name()))
}

/// A program that tests, the demo or a benchmark run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    Etcd,
    KubeApiserver,
    KubeControllerManager,
    Kubectl,
    Helm,
    /// What runs pods; built when a test asks for a node.
    KubeScheduler,
    Kubelet,
    /// A peer that a benchmark compares with; built when that asks for it.
    KubectlWhoCan,
    /// The conformance suite of the distribution specification; built when a test of the image cache asks for it.
    Conformance,
    /// The registry of the distribution project: an upstream that can be pushed to; built when such a test asks for it.
    Registry,
    /// A node's containerd and its client, which pull through the image cache; built when such a test asks for them.
    Containerd,
    Ctr,
    /// What containerd starts for each pod; it is found on the search path.
    ContainerdShim,
    /// Clients of registries; built when a test of the image cache asks for them.
    Crane,
    Crictl,
    Oras,
}

impl Tool {
    /// Every tool of tests and the demo, in the order in which building them wastes least.
    pub const ALL: [Self; 5] =
        [Self::Etcd, Self::KubeApiserver, Self::KubeControllerManager, Self::Kubectl, Self::Helm];

    /// Returns the name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
            Self::Helm => "helm",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::KubectlWhoCan => "kubectl-who-can",
            Self::Conformance => "conformance",
            Self::Registry => "registry",
            Self::Containerd => "containerd",
            Self::Ctr => "ctr",
            Self::ContainerdShim => "containerd-shim-runc-v2",
            Self::Crane => "crane",
            Self::Crictl => "crictl",
            Self::Oras => "oras",
        }
    }

    /// Returns the folder under `tools/` that declares it.
    fn component(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver
            | Self::KubeControllerManager
            | Self::Kubectl
            | Self::KubeScheduler
            | Self::Kubelet => "k8s",
            Self::Helm => "helm",
            Self::KubectlWhoCan => "kubectl-who-can",
            Self::Conformance => "conformance",
            Self::Registry => "distribution",
            Self::Containerd | Self::Ctr | Self::ContainerdShim => "containerd",
            Self::Crane => "crane",
            Self::Crictl => "crictl",
            Self::Oras => "oras",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::KubeApiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::KubeControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Helm => "helm.sh/helm/v3/cmd/helm",
            Self::KubeScheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubelet => "k8s.io/kubernetes/cmd/kubelet",
            Self::KubectlWhoCan => "github.com/aquasecurity/kubectl-who-can/cmd/kubectl-who-can",
            Self::Conformance => "github.com/opencontainers/distribution-spec/conformance",
            Self::Registry => "github.com/distribution/distribution/v3/cmd/registry",
            Self::Containerd => "github.com/containerd/containerd/v2/cmd/containerd",
            Self::Ctr => "github.com/containerd/containerd/v2/cmd/ctr",
            Self::ContainerdShim => "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            Self::Crane => "github.com/google/go-containerregistry/cmd/crane",
            Self::Crictl => "sigs.k8s.io/cri-tools/cmd/crictl",
            Self::Oras => "oras.land/oras/cmd/oras",
        }
    }

    /// Returns the build flags; a module build knows no version of its own, so Kubernetes is told it.
    fn flags(self) -> &'static [&'static str] {
        match self.component() {
            "k8s" => &[
                "-trimpath",
                "-buildvcs=false",
                "-ldflags",
                "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
                 -X k8s.io/component-base/version.gitMajor=1 \
                 -X k8s.io/component-base/version.gitMinor=36",
            ],
            _ => &["-trimpath", "-buildvcs=false", "-ldflags", "-s -w"],
        }
    }
}

/// Finds a program on the search path.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Says how to get a missing program that Bailey does not build itself.
pub(crate) fn require(program: &str) -> Result<PathBuf> {
    let hint = match program {
        "go" => "install Go 1.26 or newer (go.dev/doc/install) and put its `bin` folder on PATH",
        "cc" => "install a C compiler, on Debian with `apt-get install gcc libc6-dev`",
        _ => "install it and put it on PATH",
    };
    on_path(program).with_context(|| format!("`{program}` is not on PATH; {hint}"))
}

/// Returns the folder `tools/` of the checkout.
pub(crate) fn declarations() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools")
}

fn component_folder(component: &str) -> PathBuf {
    declarations().join(component)
}

fn cache_root() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("BAILEY_TOOLS_CACHE") {
        // Programs start in other folders than this one.
        return std::path::absolute(folder).context("resolve BAILEY_TOOLS_CACHE");
    }
    if let Some(folder) = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder).join("bailey/tools"));
    }
    let home = std::env::var_os("HOME").context(
        "find a place for built tools: none of BAILEY_TOOLS_CACHE, XDG_CACHE_HOME and HOME is set",
    )?;
    Ok(PathBuf::from(home).join(".cache/bailey/tools"))
}

/// Builds a tool beside its final place and renames it there, so that no reader sees half a program.
fn build(tool: Tool, program: &Path) -> Result<()> {
    let go = require("go")?;
    require("cc")?;
    let folder = program.parent().context("a cached program has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("make `{}`", folder.display()))?;
    let unfinished = tempfile::Builder::new().prefix(".build-").tempdir_in(folder)?;
    let output = unfinished.path().join(tool.name());
    let mut command = Command::new(go);
    command.current_dir(component_folder(tool.component())).arg("build").args(tool.flags());
    command.arg("-o").arg(&output).arg(tool.package());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let started = Instant::now();
    say(&format!("building {} (only the first time; some minutes)", tool.name()));
    let finished = wait_with_progress(command, tool, started)?;
    if !finished.status.success() {
        bail!("build {}: {}\n{}", tool.name(), finished.status, String::from_utf8_lossy(&finished.stderr));
    }
    fs::rename(&output, program).with_context(|| format!("put `{}` in place", program.display()))?;
    say(&format!("built {} in {} s", tool.name(), started.elapsed().as_secs()));
    Ok(())
}

fn wait_with_progress(mut command: Command, tool: Tool, started: Instant) -> Result<std::process::Output> {
    let (done, finished) = mpsc::sync_channel(1);
    let waiter = std::thread::spawn(move || {
        // The receiver lives until this message arrives.
        let _sent = done.send(command.output());
    });
    let output = loop {
        match finished.recv_timeout(Duration::from_secs(15)) {
            Ok(output) => break output,
            Err(RecvTimeoutError::Timeout) => {
                say(&format!("building {}: {} s", tool.name(), started.elapsed().as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => bail!("build {}: the wait for it ended", tool.name()),
        }
    };
    if waiter.join().is_err() {
        bail!("build {}: the wait for it ended", tool.name());
    }
    output.with_context(|| format!("start the build of {}", tool.name()))
}

/// Writes a progress line past the test harness's capture: a build of minutes must not look like a hang.
fn say(line: &str) {
    // Progress that cannot be shown is no reason to fail.
    let _written = writeln!(io::stderr(), "bailey tools: {line}");
}
