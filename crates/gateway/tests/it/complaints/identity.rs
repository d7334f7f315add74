//! Certificates, their ends and what they may.

use std::sync::Arc;
use std::time::Duration;

use bailey_tunnel::control::{ALPN, SNI_SUFFIX};
use bailey_tunnel::names::{ClusterUid, Party};
use rustls::pki_types::ServerName;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::fixture::{Authority, HOUR, Installation, PATIENCE, drink, echo, label, say, source, uid, until};

/// B1: what is served counts, not what lies in a file.
#[tokio::test]
async fn b01_a_gateway_with_the_wrong_identity_is_noticed_by_those_who_dial_it() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    agent.offered("images").await;
    // A certificate of the installation, but not a gateway's.
    gateway.credentials.send_replace(Some(installation.authority.issue(Party::Issuer, HOUR)));
    let late = installation.agent(0, &[gateway.address]);
    until("told", || late.shared.dials("OtherGateway") > 0).await;
    assert!(late.shared.told().borrow().is_none());
    gateway.credentials.send_replace(Some(installation.authority.issue(Party::Gateway, HOUR)));
    late.offered("images").await;
}

/// B3: who has no certificate yet waits for it.
#[tokio::test]
async fn b03_both_ends_wait_for_their_certificates() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let gateway = installation
        .gateway_at("127.0.0.1:0".parse().unwrap(), Default::default(), watch::Sender::new(None))
        .await;
    let agent = installation.agent_of(0, &[gateway.address], watch::Sender::new(None), |_| {});
    sleep(Duration::from_millis(500)).await;
    assert!(!gateway.task.is_finished() && !agent.task.is_finished());
    assert_eq!(agent.readiness.pending(), ["gateway"]);
    agent.credentials.send_replace(Some(installation.authority.issue(Party::Cluster(uid(0)), HOUR)));
    until("refused", || gateway.shared.metrics().refusals("NoCertificateYet") > 0).await;
    gateway.credentials.send_replace(Some(installation.authority.issue(Party::Gateway, HOUR)));
    let mut client = agent.connect("images").await;
    say(&mut client, b"at last").await;
    until("ready", || agent.readiness.pending().is_empty()).await;
}

/// B11: a session ends with its certificate, and at once when it is revoked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b11_no_session_outlives_its_certificate() {
    let installation = Installation::new(1);
    installation.publish("zeros", source().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent_with(0, &[gateway.address], Duration::from_secs(4), |_| {});
    let mut client = agent.connect("zeros").await;
    let started = Instant::now();
    drink(&mut client, Duration::from_secs(20)).await;
    assert!(started.elapsed() < Duration::from_secs(10), "the transfer ends with the certificate");
    until("gone", || gateway.shared.roster().seen().iter().all(|(_, seen)| seen.sessions == 0)).await;
}

/// B11: deleting a cluster ends its running transfer in under a second, down to the last byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b11_revocation_reaches_the_last_byte_of_a_running_transfer_within_a_second() {
    let installation = Installation::new(2);
    installation.publish("zeros", source().await, &[0, 1]);
    let gateway = installation.gateway().await;
    let (revoked, other) =
        (installation.agent(0, &[gateway.address]), installation.agent(1, &[gateway.address]));
    let (mut client, mut others) = (revoked.connect("zeros").await, other.connect("zeros").await);
    assert!(drink(&mut client, Duration::from_millis(300)).await > 0);
    let cut = Instant::now();
    installation.change(|directory| directory.clusters.retain(|cluster| cluster.uid != uid(0)));
    drink(&mut client, PATIENCE).await;
    assert!(cut.elapsed() < Duration::from_secs(1), "{:?}", cut.elapsed());
    assert!(drink(&mut others, Duration::from_millis(300)).await > 0, "another cluster goes on");
    // And it does not come back.
    until("refused", || gateway.shared.metrics().refusals("Stranger") > 0).await;
}

/// A grant that is taken away ends its streams, and only those.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_ends_ends_its_streams_and_the_listener() {
    let installation = Installation::new(1);
    installation.publish("zeros", source().await, &[0]);
    installation.publish("images", echo().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    let (mut zeros, mut images) = (agent.connect("zeros").await, agent.connect("images").await);
    let cut = Instant::now();
    installation.change(|directory| {
        for service in directory.services.iter_mut().filter(|service| service.name.as_str() == "zeros") {
            service.clusters.clear();
        }
    });
    drink(&mut zeros, PATIENCE).await;
    assert!(cut.elapsed() < Duration::from_secs(1), "{:?}", cut.elapsed());
    say(&mut images, b"the other service goes on").await;
    let bound = agent.shared.bound();
    until("the listener goes", || bound.borrow().len() == 1).await;
}

