//! Restarts, moves and dead ends.

use std::time::Duration;

use bailey_gateway::agent::HttpProxy;
use bailey_gateway::gateway::Options;
use bailey_tunnel::control::Path;
use bailey_tunnel::names::Party;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::fixture::{HOUR, Installation, PATIENCE, drink, echo, say, source, until};

/// B2: a service that does not answer is told as such though every light here is green, and recovers by itself.
#[tokio::test]
async fn b02_a_service_that_does_not_answer_is_told_and_recovers() {
    let installation = Installation::new(1);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    installation.publish("images", address, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    let answers = agent.shared.answers();
    until("told", || answers.borrow().iter().any(|answer| answer.reason == "BackendRefused")).await;
    until("told to the gateway", || {
        let seen = gateway.shared.roster().seen();
        seen.iter().any(|(_, seen)| {
            seen.report.iter().any(|(report, _)| report.services.iter().any(|one| !one.ready))
        })
    })
    .await;
    let _back = TcpListener::bind(address).await.unwrap();
    until("it recovers", || answers.borrow().iter().any(|answer| answer.ready)).await;
}

/// B10: a backend that moved is reached where it is, by the next stream.
#[tokio::test]
async fn b10_a_backend_that_moved_is_reached_where_it_is() {
    let installation = Installation::new(1);
    installation.publish("images", source().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    let address = agent.offered("images").await;
    installation.publish("images", echo().await, &[0]);
    until("a stream finds it", || true).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    say(&mut client, b"here").await;
}

/// B17, B18: agents come back by themselves, again and again, and spread while they do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b18_an_agent_comes_back_whenever_a_gateway_does() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let mut gateway = installation.gateway().await;
    let address = gateway.address;
    let agent = installation.agent(0, &[address]);
    let service = agent.offered("images").await;
    for _ in 0..3 {
        drop(gateway);
        // A client that comes now waits a moment and is refused, or is served by the next gateway.
        sleep(Duration::from_millis(300)).await;
        let credentials = watch::Sender::new(Some(installation.authority.issue(Party::Gateway, HOUR)));
        gateway = installation.gateway_at(address, Options::default(), credentials).await;
        let back = async {
            loop {
                let mut client = TcpStream::connect(service).await.unwrap();
                client.write_all(b"back").await.unwrap();
                let mut answer = [0; 4];
                if client.read_exact(&mut answer).await.is_ok() {
                    return;
                }
            }
        };
        timeout(PATIENCE, back).await.expect("it comes back");
    }
}

/// B19: a gateway that is gone does not keep an agent from the one that is there.
#[tokio::test]
async fn b19_every_gateway_is_tried() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gone, gateway.address, gone]);
    let mut client = agent.connect("images").await;
    say(&mut client, b"reached").await;
}

/// Through an HTTP proxy where nothing else leads out; how is told.
#[tokio::test]
async fn an_agent_behind_an_http_proxy_comes_through_it() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let gateway = installation.gateway().await;
    let target = gateway.address;
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy_address = proxy.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = proxy.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                assert!(head.starts_with(b"CONNECT gateway.invalid:443 HTTP/1.1\r\n"));
                let mut upstream = TcpStream::connect(target).await.unwrap();
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
                let _over = copy_bidirectional(&mut client, &mut upstream).await;
            });
        }
    });
    let agent = installation.agent_with(0, &[], HOUR, |options| {
        // A name that this host cannot resolve, as inside a closed site.
        options.gateways = vec!["gateway.invalid:443".to_owned()];
        options.proxy = Some(HttpProxy::new(&format!("http://{proxy_address}")).unwrap());
    });
    let mut client = agent.connect("images").await;
    say(&mut client, b"through the proxy").await;
    until("told", || {
        let seen = gateway.shared.roster().seen();
        seen.iter().any(|(_, seen)| seen.report.iter().any(|(report, _)| report.path == Path::Proxy))
    })
    .await;
}

/// A gateway that is told to end lets streams end, takes no new ones, and agents are elsewhere by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_drains_lets_streams_end_while_agents_go_elsewhere() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let options = || Options { spread: Duration::from_millis(200), ..Options::default() };
    let (first, second) =
        (installation.gateway_with(options()).await, installation.gateway_with(options()).await);
    let agent = installation.agent(0, &[first.address, second.address]);
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = agent.connect("images").await;
        say(&mut client, b"before").await;
        clients.push(client);
    }
    let Gateway { drain, .. } = &first;
    drain.start();
    for _ in 0..20 {
        for client in &mut clients {
            say(client, b"during").await;
        }
        let mut fresh = agent.connect("images").await;
        say(&mut fresh, b"a new one").await;
        sleep(Duration::from_millis(30)).await;
    }
    drop(clients);
    until("it ends", || first.task.is_finished()).await;
}

use crate::fixture::Gateway;

/// An agent that is told to end lets its clients finish.
#[tokio::test]
async fn an_agent_that_drains_lets_clients_finish() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    let mut client = agent.connect("images").await;
    say(&mut client, b"before").await;
    let address = agent.offered("images").await;
    agent.drain.start();
    sleep(Duration::from_millis(200)).await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody new");
    say(&mut client, b"during").await;
    assert!(!agent.task.is_finished());
    drop(client);
    until("it ends", || agent.task.is_finished()).await;
}

/// B9: a path that swallows everything is noticed, and streams do not hang for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b09_a_path_that_swallows_everything_is_noticed_within_half_a_minute() {
    let installation = Installation::new(1);
    installation.publish("zeros", source().await, &[0]);
    let gateway = installation.gateway().await;
    let (swallow, swallows) = watch::channel(false);
    let path = swallowing(gateway.address, swallows).await;
    let agent = installation.agent(0, &[path]);
    let mut client = agent.connect("zeros").await;
    assert!(drink(&mut client, Duration::from_millis(200)).await > 0);
    swallow.send_replace(true);
    let started = Instant::now();
    drink(&mut client, Duration::from_secs(60)).await;
    assert!(started.elapsed() < Duration::from_secs(32), "{:?}", started.elapsed());
    swallow.send_replace(false);
    agent.offered("zeros").await;
}

/// Forwards, or takes everything and gives nothing.
async fn swallowing(target: std::net::SocketAddr, swallows: watch::Receiver<bool>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let upstream = TcpStream::connect(target).await.unwrap();
            let ((a, b), (c, d)) = (client.into_split(), upstream.into_split());
            for (mut read, mut write) in [(a, d), (c, b)] {
                let swallows = swallows.clone();
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(count) = read.read(&mut buffer).await {
                        if count == 0 {
                            break;
                        }
                        if !*swallows.borrow() && write.write_all(&buffer[..count]).await.is_err() {
                            break;
                        }
                    }
                });
            }
        }
    });
    address
}
