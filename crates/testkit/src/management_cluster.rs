//! A management cluster with two customers: as found, and with Bailey installed the way a newcomer does it.
//!
//! Bailey is the real binary: its `crds` and `install` verbs give the manifests, and its operator runs as
//! a process with the token of its own ServiceAccount.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bailey_attacks::Bindings;
use serde_json::Value;

use crate::fixture::{Fixture, bindings};
use crate::process::Process;
use crate::{Access, ControlPlane, Options, Output};

/// How long Bailey may take to put a change into effect.
const EFFECT_SECONDS: u64 = 60;
const REPEAT_MILLISECONDS: u64 = 100;

/// A running management cluster.
pub struct ManagementCluster {
    /// Its control plane.
    pub plane: ControlPlane,
    /// The names of the fixture.
    pub names: Bindings,
    program: PathBuf,
    operator: Option<Process>,
}

impl ManagementCluster {
    /// Starts one as found in the field: customers are cluster-admin, and older grants lie around.
    ///
    /// `program` is the `bailey` binary, `marker` the value of every Secret of the platform.
    pub async fn stock(program: &Path, options: Options, marker: &str) -> Result<Self> {
        let plane = ControlPlane::start(options).await?;
        let names = bindings(marker, "x");
        for fixture in [Fixture::Crds, Fixture::ManagementCluster, Fixture::Leftovers, Fixture::Stock] {
            // The leftovers name kinds of Bailey, which RBAC does not mind before they exist.
            fixture.apply(plane.admin(), &names).await?;
        }
        Ok(Self { plane, names, program: program.to_owned(), operator: None })
    }

    /// Installs Bailey with its own manifests, starts the operator, and says who the customers are. The mode
    /// is `Audit`, in which nothing changes for anybody.
    pub async fn install(&mut self) -> Result<()> {
        let manifests = self.bailey(&["install"]).await?.stdout_of_success()?;
        self.apply(&manifests).await.context("apply what `bailey install` prints")?;
        let crds = self.bailey(&["crds"]).await?.stdout_of_success()?;
        let wait = ["wait", "--for=condition=Established", "--timeout=30s", "-f", "-"];
        self.plane.admin().kubectl(&wait, Some(&crds)).await?.stdout_of_success()?;
        self.start_operator().await?;
        Fixture::Bailey.apply(self.plane.admin(), &self.names).await?;
        self.settled("Audit").await
    }

    /// Does what `bailey plan --enforce` asks the platform to do first, and switches to `Enforce`.
    pub async fn enforce(&mut self) -> Result<()> {
        let delete = ["delete", "clusterrolebinding", "write-all-customer-group", "--ignore-not-found"];
        self.plane.admin().kubectl(&delete, None).await?.stdout_of_success()?;
        self.set_enforcement("Enforce").await
    }

