//! Gateway, agent and issuer together, with no certificate from anywhere else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bailey_gateway::{agent, gateway};
use bailey_identity::renew::{Reach, Renewal};
use bailey_process::drain::Drain;
use bailey_process::readiness::Readiness;
use bailey_tunnel::memory::Memory;
use bailey_tunnel::names::Party;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::fixture::{Installation, PATIENCE, label, uid, until};

#[derive(Clone)]
struct Direct(SocketAddr);

impl Reach for Direct {
    type Stream = TcpStream;

    async fn reach(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(self.0).await
    }
}

async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _over = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    address
}

/// Everything begins without a certificate; lives are seconds, so that many are used up under load.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b13_b14_certificates_are_got_and_renewed_under_load_and_no_stream_fails() {
    let installation = Installation::with_life(1, Duration::from_secs(8)).await;
    installation.publish("images", echo().await, &[0]);
    let drain = Drain::new();

    let applying = installation.applying_as(Party::Gateway, "gateway");
    let (current, _, renewal) =
        Renewal::new(applying, Direct(installation.address), installation.gateways.clone());
    tokio::spawn(renewal.run(drain.signal()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options =
        gateway::Options { issuer: Some(installation.address.to_string()), ..gateway::Options::default() };
    let metrics = gateway::Metrics::default();
    let known = installation.directory.subscribe();
    let shared = gateway::Shared::new(options, known, current, metrics);
    tokio::spawn(gateway::serve(listener, Arc::clone(&shared), drain.signal()));

    // The agent knows the gateway only, which passes its request on.
    let applying = installation.applying(0);
    let (current, status, renewal) =
        Renewal::new(applying, Direct(address), installation.api_servers[0].clone());
    tokio::spawn(renewal.run(drain.signal()));
    let options = agent::Options {
        cluster: uid(0),
        sni_label: label(0),
        gateways: vec![address.to_string()],
        proxy: None,
        listen: std::net::Ipv4Addr::LOCALHOST.into(),
        connections: 2,
        memory: Memory::AGENT,
        settings: bailey_gateway::wire::settings::Settings::DATA,
    };
    let agent = agent::Shared::new(options, current, agent::Metrics::default(), Arc::default());
    let readiness = Readiness::new();
    tokio::spawn(agent::serve(Arc::clone(&agent), readiness.register("gateway"), drain.signal()));
    let mut bound = agent.bound();
    let bound = timeout(PATIENCE, bound.wait_for(|bound| !bound.is_empty())).await.unwrap().unwrap().clone();
    let service = *bound.values().next().unwrap();

    let mut streams = 0;
    while status.borrow().renewals < 5 {
        let mut stream = TcpStream::connect(service).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut back = [0; 5];
        timeout(PATIENCE, stream.read_exact(&mut back)).await.expect("an echo").expect("no stream fails");
        streams += 1;
    }
    assert!(streams > 50, "{streams}");

    // Deleting the cluster ends its sessions, and no renewal helps.
    installation.change(|directory| directory.clusters.clear());
    until("gone", || shared.roster().seen().iter().all(|(_, seen)| seen.sessions == 0)).await;
    until("told", || status.borrow().error.is_some()).await;
}
