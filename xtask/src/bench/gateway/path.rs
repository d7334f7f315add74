//! The paths from a local port to the backends, each of processes of its own.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path as FilePath, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail};
use bailey_issuer::authority::Authority;
use bailey_testkit::{Process, tools};
use bailey_tunnel::directory::{Cluster, Directory, Service};
use bailey_tunnel::gate::Policy;
use bailey_tunnel::names::{ClusterUid, Identity, InstallationName, Party, ServiceName, SniLabel};
use serde_json::json;
use tempfile::TempDir;

use crate::bench::machine;

const START: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// One of those that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Bailey,
    /// TLS for each stream.
    Tls,
    /// nginx's stream module on both ends.
    Nginx,
    /// Straight to the backend.
    Tcp,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Bailey, Self::Tls, Self::Nginx, Self::Tcp];

    pub fn name(self) -> &'static str {
        match self {
            Self::Bailey => "bailey",
            Self::Tls => "TLS per stream",
            Self::Nginx => "nginx stream",
            Self::Tcp => "TCP",
        }
    }
}

/// A path that leads somewhere.
pub struct Path {
    pub kind: Kind,
    pub source: SocketAddr,
    pub echo: SocketAddr,
    /// Those of the near end, then those of the far end.
    processes: Vec<Process>,
    _folder: TempDir,
}

/// Where the backends are.
#[derive(Clone, Copy)]
pub struct Backends {
    pub source: SocketAddr,
    pub echo: SocketAddr,
}

