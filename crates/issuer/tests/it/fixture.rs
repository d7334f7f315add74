//! An issuer on loopback, and API servers that are only their signing keys.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bailey_identity::clock::now;
use bailey_identity::credentials::{Credentials, authorities};
use bailey_identity::enrol::{Applying, EnrolError, Issued};
use bailey_identity::key::Key;
use bailey_identity::tokens::{TokenError, Tokens};
use bailey_issuer::Metrics;
use bailey_issuer::authority::{Authority, Kept};
use bailey_issuer::desk::Desk;
use bailey_issuer::keys::{FetchError, KeySource, Keys};
use bailey_process::drain::Drain;
use bailey_tunnel::claims::Applicant;
use bailey_tunnel::control::SNI_SUFFIX;
use bailey_tunnel::directory::{Cluster, Directory, Index, Service};
use bailey_tunnel::gate::Policy;
use bailey_tunnel::names::{ClusterUid, InstallationName, Party, ServiceName, SniLabel};
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use zeroize::Zeroizing;

pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn uid(number: u32) -> ClusterUid {
    ClusterUid::new(format!("{number:08x}-0a3c-4f43-8c9e-0d5b7a1e9f11")).unwrap()
}

pub fn label(number: u32) -> SniLabel {
    let mut bits = [7; 16];
    bits[..4].copy_from_slice(&number.to_be_bytes());
    SniLabel::from_bits(bits)
}

/// An API server's signing key. All have the same issuer and the same key ID, as they may.
pub struct SigningKey {
    pem: String,
    id: String,
}

impl SigningKey {
    pub fn new(id: &str) -> Self {
        Self { pem: rcgen::KeyPair::generate().unwrap().serialize_pem(), id: id.to_owned() }
    }

    fn encoding(&self) -> EncodingKey {
        EncodingKey::from_ec_pem(self.pem.as_bytes()).unwrap()
    }

    pub fn jwks(&self) -> String {
        let mut key = Jwk::from_encoding_key(&self.encoding(), Algorithm::ES256).unwrap();
        key.common.key_id = Some(self.id.clone());
        serde_json::to_string(&JwkSet { keys: vec![key] }).unwrap()
    }

    pub fn sign(&self, claims: &serde_json::Value) -> Zeroizing<String> {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(self.id.clone());
        Zeroizing::new(encode(&header, claims, &self.encoding()).unwrap())
    }
}

/// The keys of clusters, as their API servers would give them.
#[derive(Clone, Default)]
pub struct Clusters(pub Arc<Mutex<HashMap<Party, String>>>, pub Arc<AtomicU32>);

impl KeySource for Clusters {
    fn fetch(&self, party: &Party) -> Pin<Box<dyn Future<Output = Result<String, FetchError>> + Send + '_>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let found = self.0.lock().unwrap().get(party).cloned();
        Box::pin(async move { found.ok_or_else(|| FetchError("the API server does not answer".to_owned())) })
    }
}

/// Makes tokens as the API server of one cluster does for the agent there.
#[derive(Clone)]
pub struct ApiServer {
    pub key: Arc<Mutex<SigningKey>>,
    pub subject: String,
    /// How far the clock of the cluster is ahead.
    pub ahead: Arc<AtomicI64>,
}

impl ApiServer {
    pub fn claims(&self, audiences: &[String]) -> serde_json::Value {
        let now = now().saturating_add_signed(self.ahead.load(Ordering::Relaxed));
        serde_json::json!({
            "iss": "https://kubernetes.default.svc.cluster.local",
            "sub": self.subject, "aud": audiences, "iat": now, "nbf": now, "exp": now + 600,
        })
    }

    pub fn token(&self, applicant: &Applicant) -> Zeroizing<String> {
        self.key.lock().unwrap().sign(&self.claims(&applicant.audiences()))
    }
}

impl Tokens for ApiServer {
    async fn token(&self, audiences: [String; 2]) -> Result<Zeroizing<String>, TokenError> {
        Ok(self.key.lock().unwrap().sign(&self.claims(&audiences)))
    }
}