/// B11: certificates from before a moment are refused, and those from after it are not.
#[tokio::test]
async fn certificates_from_before_a_moment_can_be_revoked() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    let mut client = agent.connect("images").await;
    say(&mut client, b"before").await;
    let later = std::time::SystemTime::now() + Duration::from_secs(60);
    let moment = later.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() - 30;
    installation.change(|directory| directory.clusters[0].revoked_before = Some(moment));
    let end = timeout(Duration::from_secs(1), client.read(&mut [0])).await.expect("ends within a second");
    assert!(matches!(end, Ok(0) | Err(_)));
    until("refused", || gateway.shared.metrics().refusals("CertificateRevoked") > 0).await;
    agent.credentials.send_replace(Some(installation.authority.issue_at(
        Party::Cluster(uid(0)),
        later,
        HOUR,
    )));
    let bound = agent.offered("images").await;
    let mut client = TcpStream::connect(bound).await.unwrap();
    say(&mut client, b"with a new certificate").await;
}

/// B12: no ticket is given, so none can be used after a revocation.
#[tokio::test]
async fn b12_no_session_can_be_resumed() {
    let installation = Installation::new(1);
    let gateway = installation.gateway().await;
    let own = installation.authority.issue(Party::Cluster(uid(0)), HOUR);
    let mut config = (*bailey_identity::tls::client(&own).unwrap()).clone();
    config.resumption = rustls::client::Resumption::in_memory_sessions(16);
    config.alpn_protocols = vec![ALPN.to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    for _ in 0..2 {
        let name = ServerName::try_from(format!("{}{SNI_SUFFIX}", label(0).as_str())).unwrap();
        let stream = TcpStream::connect(gateway.address).await.unwrap();
        let mut tls = connector.connect(name, stream).await.unwrap();
        assert_eq!(tls.get_ref().1.handshake_kind(), Some(rustls::HandshakeKind::Full));
        assert_eq!(tls.get_ref().1.tls13_tickets_received(), 0);
        let mut settings = [0; 9];
        timeout(PATIENCE, tls.read_exact(&mut settings)).await.unwrap().unwrap();
        assert_eq!(tls.get_ref().1.tls13_tickets_received(), 0);
    }
}

/// B13: certificates change under load and not a stream fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b13_certificates_change_under_load_and_no_stream_fails() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    let address = agent.offered("images").await;
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let over = Arc::clone(&over);
            tokio::spawn(async move {
                let mut done = 0;
                let mut long = TcpStream::connect(address).await.unwrap();
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    let mut fresh = TcpStream::connect(address).await.unwrap();
                    say(&mut fresh, &[9; 20_000]).await;
                    say(&mut long, &[8; 20_000]).await;
                    done += 2;
                }
                done
            })
        })
        .collect();
    for _ in 0..6 {
        sleep(Duration::from_millis(500)).await;
        agent.credentials.send_replace(Some(installation.authority.issue(Party::Cluster(uid(0)), HOUR)));
        gateway.credentials.send_replace(Some(installation.authority.issue(Party::Gateway, HOUR)));
    }
    sleep(Duration::from_millis(500)).await;
    over.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut done = 0;
    for worker in workers {
        done += worker.await.expect("no stream fails");
    }
    assert!(done > 100, "{done}");
}

/// B22: a cluster that was made again under its name gets nothing of the old one.
#[tokio::test]
async fn b22_a_cluster_made_again_gets_nothing_of_the_old_one() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let gateway = installation.gateway().await;
    let old = installation.agent(0, &[gateway.address]);
    old.offered("images").await;
    let again = ClusterUid::new("99999999-0a3c-4f43-8c9e-0d5b7a1e9f11").unwrap();
    installation.change(|directory| {
        // The same name, and even the same greeting.
        directory.clusters[0].uid = again.clone();
    });
    until("refused", || gateway.shared.metrics().refusals("OtherCluster") > 0).await;
    until("gone", || gateway.shared.roster().seen().iter().all(|(_, seen)| seen.sessions == 0)).await;
    let credentials =
        watch::Sender::new(Some(installation.authority.issue(Party::Cluster(again.clone()), HOUR)));
    let new =
        installation.agent_of(0, &[gateway.address], credentials, |options| options.cluster = again.clone());
    let mut told = new.shared.told();
    let told = timeout(PATIENCE, told.wait_for(Option::is_some)).await.unwrap().unwrap().clone().unwrap();
    assert!(told.services.is_empty(), "the old one's grants are not the new one's");
}

/// B25: trust is in the installation's authorities and in nothing else, and nothing is open by default.
#[tokio::test]
async fn b25_a_rogue_gateway_is_refused_and_nothing_is_granted_by_default() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[]);
    // Who takes over the name has a certificate of another authority for the very same identity.
    let rogue = Authority::new("atlas").issue(Party::Gateway, HOUR);
    let rogue = installation
        .gateway_at("127.0.0.1:0".parse().unwrap(), Default::default(), watch::Sender::new(Some(rogue)))
        .await;
    let agent = installation.agent(0, &[rogue.address]);
    until("refused", || agent.shared.dials("OtherGateway") > 0).await;
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    let mut told = agent.shared.told();
    let told = timeout(PATIENCE, told.wait_for(Option::is_some)).await.unwrap().unwrap().clone().unwrap();
    assert!(told.services.is_empty(), "it does not even learn that there is one");
}
