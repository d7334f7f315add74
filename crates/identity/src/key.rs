//! The key of a process: made in memory, shown to nobody, gone with the process.

use std::fmt;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// A P-256 key.
pub struct Key(KeyPair);

/// Says nothing of it.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// A key that cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a key or a request with it")]
pub struct KeyError(#[from] rcgen::Error);

impl Key {
    /// Makes a new one.
    pub fn generate() -> Result<Self, KeyError> {
        Ok(Self(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?))
    }

    /// Gives the SHA-256 of its public half in hex, which tokens name.
    pub fn hash(&self) -> String {
        hash(&self.0.subject_public_key_info())
    }

    /// Asks for a certificate, in PEM. It names nobody: who gets it follows from the token.
    pub fn request(&self) -> Result<String, KeyError> {
        Ok(CertificateParams::default().serialize_request(&self.0)?.pem()?)
    }

    /// Gives the key to TLS.
    pub(crate) fn private(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.0.serialize_der()))
    }

    /// Writes the key in PEM.
    pub fn pem(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.serialize_pem())
    }
}

/// Gives the SHA-256 of a public key (SubjectPublicKeyInfo, DER) in hex.
pub fn hash(public: &[u8]) -> String {
    Sha256::digest(public).iter().map(|byte| format!("{byte:02x}")).collect()
}
