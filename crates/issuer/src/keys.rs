//! The public keys of clusters' API servers, by which their ServiceAccounts' tokens are verified.
//!
//! They are asked for again when a token names a key that is not among them, since API servers change keys by
//! themselves; how often is bounded for each cluster, whatever is sent.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bailey_tunnel::claims::Claims;
use bailey_tunnel::names::Party;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Between two times that one cluster is asked.
const AGAIN: Duration = Duration::from_secs(10);
/// A workload cluster far away, through its own kubeconfig.
const FETCH: Duration = Duration::from_secs(10);
/// What API servers sign with (KEP-1205); anything else is no token of theirs.
const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::ES256, Algorithm::ES384];

/// Where keys come from.
pub trait KeySource: Send + Sync + 'static {
    /// Gets the keys of a cluster as a JSON Web Key Set (RFC 7517, 5).
    fn fetch(&self, party: &Party) -> Pin<Box<dyn Future<Output = Result<String, FetchError>> + Send + '_>>;
}

/// A cluster whose keys cannot be had.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the keys of the cluster cannot be had: {0}")]
pub struct FetchError(pub String);

/// Why a token is not verified.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TokenError {
    /// It is no token.
    #[error("not a token of a ServiceAccount")]
    Malformed,
    /// It is signed in a way that API servers do not sign.
    #[error("a token that is signed by `{0:?}`, as no API server signs")]
    Algorithm(Algorithm),
    /// No key of the cluster has its name.
    #[error("the token is signed with a key that the cluster does not have")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the token is not signed by the cluster")]
    Signature,
    /// Keys cannot be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

impl TokenError {
    /// Names it for metrics and the other side.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "TokenMalformed",
            Self::Algorithm(_) => "TokenAlgorithm",
            Self::UnknownKey => "TokenKeyUnknown",
            Self::Signature => "TokenSignature",
            Self::Fetch(_) => "KeysUnavailable",
        }
    }
}

/// The keys of all clusters.
pub struct Keys {
    source: Box<dyn KeySource>,
    /// One lock for each cluster, so that one that does not answer holds up itself alone.
    known: Mutex<HashMap<Party, Arc<Mutex<Known>>>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Known {
    keys: Vec<Jwk>,
    asked: Option<Instant>,
}

impl Keys {
    /// Starts with none.
    pub fn new(source: impl KeySource) -> Self {
        Self { source: Box::new(source), known: Mutex::default() }
    }

    /// Verifies a token with the keys of one cluster, and gives what it says.
    pub async fn verify(&self, party: &Party, token: &str) -> Result<Claims, TokenError> {
        let header = decode_header(token).map_err(|_| TokenError::Malformed)?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(TokenError::Algorithm(header.alg));
        }
        let known = Arc::clone(self.known.lock().await.entry(party.clone()).or_default());
        let mut known = known.lock().await;
        let mut found = known.find(header.kid.as_deref());
        if found.is_empty() && known.asked.is_none_or(|asked| asked.elapsed() >= AGAIN) {
            known.asked = Some(Instant::now());
            known.keys = self.fetch(party).await?;
            found = known.find(header.kid.as_deref());
        }
        drop(known);
        if found.is_empty() {
            return Err(TokenError::UnknownKey);
        }
        found.iter().find_map(|key| claims(token, key, header.alg)).ok_or(TokenError::Signature)
    }

    /// Forgets the keys of clusters that do not exist any more.
    pub async fn keep(&self, exists: impl Fn(&Party) -> bool) {
        self.known.lock().await.retain(|party, _| exists(party));
    }

    async fn fetch(&self, party: &Party) -> Result<Vec<Jwk>, TokenError> {
        let fetched = timeout(FETCH, self.source.fetch(party)).await;
        let text = fetched.map_err(|_| FetchError(format!("no answer within {} s", FETCH.as_secs())))??;
        let set: JwkSet =
            serde_json::from_str(&text).map_err(|_| FetchError("not a set of keys".to_owned()))?;
        Ok(set.keys)
    }
}

impl Known {
    /// Gives the keys of a name, or all where the token names none.
    fn find(&self, name: Option<&str>) -> Vec<Jwk> {
        let named = |key: &&Jwk| name.is_none() || key.common.key_id.as_deref() == name;
        self.keys.iter().filter(named).cloned().collect()
    }
}

/// Gives what a token says, if a key has signed it. Its times and audiences are judged elsewhere.
fn claims(token: &str, key: &Jwk, algorithm: Algorithm) -> Option<Claims> {
    let key = DecodingKey::from_jwk(key).ok()?;
    let mut validation = Validation::new(algorithm);
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    decode::<Claims>(token, &key, &validation).ok().map(|token| token.claims)
}
