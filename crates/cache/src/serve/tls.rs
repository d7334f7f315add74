//! TLS towards nodes: the certificate of the cache, and who a client proves to be by its own.
//!
//! A client's certificate names its cluster as common name and its tenants as organisations, the way Kubernetes reads
//! users and groups.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use bailey_oci::visibility::Client;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use tokio_rustls::TlsAcceptor;
use x509_cert::der::Decode as _;
use x509_cert::der::asn1::{PrintableStringRef, Utf8StringRef};

use crate::upstream::connect::{CaError, certificates};

/// Where the certificates of a listener are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Absent where clients need none.
    pub client_ca: Option<PathBuf>,
}

/// TLS of one listener; its files may change while it runs.
pub struct Tls {
    files: Files,
    current: RwLock<Current>,
}

struct Current {
    acceptor: TlsAcceptor,
    /// When the files were last changed, as far as that can be read.
    changed: Vec<Option<SystemTime>>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error(transparent)]
    Certificate(#[from] CaError),
    #[error("cannot read a private key from `{path}`; it must be a PEM file with one unencrypted key")]
    Key { path: PathBuf, source: io::Error },
    #[error("certificate `{path}` cannot be served; check that certificate and key belong together")]
    Pair { path: PathBuf, source: rustls::Error },
    #[error("clients cannot be checked by `{path}`; it must hold certificates of authorities")]
    ClientCa { path: PathBuf, source: io::Error },
}

impl Tls {
    /// Reads the files. Blocks.
    pub fn read(files: Files) -> Result<Self, TlsError> {
        let changed = files.changed();
        let current = RwLock::new(Current { acceptor: acceptor(&files)?, changed });
        Ok(Self { files, current })
    }

    /// Reads the files again if they changed; what was there before stays if they cannot be used. Blocks.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let changed = self.files.changed();
        if self.current.read().unwrap_or_else(PoisonError::into_inner).changed == changed {
            return Ok(false);
        }
        let acceptor = acceptor(&self.files)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Current { acceptor, changed };
        Ok(true)
    }

    /// What accepts the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.current.read().unwrap_or_else(PoisonError::into_inner).acceptor.clone()
    }
}

impl Files {
    fn changed(&self) -> Vec<Option<SystemTime>> {
        let all = [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()];
        let time = |path: &PathBuf| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        all.into_iter().flatten().map(time).collect()
    }
}

fn acceptor(files: &Files) -> Result<TlsAcceptor, TlsError> {
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| TlsError::Key { path: files.key.clone(), source: io::Error::other(error) })?;
    let builder = match &files.client_ca {
        None => ServerConfig::builder().with_no_client_auth(),
        Some(path) => ServerConfig::builder().with_client_cert_verifier(verifier(path)?),
    };
    let pair = |source| TlsError::Pair { path: files.certificate.clone(), source };
    let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// Who the other side of a connection has proven to be.
pub fn client(connection: &ServerConnection) -> Client {
    let leaf = connection.peer_certificates().and_then(|chain| chain.first());
    let certificate = leaf.and_then(|leaf| x509_cert::Certificate::from_der(leaf).ok());
    let mut client = Client::default();
    let Some(certificate) = certificate else { return client };
    for part in certificate.tbs_certificate().subject().iter() {
        let value = &part.value;
        let text = value.decode_as::<Utf8StringRef<'_>>().map(|text| text.as_str().to_owned());
        let text = text
            .or_else(|_| value.decode_as::<PrintableStringRef<'_>>().map(|text| text.as_str().to_owned()));
        match (part.oid.to_string().as_str(), text) {
            ("2.5.4.3", Ok(name)) => client.cluster = Some(name.into()),
            ("2.5.4.10", Ok(name)) => drop(client.tenants.insert(name.into())),
            _ => {}
        }
    }
    client
}

fn verifier(path: &Path) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let failed = |source| TlsError::ClientCa { path: path.to_owned(), source };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| failed(io::Error::other(error)))?;
    }
    WebPkiClientVerifier::builder(Arc::new(roots)).build().map_err(|error| failed(io::Error::other(error)))
}

#[cfg(test)]
mod tests;
