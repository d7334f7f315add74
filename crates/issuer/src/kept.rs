//! The authority in its Secret: made once, followed from then on, so that it can be replaced in steps.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bailey_api::OPERATOR_NAMESPACE;
use bailey_process::drain::Signal;
use bailey_process::telemetry::report;
use bailey_tunnel::names::InstallationName;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use crate::authority::{Authority, AuthorityError, Kept};

/// The Secret with the key that signs.
pub const SECRET: &str = "bailey-issuer";
/// The ConfigMap with what others are told to trust.
pub const BUNDLE: &str = "bailey-tunnel-ca";
const EVERY: Duration = Duration::from_secs(5);
const CALL: Duration = Duration::from_secs(10);

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The Secret cannot be read or made.
    #[error("cannot read or make Secret {OPERATOR_NAMESPACE}/{SECRET}")]
    Api(#[source] Box<kube::Error>),
    /// The API server does not answer.
    #[error("the API server does not answer about Secret {OPERATOR_NAMESPACE}/{SECRET}")]
    Timeout,
    /// A key of the Secret is missing.
    #[error("Secret {OPERATOR_NAMESPACE}/{SECRET} has no `{0}`; it needs `tls.crt`, `tls.key` and `ca.crt`")]
    Missing(&'static str),
    /// What is in it is no use.
    #[error("Secret {OPERATOR_NAMESPACE}/{SECRET} holds no usable authority")]
    Authority(#[from] AuthorityError),
}

/// Opens the authority of the installation, or makes it, and gives what follows its changes.
pub async fn open(
    client: Client,
    installation: InstallationName,
) -> Result<(watch::Receiver<Arc<Authority>>, Follow), KeptError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), OPERATOR_NAMESPACE);
    let kept = match read(&api).await? {
        Some(kept) => kept,
        None => create(&api, &installation).await?,
    };
    let first = Arc::new(Authority::open(installation.clone(), &kept)?);
    let (sender, authority) = watch::channel(first);
    Ok((authority, Follow { client, api, installation, kept, sender }))
}

/// Follows the Secret, and tells others whom to trust.
pub struct Follow {
    client: Client,
    api: Api<Secret>,
    installation: InstallationName,
    kept: Kept,
    sender: watch::Sender<Arc<Authority>>,
}

impl Follow {
    /// Runs until the drain. What cannot be used leaves the last authority in place.
    pub async fn run(mut self, signal: Signal) -> Result<(), KeptError> {
        let mut published = None;
        loop {
            if published.as_ref() != Some(&self.kept.bundle) {
                match publish(&self.client, &self.kept.bundle).await {
                    Ok(()) => published = Some(self.kept.bundle.clone()),
                    Err(error) => tracing::warn!(error = report(&error), "cannot publish the authorities"),
                }
            }
            tokio::select! {
                () = signal.started() => return Ok(()),
                () = sleep(EVERY) => {}
            }
            match self.refresh().await {
                Ok(false) => {}
                Ok(true) => tracing::info!("the authority has changed"),
                Err(error) => tracing::warn!(error = report(&error), "the last authority is kept"),
            }
        }
    }

    async fn refresh(&mut self) -> Result<bool, KeptError> {
        let Some(kept) = read(&self.api).await?.filter(|kept| *kept != self.kept) else { return Ok(false) };
        let authority = Authority::open(self.installation.clone(), &kept)?;
        self.kept = kept;
        self.sender.send_replace(Arc::new(authority));
        Ok(true)
    }
}

async fn read(api: &Api<Secret>) -> Result<Option<Kept>, KeptError> {
    let found = timeout(CALL, api.get_opt(SECRET)).await.map_err(|_| KeptError::Timeout)?;
    let Some(secret) = found.map_err(|error| KeptError::Api(Box::new(error)))? else { return Ok(None) };
    let data = secret.data.unwrap_or_default();
    let text = |key: &'static str| {
        let value = data.get(key).and_then(|value| String::from_utf8(value.0.clone()).ok());
        value.ok_or(KeptError::Missing(key))
    };
    let key = Zeroizing::new(text("tls.key")?);
    Ok(Some(Kept { certificate: text("tls.crt")?, key, bundle: text("ca.crt")? }))
}

/// Makes the Secret. Of two that try, one wins, and both go on with what is there.
async fn create(api: &Api<Secret>, installation: &InstallationName) -> Result<Kept, KeptError> {
    let kept = Authority::create(installation, SystemTime::now())?;
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let data = [
        ("tls.crt", bytes(&kept.certificate)),
        ("tls.key", bytes(&kept.key)),
        ("ca.crt", bytes(&kept.bundle)),
    ];
    let secret = Secret {
        metadata: ObjectMeta { name: Some(SECRET.to_owned()), ..ObjectMeta::default() },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(data.map(|(key, value)| (key.to_owned(), value)).into()),
        ..Secret::default()
    };
    let params = PostParams::default();
    match timeout(CALL, api.create(&params, &secret)).await.map_err(|_| KeptError::Timeout)? {
        Ok(_) => Ok(kept),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            read(api).await?.ok_or(KeptError::Missing("tls.key"))
        }
        Err(error) => Err(KeptError::Api(Box::new(error))),
    }
}

async fn publish(client: &Client, bundle: &str) -> Result<(), KeptError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), OPERATOR_NAMESPACE);
    let content = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": BUNDLE, "labels": { "app.kubernetes.io/managed-by": "bailey" } },
        "data": { "ca.crt": bundle },
    });
    let params = PatchParams::apply("bailey-issuer").force();
    let written = timeout(CALL, api.patch(BUNDLE, &params, &Patch::Apply(&content))).await;
    written.map_err(|_| KeptError::Timeout)?.map(drop).map_err(|error| KeptError::Api(Box::new(error)))
}
