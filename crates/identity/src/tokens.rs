//! Tokens of this process' ServiceAccount, each for one request.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::timeout;
use zeroize::Zeroizing;

/// The shortest life that the API server gives.
const LIFE_SECONDS: i64 = 600;
const ASK: Duration = Duration::from_secs(10);

/// Gives tokens.
pub trait Tokens: Send + Sync + 'static {
    /// Gives a token for audiences.
    fn token(
        &self,
        audiences: [String; 2],
    ) -> impl Future<Output = Result<Zeroizing<String>, TokenError>> + Send;
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The API server says no.
    #[error("cannot get a token of `{account}`; its Role must allow `create` on `serviceaccounts/token`")]
    Ask {
        /// Of which account.
        account: String,
        /// Why.
        source: Box<kube::Error>,
    },
    /// The API server does not answer.
    #[error("the API server gives no token within {} s", ASK.as_secs())]
    Timeout,
    /// The answer holds none.
    #[error("the API server's answer holds no token")]
    Empty,
}

/// Asks the API server, as `kubectl create token` does.
#[derive(Clone)]
pub struct ServiceAccountTokens {
    /// The API server of the cluster that the process runs in.
    pub client: Client,
    /// The namespace of the account.
    pub namespace: String,
    /// Its name.
    pub account: String,
}

impl Tokens for ServiceAccountTokens {
    async fn token(&self, audiences: [String; 2]) -> Result<Zeroizing<String>, TokenError> {
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.namespace);
        let spec = TokenRequestSpec {
            audiences: Some(audiences.to_vec()),
            expiration_seconds: Some(LIFE_SECONDS),
            bound_object_ref: None,
        };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let params = PostParams::default();
        let asked = timeout(ASK, api.create_token_request(&self.account, &params, &request)).await;
        let account = format!("{}/{}", self.namespace, self.account);
        let answer = asked.map_err(|_| TokenError::Timeout)?;
        let answer = answer.map_err(|source| TokenError::Ask { account, source: Box::new(source) })?;
        let token = answer.status.and_then(|status| status.token);
        token.map(Zeroizing::new).ok_or(TokenError::Empty)
    }
}