pub struct Installation {
    pub name: InstallationName,
    pub kept: Kept,
    pub authority: watch::Sender<Arc<Authority>>,
    pub directory: watch::Sender<Arc<Index>>,
    pub clusters: Clusters,
    pub api_servers: Vec<ApiServer>,
    pub gateways: ApiServer,
    pub address: SocketAddr,
    pub desk: Arc<Desk>,
    /// Dropping it would count as a drain.
    _drain: Drain,
    task: JoinHandle<()>,
}

impl Drop for Installation {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Installation {
    pub async fn new(count: u32) -> Self {
        Self::with_life(count, Duration::from_secs(3600)).await
    }

    pub async fn with_life(count: u32, life: Duration) -> Self {
        bailey_process::crypto::install();
        let name = InstallationName::new("atlas").unwrap();
        let kept = Authority::create(&name, SystemTime::now()).unwrap();
        let authority = watch::Sender::new(Arc::new(Authority::open(name.clone(), &kept).unwrap()));
        let cluster = |number| Cluster {
            uid: uid(number),
            name: format!("org/{number}"),
            sni_label: label(number),
            sources: Vec::new(),
            revoked_before: None,
        };
        let directory = Directory {
            installation: name.clone(),
            sources: Policy::Off,
            clusters: (0..count).map(cluster).collect(),
            services: Vec::new(),
        };
        let directory = watch::Sender::new(Arc::new(Index::new(directory).unwrap()));
        let clusters = Clusters::default();
        let api_server = |party: Party| {
            let key = SigningKey::new("same");
            clusters.0.lock().unwrap().insert(party.clone(), key.jwks());
            let subject = Applicant { installation: name.clone(), party, key: String::new() }.subject();
            ApiServer { key: Arc::new(Mutex::new(key)), subject, ahead: Arc::default() }
        };
        let api_servers = (0..count).map(|number| api_server(Party::Cluster(uid(number)))).collect();
        let gateways = api_server(Party::Gateway);
        let keys = Keys::new(clusters.clone());
        let (authorities, known) = (authority.subscribe(), directory.subscribe());
        let desk = Arc::new(Desk::new(authorities, known, keys, life, Metrics::default()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let drain = Drain::new();
        let serving =
            bailey_issuer::serve::serve(listener, Arc::clone(&desk), authority.subscribe(), drain.signal());
        let task = tokio::spawn(async move { serving.await.unwrap() });
        Self {
            name,
            kept,
            authority,
            directory,
            clusters,
            api_servers,
            gateways,
            address,
            desk,
            _drain: drain,
            task,
        }
    }

    pub fn change(&self, change: impl FnOnce(&mut Directory)) {
        let mut directory = self.directory.borrow().directory().clone();
        change(&mut directory);
        self.directory.send_replace(Arc::new(Index::new(directory).unwrap()));
    }

    pub fn publish(&self, name: &str, backend: SocketAddr, clusters: &[u32]) {
        self.change(|directory| {
            directory.services.push(Service {
                name: ServiceName::new(name).unwrap(),
                backend: backend.to_string(),
                agent_port: 0,
                clusters: clusters.iter().map(|number| uid(*number)).collect::<BTreeSet<_>>(),
            });
        });
    }

    pub fn applying(&self, number: u32) -> Applying {
        self.applying_as(Party::Cluster(uid(number)), label(number).as_str())
    }

    pub fn applying_as(&self, party: Party, label: &str) -> Applying {
        let (bundle, bundle_hash) = authorities(self.kept.bundle.as_bytes()).unwrap();
        let sni = format!("{label}{SNI_SUFFIX}");
        Applying { installation: self.name.clone(), party, sni, bundle, bundle_hash }
    }

    pub fn applicant(&self, number: u32, key: &Key) -> Applicant {
        Applicant { installation: self.name.clone(), party: Party::Cluster(uid(number)), key: key.hash() }
    }

    /// Asks for a certificate of a cluster with a token.
    pub async fn ask(
        &self,
        number: u32,
        key: &Key,
        token: Zeroizing<String>,
    ) -> Result<(Credentials, Issued), EnrolError> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        self.applying(number).ask(stream, key, token).await
    }
}

/// Gives the reason of a refusal.
pub fn refused<T>(result: Result<T, EnrolError>) -> String {
    match result {
        Ok(_) => "granted".to_owned(),
        Err(EnrolError::Refused(refused)) => refused.reason,
        Err(error) => panic!("{error:?}"),
    }
}

pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}"));
}
