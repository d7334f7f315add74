//! A real control plane on loopback: etcd, kube-apiserver and kube-controller-manager.
//!
//! It knows no node: pods are admitted and stay pending. Everything that it writes is in one folder: keys,
//! data, and one log file for each process. INVARIANT: dropping it ends its processes before its folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::access::{self, Access, Credential};
use crate::pki::{self, Ca};
use crate::process::Process;
use crate::tools::{self, Tool};

mod arguments;
mod port;

use port::Port;

/// How long a control plane may take to get ready; a few seconds are usual.
const READY_SECONDS: u64 = 120;

/// What a control plane is started with.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where keys, data and logs are kept; a temporary folder, removed on drop, when there is none.
    pub dir: Option<PathBuf>,
    /// The text of an AuthorizationConfiguration; `Node,RBAC` when there is none.
    pub authorization_config: Option<String>,
    /// Whether the API server writes `audit.log`, one JSON object a line, metadata only.
    pub audit: bool,
    /// More arguments for the API server, after the usual ones.
    pub api_server_arguments: Vec<String>,
}

/// Where a control plane listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// The URL of the API server.
    pub server: String,
    /// The URL of etcd.
    pub etcd: String,
}

/// A running control plane. The fields drop in this order.
pub struct ControlPlane {
    scheduler: Option<Process>,
    controller_manager: Option<Process>,
    api_server: Option<Process>,
    etcd: Option<Process>,
    programs: Programs,
    ports: Ports,
    addresses: Addresses,
    ca: Ca,
    admin: Access,
    options: Options,
    dir: PathBuf,
    _temporary: Option<TempDir>,
}

/// Issues a client certificate for the control plane that runs in a folder, from any process.
pub fn issue(dir: &Path, user: &str, groups: &[&str]) -> Result<Access> {
    let path = dir.join("addresses.json");
    let text = fs::read_to_string(&path)
        .with_context(|| format!("read `{}`; does a control plane run there?", path.display()))?;
    let addresses: Addresses =
        serde_json::from_str(&text).with_context(|| format!("parse `{}`", path.display()))?;
    certified(dir, &addresses, &Ca::open(dir)?, user, groups)
}

impl ControlPlane {
    /// Starts a control plane and waits until it serves and its controllers work.
    pub async fn start(options: Options) -> Result<Self> {
        crate::install_tls_provider();
        let programs = tokio::task::spawn_blocking(Programs::find).await??;
        let (dir, temporary) = match &options.dir {
            Some(dir) => (make_folder(dir)?, None),
            None => {
                let temporary = tempfile::Builder::new().prefix("bailey-control-plane-").tempdir()?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        let ports =
            Ports { etcd: Port::reserve()?, etcd_peer: Port::reserve()?, api_server: Port::reserve()? };
        let addresses = Addresses {
            server: format!("https://127.0.0.1:{}", ports.api_server.number()),
            etcd: format!("http://127.0.0.1:{}", ports.etcd.number()),
        };
        let ca = Ca::open_or_create(&dir)?;
        write_files(&dir, &ca, &addresses, &options)?;
        let admin = certified(&dir, &addresses, &ca, "testkit:admin", &["system:masters"])?;
        let mut plane = Self {
            scheduler: None,
            controller_manager: None,
            api_server: None,
            etcd: None,
            programs,
            ports,
            addresses,
            ca,
            admin,
            options,
            dir,
            _temporary: temporary,
        };
        plane.start_etcd().await?;
        plane.start_api_server().await?;
        plane.start_controller_manager().await?;
        Ok(plane)
    }

    /// Returns a member of `system:masters`, for setting up what a test is about.
    pub fn admin(&self) -> &Access {
        &self.admin
    }

    /// Returns a user with a client certificate, in exactly these groups and `system:authenticated`.
    pub fn user(&self, name: &str, groups: &[&str]) -> Result<Access> {
        certified(&self.dir, &self.addresses, &self.ca, name, groups)
    }

    /// Returns an existing ServiceAccount with a token from the TokenRequest API.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<Access> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let request = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}"#;
        let (status, body) = self.admin.send("POST", &path, Some("application/json"), Some(request)).await?;
        if status != 201 {
            bail!("get a token for ServiceAccount `{namespace}/{name}`: status {status}: {body}");
        }
        let answer: serde_json::Value = serde_json::from_str(&body)?;
        let token = answer
            .pointer("/status/token")
            .and_then(serde_json::Value::as_str)
            .with_context(|| format!("the TokenRequest for `{namespace}/{name}` has no token"))?;
        let name = format!("system:serviceaccount:{namespace}:{name}");
        let credential = Credential::Token(token.to_owned());
        Access::new(&self.dir, &self.addresses.server, self.ca.certificate(), &name, &credential)
    }

    /// Returns where the control plane listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Returns the folder of keys, data and logs.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the ids of the running processes.
    pub fn process_ids(&self) -> Vec<u32> {
        [&self.scheduler, &self.controller_manager, &self.api_server, &self.etcd]
            .into_iter()
            .flatten()
            .map(Process::id)
            .collect()
    }

    /// Kills the API server and starts it again on the same port and data, and waits until it serves.
    pub async fn restart_api_server(&mut self) -> Result<()> {
        self.api_server = None;
        self.start_api_server().await
    }

    /// Kills the API server and leaves it down, until `restart_api_server`.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts the scheduler, which only a control plane with nodes needs.
    pub async fn start_scheduler(&mut self) -> Result<()> {
        let program = tokio::task::spawn_blocking(|| tools::path(Tool::KubeScheduler)).await??;
        let user = self.user("system:kube-scheduler", &[])?;
        let arguments = arguments::scheduler(&user.kubeconfig_path());
        self.scheduler = Some(Process::start("kube-scheduler", &program, arguments, &self.dir)?);
        Ok(())
    }

    /// Ends every process and removes a temporary folder.
    pub async fn stop(self) -> Result<()> {
        tokio::task::spawn_blocking(move || drop(self)).await.context("stop the control plane")
    }

    /// Fails, with the end of its log, when a process has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        [&mut self.scheduler, &mut self.controller_manager, &mut self.api_server, &mut self.etcd]
            .into_iter()
            .flatten()
            .try_for_each(Process::check)
    }

