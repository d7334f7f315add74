//! Reaches workload clusters through the kubeconfigs that Cluster API made, and reads their public keys.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bailey_process::telemetry::report;
use bailey_tunnel::directory::Index;
use bailey_tunnel::names::{ClusterUid, Party};
use k8s_openapi::api::core::v1::Secret;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use crate::keys::{FetchError, KeySource};

/// Where an API server tells its public keys (KEP-1393).
const JWKS: &str = "/openid/v1/jwks";
/// The key of the Secret that Cluster API writes (cluster-api `util/secret/consts.go`).
const VALUE: &str = "value";
const CALL: Duration = Duration::from_secs(10);

/// Makes clients of workload clusters.
#[derive(Clone)]
pub struct Kubeconfigs {
    management: Client,
    known: watch::Receiver<Arc<Index>>,
    /// By the version of the Secret, so that a kubeconfig that was rotated is used at once.
    clients: Arc<Mutex<HashMap<ClusterUid, (String, Client)>>>,
}

impl Kubeconfigs {
    /// Starts with none.
    pub fn new(management: Client, known: watch::Receiver<Arc<Index>>) -> Self {
        Self { management, known, clients: Arc::default() }
    }

    /// Gives a client of a workload cluster.
    pub async fn client(&self, uid: &ClusterUid) -> Result<Client, FetchError> {
        let name = {
            let index = self.known.borrow();
            let found = index.directory().clusters.iter().find(|cluster| cluster.uid == *uid);
            found.map(|cluster| cluster.name.clone())
        };
        let gone = || FetchError("the cluster does not exist any more".to_owned());
        let (namespace, name) = name.as_deref().and_then(|name| name.split_once('/')).ok_or_else(gone)?;
        let secret_name = format!("{name}-kubeconfig");
        let api: Api<Secret> = Api::namespaced(self.management.clone(), namespace);
        let secret = match timeout(CALL, api.get(&secret_name)).await {
            Ok(Ok(secret)) => secret,
            Ok(Err(error)) => {
                return Err(FetchError(format!("Secret {namespace}/{secret_name}: {}", report(&error))));
            }
            Err(_) => return Err(FetchError(format!("Secret {namespace}/{secret_name}: no answer"))),
        };
        let version = secret.metadata.resource_version.clone().unwrap_or_default();
        if let Some((_, client)) = self.clients.lock().await.get(uid).filter(|(of, _)| *of == version) {
            return Ok(client.clone());
        }
        let value = secret.data.as_ref().and_then(|data| data.get(VALUE));
        // What is wrong with it is not repeated: parsers quote what they stumble over.
        let unusable =
            || FetchError(format!("Secret {namespace}/{secret_name}: key `{VALUE}` is no usable kubeconfig"));
        let value = value.ok_or_else(unusable)?;
        let kubeconfig: Kubeconfig = std::str::from_utf8(&value.0)
            .ok()
            .and_then(|text| Kubeconfig::from_yaml(text).ok())
            .ok_or_else(unusable)?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|_| unusable())?;
        (config.connect_timeout, config.read_timeout) = (Some(CALL), Some(CALL));
        let client = Client::try_from(config).map_err(|_| unusable())?;
        self.clients.lock().await.insert(uid.clone(), (version, client.clone()));
        Ok(client)
    }

    async fn keys(&self, party: Party) -> Result<String, FetchError> {
        let client = match &party {
            Party::Cluster(uid) => self.client(uid).await?,
            Party::Gateway | Party::Issuer => self.management.clone(),
        };
        let request =
            http::Request::get(JWKS).body(Vec::new()).map_err(|error| FetchError(error.to_string()))?;
        match timeout(CALL, client.request_text(request)).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(error)) => Err(FetchError(report(&error))),
            Err(_) => Err(FetchError("the API server does not answer".to_owned())),
        }
    }
}

impl KeySource for Kubeconfigs {
    fn fetch(&self, party: &Party) -> Pin<Box<dyn Future<Output = Result<String, FetchError>> + Send + '_>> {
        let party = party.clone();
        Box::pin(self.keys(party))
    }
}
