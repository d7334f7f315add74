use std::collections::BTreeSet;
use std::net::SocketAddr;

use bailey_oci::visibility::{Audience, Grant, Visibility};
use bailey_oci::{Algorithm, Digest};
use bailey_testkit::registry::{Flavour, Image, Layer, Upstream};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::*;
use crate::config::UpstreamConfig;
use crate::{Bound, Config};

const SIZE: u64 = 700_000;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate and its key, as PEM.
    fn issue(&self, cluster: &str, tenant: &str, hosts: &[&str]) -> (String, String) {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, cluster);
        params.distinguished_name.push(DnType::OrganizationName, tenant);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

struct Site {
    _folder: tempfile::TempDir,
    authority: Authority,
    upstream: Upstream,
    cache: Bound,
    private: Image,
}

/// A cache that gives `acme/private` of its upstream to cluster `one` and to tenant `acme` only.
async fn site() -> Site {
    bailey_process::crypto::install();
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (certificate, key) = authority.issue("cache", "platform", &["cache.example"]);
    let upstream = Upstream::start().await.unwrap();
    let private = Image::new(Flavour::Oci, 1, &[Layer::random(1, SIZE)]);
    upstream.push("acme/private", "v1", &private);
    upstream.push("acme/public", "v1", &Image::new(Flavour::Oci, 2, &[Layer::random(2, 1000)]));
    let registry =
        UpstreamConfig::anonymous("registry.example".parse().unwrap(), upstream.url().parse().unwrap());
    let only = |name: &str| BTreeSet::from([Arc::from(name)]);
    let grant = Grant {
        images: "registry.example/acme/private".parse().unwrap(),
        audience: Audience::Only { clusters: only("one"), tenants: only("acme") },
    };
    let config = Config {
        default_upstream: Some(registry.name.clone()),
        tls: Some(Files {
            certificate: write("cert.pem", &certificate),
            key: write("key.pem", &key),
            client_ca: Some(write("ca.pem", &authority.pem)),
        }),
        visibility: Visibility { grants: vec![grant], otherwise: Audience::Everyone },
        ..Config::local(folder.path().join("store"), 1 << 30, vec![registry])
    };
    let cache = crate::start(config).await.unwrap();
    Site { _folder: folder, authority, upstream, cache, private }
}

impl Site {
    /// Asks as a client of this cluster and tenant, or as one without a certificate.
    async fn get(&self, as_client: Option<(&str, &str)>, path: &str) -> std::io::Result<(u16, Vec<u8>)> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let config = match as_client {
            None => builder.with_no_client_auth(),
            Some((cluster, tenant)) => {
                let (certificate, key) = self.authority.issue(cluster, tenant, &[]);
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                builder
                    .with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
                    .unwrap()
            }
        };
        ask(self.cache.listen, config, path).await
    }
}

async fn ask(address: SocketAddr, config: ClientConfig, path: &str) -> std::io::Result<(u16, Vec<u8>)> {
    let stream = TcpStream::connect(address).await?;
    let name = "cache.example".try_into().unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes())
        .await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let body = answer.split_off(end);
    let status = String::from_utf8(answer).unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    Ok((status, body))
}

fn blob(repository: &str, digest: Digest) -> String {
    format!("/v2/acme/{repository}/blobs/{digest}")
}

#[tokio::test]
async fn who_shows_no_certificate_gets_nothing() {
    let site = site().await;
    assert!(site.get(None, "/v2/").await.is_err());
    assert!(site.upstream.requests().is_empty());
    site.cache.stop().await.unwrap();
}

#[tokio::test]
async fn a_private_repository_is_for_its_cluster_and_its_tenant() {
    let site = site().await;
    let layer = site.private.layers()[0].digest;
    for client in [("one", "other"), ("two", "acme")] {
        assert_eq!(
            site.get(Some(client), "/v2/acme/private/manifests/v1").await.unwrap().0,
            200,
            "{client:?}"
        );
        let (status, body) = site.get(Some(client), &blob("private", layer)).await.unwrap();
        assert_eq!((status, Digest::of(Algorithm::Sha256, &body)), (200, layer), "{client:?}");
    }
    let stranger = Some(("two", "other"));
    for path in [
        "/v2/acme/private/manifests/v1".to_owned(),
        blob("private", layer),
        blob("private", Digest::of(Algorithm::Sha256, b"none")),
    ] {
        assert_eq!(site.get(stranger, &path).await.unwrap().0, 503, "{path}");
    }
    site.cache.stop().await.unwrap();
}

#[tokio::test]
async fn knowing_the_digest_of_a_private_blob_is_not_enough() {
    let site = site().await;
    let layer = site.private.layers()[0].digest;
    assert_eq!(site.get(Some(("one", "x")), &blob("private", layer)).await.unwrap().0, 200);
    let stranger = Some(("two", "other"));
    assert_eq!(
        site.get(stranger, &blob("public", layer)).await.unwrap().0,
        404,
        "the upstream has it not there"
    );
    let manifest = format!("/v2/acme/public/manifests/{}", site.private.digest());
    assert_eq!(site.get(Some(("one", "x")), "/v2/acme/private/manifests/v1").await.unwrap().0, 200);
    assert_eq!(site.get(stranger, &manifest).await.unwrap().0, 404);

    // Once the upstream gives it out there, too, it is served from here.
    site.upstream.push_blob("acme/public", &site.private.layers()[0]);
    let before = site.upstream.bytes_of(layer);
    let (status, body) = site.get(stranger, &blob("public", layer)).await.unwrap();
    assert_eq!((status, body.len() as u64), (200, SIZE));
    assert!(site.upstream.bytes_of(layer) - before < SIZE, "only asked whether it is there");
    site.cache.stop().await.unwrap();
}

#[test]
fn changed_certificates_are_used_and_broken_ones_are_not() {
    bailey_process::crypto::install();
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let files = Files {
        certificate: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
        client_ca: None,
    };
    let mut minute = 0;
    let mut write = |certificate: &str, key: &str| {
        // Files may be written within one tick of the clock; the times of real ones differ.
        minute += 60;
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(minute);
        for (path, text) in [(&files.certificate, certificate), (&files.key, key)] {
            std::fs::write(path, text).unwrap();
            std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
    };
    let (certificate, key) = authority.issue("cache", "platform", &["cache.example"]);
    write(&certificate, &key);
    let tls = Tls::read(files.clone()).unwrap();
    assert!(!tls.refresh().unwrap());
    let (certificate, new_key) = authority.issue("cache", "platform", &["cache.example"]);
    write(&certificate, &key);
    assert!(matches!(tls.refresh(), Err(TlsError::Pair { .. })), "the key is that of the certificate before");
    write(&certificate, &new_key);
    assert!(tls.refresh().unwrap());
    assert!(!tls.refresh().unwrap());
}
