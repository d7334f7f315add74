//! An installation in one process: authorities, a directory that can change, gateways, agents and backends.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bailey_gateway::{agent, gateway};
use bailey_identity::credentials::{Credentials, Current};
use bailey_process::drain::Drain;
use bailey_process::readiness::Readiness;
use bailey_tunnel::directory::{Cluster, Directory, Index, Service};
use bailey_tunnel::gate::Policy;
use bailey_tunnel::memory::Memory;
use bailey_tunnel::names::{ClusterUid, Identity, InstallationName, Party, ServiceName, SniLabel};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub const PATIENCE: Duration = Duration::from_secs(30);

/// An authority that issues what it is asked for.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    installation: InstallationName,
}

impl Authority {
    pub fn new(installation: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer, installation: InstallationName::new(installation).unwrap() }
    }

    pub fn bundle(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a certificate that is valid from now less five minutes, for so long.
    pub fn issue(&self, party: Party, life: Duration) -> Arc<Credentials> {
        self.issue_at(party, SystemTime::now(), life)
    }

    pub fn issue_at(&self, party: Party, now: SystemTime, life: Duration) -> Arc<Credentials> {
        let (chain, key) = self.pem(party, now, life);
        let credentials = Credentials::from_pem(chain.as_bytes(), key.as_bytes(), self.bundle().as_bytes());
        Arc::new(credentials.unwrap())
    }

    pub fn pem(&self, party: Party, now: SystemTime, life: Duration) -> (String, String) {
        let id = Identity { installation: self.installation.clone(), party }.to_string();
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI(id.try_into().unwrap())];
        params.not_before = (now - Duration::from_secs(300)).into();
        params.not_after = (now + life).into();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

pub fn uid(number: u32) -> ClusterUid {
    ClusterUid::new(format!("{number:08x}-0a3c-4f43-8c9e-0d5b7a1e9f11")).unwrap()
}

pub fn label(number: u32) -> SniLabel {
    let mut bits = [7; 16];
    bits[..4].copy_from_slice(&number.to_be_bytes());
    SniLabel::from_bits(bits)
}

pub const HOUR: Duration = Duration::from_secs(3600);

/// An installation with some clusters; services are added by the tests.
pub struct Installation {
    pub authority: Authority,
    pub directory: watch::Sender<Arc<Index>>,
}

impl Installation {
    pub fn new(clusters: u32) -> Self {
        bailey_process::crypto::install();
        let authority = Authority::new("atlas");
        let cluster = |number| Cluster {
            uid: uid(number),
            name: format!("org/{number}"),
            sni_label: label(number),
            sources: Vec::new(),
            revoked_before: None,
        };
        let directory = Directory {
            installation: authority.installation.clone(),
            sources: Policy::Off,
            clusters: (0..clusters).map(cluster).collect(),
            services: Vec::new(),
        };
        Self { directory: watch::Sender::new(Arc::new(Index::new(directory).unwrap())), authority }
    }

    pub fn change(&self, change: impl FnOnce(&mut Directory)) {
        let mut directory = self.directory.borrow().directory().clone();
        change(&mut directory);
        self.directory.send_replace(Arc::new(Index::new(directory).unwrap()));
    }

    /// Publishes a backend to clusters.
    pub fn publish(&self, name: &str, backend: SocketAddr, clusters: &[u32]) {
        let service = Service {
            name: ServiceName::new(name).unwrap(),
            backend: backend.to_string(),
            agent_port: 0,
            clusters: clusters.iter().map(|number| uid(*number)).collect::<BTreeSet<_>>(),
        };
        self.change(|directory| {
            directory.services.retain(|other| other.name != service.name);
            directory.services.push(service);
        });
    }

    pub async fn gateway(&self) -> Gateway {
        self.gateway_with(gateway::Options::default()).await
    }

    pub async fn gateway_with(&self, options: gateway::Options) -> Gateway {
        let credentials = watch::Sender::new(Some(self.authority.issue(Party::Gateway, HOUR)));
        self.gateway_at("127.0.0.1:0".parse().unwrap(), options, credentials).await
    }

    pub async fn gateway_at(
        &self,
        address: SocketAddr,
        options: gateway::Options,
        credentials: watch::Sender<Option<Arc<Credentials>>>,
    ) -> Gateway {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        let listener = socket.listen(1024).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = gateway::Shared::new(
            options,
            self.directory.subscribe(),
            credentials.subscribe(),
            gateway::Metrics::default(),
        );
        let drain = Drain::new();
        let task = tokio::spawn(gateway::serve(listener, Arc::clone(&shared), drain.signal()));
        Gateway { address, shared, drain, task, credentials }
    }

    pub fn agent(&self, number: u32, gateways: &[SocketAddr]) -> Agent {
        self.agent_with(number, gateways, HOUR, |_| {})
    }

    pub fn agent_with(
        &self,
        number: u32,
        gateways: &[SocketAddr],
        life: Duration,
        change: impl FnOnce(&mut agent::Options),
    ) -> Agent {
        let credentials = watch::Sender::new(Some(self.authority.issue(Party::Cluster(uid(number)), life)));
        self.agent_of(number, gateways, credentials, change)
    }

    pub fn agent_of(
        &self,
        number: u32,
        gateways: &[SocketAddr],
        credentials: watch::Sender<Option<Arc<Credentials>>>,
        change: impl FnOnce(&mut agent::Options),
    ) -> Agent {
        let mut options = agent::Options {
            cluster: uid(number),
            sni_label: label(number),
            gateways: gateways.iter().map(SocketAddr::to_string).collect(),
            proxy: None,
            listen: Ipv4Addr::LOCALHOST.into(),
            connections: 4,
            memory: Memory::AGENT,
            settings: bailey_gateway::wire::settings::Settings::DATA,
        };
        change(&mut options);
        let current: Current = credentials.subscribe();
        let shared = agent::Shared::new(options, current, agent::Metrics::default(), Arc::default());
        let (drain, readiness) = (Drain::new(), Readiness::new());
        let guard = readiness.register("gateway");
        let task = tokio::spawn(agent::serve(Arc::clone(&shared), guard, drain.signal()));
        Agent { shared, drain, readiness, task, credentials }
    }
}

pub struct Gateway {
    pub address: SocketAddr,
    pub shared: Arc<gateway::Shared>,
    pub drain: Drain,
    pub task: JoinHandle<()>,
    pub credentials: watch::Sender<Option<Arc<Credentials>>>,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub struct Agent {
    pub shared: Arc<agent::Shared>,
    pub drain: Drain,
    pub readiness: Readiness,
    pub task: JoinHandle<()>,
    pub credentials: watch::Sender<Option<Arc<Credentials>>>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Agent {
    /// Waits until a service is offered and its probe went through.
    pub async fn offered(&self, service: &str) -> SocketAddr {
        let name = ServiceName::new(service).unwrap();
        let mut answers = self.shared.answers();
        let ready =
            answers.wait_for(|answers| answers.iter().any(|answer| answer.name == name && answer.ready));
        timeout(PATIENCE, ready).await.expect("the service answers").unwrap();
        let mut bound = self.shared.bound();
        let bound = timeout(PATIENCE, bound.wait_for(|bound| bound.contains_key(&name))).await;
        bound.expect("the agent listens").unwrap()[&name]
    }

    /// Connects as a client in the workload cluster does.
    pub async fn connect(&self, service: &str) -> TcpStream {
        TcpStream::connect(self.offered(service).await).await.unwrap()
    }
}

/// Sends back what it gets, half-closed streams included.
pub async fn echo() -> SocketAddr {
    backend(|stream| async move {
        let (mut read, mut write) = stream.into_split();
        let _over = tokio::io::copy(&mut read, &mut write).await;
        let _over = write.shutdown().await;
    })
    .await
}

/// Sends zeros for as long as they are taken.
pub async fn source() -> SocketAddr {
    backend(|mut stream| async move {
        let zeros = vec![0; 256 << 10];
        while stream.write_all(&zeros).await.is_ok() {}
    })
    .await
}

pub async fn backend<F>(serve: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Sends a message and wants it back.
pub async fn say(stream: &mut TcpStream, message: &[u8]) {
    stream.write_all(message).await.unwrap();
    let mut back = vec![0; message.len()];
    timeout(PATIENCE, stream.read_exact(&mut back)).await.expect("an echo").unwrap();
    assert_eq!(back, message);
}

/// Reads for so long, and tells how much came.
pub async fn drink(stream: &mut TcpStream, span: Duration) -> u64 {
    let (mut buffer, mut sum) = (vec![0; 256 << 10], 0);
    let read = async {
        while let Ok(read) = stream.read(&mut buffer).await {
            if read == 0 {
                break;
            }
            sum += read as u64;
        }
    };
    let _span = timeout(span, read).await;
    sum
}

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}"));
}
