//! How upstreams are dialled: pooled HTTP/1.1 over TCP or TLS, with a deadline on each step.
//!
//! There are two ways: to what the configuration names, wherever that is, and to what an upstream redirects to, where
//! addresses of private networks are refused after the name was looked up, so that no name can point into one.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service;

/// For how long an address may take to accept; each address of a name gets its part of it.
const CONNECT: Duration = Duration::from_secs(3);
/// For how long a connection is kept unused, and how many for each host.
const IDLE: Duration = Duration::from_secs(60);
const IDLE_MAX: usize = 16;

/// A client of one of the two ways. Bodies of requests are short and at hand.
pub type Http = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// The certificates that an upstream cannot be checked by.
#[derive(Debug, thiserror::Error)]
#[error("cannot read certificates from `{path}`; it must be a PEM file with at least one certificate")]
pub struct CaError {
    pub path: PathBuf,
    source: io::Error,
}

/// Makes a client; `public_only` refuses private addresses.
pub fn client(roots: Arc<RootCertStore>, public_only: bool) -> Http {
    let mut tcp = HttpConnector::new_with_resolver(Resolver { public_only });
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(CONNECT));
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(IDLE));
    let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let https =
        HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_MAX)
        .http1_max_headers(100)
        .build(https)
}

/// The certificates of the system, and those of a file. Blocks.
pub fn roots(ca_file: Option<&Path>) -> Result<Arc<RootCertStore>, CaError> {
    let mut store = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::debug!(%error, "a certificate of the system is passed over");
    }
    store.add_parsable_certificates(native.certs);
    if let Some(path) = ca_file {
        for certificate in certificates(path)? {
            let failed = |error| CaError { path: path.to_owned(), source: io::Error::other(error) };
            store.add(certificate).map_err(failed)?;
        }
    }
    Ok(Arc::new(store))
}

/// The certificates of a PEM file, at least one. Blocks.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CaError> {
    let failed = |source| CaError { path: path.to_owned(), source };
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(failed(io::Error::new(io::ErrorKind::InvalidData, "no certificate in it"))),
        Err(error) => Err(failed(io::Error::other(error))),
    }
}

/// Looks names up with the system's resolver.
#[derive(Clone, Copy, Debug)]
pub struct Resolver {
    public_only: bool,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Self::Response, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let public_only = self.public_only;
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<_> = found
                .into_iter()
                .filter(|address| !public_only || !bailey_oci::trust::is_private(address.ip()))
                .collect();
            if allowed.is_empty() && public_only {
                let message = format!(
                    "`{}` has no public address, and redirects to private ones are not followed",
                    name.as_str()
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
            Ok(allowed.into_iter())
        })
    }
}
