//! Asks the issuer for a certificate: one request over TLS that trusts only the installation's authorities.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bailey_tunnel::control::ALPN_ENROL;
use bailey_tunnel::directory::Seconds;
use bailey_tunnel::names::{Identity, InstallationName, NameError, Party};
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use crate::credentials::{Credentials, CredentialsError};
use crate::key::{Key, KeyError};
use crate::tls::pinned;

/// Where certificates are asked for.
pub const PATH: &str = "/v1/certificates";
/// The issuer may have to ask the workload cluster for its keys meanwhile.
const WHOLE: Duration = Duration::from_secs(20);
/// A chain and some authorities.
const ANSWER_MAX: usize = 256 << 10;

/// What is asked.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Application {
    /// The request for a certificate, in PEM.
    pub csr: String,
    /// The token of the account.
    pub token: Zeroizing<String>,
    /// The hash of the authorities that are trusted now.
    pub bundle: String,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Issued {
    /// The chain, leaf first, in PEM.
    pub certificate: String,
    /// How long it lives from now, in seconds: no clock has to be right for that.
    pub life_seconds: Seconds,
    /// The time of the management cluster.
    pub now: Seconds,
    /// The authorities of the installation, in PEM.
    pub bundle: String,
}

/// What is answered to those who get none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// The kind of refusal.
    pub reason: String,
    /// What to do about it.
    pub message: String,
    /// When it is worth trying again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
    /// The time of the management cluster.
    #[serde(default)]
    pub now: Seconds,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// The name for the greeting.
    #[error("the name for the greeting cannot be used")]
    Name,
    /// The installation's name.
    #[error("the installation has no usable name")]
    Installation(#[from] NameError),
    /// The key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// TLS.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The issuer is not reached, or is not ours.
    #[error("no session with the issuer")]
    Handshake(#[source] io::Error),
    /// HTTP.
    #[error("the issuer does not answer in order")]
    Http(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Time.
    #[error("the issuer does not answer within {} s", WHOLE.as_secs())]
    Timeout,
    /// It says no.
    #[error("the issuer refuses ({}): {}", .0.reason, .0.message)]
    Refused(Refused),
    /// What it gives cannot be used.
    #[error("the issuer's answer cannot be used")]
    Answer(#[from] serde_json::Error),
    /// The certificate cannot be used.
    #[error("the issuer's certificate cannot be used")]
    Credentials(#[from] CredentialsError),
    /// The certificate is somebody else's.
    #[error("the issuer gave a certificate of `{0}`")]
    Other(Identity),
}

impl EnrolError {
    /// Names the kind of error for metrics.
    pub fn reason(&self) -> &str {
        match self {
            Self::Name | Self::Installation(_) => "NameInvalid",
            Self::Key(_) => "KeyUnusable",
            Self::Tls(_) => "BundleUnusable",
            Self::Handshake(_) => "NoSession",
            Self::Http(_) => "NoAnswer",
            Self::Timeout => "Timeout",
            Self::Refused(refused) => &refused.reason,
            Self::Answer(_) | Self::Credentials(_) | Self::Other(_) => "AnswerUnusable",
        }
    }
}

/// Who asks, and whom it trusts.
#[derive(Clone, Debug)]
pub struct Applying {
    /// The installation.
    pub installation: InstallationName,
    /// Who it wants to be.
    pub party: Party,
    /// What it sends as SNI.
    pub sni: String,
    /// The authorities that it trusts.
    pub bundle: Arc<RootCertStore>,
    /// Their hash.
    pub bundle_hash: String,
}

impl Applying {
    /// Asks for a certificate of a key over a connection to the issuer.
    pub async fn ask<S>(
        &self,
        stream: S,
        key: &Key,
        token: Zeroizing<String>,
    ) -> Result<(Credentials, Issued), EnrolError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let application = Application { csr: key.request()?, token, bundle: self.bundle_hash.clone() };
        let issued =
            timeout(WHOLE, self.exchange(stream, &application)).await.map_err(|_| EnrolError::Timeout)??;
        let credentials = Credentials::of_key(issued.certificate.as_bytes(), key, issued.bundle.as_bytes())?;
        let identity = &credentials.certificate.identity;
        if identity.party != self.party || identity.installation != self.installation {
            return Err(EnrolError::Other(identity.clone()));
        }
        Ok((credentials, issued))
    }

    async fn exchange<S>(&self, stream: S, application: &Application) -> Result<Issued, EnrolError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let issuer = Identity { installation: self.installation.clone(), party: Party::Issuer };
        let mut config =
            pinned(Arc::clone(&self.bundle), issuer).map_err(EnrolError::Tls)?.with_no_client_auth();
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![ALPN_ENROL.to_vec()];
        let name = ServerName::try_from(self.sni.clone()).map_err(|_| EnrolError::Name)?;
        let tls = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .map_err(EnrolError::Handshake)?;
        let http = |error: hyper::Error| EnrolError::Http(error.into());
        let (mut send, connection) = http1::handshake(TokioIo::new(tls)).await.map_err(http)?;
        let body = Bytes::from(serde_json::to_vec(application)?);
        let request = Request::builder()
            .method(Method::POST)
            .uri(PATH)
            .header(header::HOST, "issuer")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| EnrolError::Http(error.into()))?;
        let answer = async {
            let response = send.send_request(request).await.map_err(http)?;
            let status = response.status();
            let body =
                Limited::new(response.into_body(), ANSWER_MAX).collect().await.map_err(EnrolError::Http)?;
            Ok::<_, EnrolError>((status, body.to_bytes()))
        };
        // An answer that is there already is read to its end after the connection has ended.
        let drive = async {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to the issuer broke");
            }
            std::future::pending::<()>().await;
        };
        let (status, body) = tokio::select! {
            answer = answer => answer?,
            () = drive => return Err(EnrolError::Timeout),
        };
        if status == StatusCode::OK {
            Ok(serde_json::from_slice(&body)?)
        } else {
            Err(EnrolError::Refused(serde_json::from_slice(&body)?))
        }
    }
}
