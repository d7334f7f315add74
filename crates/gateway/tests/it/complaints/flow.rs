//! Streams beside each other.

use std::sync::Arc;
use std::time::Duration;

use bailey_gateway::gateway::Options;
use bailey_tunnel::memory::Memory;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::fixture::{Installation, PATIENCE, backend, drink, echo, say, source, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_arrive_as_they_were_sent_in_both_directions_and_half_closed() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    let clients: Vec<_> = (0..8_u32)
        .map(|number| {
            let agent = agent.shared.bound();
            tokio::spawn(async move {
                let address =
                    agent.clone().wait_for(|bound| !bound.is_empty()).await.unwrap().values().next().copied();
                let stream = TcpStream::connect(address.unwrap()).await.unwrap();
                let (mut read, mut write) = stream.into_split();
                let sent: Vec<u8> =
                    (0..3_000_000_u32).map(|at| (at.wrapping_mul(number + 7) >> 3) as u8).collect();
                let expected = sent.clone();
                let writer = tokio::spawn(async move {
                    write.write_all(&sent).await.unwrap();
                    write.shutdown().await.unwrap();
                });
                let mut back = Vec::new();
                timeout(PATIENCE, read.read_to_end(&mut back)).await.expect("an end").unwrap();
                writer.await.unwrap();
                assert!(back == expected, "{} bytes of {}", back.len(), expected.len());
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    until("streams end", || gateway.shared.load().streams == 0).await;
    assert_eq!(gateway.shared.load().in_flight_bytes, 0);
}

/// B4, and the windows of a connection: however many readers stand still, the others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b04_readers_that_stand_still_stop_only_themselves() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    installation.publish("zeros", source().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation
        .agent_with(0, &[gateway.address], crate::fixture::HOUR, |options| options.connections = 1);
    let mut still = Vec::new();
    for paused in [1, 8, 40] {
        while still.len() < paused {
            still.push(agent.connect("zeros").await);
        }
        sleep(Duration::from_millis(500)).await;
        let mut live = agent.connect("images").await;
        for _ in 0..20 {
            say(&mut live, b"still alive").await;
        }
        let mut bulk = agent.connect("zeros").await;
        let got = drink(&mut bulk, Duration::from_millis(500)).await;
        assert!(got > 1 << 20, "{got} bytes beside {paused} readers that stand still");
    }
}

/// B5: a backend that answers nothing holds nobody else up, and is given up after its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b05_a_blackholed_backend_holds_up_nobody() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    full.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    full.listen(0).unwrap();
    let dead = full.local_addr().unwrap().as_socket().unwrap();
    let _fill: Vec<_> = (0..4).map(|_| tokio::spawn(TcpStream::connect(dead))).collect();
    sleep(Duration::from_millis(100)).await;
    installation.publish("dead", dead, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    let mut live = agent.connect("images").await;
    let dead = {
        let mut bound = agent.shared.bound();
        let bound = bound.wait_for(|bound| bound.len() == 2).await.unwrap();
        bound.iter().find(|(name, _)| name.as_str() == "dead").map(|(_, address)| *address).unwrap()
    };
    let started = Instant::now();
    let mut hung = Vec::new();
    for _ in 0..32 {
        hung.push(TcpStream::connect(dead).await.unwrap());
    }
    for _ in 0..50 {
        say(&mut live, b"not held up").await;
    }
    assert!(started.elapsed() < Duration::from_secs(3));
    for stream in &mut hung {
        let end = timeout(PATIENCE, stream.read(&mut [0])).await.expect("given up");
        assert!(end.is_err(), "a RST, since nothing was reached");
    }
    let answers = agent.shared.answers();
    until("told", || answers.borrow().iter().any(|answer| answer.reason == "BackendTimeout")).await;
}

/// B6: a fast producer and a consumer that stands still cost a bounded memory, and the bound is kept by ending those.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b06_a_consumer_that_stands_still_costs_a_bounded_memory() {
    let installation = Installation::new(1);
    installation.publish("zeros", source().await, &[0]);
    let gateway = installation.gateway().await;
    let memory = Memory { process: 8 << 20, cluster: 8 << 20 };
    let agent = installation
        .agent_with(0, &[gateway.address], crate::fixture::HOUR, |options| options.memory = memory);
    let mut still = Vec::new();
    for _ in 0..64 {
        still.push(agent.connect("zeros").await);
    }
    sleep(Duration::from_secs(4)).await;
    let now = agent.shared.load();
    assert!(now.1 <= memory.process + (1 << 20), "{} bytes are held", now.1);
    // Those that were ended see it, and a live one still goes.
    let mut live = agent.connect("zeros").await;
    assert!(drink(&mut live, Duration::from_millis(500)).await > 1 << 20);
}

/// B7: what is opened and closed leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b07_streams_that_come_and_go_leave_nothing() {
    let installation = Installation::new(1);
    installation.publish("images", echo().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = Arc::new(installation.agent(0, &[gateway.address]));
    let address = agent.offered("images").await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn(async move {
                for round in 0..125 {
                    let mut stream = TcpStream::connect(address).await.unwrap();
                    if round % 3 == 0 {
                        continue;
                    }
                    say(&mut stream, b"hello").await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    until("no stream is left", || gateway.shared.load().streams == 0 && agent.shared.load().0 == 0).await;
    let load = gateway.shared.load();
    assert_eq!((load.in_flight_bytes, load.waiting, load.held_bytes), (0, 0, 0));
}

/// One cluster with many streams leaves others their share; here the processor is what is scarce.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_with_many_streams_leaves_the_others_theirs() {
    let installation = Installation::new(4);
    installation.publish("zeros", source().await, &[0, 1, 2, 3]);
    let gateway = installation.gateway_with(Options::default()).await;
    let agents: Vec<_> = (0..4).map(|number| installation.agent(number, &[gateway.address])).collect();
    let mut streams = Vec::new();
    for (number, agent) in agents.iter().enumerate() {
        for _ in 0..if number == 0 { 64 } else { 2 } {
            streams.push((number, agent.connect("zeros").await));
        }
    }
    let mut readers = Vec::new();
    for (number, mut stream) in streams {
        readers.push(tokio::spawn(async move { (number, drink(&mut stream, Duration::from_secs(4)).await) }));
    }
    let mut sums = [0_u64; 4];
    for reader in readers {
        let (number, bytes) = reader.await.unwrap();
        sums[number] += bytes;
    }
    let all: u64 = sums.iter().sum();
    for bytes in &sums[1..] {
        // Its fair share is a quarter; without turns it would be a thirty-fifth. No time is measured here.
        assert!(*bytes * 4 > all / 2, "{sums:?}");
    }
}

/// A backend that ends first: what it said arrives, then the end.
#[tokio::test]
async fn what_a_backend_says_before_it_ends_arrives_whole() {
    let installation = Installation::new(1);
    let address = backend(|mut stream| async move {
        let said = stream.write_all(&vec![5; 1_000_000]).await;
        drop((said, stream));
    })
    .await;
    installation.publish("images", address, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    for _ in 0..10 {
        let mut client = agent.connect("images").await;
        let mut all = Vec::new();
        timeout(PATIENCE, client.read_to_end(&mut all)).await.expect("an end").unwrap();
        assert_eq!(all.len(), 1_000_000);
    }
}

/// Many streams, one, and some, again and again: nothing stands still. It did when windows were changed meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_never_stands_still() {
    let installation = Installation::new(1);
    installation.publish("zeros", source().await, &[0]);
    let gateway = installation.gateway().await;
    let agent = installation.agent(0, &[gateway.address]);
    let address = agent.offered("zeros").await;
    for round in 0..6 {
        let streams = [64, 1, 8][round % 3];
        let mut tasks = Vec::new();
        for _ in 0..streams {
            tasks.push(tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let (mut left, mut buffer) = (100_000_000_usize / streams, vec![0; 256 << 10]);
                while left > 0 {
                    let read = timeout(Duration::from_secs(8), stream.read(&mut buffer)).await;
                    let Ok(read) = read else { return Some(left) };
                    left = left.saturating_sub(read.unwrap());
                }
                None
            }));
        }
        let mut stuck = Vec::new();
        for task in tasks {
            stuck.extend(task.await.unwrap());
        }
        assert!(
            stuck.is_empty(),
            "round {round}: {stuck:?}; gateway {:?}, agent {:?}",
            gateway.shared.load(),
            agent.shared.load()
        );
    }
}
