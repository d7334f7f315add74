//! What comes of those who are not of the installation.

use std::sync::Arc;
use std::time::Duration;

use bailey_gateway::gateway::Options;
use bailey_tunnel::control::{ALPN, SNI_SUFFIX};
use bailey_tunnel::gate::Limits;
use bailey_tunnel::names::Party;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use crate::fixture::{Authority, HOUR, Installation, PATIENCE, echo, label, say, uid};

/// Whoever is refused sees the connection end, not an answer.
async fn is_cut(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    let read = timeout(Duration::from_secs(10), stream.read(&mut byte)).await.expect("an end");
    matches!(read, Ok(0) | Err(_))
}

/// The record of a greeting with this name and protocol, made by a real TLS client.
fn hello(name: &str, protocol: &[u8]) -> Vec<u8> {
    let mut config = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

fn name(number: u32) -> String {
    format!("{}{SNI_SUFFIX}", label(number).as_str())
}

/// Shows a certificate to the gateway as an agent does, and gives what came of it once something was said.
async fn session(
    address: std::net::SocketAddr,
    credentials: &bailey_identity::credentials::Credentials,
    sni: &str,
) -> std::io::Result<()> {
    let config = bailey_identity::tls::client(credentials).unwrap();
    let name = ServerName::try_from(sni.to_owned()).unwrap();
    let stream = TcpStream::connect(address).await?;
    let mut tls = TlsConnector::from(config).connect(name, stream).await?;
    // The server checks the client's certificate after the client believes to be done.
    tls.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await?;
    let mut byte = [0];
    timeout(PATIENCE, tls.read_exact(&mut byte)).await.expect("an answer or an end").map(|_| ())
}

#[tokio::test]
async fn a_stranger_costs_no_signature_from_whatever_angle() {
    let installation = Installation::new(2);
    let gateway = installation.gateway().await;
    let mut expected = 0;
    for (greeting, reason) in [
        (hello("gateway.example", ALPN), "Stranger"),
        (hello("0123456789abcdef0123456789abcdef.bailey", ALPN), "Stranger"),
        (hello(&name(0), b"h2"), "OtherProtocol"),
        (hello("192.0.2.1", ALPN), "Stranger"),
        (b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n".to_vec(), "NotTls"),
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), "NotTls"),
        (vec![0x16, 3, 1, 0xff, 0xff], "NotTls"),
        (vec![0; 4096], "NotTls"),
    ] {
        let before = gateway.shared.metrics().refusals(reason);
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        stream.write_all(&greeting).await.unwrap();
        if reason != "NotTls" || greeting.len() > 16 {
            assert!(is_cut(&mut stream).await);
        } else {
            drop(stream);
        }
        crate::fixture::until(reason, || gateway.shared.metrics().refusals(reason) > before).await;
        expected += 1;
    }
    assert_eq!(expected, 8);
    assert_eq!(gateway.shared.metrics().signed(), 0);
}

