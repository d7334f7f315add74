//! `cargo xtask control-plane` and `cargo xtask kubeconfig`: a control plane for other programs to use.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bailey_testkit::{Access, ControlPlane, Options, control_plane};
use tokio::signal::unix::{SignalKind, signal};

#[derive(clap::Args)]
pub struct Arguments {
    /// Where keys, data, logs and kubeconfigs are kept; a folder used before continues with its data.
    #[arg(long)]
    dir: PathBuf,
    /// An AuthorizationConfiguration for the API server; Node and RBAC when absent.
    #[arg(long, value_name = "FILE")]
    authorization_config: Option<PathBuf>,
    /// Writes an audit log to DIR/audit.log.
    #[arg(long)]
    audit: bool,
    /// Also writes DIR/NAME.kubeconfig for this user.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A group of the user; repeatable.
    #[arg(long = "group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,
}

#[derive(clap::Args)]
pub struct KubeconfigArguments {
    /// The folder of the running control plane.
    #[arg(long)]
    dir: PathBuf,
    /// The user that the kubeconfig is for.
    #[arg(long, value_name = "NAME")]
    user: String,
    /// A group of the user; repeatable.
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
}

/// Runs a control plane until a signal, announcing it by one line of JSON on standard output.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(arguments))
}

/// Issues a client certificate, writes DIR/NAME.kubeconfig, and prints its path.
pub fn kubeconfig(arguments: &KubeconfigArguments) -> Result<()> {
    println!("{}", write_kubeconfig(&arguments.dir, &arguments.user, &arguments.groups)?.display());
    Ok(())
}

async fn serve(arguments: &Arguments) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let authorization_config = match &arguments.authorization_config {
        None => None,
        Some(path) => Some(read(path).await?),
    };
    let options = Options {
        dir: Some(arguments.dir.clone()),
        authorization_config,
        audit: arguments.audit,
        ..Options::default()
    };
    let mut plane = tokio::select! {
        plane = ControlPlane::start(options) => plane?,
        // Dropping the start ends what it started.
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
    };
    let admin = plane.dir().join("admin.kubeconfig");
    plane.admin().write_kubeconfig(&admin)?;
    if let Some(user) = &arguments.user {
        write_kubeconfig(plane.dir(), user, &arguments.groups)?;
    }
    let ready = serde_json::json!({
        "ready": true,
        "server": plane.addresses().server,
        "etcd": plane.addresses().etcd,
        "kubeconfig": admin,
    });
    println!("{ready}");
    let mut looks = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = looks.tick() => plane.check()?,
        }
    }
    plane.stop().await
}

fn write_kubeconfig(dir: &Path, user: &str, groups: &[String]) -> Result<PathBuf> {
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let access: Access = control_plane::issue(dir, user, &groups)?;
    let path = dir.join(format!("{}.kubeconfig", file_name(user)));
    access.write_kubeconfig(&path)?;
    fs::canonicalize(&path).with_context(|| format!("resolve `{}`", path.display()))
}

/// Turns a user's name, which may hold any character, into a file name.
fn file_name(user: &str) -> String {
    user.chars().map(|c| if c.is_alphanumeric() || "-_.@".contains(c) { c } else { '-' }).collect()
}

async fn read(path: &Path) -> Result<String> {
    tokio::fs::read_to_string(path).await.with_context(|| format!("read `{}`", path.display()))
}
