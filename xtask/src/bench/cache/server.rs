//! The servers: Bailey, nginx in two ways, and the distribution registry, each a process of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use bailey_testkit::registry::Upstream;
use bailey_testkit::{Process, Tool, tools};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

use crate::bench::machine;

/// The registry that the upstream stands for.
pub const REGISTRY: &str = "registry.example";
const START: Duration = Duration::from_secs(30);

/// One of those that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Bailey,
    /// nginx with proxy_cache.
    Nginx,
    /// The registry of the distribution project as a pull-through cache.
    Distribution,
    /// nginx with sendfile from a folder: no cache, the least that sending costs.
    Sendfile,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bailey => "bailey",
            Self::Nginx => "nginx proxy_cache",
            Self::Distribution => "distribution",
            Self::Sendfile => "nginx sendfile",
        }
    }

    /// Whether it fetches what it has not.
    pub fn is_cache(self) -> bool {
        self != Self::Sendfile
    }
}

/// A server that answers.
pub struct Server {
    pub kind: Kind,
    pub plain: SocketAddr,
    /// Absent where it speaks no TLS here.
    pub tls: Option<SocketAddr>,
    processes: Vec<Process>,
    folder: TempDir,
}

/// The certificate that all show, and what makes clients believe it.
pub struct Certificate {
    certificate: String,
    key: String,
    pub trust: Arc<ClientConfig>,
}

impl Certificate {
    pub fn new() -> Result<Self> {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()])?;
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone())?;
        let trust = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self { certificate: cert.pem(), key: signing_key.serialize_pem(), trust: Arc::new(trust) })
    }

    fn write(&self, folder: &Path) -> Result<(PathBuf, PathBuf)> {
        let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
        fs::write(&certificate, &self.certificate)?;
        fs::write(&key, &self.key)?;
        Ok((certificate, key))
    }
}