impl Path {
    /// Starts one; none if what it needs is not there.
    pub fn start(kind: Kind, bailey: &FilePath, backends: Backends) -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let path = match kind {
            Kind::Tcp => Self {
                kind,
                source: backends.source,
                echo: backends.echo,
                processes: Vec::new(),
                _folder: folder,
            },
            Kind::Tls => tls(folder, backends)?,
            Kind::Nginx => match nginx(folder, backends)? {
                Some(path) => path,
                None => return Ok(None),
            },
            Kind::Bailey => Clusters::start(bailey, backends, 1)?.into_path(),
        };
        path.wait()?;
        Ok(Some(path))
    }

    /// Seconds of processor time of both ends so far.
    pub fn cpu(&self) -> f64 {
        self.processes
            .iter()
            .flat_map(|process| family(process.id()))
            .map(|id| machine::nanoseconds(id) as f64 / 1e9)
            .sum()
    }

    fn wait(&self) -> Result<()> {
        for address in [self.source, self.echo] {
            let until = Instant::now() + START;
            while std::net::TcpStream::connect(address).is_err() {
                if Instant::now() > until {
                    let logs: String = self.processes.iter().map(Process::log_end).collect();
                    bail!("{} does not listen on {address}\n{logs}", self.kind.name());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}

/// A gateway and agents of several clusters, all on this machine.
pub struct Clusters {
    pub gateway: SocketAddr,
    /// Where each cluster finds the source and the echo.
    pub services: Vec<(SocketAddr, SocketAddr)>,
    processes: Vec<Process>,
    folder: TempDir,
}

impl Clusters {
    pub fn start(bailey: &FilePath, backends: Backends, count: u8) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let installation = InstallationName::new("bench")?;
        let kept = Authority::create(&installation, SystemTime::now())?;
        let authority = Authority::open(installation.clone(), &kept)?;
        let uid = |number: u8| ClusterUid::new(format!("{number:08x}-0000-4000-8000-000000000000"));
        let label = |number: u8| SniLabel::from_bits([number + 1; 16]);
        let ports = [free_address()?.port(), free_address()?.port()];
        let all: BTreeSet<_> = (0..count).map(uid).collect::<Result<_, _>>()?;
        let service = |name: &str, backend: SocketAddr, port| {
            let name = ServiceName::new(name)?;
            anyhow::Ok(Service {
                name,
                backend: backend.to_string(),
                agent_port: port,
                clusters: all.clone(),
            })
        };
        let [source_port, echo_port] = ports;
        let cluster = |number| {
            let uid = uid(number)?;
            let name = format!("bench/{number}");
            anyhow::Ok(Cluster {
                uid,
                name,
                sni_label: label(number),
                sources: Vec::new(),
                revoked_before: None,
            })
        };
        let directory = Directory {
            installation: installation.clone(),
            sources: Policy::Prefer,
            clusters: (0..count).map(cluster).collect::<Result<_>>()?,
            services: vec![
                service("source", backends.source, source_port)?,
                service("echo", backends.echo, echo_port)?,
            ],
        };
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text);
        write("directory.yaml", &serde_json::to_string(&directory)?)?;
        write("ca.crt", authority.bundle())?;
        let own = |party, name: &str| {
            let identity = Identity { installation: installation.clone(), party };
            let (certificate, key) = authority.own(&identity, SystemTime::now(), DAY)?;
            write(&format!("{name}.crt"), &certificate)?;
            write(&format!("{name}.key"), &key)?;
            anyhow::Ok(())
        };
        own(Party::Gateway, "gateway")?;
        let gateway = free_address()?;
        let listen = gateway.to_string();
        let arguments = [
            "gateway",
            "--listen",
            &listen,
            "--admin",
            "127.0.0.1:0",
            "--directory",
            "directory.yaml",
            "--certificate",
            "gateway.crt",
            "--key",
            "gateway.key",
            "--bundle",
            "ca.crt",
        ];
        let mut processes = vec![Process::start("gateway", bailey, arguments, folder.path())?];
        let mut services = Vec::new();
        for number in 0..count {
            let name = format!("agent-{number}");
            own(Party::Cluster(uid(number)?), &name)?;
            let config = json!({
                "installation": installation, "cluster": uid(number)?, "sniLabel": label(number),
                "gateways": [gateway.to_string()], "bundle": authority.bundle(),
            });
            write(&format!("{name}.json"), &config.to_string())?;
            let address = format!("127.0.1.{}", number + 1);
            let (config, certificate, key) =
                (format!("{name}.json"), format!("{name}.crt"), format!("{name}.key"));
            let arguments = [
                "agent",
                "--config",
                &config,
                "--certificate",
                &certificate,
                "--key",
                &key,
                "--listen",
                &address,
                "--admin",
                "127.0.0.1:0",
            ];
            processes.push(Process::start("agent", bailey, arguments, folder.path())?);
            let at = |port| format!("{address}:{port}").parse::<SocketAddr>();
            services.push((at(source_port)?, at(echo_port)?));
        }
        let clusters = Self { gateway, services, processes, folder };
        clusters.wait()?;
        Ok(clusters)
    }

    /// Memory of its own in MiB: of the first agent, and of the gateway.
    pub fn memory(&self) -> (f64, f64) {
        let of = |at: usize| {
            self.processes
                .get(at)
                .map_or(0.0, |process| own_memory(process.id()).unwrap_or_default() / 1024.0)
        };
        (of(1), of(0))
    }

    fn into_path(self) -> Path {
        let (source, echo) = self.services.first().copied().unwrap_or((self.gateway, self.gateway));
        Path { kind: Kind::Bailey, source, echo, processes: self.processes, _folder: self.folder }
    }

    fn wait(&self) -> Result<()> {
        let until = Instant::now() + START;
        for (source, echo) in &self.services {
            for address in [source, echo] {
                while std::net::TcpStream::connect(address).is_err() {
                    if Instant::now() > until {
                        let logs: String = self.processes.iter().map(Process::log_end).collect();
                        bail!("no agent listens on {address}\n{logs}");
                    }
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        Ok(())
    }
}

fn tls(folder: TempDir, backends: Backends) -> Result<Path> {
    let installation = InstallationName::new("bench")?;
    let kept = Authority::create(&installation, SystemTime::now())?;
    let authority = Authority::open(installation.clone(), &kept)?;
    let identity = Identity { installation, party: Party::Gateway };
    let (certificate, key) = authority.own(&identity, SystemTime::now(), DAY)?;
    for (name, text) in
        [("tls.crt", certificate.as_str()), ("tls.key", key.as_str()), ("ca.crt", authority.bundle())]
    {
        fs::write(folder.path().join(name), text)?;
    }
    let own = std::env::current_exe().context("find this program")?;
    let mut processes = Vec::new();
    let mut splice = |to: SocketAddr, server: bool| {
        let listen = free_address()?;
        let (text, to) = (listen.to_string(), to.to_string());
        let mut arguments = vec!["bench", "splice", "--listen", &text, "--to", &to, "--credentials", "."];
        arguments.extend(server.then_some("--server"));
        processes.push(Process::start("splice", &own, arguments, folder.path())?);
        anyhow::Ok(listen)
    };
    let (far_source, far_echo) = (splice(backends.source, true)?, splice(backends.echo, true)?);
    let (source, echo) = (splice(far_source, false)?, splice(far_echo, false)?);
    Ok(Path { kind: Kind::Tls, source, echo, processes, _folder: folder })
}

fn nginx(folder: TempDir, backends: Backends) -> Result<Option<Path>> {
    let found = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.is_file());
    let Some(program) = found.or_else(|| tools::on_path("nginx")) else { return Ok(None) };
    let modules = ["/usr/lib/nginx/modules", "/usr/lib64/nginx/modules"]
        .map(|folder| PathBuf::from(folder).join("ngx_stream_module.so"));
    let Some(module) = modules.into_iter().find(|path| path.is_file()) else { return Ok(None) };
    let certified = rcgen::generate_simple_self_signed(["gateway".to_owned()])?;
    fs::write(folder.path().join("tls.crt"), certified.cert.pem())?;
    fs::write(folder.path().join("tls.key"), certified.signing_key.serialize_pem())?;
    // Its workers are not root.
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let (far_source, far_echo, source, echo) =
        (free_address()?, free_address()?, free_address()?, free_address()?);
    let path = folder.path().display();
    let common = |servers: String| {
        format!(
            "load_module {}; daemon off; worker_processes 2; pid {path}/%.pid;\n\
             events {{ worker_connections 8192; }}\n\
             stream {{ proxy_buffer_size 64k; tcp_nodelay on; {servers} }}\n",
            module.display()
        )
    };
    let far = |listen: SocketAddr, to: SocketAddr| {
        format!(
            "server {{ listen {listen} ssl; ssl_protocols TLSv1.3; ssl_certificate {path}/tls.crt; ssl_certificate_key {path}/tls.key; proxy_pass {to}; }}\n"
        )
    };
    let near = |listen: SocketAddr, to: SocketAddr| {
        format!(
            "server {{ listen {listen}; proxy_ssl on; proxy_ssl_protocols TLSv1.3; proxy_ssl_session_reuse off; proxy_pass {to}; }}\n"
        )
    };
    let servers = [
        ("near", near(source, far_source) + &near(echo, far_echo)),
        ("far", far(far_source, backends.source) + &far(far_echo, backends.echo)),
    ];
    let mut processes = Vec::new();
    for (name, servers) in servers {
        let file = format!("{name}.conf");
        fs::write(folder.path().join(&file), common(servers).replace('%', name))?;
        let arguments = ["-p", ".", "-c", &file, "-e", "error.log"];
        processes.push(Process::start("nginx", &program, arguments, folder.path())?);
    }
    Ok(Some(Path { kind: Kind::Nginx, source, echo, processes, _folder: folder }))
}

/// A process and those that it started.
fn family(id: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    std::iter::once(id).chain(children.split_whitespace().filter_map(|id| id.parse().ok())).collect()
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
