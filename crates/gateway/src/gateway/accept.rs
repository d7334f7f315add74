//! From a connection to a session: each step costs more than the one before, and strangers fail at the first.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bailey_process::drain::Signal;
use bailey_tunnel::control::{ALPN, ALPN_ENROL, SNI_SUFFIX};
use bailey_tunnel::directory::{Cluster, Refusal};
use bailey_tunnel::gate::Pass;
use ppp::v2::{Addresses, Header};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::session::{self, Established};
use super::{Shared, canonical, enrol};
use crate::wire::hello::{self, Again, Hello};
use crate::wire::meter::{Meter, Metered};
use crate::wire::socket;
use bailey_identity::clock::now;
use bailey_identity::trust;

/// From the first byte to a session.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Sessions at a time; an installation of 500 clusters with two agents of six connections each has 6,000.
const SESSIONS_MAX: usize = 20_000;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The fixed part of a PROXY header (haproxy `doc/proxy-protocol.txt`, 2.2).
const PROXY_HEADER: usize = 16;
/// What may follow it; addresses take 36 bytes, and extensions of cloud providers some dozens.
const PROXY_REST_MAX: usize = 1024;

/// Accepts until the drain, then waits for what was accepted.
pub(super) async fn run(listener: TcpListener, shared: &Arc<Shared>, signal: Signal) {
    let mut connections = JoinSet::new();
    let mut known = shared.known.clone();
    loop {
        tokio::select! {
            () = signal.started() => break,
            Some(_) = connections.join_next() => {}
            Ok(()) = known.changed() => {
                let index = known.borrow_and_update().clone();
                let exists: std::collections::HashSet<_> =
                    index.directory().clusters.iter().map(|cluster| &cluster.uid).collect();
                shared.roster.keep(|uid| exists.contains(uid));
            }
            accepted = listener.accept(), if connections.len() < SESSIONS_MAX => match accepted {
                Ok((stream, from)) => {
                    shared.metrics.accepted.inc();
                    let (shared, signal) = (Arc::clone(shared), signal.clone());
                    connections.spawn(async move { connection(stream, canonical(from), shared, signal).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Tells what is under way, now and then.
pub(super) async fn gauges(shared: &Shared) {
    let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    loop {
        let load = shared.load();
        shared.metrics.open.set(whole(load.streams));
        shared.metrics.held.set(whole(load.held_bytes));
        shared.metrics.in_flight.set(whole(load.in_flight_bytes));
        shared.metrics.waiting.set(whole(load.waiting));
        shared.metrics.handshakes.set(whole(load.handshakes));
        sleep(Duration::from_secs(1)).await;
    }
}

async fn connection(mut stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>, signal: Signal) {
    let from = match timeout(HANDSHAKE, spoken_for(&mut stream, peer, &shared)).await {
        Ok(Ok(from)) => from,
        Ok(Err(reason)) => return refuse(&stream, &shared, peer, reason),
        Err(_) => return refuse(&stream, &shared, peer, "HandshakeTimeout"),
    };
    let pass = match knock(from.ip(), &shared) {
        Ok(pass) => pass,
        Err(reason) => return refuse(&stream, &shared, from, reason),
    };
    let handshake = timeout(HANDSHAKE, greet(stream, from, &shared)).await;
    shared.gate.lock().unwrap_or_else(PoisonError::into_inner).leave(pass);
    match handshake {
        Ok(Ok(Greeted::Session(session))) => session::run(*session, shared, signal).await,
        Ok(Ok(Greeted::Enrol(stream, hello))) => enrol::relay(stream, hello, &shared).await,
        Ok(Err(refused)) => shared.metrics.refuse(refused),
        // The stream was dropped with the handshake, and its end was set to be a RST before.
        Err(_) => shared.metrics.refuse("HandshakeTimeout"),
    }
}

fn refuse(stream: &TcpStream, shared: &Shared, from: SocketAddr, reason: &'static str) {
    socket::abort(stream);
    shared.metrics.refuse(reason);
    tracing::debug!(%from, reason, "refused");
}

fn knock(from: IpAddr, shared: &Shared) -> Result<Pass, &'static str> {
    let index = shared.known.borrow().clone();
    let known = index.knows(from) || shared.roster.learned(from);
    let mut gate = shared.gate.lock().unwrap_or_else(PoisonError::into_inner);
    gate.knock(from, known, index.directory().sources, shared.elapsed()).map_err(|refusal| refusal.reason())
}

enum Greeted {
    Session(Box<Established>),
    Enrol(TcpStream, Hello),
}

/// Reads the greeting and goes on with it. A refused stream is dropped here, with a RST.
async fn greet(
    mut stream: TcpStream,
    from: SocketAddr,
    shared: &Arc<Shared>,
) -> Result<Greeted, &'static str> {
    // Whatever fails from here on, and a deadline that passes, ends with a RST.
    socket::abort(&stream);
    let hello = hello::read(&mut stream).await.map_err(|_| "NotTls")?;
    let cluster = greeted(&hello, from, shared).map_err(Refusal::reason)?;
    if hello.speaks(ALPN_ENROL) {
        socket::orderly(&stream);
        return Ok(Greeted::Enrol(stream, hello));
    }
    if !hello.speaks(ALPN) {
        return Err("OtherProtocol");
    }
    let config = shared.server().ok_or("NoCertificateYet")?;
    shared.metrics.signatures.inc();
    let tls = TlsAcceptor::from(config).accept(Again::new(hello.bytes, stream)).await.map_err(|error| {
        tracing::info!(%from, cluster = cluster.name, %error, "a handshake failed");
        shared.roster.refuse(&cluster.uid, "HandshakeFailed");
        "HandshakeFailed"
    })?;
    let leaf = tls.get_ref().1.peer_certificates().and_then(<[_]>::first).ok_or("NoCertificate")?;
    let certificate = trust::read(leaf).map_err(|_| "CertificateInvalid")?;
    let index = shared.known.borrow().clone();
    index.admit(&cluster.uid, &certificate, now()).map_err(|refusal| {
        tracing::info!(%from, cluster = cluster.name, reason = refusal.reason(), "a session is refused");
        shared.roster.refuse(&cluster.uid, refusal.reason());
        refusal.reason()
    })?;
    let meter = Meter::default();
    if let Err(error) = socket::tunnel(tls.get_ref().0.get_ref()) {
        tracing::debug!(%error, "a socket keeps its defaults");
    }
    let end = tls.get_ref().0.get_ref().as_fd().try_clone_to_owned().map_err(|_| "NoFileDescriptor")?;
    let io = Metered::new(tls, meter.clone());
    let http = shared.options.settings.server().handshake(io).await.map_err(|_| "NotHttp2")?;
    socket::orderly(&end);
    Ok(Greeted::Session(Box::new(Established { http, end, meter, cluster, certificate, from })))
}

/// Finds whose greeting it is, and whether it may come from where it does.
fn greeted(hello: &Hello, from: SocketAddr, shared: &Shared) -> Result<Cluster, Refusal> {
    let index = shared.known.borrow().clone();
    let name =
        hello.name.as_deref().and_then(|name| name.strip_suffix(SNI_SUFFIX)).ok_or(Refusal::Stranger)?;
    let cluster = index.greeted(name)?;
    match index.may_come(cluster, from.ip()) {
        Err(Refusal::Source) if shared.roster.learned_of(&cluster.uid, from.ip()) => {}
        Err(refusal) => {
            shared.roster.refuse(&cluster.uid, refusal.reason());
            return Err(refusal);
        }
        Ok(()) => {}
    }
    Ok(cluster.clone())
}

/// Finds out whom a load balancer speaks for; anybody else speaks for itself.
async fn spoken_for(
    stream: &mut TcpStream,
    peer: SocketAddr,
    shared: &Shared,
) -> Result<SocketAddr, &'static str> {
    if !shared.options.proxies.iter().any(|proxy| proxy.contains(&peer.ip())) {
        return Ok(peer);
    }
    let mut header = vec![0; PROXY_HEADER];
    stream.read_exact(&mut header).await.map_err(|_| "ProxyHeader")?;
    let [.., high, low] = header.as_slice() else { return Err("ProxyHeader") };
    let rest = usize::from(u16::from_be_bytes([*high, *low]));
    if rest > PROXY_REST_MAX {
        return Err("ProxyHeader");
    }
    header.resize(PROXY_HEADER + rest, 0);
    let tail = header.get_mut(PROXY_HEADER..).unwrap_or_default();
    stream.read_exact(tail).await.map_err(|_| "ProxyHeader")?;
    match Header::try_from(header.as_slice()).map_err(|_| "ProxyHeader")?.addresses {
        Addresses::IPv4(v4) => Ok(SocketAddr::new(IpAddr::V4(v4.source_address), v4.source_port)),
        Addresses::IPv6(v6) => Ok(canonical(SocketAddr::new(IpAddr::V6(v6.source_address), v6.source_port))),
        // A health check of the load balancer itself.
        Addresses::Unspecified | Addresses::Unix(_) => Ok(peer),
    }
}
