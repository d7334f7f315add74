//! Decides who gets a certificate. INVARIANT: no certificate names a cluster whose own key has not signed the token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bailey_identity::clock::now;
use bailey_identity::enrol::{Application, Issued, Refused};
use bailey_tunnel::claims::{self, Applicant};
use bailey_tunnel::directory::{Index, Refusal as Unknown};
use bailey_tunnel::names::{Identity, Party};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::authority::{Authority, AuthorityError, Requested};
use crate::keys::{Keys, TokenError};
use crate::metrics::{Metrics, PartyLabel, ReasonLabel};

/// Certificates of one cluster that may be got at once, and one more each second: agents on nodes that come and go
/// arrive in crowds.
const BURST: f64 = 60.0;
const RATE: f64 = 1.0;
/// What the greeting says in place of a cluster's label when a gateway asks.
pub const GATEWAY_LABEL: &str = "gateway";

/// What decides.
#[derive(Debug)]
pub struct Desk {
    authority: watch::Receiver<Arc<Authority>>,
    known: watch::Receiver<Arc<Index>>,
    keys: Keys,
    life: Duration,
    /// Never held across an await.
    buckets: Mutex<HashMap<Party, (f64, Instant)>>,
    metrics: Metrics,
}

/// Why a request gets no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The greeting is nobody's.
    #[error("no cluster of this installation has this greeting; it may have been deleted")]
    Stranger(Unknown),
    /// Too often.
    #[error("the cluster has asked for too many certificates")]
    Rate,
    /// The request.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// What the token says.
    #[error(transparent)]
    Claims(#[from] claims::Refusal),
}

impl Refusal {
    /// Names it for metrics and the other side.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Stranger(unknown) => unknown.reason(),
            Self::Rate => "TooMany",
            Self::Authority(AuthorityError::Request | AuthorityError::Algorithm) => "RequestInvalid",
            Self::Authority(_) => "AuthorityUnusable",
            Self::Token(error) => error.reason(),
            Self::Claims(refusal) => refusal.reason(),
        }
    }

    /// Says when it is worth trying again, if the request itself is not at fault.
    fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Rate | Self::Token(TokenError::UnknownKey | TokenError::Fetch(_)) => Some(10),
            _ => None,
        }
    }

    /// Writes it for the other side.
    pub fn told(&self) -> Refused {
        Refused {
            reason: self.reason().to_owned(),
            message: self.to_string(),
            retry_after_seconds: self.retry_after_seconds(),
            now: now(),
        }
    }
}

impl Desk {
    /// Makes what decides; certificates live so long.
    pub fn new(
        authority: watch::Receiver<Arc<Authority>>,
        known: watch::Receiver<Arc<Index>>,
        keys: Keys,
        life: Duration,
        metrics: Metrics,
    ) -> Self {
        Self { authority, known, keys, life, buckets: Mutex::default(), metrics }
    }

    /// Gives the authority that holds now.
    pub fn authority(&self) -> Arc<Authority> {
        Arc::clone(&self.authority.borrow())
    }

    /// Gives what is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Follows the directory: keys and counts of clusters that do not exist any more are forgotten.
    pub async fn run(&self) {
        let mut known = self.known.clone();
        while known.changed().await.is_ok() {
            let index = Arc::clone(&known.borrow_and_update());
            let exists = |party: &Party| match party {
                Party::Cluster(uid) => index.directory().clusters.iter().any(|cluster| cluster.uid == *uid),
                Party::Gateway | Party::Issuer => true,
            };
            self.keys.keep(exists).await;
            self.buckets.lock().unwrap_or_else(PoisonError::into_inner).retain(|party, _| exists(party));
        }
    }

    /// Decides over one request, which came with a label in its greeting.
    pub async fn apply(&self, label: &str, application: &Application) -> Result<Issued, Refusal> {
        let outcome = self.decide(label, application).await;
        match &outcome {
            Ok((party, _)) => {
                let party = if matches!(party, Party::Cluster(_)) { "Cluster" } else { "Gateway" };
                self.metrics.issued.get_or_create(&PartyLabel { party }).inc();
            }
            Err(refusal) => {
                let reason = refusal.reason();
                self.metrics.refused.get_or_create(&ReasonLabel { reason }).inc();
                tracing::info!(reason, error = %refusal, "no certificate");
            }
        }
        outcome.map(|(_, issued)| issued)
    }

    async fn decide(&self, label: &str, application: &Application) -> Result<(Party, Issued), Refusal> {
        let party = self.greeted(label)?;
        if !self.may_ask(&party) {
            return Err(Refusal::Rate);
        }
        let requested = Requested::read(&application.csr)?;
        let claims = self.keys.verify(&party, &application.token).await?;
        let authority = self.authority();
        let installation = authority.installation().clone();
        let applicant = Applicant { installation, party: party.clone(), key: requested.hash().to_owned() };
        applicant.check(&claims, now())?;
        // It may have been deleted while its keys were fetched.
        if self.greeted(label)? != party {
            return Err(Refusal::Stranger(Unknown::UnknownCluster));
        }
        let identity = Identity { installation: applicant.installation, party: party.clone() };
        let certificate = authority.sign(&identity, &requested, SystemTime::now(), self.life)?;
        let bundle = authority.bundle().to_owned();
        Ok((party, Issued { certificate, life_seconds: self.life.as_secs(), now: now(), bundle }))
    }

    /// Finds whose keys to try. A wrong greeting only means that the token does not verify.
    fn greeted(&self, label: &str) -> Result<Party, Refusal> {
        if label == GATEWAY_LABEL {
            return Ok(Party::Gateway);
        }
        let index = Arc::clone(&self.known.borrow());
        index.greeted(label).map(|cluster| Party::Cluster(cluster.uid.clone())).map_err(Refusal::Stranger)
    }

    fn may_ask(&self, party: &Party) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, since) = buckets.entry(party.clone()).or_insert_with(|| (BURST, Instant::now()));
        *tokens = (*tokens + since.elapsed().as_secs_f64() * RATE).min(BURST);
        *since = Instant::now();
        let may = *tokens >= 1.0;
        if may {
            *tokens -= 1.0;
        }
        may
    }
}