    async fn start_etcd(&mut self) -> Result<()> {
        let arguments = arguments::etcd(&self.dir, &self.ports);
        self.etcd = Some(Process::start("etcd", &self.programs.etcd, arguments, &self.dir)?);
        let port = self.ports.etcd.number();
        self.wait("etcd to listen", async || TcpStream::connect(("127.0.0.1", port)).await.is_ok()).await
    }

    async fn start_api_server(&mut self) -> Result<()> {
        let arguments = arguments::api_server(&self.dir, &self.ports, &self.options);
        let program = &self.programs.api_server;
        self.api_server = Some(Process::start("kube-apiserver", program, arguments, &self.dir)?);
        let client = self.admin.client().await?;
        self.wait("the API server to get ready", async || answers(&client, "/readyz").await).await?;
        self.wait("namespace `default`", async || answers(&client, "/api/v1/namespaces/default").await).await
    }

    async fn start_controller_manager(&mut self) -> Result<()> {
        let user = self.user("system:kube-controller-manager", &[])?;
        let arguments = arguments::controller_manager(&self.dir, &user.kubeconfig_path());
        let program = &self.programs.controller_manager;
        self.controller_manager =
            Some(Process::start("kube-controller-manager", program, arguments, &self.dir)?);
        let client = self.admin.client().await?;
        let path = "/api/v1/namespaces/default/serviceaccounts/default";
        self.wait("ServiceAccount `default/default`", async || answers(&client, path).await).await
    }

    /// Looks again and again until a condition holds, a process ends, or the time is up.
    async fn wait(&mut self, what: &str, holds: impl AsyncFn() -> bool) -> Result<()> {
        let started = Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        while started.elapsed() < Duration::from_secs(READY_SECONDS) {
            ticks.tick().await;
            self.check()?;
            if holds().await {
                return Ok(());
            }
        }
        let logs: String = [&self.etcd, &self.api_server, &self.controller_manager]
            .into_iter()
            .flatten()
            .map(Process::log_end)
            .collect();
        bail!("waited {READY_SECONDS} s for {what}; the logs end with\n{logs}")
    }
}

struct Programs {
    etcd: PathBuf,
    api_server: PathBuf,
    controller_manager: PathBuf,
}

impl Programs {
    fn find() -> Result<Self> {
        Ok(Self {
            etcd: tools::path(Tool::Etcd)?,
            api_server: tools::path(Tool::KubeApiserver)?,
            controller_manager: tools::path(Tool::KubeControllerManager)?,
        })
    }
}

struct Ports {
    etcd: Port,
    etcd_peer: Port,
    api_server: Port,
}

async fn answers(client: &kube::Client, path: &str) -> bool {
    access::send(client, "GET", path, None, None).await.is_ok_and(|reply| reply.status == 200)
}

fn certified(dir: &Path, addresses: &Addresses, ca: &Ca, user: &str, groups: &[&str]) -> Result<Access> {
    let credential = Credential::Certificate(ca.client(user, groups)?);
    Access::new(dir, &addresses.server, ca.certificate(), user, &credential)
}

fn make_folder(dir: &Path) -> Result<PathBuf> {
    fs::create_dir_all(dir).with_context(|| format!("make `{}`", dir.display()))?;
    // The processes run inside it, so their arguments must not depend on where this one runs.
    dir.canonicalize().with_context(|| format!("resolve `{}`", dir.display()))
}

fn write_files(dir: &Path, ca: &Ca, addresses: &Addresses, options: &Options) -> Result<()> {
    pki::service_account_keys(dir)?;
    let serving = ca.server(&["127.0.0.1", "localhost", "kubernetes.default.svc"])?;
    pki::write_private(&dir.join("serving.crt"), &serving.certificate)?;
    pki::write_private(&dir.join("serving.key"), &serving.key)?;
    pki::write_private(&dir.join("addresses.json"), &serde_json::to_string(addresses)?)?;
    pki::write_private(&dir.join("audit-policy.yaml"), arguments::AUDIT_POLICY)?;
    if let Some(text) = &options.authorization_config {
        pki::write_private(&dir.join("authorization.yaml"), text)?;
    }
    Ok(())
}
