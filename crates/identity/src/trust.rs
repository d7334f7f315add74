//! What a certificate of the installation says.
//!
//! Names of hosts play no part: an identity is the one URI in the subject alternative names (SPIFFE X.509-SVID, 2), and
//! trust comes from the installation's own authorities, never from those of the web.

use bailey_tunnel::directory::Certificate;
use bailey_tunnel::lifetime::BACKDATED;
use bailey_tunnel::names::{Identity, NameError};
use rustls::pki_types::CertificateDer;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// A certificate that says nothing which can be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It cannot be read.
    #[error("a certificate cannot be read")]
    Der(#[source] x509_cert::der::Error),
    /// It has no identity, or more than one.
    #[error("a certificate has {count} URIs in its subject alternative names; an identity is exactly one")]
    Uris {
        /// How many there are.
        count: usize,
    },
    /// The identity is none.
    #[error("a certificate has a URI that is no identity")]
    Identity(#[source] NameError),
}

/// Reads what a certificate says. It was checked, or will be, by whoever has the chain.
pub fn read(certificate: &CertificateDer<'_>) -> Result<Certificate, CertificateError> {
    let parsed = x509_cert::Certificate::from_der(certificate).map_err(CertificateError::Der)?;
    let parsed = parsed.tbs_certificate();
    let names = parsed.get_extension::<SubjectAltName>().map_err(CertificateError::Der)?;
    let uris: Vec<_> = names
        .iter()
        .flat_map(|(_, names)| &names.0)
        .filter_map(|name| match name {
            GeneralName::UniformResourceIdentifier(uri) => Some(uri.as_str()),
            _ => None,
        })
        .collect();
    let [uri] = uris.as_slice() else { return Err(CertificateError::Uris { count: uris.len() }) };
    let identity: Identity = uri.parse().map_err(CertificateError::Identity)?;
    let validity = parsed.validity();
    Ok(Certificate {
        identity,
        issued: validity.not_before.to_unix_duration().as_secs() + BACKDATED.as_secs(),
        not_after: validity.not_after.to_unix_duration().as_secs(),
    })
}