impl Server {
    /// Starts one; none if its program is not there.
    pub fn start(
        kind: Kind,
        bailey: &Path,
        upstream: &Upstream,
        certificate: &Certificate,
    ) -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path();
        let (processes, plain, tls) = match kind {
            Kind::Bailey => {
                let (process, plain) = start_bailey(path, "plain", bailey, upstream, None)?;
                let (second, tls) =
                    start_bailey(path, "tls", bailey, upstream, Some(certificate.write(path)?))?;
                (vec![process, second], plain, Some(tls))
            }
            Kind::Nginx | Kind::Sendfile => {
                let Some(nginx) = nginx() else { return Ok(None) };
                let (plain, tls) = (free_address()?, free_address()?);
                let files = certificate.write(path)?;
                fs::create_dir(path.join("files"))?;
                // Its workers are not root.
                fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
                let location = if kind == Kind::Nginx { proxy(&upstream.url()) } else { files_of(path) };
                fs::write(path.join("nginx.conf"), nginx_config(path, plain, tls, &files, &location))?;
                let arguments = ["-p", ".", "-c", "nginx.conf", "-e", "error.log"];
                (vec![Process::start("nginx", &nginx, arguments, path)?], plain, Some(tls))
            }
            Kind::Distribution => {
                let plain = free_address()?;
                let config = format!(
                    "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\nhttp: {{addr: '{plain}'}}\n\
                     proxy: {{remoteurl: '{}'}}\nstorage: {{filesystem: {{rootdirectory: '{}'}}}}\n",
                    upstream.url(),
                    path.join("registry").display()
                );
                fs::write(path.join("registry.yml"), config)?;
                let program = tools::path(Tool::Registry)?;
                (vec![Process::start("registry", &program, ["serve", "registry.yml"], path)?], plain, None)
            }
        };
        let mut server = Self { kind, plain, tls, processes, folder };
        server.wait()?;
        Ok(Some(server))
    }

    fn wait(&mut self) -> Result<()> {
        let until = Instant::now() + START;
        for address in std::iter::once(self.plain).chain(self.tls) {
            while std::net::TcpStream::connect(address).is_err() {
                for process in &mut self.processes {
                    process.check()?;
                }
                if Instant::now() > until {
                    bail!("{} does not listen on {address}", self.kind.name());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// The path of a manifest or a blob: `manifests/v1`, `blobs/sha256:…`.
    pub fn path(&self, rest: &str) -> String {
        match self.kind {
            Kind::Bailey => format!("/v2/acme/app/{rest}?ns={REGISTRY}"),
            _ => format!("/v2/acme/app/{rest}"),
        }
    }

    /// Puts a file where [`Kind::Sendfile`] looks for this path.
    pub fn put(&self, rest: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.path().join("files/v2/acme/app").join(rest);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, bytes).with_context(|| format!("write `{}`", path.display()))
    }

    /// Seconds of processor time so far.
    pub fn cpu(&self) -> f64 {
        self.all().map(|id| machine::usage(id).seconds).sum()
    }

    /// Memory of its own in MiB, without what it maps from files.
    pub fn memory(&self) -> f64 {
        self.all().map(|id| own_memory(id).unwrap_or_default()).sum::<f64>() / 1024.0
    }

    /// Its processes, and those that these started.
    fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.iter().flat_map(|process| {
            let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", process.id()));
            let children = children.unwrap_or_default();
            let children: Vec<u32> = children.split_whitespace().filter_map(|id| id.parse().ok()).collect();
            std::iter::once(process.id()).chain(children)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // Killed otherwise, when it is dropped.
            let _status = process.terminate();
        }
    }
}

fn start_bailey(
    folder: &Path,
    name: &'static str,
    bailey: &Path,
    upstream: &Upstream,
    tls: Option<(PathBuf, PathBuf)>,
) -> Result<(Process, SocketAddr)> {
    let folder = folder.join(name);
    fs::create_dir(&folder)?;
    let tls = tls.map_or_else(String::new, |(certificate, key)| {
        format!("tls: {{certificate: '{}', key: '{}'}}\n", certificate.display(), key.display())
    });
    let config = format!(
        "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: store\nbudget: 20GiB\n{tls}\
         upstreams: [{{name: {REGISTRY}, url: '{}'}}]\n",
        upstream.url()
    );
    fs::write(folder.join("cache.yaml"), config)?;
    let mut process = Process::start("bailey", bailey, ["cache", "--config", "cache.yaml"], &folder)?;
    let until = Instant::now() + START;
    loop {
        process.check()?;
        let log = process.log();
        let line = log.lines().find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let address = line.as_ref().and_then(|line| line.get("listen")?.as_str()?.parse().ok());
        if let Some(address) = address {
            return Ok((process, address));
        }
        if Instant::now() > until {
            bail!("bailey says no address: {log}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn nginx() -> Option<PathBuf> {
    ["/usr/sbin/nginx", "/usr/local/sbin/nginx"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
        .or_else(|| tools::on_path("nginx"))
}

/// As its documentation tunes it for large files that many want at once.
fn nginx_config(
    folder: &Path,
    plain: SocketAddr,
    tls: SocketAddr,
    (certificate, key): &(PathBuf, PathBuf),
    location: &str,
) -> String {
    let (folder, certificate, key) = (folder.display(), certificate.display(), key.display());
    format!(
        "daemon off; worker_processes 2; pid {folder}/nginx.pid;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; aio off;\n\
         sendfile_max_chunk 2m; output_buffers 2 256k; client_body_temp_path {folder}/body;\n\
         proxy_temp_path {folder}/temp; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;\n\
         scgi_temp_path {folder}/s;\n\
         proxy_cache_path {folder}/cache levels=1:2 keys_zone=images:16m max_size=20g use_temp_path=off;\n\
         open_file_cache max=1000;\n\
         server {{ listen {plain}; listen {tls} ssl; ssl_certificate {certificate};\n\
         ssl_certificate_key {key}; ssl_protocols TLSv1.3;\n location / {{ {location} }} }} }}\n"
    )
}

fn proxy(upstream: &str) -> String {
    format!(
        "proxy_pass {upstream}; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_cache images;\n\
         proxy_cache_valid 200 1h; proxy_cache_lock on; proxy_cache_lock_timeout 1h; proxy_cache_lock_age 1h;\n\
         proxy_ignore_headers Cache-Control Expires Set-Cookie Vary; proxy_buffers 16 64k;\n\
         proxy_buffer_size 64k; proxy_busy_buffers_size 256k;"
    )
}

fn files_of(folder: &Path) -> String {
    format!("root {}/files;", folder.display())
}

fn free_address() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// In KiB.
fn own_memory(id: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
