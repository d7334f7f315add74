//! The shim on a node: hands connections on to a cache, and knows nothing of what goes over them.
//!
//! It gives nodes an address that is always there and answers at once: when no cache can be reached, the connection is
//! closed, and containerd goes to its next host without waiting for a timeout. No state, no credential, little memory.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bailey_process::drain::{Interrupts, Signal};
use bailey_process::tasks::{TaskError, Tasks};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long a cache may take to accept before the next is tried.
const CONNECT: Duration = Duration::from_secs(1);
/// As many connections at a time; a node pulls with a dozen.
const CONNECTIONS_MAX: usize = 256;
/// The buffers of a connection: a request is small, a layer is not.
const REQUEST_BUFFER: usize = 4 << 10;
const ANSWER_BUFFER: usize = 64 << 10;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The shim cannot have its address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for the node; choose a free address with `--listen`")]
pub struct ShimError {
    address: SocketAddr,
    source: io::Error,
}

/// A shim that has its address and hands nothing on yet.
#[derive(Debug)]
pub struct Shim {
    listener: TcpListener,
    pub address: SocketAddr,
    caches: Arc<[String]>,
}

/// Takes an address; port 0 takes a free port. `caches` are tried in their order, as HOST:PORT.
pub async fn bind(address: SocketAddr, caches: Vec<String>) -> Result<Shim, ShimError> {
    let failed = |source| ShimError { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Shim { listener, address, caches: caches.into() })
}

impl Shim {
    /// Hands connections on until an interrupt; those that are open then may go on for `grace`.
    pub async fn run(self, interrupts: Interrupts, grace: Duration) -> Result<(), TaskError> {
        let mut tasks = Tasks::new();
        tasks.spawn("shim", |signal| self.serve(signal));
        tasks.run(interrupts, grace).await
    }

    async fn serve(self, signal: Signal) -> Result<(), Infallible> {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            let place = tokio::select! {
                () = signal.started() => break,
                place = places.clone().acquire_owned() => place,
            };
            let accepted = tokio::select! {
                () = signal.started() => break,
                accepted = self.listener.accept() => accepted,
            };
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((node, _)) => {
                    let caches = self.caches.clone();
                    connections.spawn(async move {
                        hand_on(node, &caches).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
        Ok(())
    }
}

async fn hand_on(mut node: TcpStream, caches: &[String]) {
    let Some(mut cache) = connect(caches).await else {
        tracing::warn!("no cache can be reached; the node is left to its next host");
        return;
    };
    let copied = copy_bidirectional_with_sizes(&mut node, &mut cache, REQUEST_BUFFER, ANSWER_BUFFER).await;
    if let Err(error) = copied {
        tracing::debug!(%error, "a connection broke off");
    }
}

async fn connect(caches: &[String]) -> Option<TcpStream> {
    for cache in caches {
        match timeout(CONNECT, TcpStream::connect(cache)).await {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => tracing::debug!(cache, %error, "not reached"),
            Err(_) => tracing::debug!(cache, "not reached in time"),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use bailey_testkit::registry::{Containerd, Flavour, Http, Image, Layer, Upstream};

    use super::*;
    use crate::Config;
    use crate::config::UpstreamConfig;

    fn any_port() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    #[tokio::test]
    async fn a_node_pulls_through_the_first_cache_that_can_be_reached() {
        let folder = tempfile::tempdir().unwrap();
        let upstream = Upstream::start().await.unwrap();
        let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, 2_000_000), Layer::random(2, 10)]);
        upstream.push("acme/app", "v1", &image);
        let registry =
            UpstreamConfig::anonymous("registry.example".parse().unwrap(), upstream.url().parse().unwrap());
        let cache = crate::start(Config::local(folder.path(), 1 << 30, vec![registry])).await.unwrap();
        let closed = TcpListener::bind(any_port()).await.unwrap().local_addr().unwrap();
        let shim = bind(any_port(), vec![closed.to_string(), cache.listen.to_string()]).await.unwrap();
        let node = Containerd::new(shim.address).of("registry.example");
        let (stop, interrupts) = Interrupts::channel();
        let running = tokio::spawn(shim.run(interrupts, Duration::from_secs(5)));
        assert_eq!(node.pull("acme/app", "v1").await.unwrap().digest, image.digest());
        drop(node);
        stop.send("stop").await.unwrap();
        running.await.unwrap().unwrap();
        cache.stop().await.unwrap();
    }

    #[tokio::test]
    async fn without_a_cache_the_connection_is_closed_at_once() {
        let closed = TcpListener::bind(any_port()).await.unwrap().local_addr().unwrap();
        let shim = bind(any_port(), vec![closed.to_string()]).await.unwrap();
        let address = shim.address;
        let (_stop, interrupts) = Interrupts::channel();
        let running = tokio::spawn(shim.run(interrupts, Duration::from_secs(5)));
        assert!(Http::new(address).get("/v2/").await.is_err());
        running.abort();
    }
}
