//! What a node's programs are told.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::{CNI_PLUGINS, Programs};

/// Addresses of pods; they are reached from this machine only.
const POD_CIDR: &str = "10.213.0.0/16";

/// Writes everything that the node reads at its start.
pub fn write(dir: &Path, name: &str, pause: &str, group: &str, programs: &Programs) -> Result<()> {
    let put = |file: &str, text: String| {
        fs::write(dir.join(file), text).with_context(|| format!("write `{file}` of node `{name}`"))
    };
    for folder in ["certs.d", "cni", "var-upper", "var-work", "etc-upper", "etc-work"] {
        fs::create_dir_all(dir.join(folder)).with_context(|| format!("make `{folder}` of node `{name}`"))?;
    }
    // Of an earlier start.
    let _none = fs::remove_file(dir.join("ready"));
    put("containerd.toml", containerd(dir, pause, programs))?;
    put("cni/10-ptp.conflist", cni(dir))?;
    put("kubelet.yaml", kubelet(dir, group))?;
    put("node.sh", script(dir, name, programs))
}

/// The first process of the node; it ends when kubelet does.
fn script(dir: &Path, name: &str, programs: &Programs) -> String {
    let at = dir.display();
    let beside = programs.containerd.parent().unwrap_or(Path::new("/")).display();
    let (containerd, kubelet) = (programs.containerd.display(), programs.kubelet.display());
    format!(
        "mount -t tmpfs tmpfs /run\n\
         mount -t overlay overlay -o lowerdir=/var,upperdir={at}/var-upper,workdir={at}/var-work /var\n\
         mount -t overlay overlay -o lowerdir=/etc,upperdir={at}/etc-upper,workdir={at}/etc-work /etc\n\
         rm -rf /etc/containerd\n\
         mkdir /etc/containerd\n\
         cp -r {at}/certs.d /etc/containerd/certs.d\n\
         export PATH={beside}:$PATH\n\
         {containerd} --config {at}/containerd.toml >>{at}/containerd.log 2>&1 &\n\
         until [ -S {at}/containerd.sock ]; do sleep 0.05; done\n\
         touch {at}/ready\n\
         {kubelet} --config={at}/kubelet.yaml --kubeconfig={at}/kubeconfig --root-dir={at}/kubelet \
         --cert-dir={at}/pki --hostname-override={name} >>{at}/kubelet.log 2>&1 &\n\
         wait $!\n"
    )
}

fn containerd(dir: &Path, pause: &str, programs: &Programs) -> String {
    let (at, runc) = (dir.display(), programs.runc.display());
    // A container in a namespace of this machine may not lower its own score for the OOM killer.
    format!(
        r#"version = 3
root = "{at}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
address = "{at}/containerd.sock"
[ttrpc]
address = "/run/containerd.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
path = "{at}/opt"
[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{CNI_PLUGINS}"]
conf_dir = "{at}/cni"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runc}"
"#
    )
}

fn cni(dir: &Path) -> String {
    let plugins = serde_json::json!({
        "cniVersion": "1.0.0", "name": "pods",
        "plugins": [{
            "type": "ptp",
            "ipam": {
                "type": "host-local", "ranges": [[{ "subnet": POD_CIDR }]],
                "dataDir": dir.join("cni-addresses"), "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    });
    plugins.to_string()
}

/// JSON is YAML; limits are those of a machine that does many things besides.
fn kubelet(dir: &Path, group: &str) -> String {
    let at = dir.display();
    let config = serde_json::json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": { "enabled": false }, "webhook": { "enabled": false },
            "x509": { "clientCAFile": format!("{at}/ca.crt") },
        },
        "authorization": { "mode": "AlwaysAllow" },
        // It serves nothing, so that nodes need no ports of their own.
        "enableServer": false, "healthzPort": 0,
        "containerRuntimeEndpoint": format!("unix://{at}/containerd.sock"),
        "cgroupDriver": "cgroupfs", "cgroupRoot": format!("/{group}"), "failCgroupV1": false,
        "enforceNodeAllocatable": [], "failSwapOn": false, "localStorageCapacityIsolation": false,
        "evictionHard": { "memory.available": "1Mi", "nodefs.available": "0.1%", "imagefs.available": "0.1%" },
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
        "nodeStatusUpdateFrequency": "1s", "syncFrequency": "1s", "resolvConf": "",
        "serializeImagePulls": false,
    });
    config.to_string()
}
