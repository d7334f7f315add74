//! A certificate with its key, and the authorities that others are held against.

use std::fmt;
use std::sync::Arc;

use bailey_tunnel::directory::Certificate;
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::key::Key;
use crate::trust::{self, CertificateError};

/// The credentials that hold now; none before the first are there.
pub type Current = watch::Receiver<Option<Arc<Credentials>>>;

/// What a party of the installation proves itself with.
#[derive(Clone)]
pub struct Credentials {
    /// The chain and the key.
    pub key: Arc<CertifiedKey>,
    /// What the certificate says.
    pub certificate: Certificate,
    /// The authorities of the installation.
    pub bundle: Arc<RootCertStore>,
    /// The SHA-256 of the authorities in hex, by which it is known who holds which.
    pub bundle_hash: String,
}

/// The key is not shown.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Credentials that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The PEM text.
    #[error("the PEM of the {what} cannot be read")]
    Pem {
        /// Which.
        what: &'static str,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// Nothing in it.
    #[error("there is no {what} in the PEM")]
    Empty {
        /// What is missing.
        what: &'static str,
    },
    /// The key is not of the certificate, or of a kind that is not known.
    #[error("the key does not go with the certificate")]
    Key(#[source] rustls::Error),
    /// An authority cannot be used.
    #[error("an authority in the bundle cannot be used")]
    Authority(#[source] rustls::Error),
    /// The certificate has no identity.
    #[error("the certificate has no identity of an installation")]
    Certificate(#[from] CertificateError),
}

impl Credentials {
    /// Reads a chain, its key and the authorities, each in PEM.
    pub fn from_pem(chain: &[u8], key: &[u8], bundle: &[u8]) -> Result<Self, CredentialsError> {
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|source| CredentialsError::Pem { what: "key", source })?;
        Self::new(chain, key, bundle)
    }

    /// Takes a chain in PEM for a key that this process made.
    pub(crate) fn of_key(chain: &[u8], key: &Key, bundle: &[u8]) -> Result<Self, CredentialsError> {
        Self::new(chain, key.private(), bundle)
    }

    fn new(chain: &[u8], key: PrivateKeyDer<'static>, bundle: &[u8]) -> Result<Self, CredentialsError> {
        let chain =
            certificates(chain).map_err(|source| CredentialsError::Pem { what: "certificate", source })?;
        let leaf = chain.first().ok_or(CredentialsError::Empty { what: "certificate" })?;
        let certificate = trust::read(leaf)?;
        let key = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())
            .map_err(CredentialsError::Key)?;
        let (bundle, bundle_hash) = authorities(bundle)?;
        Ok(Self { key: Arc::new(key), certificate, bundle, bundle_hash })
    }
}

/// Reads authorities in PEM, and gives their hash.
pub fn authorities(pem: &[u8]) -> Result<(Arc<RootCertStore>, String), CredentialsError> {
    let found = certificates(pem).map_err(|source| CredentialsError::Pem { what: "bundle", source })?;
    if found.is_empty() {
        return Err(CredentialsError::Empty { what: "authority" });
    }
    let (mut store, mut hash) = (RootCertStore::empty(), Sha256::new());
    for authority in found {
        hash.update(&authority);
        store.add(authority).map_err(CredentialsError::Authority)?;
    }
    let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((Arc::new(store), hash))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, rustls::pki_types::pem::Error> {
    CertificateDer::pem_slice_iter(pem).collect()
}