    /// Switches the mode and waits until it is in effect.
    pub async fn set_enforcement(&mut self, mode: &str) -> Result<()> {
        let patch = format!(r#"{{"spec":{{"enforcement":"{mode}"}}}}"#);
        let patch = ["patch", "installation", "installation", "--type=merge", "-p", &patch];
        self.plane.admin().kubectl(&patch, None).await?.stdout_of_success()?;
        self.settled(mode).await
    }

    /// Starts the operator with the token of its account.
    pub async fn start_operator(&mut self) -> Result<()> {
        self.operator = Some(self.start_replica("operator", &[]).await?);
        Ok(())
    }

    /// Starts one more operator, whose log is `NAME.log` in the folder of the control plane.
    pub async fn start_replica(&self, name: &'static str, more: &[&str]) -> Result<Process> {
        self.start_role("operator", name, more).await
    }

    /// Starts a role of the binary with the token of its account, whose log is `NAME.log` in the folder of the control
    /// plane.
    pub async fn start_role(&self, role: &str, name: &'static str, more: &[&str]) -> Result<Process> {
        let access = self
            .plane
            .service_account("bailey-system", &format!("bailey-{role}"))
            .await
            .with_context(|| format!("the account of the {role}"))?;
        let kubeconfig = self.plane.dir().join(format!("{role}.kubeconfig"));
        access.write_kubeconfig(&kubeconfig)?;
        let mut arguments = vec![
            role.as_ref(),
            "--admin".as_ref(),
            "127.0.0.1:0".as_ref(),
            "--kubeconfig".as_ref(),
            kubeconfig.as_os_str(),
        ];
        arguments.extend(more.iter().map(OsStr::new));
        Process::start(name, &self.program, arguments, self.plane.dir())
    }

    /// Kills the operator, as a crash would.
    pub fn kill_operator(&mut self) {
        self.operator = None;
    }

    /// The operator's process id, while it runs.
    pub fn operator_id(&self) -> Option<u32> {
        self.operator.as_ref().map(Process::id)
    }

    /// Runs the binary as the platform.
    pub async fn bailey(&self, arguments: &[&str]) -> Result<Output> {
        self.plane.admin().run_program(&self.program, arguments, None).await
    }

    /// Runs the binary as somebody.
    pub async fn bailey_as(&self, access: &Access, arguments: &[&str]) -> Result<Output> {
        access.run_program(&self.program, arguments, None).await
    }

    /// Applies manifests as the platform.
    pub async fn apply(&self, manifests: &str) -> Result<()> {
        let arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        self.plane.admin().kubectl(&arguments, Some(manifests)).await?.stdout_of_success().map(drop)
    }

    /// A person of the tenant's installers.
    pub fn installer(&self) -> Result<Access> {
        self.plane.user("ines@acme.example", &[&self.names.tenant_group])
    }

    /// A person of the tenant's developers.
    pub fn developer(&self) -> Result<Access> {
        self.plane.user("dora@acme.example", &[&self.names.tenant_developers])
    }

    /// A person of the platform team, bound to cluster-admin like its real ones.
    pub fn platform(&self) -> Result<Access> {
        self.plane.user(&self.names.platform_user, &["platform-admins"])
    }

    /// Waits until a mode is in effect: said in the status, and seen in what the API server does.
    async fn settled(&mut self, mode: &str) -> Result<()> {
        let status = |objects: &Value| {
            let ready = |object: &Value| {
                let generation = object.pointer("/metadata/generation");
                let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
                object.pointer("/status/observedGeneration") == generation
                    && conditions.into_iter().flatten().any(|c| {
                        c.get("type").and_then(Value::as_str) == Some("Ready")
                            && c.get("status").and_then(Value::as_str) == Some("True")
                            && (object.get("kind").and_then(Value::as_str) != Some("Installation")
                                || c.get("message")
                                    .and_then(Value::as_str)
                                    .is_some_and(|m| m.starts_with(mode)))
                    })
            };
            let items = objects.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            items.len() >= 3 && items.iter().all(ready)
        };
        self.until(&["get", "installations,tenants", "-o", "json"], status)
            .await
            .with_context(|| format!("wait for mode {mode}"))?;
        if mode == "Enforce" { self.rails_active().await } else { Ok(()) }
    }

    /// Waits until the API server does what the rails say.
    ///
    /// It learns of a policy through a watch, and of the Boundary up to 30 s after its start.
    pub async fn rails_active(&self) -> Result<()> {
        let installer = self.installer()?;
        let probe = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"probe"},
            "rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]}]}"#;
        let reserved = probe.replace("\"probe\"", "\"bailey:probe\"");
        let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All";
        let deadline = Instant::now() + Duration::from_secs(EFFECT_SECONDS);
        loop {
            let (scoped, _) = installer.send("POST", path, Some("application/json"), Some(probe)).await?;
            let (refused, _) =
                installer.send("POST", path, Some("application/json"), Some(&reserved)).await?;
            if (scoped, refused) == (201, 403) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "the rails are not in effect: a role to be scoped gave {scoped}, a reserved name {refused}"
                );
            }
            tokio::time::sleep(Duration::from_millis(REPEAT_MILLISECONDS)).await;
        }
    }

    /// Repeats a `kubectl … -o json` as the platform until `accept` says so.
    pub async fn until(&mut self, arguments: &[&str], accept: impl Fn(&Value) -> bool) -> Result<Value> {
        let deadline = Instant::now() + Duration::from_secs(EFFECT_SECONDS);
        loop {
            if let Some(operator) = &mut self.operator {
                operator.check().context("the operator has ended")?;
            }
            let output = self.plane.admin().kubectl(arguments, None).await?;
            let seen: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
            if output.success() && accept(&seen) {
                return Ok(seen);
            }
            if Instant::now() > deadline {
                let log = self.operator.as_ref().map(Process::log_end).unwrap_or_default();
                bail!(
                    "not so after {EFFECT_SECONDS} s: kubectl {}\n{}{}\n{log}",
                    arguments.join(" "),
                    output.stdout,
                    output.stderr
                );
            }
            tokio::time::sleep(Duration::from_millis(REPEAT_MILLISECONDS)).await;
        }
    }
}