#[tokio::test]
async fn the_end_of_a_refused_connection_is_a_reset() {
    let installation = Installation::new(1);
    let gateway = installation.gateway().await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(&hello("gateway.example", ALPN)).await.unwrap();
    let mut byte = [0];
    let error = timeout(PATIENCE, stream.read(&mut byte)).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_greeting_that_does_not_end_is_cut_at_its_deadline() {
    let installation = Installation::new(1);
    let gateway = installation.gateway().await;
    let greeting = hello(&name(0), ALPN);
    let started = Instant::now();
    let mut silent = TcpStream::connect(gateway.address).await.unwrap();
    let mut slow = TcpStream::connect(gateway.address).await.unwrap();
    let drip = async {
        for byte in &greeting[..greeting.len() - 1] {
            if slow.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (silent_cut, ()) =
        tokio::join!(is_cut(&mut silent), timeout(Duration::from_secs(7), drip).map_over());
    assert!(silent_cut && is_cut(&mut slow).await);
    assert!(started.elapsed() < Duration::from_secs(9));
    assert_eq!(gateway.shared.metrics().refusals("HandshakeTimeout"), 2);
    assert_eq!(gateway.shared.load().handshakes, 0);
}

trait MapOver {
    async fn map_over(self);
}

impl<F: Future> MapOver for F {
    async fn map_over(self) {
        let _over = self.await;
    }
}

#[tokio::test]
async fn certificates_that_are_not_this_clusters_are_refused_with_a_reason() {
    let installation = Installation::new(2);
    let gateway = installation.gateway().await;
    let own = installation.authority.issue(Party::Cluster(uid(0)), HOUR);
    session(gateway.address, &own, &name(0)).await.expect("the right one is let in");
    let refused = async |credentials, number, reason| {
        let before = gateway.shared.metrics().refusals(reason);
        assert!(session(gateway.address, credentials, &name(number)).await.is_err(), "{reason}");
        crate::fixture::until(reason, || gateway.shared.metrics().refusals(reason) > before).await;
    };
    refused(&own, 1, "OtherCluster").await;
    let gateways = installation.authority.issue(Party::Gateway, HOUR);
    refused(&gateways, 0, "NotACluster").await;
    let unknown = installation.authority.issue(Party::Cluster(uid(77)), HOUR);
    refused(&unknown, 0, "OtherCluster").await;
    let past = std::time::SystemTime::now() - 2 * HOUR;
    let expired = installation.authority.issue_at(Party::Cluster(uid(0)), past, HOUR);
    refused(&expired, 0, "HandshakeFailed").await;
    // Another installation, which signs for the same cluster; the client accepts our gateway for the test's sake.
    let other = Authority::new("atlas").issue(Party::Cluster(uid(0)), HOUR);
    let mut other = (*other).clone();
    other.bundle = std::sync::Arc::clone(&own.bundle);
    refused(&other, 0, "HandshakeFailed").await;
}

#[tokio::test]
async fn one_prefix_cannot_take_all_handshakes() {
    let installation = Installation::new(1);
    let gate = Limits { prefix_open: 8, ..Limits::default() };
    let gateway = installation.gateway_with(Options { gate, ..Options::default() }).await;
    let mut open: Vec<TcpStream> = Vec::new();
    for _ in 0..12 {
        // A refused one may be reset before its connect has returned.
        open.extend(TcpStream::connect(gateway.address).await.ok());
    }
    crate::fixture::until("limit", || gateway.shared.metrics().refusals("PrefixLimit") == 4).await;
    assert_eq!(gateway.shared.load().handshakes, 8);
}

#[tokio::test]
async fn clusters_go_on_while_strangers_fill_the_lane() {
    let installation = Installation::new(1);
    let backend = echo().await;
    installation.publish("images", backend, &[0]);
    installation.change(|directory| directory.sources = bailey_tunnel::gate::Policy::Prefer);
    let gateway = installation.gateway().await;
    // The agent proves itself, so its address is known from then on.
    let agent = installation.agent(0, &[gateway.address]);
    let mut client = agent.connect("images").await;
    say(&mut client, b"before").await;
    let flood = tokio::spawn({
        let (address, greeting) = (gateway.address, hello("gateway.example", ALPN));
        async move {
            // Bounded: 2,000 connections, one after the other.
            for _ in 0..2_000 {
                if let Ok(mut stream) = TcpStream::connect(address).await {
                    let _sent = stream.write_all(&greeting).await;
                    let _over = stream.read(&mut [0]).await;
                }
            }
        }
    });
    for _ in 0..50 {
        say(&mut client, b"while strangers knock").await;
        let mut fresh = agent.connect("images").await;
        say(&mut fresh, b"also a new stream").await;
    }
    flood.await.unwrap();
    let metrics = gateway.shared.metrics();
    assert!(metrics.refusals("Stranger") + metrics.refusals("PrefixLimit") >= 2_000);
}

#[tokio::test]
async fn strict_sources_refuse_an_unlisted_address_before_anything_is_signed() {
    let installation = Installation::new(1);
    installation.change(|directory| {
        directory.sources = bailey_tunnel::gate::Policy::Strict;
        directory.clusters[0].sources = vec![bailey_tunnel::gate::Source {
            cidr: "192.0.2.0/24".parse().unwrap(),
            from: bailey_tunnel::gate::Provenance::Declared,
        }];
    });
    let gateway = installation.gateway().await;
    let own = installation.authority.issue(Party::Cluster(uid(0)), HOUR);
    assert!(session(gateway.address, &own, &name(0)).await.is_err());
    assert_eq!(gateway.shared.metrics().refusals("SourceNotListed"), 1);
    assert_eq!(gateway.shared.metrics().signed(), 0);
}

#[tokio::test]
async fn only_a_listed_load_balancer_speaks_for_others() {
    let installation = Installation::new(1);
    let proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let gateway = installation.gateway_with(Options { proxies, ..Options::default() }).await;
    // The balancer says who is behind it, and its limit is that one's.
    let from = ppp::v2::Builder::with_addresses(
        ppp::v2::Version::Two | ppp::v2::Command::Proxy,
        ppp::v2::Protocol::Stream,
        "198.51.100.7:4000 203.0.113.1:443"
            .split_once(' ')
            .map(|(a, b)| {
                (a.parse::<std::net::SocketAddr>().unwrap(), b.parse::<std::net::SocketAddr>().unwrap())
            })
            .unwrap(),
    );
    let mut bytes = from.build().unwrap();
    bytes.extend(hello("gateway.example", ALPN));
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    assert!(is_cut(&mut stream).await);
    crate::fixture::until("stranger", || gateway.shared.metrics().refusals("Stranger") == 1).await;
    // Without the header nothing goes on.
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(&hello(&name(0), ALPN)).await.unwrap();
    assert!(is_cut(&mut stream).await);
    crate::fixture::until("header", || gateway.shared.metrics().refusals("ProxyHeader") == 1).await;
}
