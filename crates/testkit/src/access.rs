//! Talks to a control plane as one identity: kube client, raw requests, `kubectl` and `helm`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::CONTENT_TYPE;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::io::AsyncWriteExt as _;

use crate::pki::{self, Identity};
use crate::tools::{self, Tool};

/// How long one request may take.
const REQUEST_SECONDS: u64 = 60;
/// How long `kubectl` or `helm` may take, waiting for a large chart included.
const PROGRAM_SECONDS: u64 = 300;

/// One identity's way in, with a home folder of its own for the programs that it runs.
#[derive(Clone, Debug)]
pub struct Access {
    name: String,
    kubeconfig: String,
    folder: PathBuf,
}

/// What an API server answered, whatever the status.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub body: String,
    /// The `Warning` headers as the server wrote them, such as `299 - "text"`.
    pub warnings: Vec<String>,
}

/// What a program printed and how it ended.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit code, or -1 when a signal ended the program.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Says whether the program ended with code 0.
    pub fn success(&self) -> bool {
        self.code == 0
    }

    /// Returns standard output, or what went wrong when the program failed.
    pub fn stdout_of_success(self) -> Result<String> {
        anyhow::ensure!(self.success(), "exit code {}: {}{}", self.code, self.stdout, self.stderr);
        Ok(self.stdout)
    }
}

/// How an identity proves who it is.
pub(crate) enum Credential {
    Certificate(Identity),
    Token(String),
}

impl Access {
    /// Makes a kubeconfig and a home below a control plane's folder.
    pub(crate) fn new(
        plane: &Path,
        server: &str,
        ca: &str,
        name: &str,
        credential: &Credential,
    ) -> Result<Self> {
        let parent = plane.join("access");
        fs::create_dir_all(&parent).with_context(|| format!("make `{}`", parent.display()))?;
        let folder = tempfile::Builder::new().prefix("identity-").tempdir_in(&parent)?.keep();
        let kubeconfig = kubeconfig(server, ca, name, credential);
        pki::write_private(&folder.join("kubeconfig"), &kubeconfig)?;
        Ok(Self { name: name.to_owned(), kubeconfig, folder })
    }

    /// Returns the name that the API server knows this identity by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a self-contained kubeconfig as YAML.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Returns a file that holds the kubeconfig for as long as the control plane's folder exists.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// Writes the kubeconfig to a file that only its owner reads.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<()> {
        pki::write_private(path, &self.kubeconfig)
    }

    /// Returns a client configuration for this identity.
    pub async fn config(&self) -> Result<kube::Config> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig).context("parse the kubeconfig")?;
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .with_context(|| format!("configure a client for `{}`", self.name))
    }

    /// Returns a new client; it belongs to the runtime that it is made on.
    pub async fn client(&self) -> Result<kube::Client> {
        crate::install_tls_provider();
        kube::Client::try_from(self.config().await?)
            .with_context(|| format!("make a client for `{}`", self.name))
    }

    /// Sends one request and returns status and body, whatever the status.
    pub async fn send(
        &self,
        method: &str,
        path_and_query: &str,
        content_type: Option<&str>,
        body: Option<&str>,
    ) -> Result<(u16, String)> {
        let reply = self.send_with_warnings(method, path_and_query, content_type, body).await?;
        Ok((reply.status, reply.body))
    }

    /// Sends one request and returns status, body and warnings, whatever the status.
    pub async fn send_with_warnings(
        &self,
        method: &str,
        path_and_query: &str,
        content_type: Option<&str>,
        body: Option<&str>,
    ) -> Result<Reply> {
        let client = self.client().await?;
        send(&client, method, path_and_query, content_type, body)
            .await
            .with_context(|| format!("{method} `{path_and_query}` as `{}`", self.name))
    }

    /// Runs the real `kubectl` as this identity.
    pub async fn kubectl(&self, args: &[&str], stdin: Option<&str>) -> Result<Output> {
        self.run(Tool::Kubectl, args, stdin).await
    }

    /// Runs the real `helm` as this identity.
    pub async fn helm(&self, args: &[&str]) -> Result<Output> {
        self.run(Tool::Helm, args, None).await
    }

    async fn run(&self, tool: Tool, args: &[&str], stdin: Option<&str>) -> Result<Output> {
        let program = tokio::task::spawn_blocking(move || tools::path(tool)).await??;
        self.run_program(&program, args, stdin)
            .await
            .with_context(|| format!("run {} {} as `{}`", tool.name(), args.join(" "), self.name))
    }

    /// Runs any program with this identity's kubeconfig, an own home, and nothing else of the environment.
    pub async fn run_program(&self, program: &Path, args: &[&str], stdin: Option<&str>) -> Result<Output> {
        let mut command = tokio::process::Command::new(program);
        command.args(args).env_clear().kill_on_drop(true);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.env("HOME", &self.folder).env("KUBECONFIG", self.kubeconfig_path());
        for (name, folder) in [
            ("HELM_CACHE_HOME", "helm/cache"),
            ("HELM_CONFIG_HOME", "helm/config"),
            ("HELM_DATA_HOME", "helm/data"),
        ] {
            command.env(name, self.folder.join(folder));
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let feed = async {
            if let (Some(mut pipe), Some(text)) = (input, stdin) {
                // A program may end without reading all of it; its own exit says whether that is wrong.
                let _written = pipe.write_all(text.as_bytes()).await;
            }
        };
        let both = async { tokio::join!(feed, child.wait_with_output()).1 };
        let output = tokio::time::timeout(Duration::from_secs(PROGRAM_SECONDS), both)
            .await
            .with_context(|| format!("no end within {PROGRAM_SECONDS} s"))??;
        Ok(Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// Sends one request with a client of the caller's.
pub async fn send(
    client: &kube::Client,
    method: &str,
    path_and_query: &str,
    content_type: Option<&str>,
    body: Option<&str>,
) -> Result<Reply> {
    let mut request = http::Request::builder().method(method).uri(path_and_query);
    if let Some(content_type) = content_type {
        request = request.header(CONTENT_TYPE, content_type);
    }
    let request = request.body(Body::from(body.unwrap_or_default().as_bytes().to_vec()))?;
    let exchange = async {
        let (head, body) = client.send(request).await?.into_parts();
        let body = body.collect_bytes().await?;
        anyhow::Ok(Reply {
            status: head.status.as_u16(),
            body: String::from_utf8_lossy(&body).into_owned(),
            warnings: head
                .headers
                .get_all(http::header::WARNING)
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .collect(),
        })
    };
    tokio::time::timeout(Duration::from_secs(REQUEST_SECONDS), exchange)
        .await
        .with_context(|| format!("no answer within {REQUEST_SECONDS} s"))?
}

fn kubeconfig(server: &str, ca: &str, name: &str, credential: &Credential) -> String {
    let user = match credential {
        Credential::Certificate(identity) => serde_json::json!({
            "client-certificate-data": BASE64.encode(&identity.certificate),
            "client-key-data": BASE64.encode(&identity.key),
        }),
        Credential::Token(token) => serde_json::json!({ "token": token }),
    };
    // A JSON string is a YAML string, which settles the quoting of any name.
    let name = serde_json::Value::from(name);
    let ca = BASE64.encode(ca);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: testkit\n\
         clusters:\n\
         - name: testkit\n  \
           cluster:\n    \
             server: {server}\n    \
             certificate-authority-data: {ca}\n\
         contexts:\n\
         - name: testkit\n  \
           context:\n    \
             cluster: testkit\n    \
             user: {name}\n\
         users:\n\
         - name: {name}\n  \
           user: {user}\n"
    )
}
