//! The cache's front: HTTP/1.1 connections of nodes, plain or with TLS.
//!
//! Its own loop rather than a general server: the bytes of blobs go from file to socket inside the kernel, which takes
//! the socket itself, and manifests and blobs come by turns on one connection. Requests have no bodies here, which
//! leaves little of HTTP to do.
//!
//! INVARIANT: the head of an answer is ready within [`crate::cache::ANSWER`] of the request, whatever upstreams do.
//! INVARIANT: a body that cannot be finished ends with a FIN short of its `Content-Length`, on which containerd resumes.

mod answer;
mod connection;
mod head;
mod multipart;
mod respond;
pub mod tls;
mod transport;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bailey_oci::Upstreams;
use bailey_oci::visibility::Client;
use bailey_process::drain::Signal;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::cache::Cache;
use crate::config::Networks;
use tls::Tls;
use transport::Transport;

/// As many connections are served at a time: some dozen for each of a hundred nodes. The next waits for a place.
const CONNECTIONS_MAX: usize = 4096;
const HANDSHAKE: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What every connection needs.
#[derive(Debug)]
pub struct Front {
    pub cache: Arc<Cache>,
    pub upstreams: Upstreams,
    /// Whose clients come from where, if they show no certificate.
    pub networks: Networks,
    /// Absent where the listener is plain.
    pub tls: Option<Tls>,
}

/// The listener cannot have its address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for nodes; choose a free address with `--listen`")]
pub struct ListenError {
    address: SocketAddr,
    source: io::Error,
}

/// A front that has its address and does not answer yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    pub address: SocketAddr,
}

/// Takes an address; port 0 takes a free port.
pub async fn bind(address: SocketAddr) -> Result<Bound, ListenError> {
    let failed = |source| ListenError { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Bound { listener, address })
}

impl Bound {
    /// Serves until the drain starts, and then until each connection has finished its answer.
    pub async fn run(self, front: Arc<Front>, signal: Signal) -> Result<(), Infallible> {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = signal.started() => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.accept(&places) => accepted,
            };
            let Some((stream, place)) = accepted else { continue };
            let (front, signal) = (front.clone(), signal.clone());
            connections.spawn(async move {
                front.cache.metrics.connections.inc();
                greet(&front, stream, &signal).await;
                front.cache.metrics.connections.dec();
                drop(place);
            });
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
        Ok(())
    }

    async fn accept(
        &self,
        places: &Arc<Semaphore>,
    ) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
        // The semaphore is never closed.
        let place = places.clone().acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, _)) => Some((stream, place)),
            Err(error) => {
                // Out of file descriptors, or a client that is gone: neither ends the server.
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
                None
            }
        }
    }
}

async fn greet(front: &Arc<Front>, stream: TcpStream, signal: &Signal) {
    // Heads are written whole, and waiting for more would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a socket keeps its delay");
    }
    let from = stream.peer_addr().map(|address| address.ip());
    let guest_of = from.ok().and_then(|from| front.networks.iter().find(|(network, _)| network.has(from)));
    let guest_of = guest_of.map(|(_, cluster)| cluster.clone());
    let Some(tls) = &front.tls else {
        let client = Client { guest_of, ..Client::default() };
        return connection::serve(front, Transport::Plain(stream), &client, signal).await;
    };
    match timeout(HANDSHAKE, tls.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => {
            let client = Client { guest_of, ..tls::client(stream.get_ref().1) };
            connection::serve(front, Transport::Tls(Box::new(stream)), &client, signal).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "no TLS connection"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}
