//! TLS 1.3 on both ends, without resumption: a resumed session would not show its certificate again.

use std::sync::Arc;

use bailey_tunnel::control::ALPN;
use bailey_tunnel::names::{Identity, Party};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};

use crate::credentials::Credentials;
use crate::trust;

/// Makes the server's side: whoever comes must show a certificate of the installation.
pub fn server(credentials: &Credentials) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&credentials.bundle), Arc::clone(&provider))
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&credentials.key))));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// Makes the client's side: the server must be a gateway of the installation, whatever its address is called.
pub fn client(credentials: &Credentials) -> Result<Arc<ClientConfig>, Error> {
    let gateway = Identity {
        installation: credentials.certificate.identity.installation.clone(),
        party: Party::Gateway,
    };
    let mut config = pinned(Arc::clone(&credentials.bundle), gateway)?
        .with_client_cert_resolver(Arc::new(Always(Arc::clone(&credentials.key))));
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(config))
}

type WantsClientCert = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

/// Starts a client that accepts one identity of one installation.
pub fn pinned(bundle: Arc<RootCertStore>, expected: Identity) -> Result<WantsClientCert, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Pinned { bundle, expected, provider: Arc::clone(&provider) };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier)))
}

/// Accepts one identity, signed by the installation's authorities.
#[derive(Debug)]
struct Pinned {
    bundle: Arc<RootCertStore>,
    expected: Identity,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(leaf)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.bundle, intermediates, now, algorithms)?;
        let shown =
            trust::read(leaf).map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        if shown.identity != self.expected {
            return Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                expected: ServerName::try_from(self.expected.installation.to_string())
                    .map_err(|_| Error::InvalidCertificate(CertificateError::NotValidForName))?,
                presented: vec![shown.identity.to_string()],
            }));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _leaf: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Shows one certificate, whoever asks.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesClientCert for Always {
    fn resolve(&self, _issuers: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}
