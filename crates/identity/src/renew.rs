//! Gets a certificate, and the next one at half its life, for ever. What fails leaves the last one in place.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bailey_process::drain::Signal;
use bailey_process::telemetry::report;
use bailey_tunnel::backoff::Backoff;
use bailey_tunnel::claims::Applicant;
use bailey_tunnel::lifetime::{Clock, renew_after};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

use crate::clock::{now, random};
use crate::credentials::{Credentials, CredentialsError, Current, authorities};
use crate::enrol::{Applying, EnrolError};
use crate::key::Key;
use crate::tokens::{TokenError, Tokens};

/// A certificate that is refused is not replaced sooner than this: most refusals have other causes.
const EARLY: Duration = Duration::from_secs(20);
/// A life below this is a mistake, and asking that often would be another.
const LIFE_MIN: Duration = Duration::from_secs(2);

/// Reaches the issuer.
pub trait Reach: Send + Sync + 'static {
    /// What it reaches it by.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Connects to the issuer, or to a gateway that passes the connection on.
    fn reach(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Keeps a certificate.
pub struct Renewal<R, T> {
    applying: Applying,
    reach: R,
    tokens: T,
    sender: watch::Sender<Option<Arc<Credentials>>>,
    status: watch::Sender<Status>,
    refused: Arc<Notify>,
}

/// How it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Why the last try failed, if it did.
    pub error: Option<String>,
    /// How far this clock is ahead of the management cluster's, where it matters.
    pub skew_seconds: Option<i64>,
    /// Certificates that were got.
    pub renewals: u64,
}

/// Why a try failed.
#[derive(Debug, thiserror::Error)]
enum TryError {
    #[error("cannot reach the issuer")]
    Reach(#[source] io::Error),
    #[error("cannot get a token")]
    Token(#[from] TokenError),
    #[error("cannot get a certificate")]
    Enrol(#[from] EnrolError),
    #[error("the issuer's authorities cannot be used")]
    Bundle(#[from] CredentialsError),
}

impl<R: Reach, T: Tokens> Renewal<R, T> {
    /// Starts without a certificate.
    pub fn new(applying: Applying, reach: R, tokens: T) -> (Current, watch::Receiver<Status>, Self) {
        let (sender, current) = watch::channel(None);
        let (status, how) = watch::channel(Status::default());
        (current, how, Self { applying, reach, tokens, sender, status, refused: Arc::default() })
    }

    /// Gets the next certificate early when somebody says that the one there is was refused: it may be revoked.
    pub fn when_refused(self, refused: Arc<Notify>) -> Self {
        Self { refused, ..self }
    }

    /// Runs until the drain.
    pub async fn run(mut self, signal: Signal) {
        tokio::select! {
            () = signal.started() => {}
            () = self.renew() => {}
        }
    }

    async fn renew(&mut self) {
        let mut failures = 0_u32;
        loop {
            let started = Instant::now();
            let wait = match self.once().await {
                Ok(life) => {
                    failures = 0;
                    self.status.send_modify(|status| {
                        status.error = None;
                        status.renewals += 1;
                    });
                    renew_after(life, random()).saturating_sub(started.elapsed())
                }
                Err(error) => {
                    failures += 1;
                    let text = report(&error);
                    let asked = match &error {
                        TryError::Enrol(EnrolError::Refused(refused)) => {
                            refused.retry_after_seconds.map(Duration::from_secs)
                        }
                        _ => None,
                    };
                    tracing::warn!(error = text, "no certificate, and go on trying");
                    self.status.send_modify(|status| status.error = Some(text));
                    Backoff::ENROL.wait(failures, random(), asked)
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = async {
                    sleep(EARLY.min(wait)).await;
                    self.refused.notified().await;
                } => tracing::info!("the certificate was refused, and another one is asked for"),
            }
        }
    }

    /// Gets one certificate with a key of its own, and tells how long it lives.
    async fn once(&mut self) -> Result<Duration, TryError> {
        let key = Key::generate().map_err(EnrolError::from)?;
        let applicant = Applicant {
            installation: self.applying.installation.clone(),
            party: self.applying.party.clone(),
            key: key.hash(),
        };
        let token = self.tokens.token(applicant.audiences()).await?;
        let stream = self.reach.reach().await.map_err(TryError::Reach)?;
        let asked = self.applying.ask(stream, &key, token).await;
        if let Err(EnrolError::Refused(refused)) = &asked {
            self.compare(refused.now);
        }
        let (credentials, issued) = asked?;
        self.compare(issued.now);
        let (bundle, hash) = authorities(issued.bundle.as_bytes())?;
        if hash != self.applying.bundle_hash {
            tracing::info!(hash, "the authorities of the installation have changed");
        }
        (self.applying.bundle, self.applying.bundle_hash) = (bundle, hash);
        tracing::info!(life_seconds = issued.life_seconds, "new certificate");
        self.sender.send_replace(Some(Arc::new(credentials)));
        Ok(Duration::from_secs(issued.life_seconds).max(LIFE_MIN))
    }

    fn compare(&self, management: u64) {
        let skew = match Clock::compare(now(), management) {
            Clock::Right => None,
            Clock::Off(seconds) => Some(seconds),
            Clock::Wrong(seconds) => {
                tracing::warn!(seconds, "this clock is too far from the management cluster's; set it by NTP");
                Some(seconds)
            }
        };
        self.status.send_modify(|status| status.skew_seconds = skew);
    }
}
