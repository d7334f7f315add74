//! A real node: kubelet, containerd and runc, joined to a control plane of the testkit.
//!
//! Its processes have a mount and a process namespace of their own, with `/etc`, `/run` and `/var` that nobody else sees: when
//! it is dropped, the kernel ends all pods and mounts with it. Pods get addresses by Debian's CNI plugins in the
//! network of this machine. INVARIANT: nothing is pulled but what a pod names, and the pause image that it was told of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::control_plane::ControlPlane;
use crate::process::Process;
use crate::tools::{self, Tool};

mod files;

/// How long a node may take to get ready; some seconds are usual.
const READY: Duration = Duration::from_secs(60);
/// Where Debian puts the plugins.
const CNI_PLUGINS: &str = "/usr/lib/cni";

/// What a node is told.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub name: String,
    /// The image of the container that holds a pod's namespaces.
    pub pause_image: String,
    /// What is in containerd's `certs.d` at the start.
    pub certs_d: Option<PathBuf>,
}

/// A running node. The fields drop in this order.
pub struct Node {
    process: Process,
    cgroups: Vec<PathBuf>,
    dir: TempDir,
    name: String,
}

/// The programs of a node.
struct Programs {
    kubelet: PathBuf,
    containerd: PathBuf,
    runc: PathBuf,
}

/// Returns why no node can run here, if none can.
pub fn why_not() -> Option<String> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !root {
        return Some("a node needs root".to_owned());
    }
    let lacks = |program: &&str| tools::on_path(program).is_none();
    if let Some(program) = ["runc", "unshare", "cc"].iter().find(|program| lacks(program)) {
        return Some(format!("a node needs `{program}` on PATH"));
    }
    let plugins = Path::new(CNI_PLUGINS).join("ptp");
    (!plugins.is_file())
        .then(|| format!("a node needs `{}`, of Debian's containernetworking-plugins", plugins.display()))
}

/// Compiles the program that the images of tests run: it waits until it is told to end.
pub fn pause_program(folder: &Path) -> Result<PathBuf> {
    let (source, program) = (folder.join("pause.c"), folder.join("pause"));
    fs::write(&source, include_str!("node/pause.c")).context("write the source of `pause`")?;
    let output = Command::new(tools::require("cc")?)
        .args(["-static", "-Os", "-s", "-o"])
        .args([&program, &source])
        .output()
        .context("start the C compiler")?;
    if !output.status.success() {
        bail!("compile `pause`: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(program)
}

impl NodeOptions {
    pub fn new(name: &str, pause_image: &str) -> Self {
        Self { name: name.to_owned(), pause_image: pause_image.to_owned(), certs_d: None }
    }
}

impl Node {
    /// Starts a node and waits until the API server knows it as ready.
    pub async fn start(plane: &ControlPlane, options: NodeOptions) -> Result<Self> {
        if let Some(why) = why_not() {
            bail!("start node `{}`: {why}", options.name);
        }
        let programs = tokio::task::spawn_blocking(Programs::find).await??;
        let user = plane.user(&format!("system:node:{}", options.name), &["system:nodes"])?;
        let dir = tempfile::Builder::new().prefix("bailey-node-").tempdir()?;
        if let Some(from) = &options.certs_d {
            copy(from, &dir.path().join("certs.d"))?;
        }
        fs::copy(plane.dir().join("ca.crt"), dir.path().join("ca.crt")).context("copy the node's CA")?;
        let (group, cgroups) = make_cgroups()?;
        files::write(dir.path(), &options.name, &options.pause_image, &group, &programs)?;
        user.write_kubeconfig(&dir.path().join("kubeconfig"))?;
        let unshare = tools::require("unshare")?;
        let arguments =
            ["--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "sh", "-eu", "node.sh"];
        let process = Process::start("node", &unshare, arguments, dir.path())?;
        let mut node = Self { process, cgroups, dir, name: options.name };
        node.until_ready(plane).await?;
        Ok(node)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a pod wrote to a file below `/etc` of the node.
    pub fn etc(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path().join("etc-upper").join(path)).ok()
    }

    /// The socket of containerd.
    pub fn socket(&self) -> PathBuf {
        self.path().join("containerd.sock")
    }

    /// The end of the logs of kubelet and containerd.
    pub fn log_end(&self) -> String {
        let end = |name: &str| {
            let text = fs::read(self.path().join(name)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines: Vec<_> = text.lines().collect();
            lines
                .iter()
                .skip(lines.len().saturating_sub(25))
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        };
        format!(
            "{}kubelet:\n{}containerd:\n{}",
            self.process.log_end(),
            end("kubelet.log"),
            end("containerd.log")
        )
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    async fn until_ready(&mut self, plane: &ControlPlane) -> Result<()> {
        let started = Instant::now();
        let path = format!("/api/v1/nodes/{}", self.name);
        while started.elapsed() < READY {
            self.process.check().with_context(|| self.log_end())?;
            let (status, body) = plane.admin().send("GET", &path, None, None).await?;
            let node: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
            let conditions = node.pointer("/status/conditions").and_then(serde_json::Value::as_array);
            let ready = conditions.into_iter().flatten().any(|condition| {
                condition.get("type").is_some_and(|kind| kind == "Ready")
                    && condition.get("status").is_some_and(|status| status == "True")
            });
            if status == 200 && ready && self.path().join("ready").exists() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        bail!("node `{}` was not ready after {} s; {}", self.name, READY.as_secs(), self.log_end())
    }

    /// Kills the node's first process, and waits until the kernel has ended all others of its namespace.
    fn end(&mut self) {
        let children = format!("/proc/{0}/task/{0}/children", self.process.id());
        let first = fs::read_to_string(children).unwrap_or_default();
        self.process.kill();
        let deadline = Instant::now() + Duration::from_secs(10);
        for child in first.split_whitespace() {
            while Path::new("/proc").join(child).exists() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        for group in &self.cgroups {
            remove_cgroup(group);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

impl Programs {
    fn find() -> Result<Self> {
        // containerd finds it beside itself, by the search path of the node.
        tools::path(Tool::ContainerdShim)?;
        Ok(Self {
            kubelet: tools::path(Tool::Kubelet)?,
            containerd: tools::path(Tool::Containerd)?,
            runc: tools::require("runc")?,
        })
    }
}

/// Makes a group of its own in each hierarchy, below which the node puts its pods.
fn make_cgroups() -> Result<(String, Vec<PathBuf>)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let group = format!("bailey-node-{}-{number}", std::process::id());
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = if root.join("cgroup.controllers").is_file() {
        vec![root.to_owned()]
    } else {
        let entries = fs::read_dir(root).context("list `/sys/fs/cgroup`")?.flatten();
        entries.map(|entry| entry.path()).filter(|path| path.join("cgroup.procs").is_file()).collect()
    };
    let mut made = Vec::new();
    for hierarchy in hierarchies {
        let path = hierarchy.join(&group);
        // Two names may be one hierarchy.
        if !path.exists() {
            fs::create_dir(&path).with_context(|| format!("make the control group `{}`", path.display()))?;
            made.push(path);
        }
    }
    Ok((group, made))
}

fn remove_cgroup(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_cgroup(&entry.path());
        }
    }
    // What is left of it is in nobody's way.
    let _removed = fs::remove_dir(group);
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("make `{}`", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("list `{}`", from.display()))?.flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(|| format!("copy to `{}`", target.display()))?;
        }
    }
    Ok(())
}
