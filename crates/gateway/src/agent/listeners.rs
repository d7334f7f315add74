//! Listens for each service that the gateway offers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bailey_process::drain::Signal;
use bailey_tunnel::names::ServiceName;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::{Shared, stream};

/// Connections of clients at a time; the next one waits in the kernel's queue.
const CLIENTS_MAX: usize = 4096;
const RETRY: Duration = Duration::from_secs(1);

/// Follows what is offered until the drain, then waits for streams to end.
pub(super) async fn run(shared: &Arc<Shared>, signal: Signal) {
    let mut told = shared.told.subscribe();
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    let mut listening: BTreeMap<(ServiceName, u16), AbortHandle> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    loop {
        let offers: Vec<_> = told
            .borrow_and_update()
            .iter()
            .flat_map(|told| &told.services)
            .map(|offer| (offer.name.clone(), offer.port))
            .collect();
        listening.retain(|offer, task| {
            let stays = offers.contains(offer) && !task.is_finished();
            if !stays {
                task.abort();
                shared.bound.send_modify(|bound| _ = bound.remove(&offer.0));
            }
            stays
        });
        for offer in offers {
            let (service, port) = offer.clone();
            listening.entry(offer).or_insert_with(|| {
                let (shared, places) = (Arc::clone(shared), Arc::clone(&places));
                let address = SocketAddr::new(shared.options.listen, port);
                tasks.spawn(listen(service, address, shared, places))
            });
        }
        tokio::select! {
            () = signal.started() => break,
            Ok(()) = told.changed() => {}
            Some(_) = tasks.join_next() => {}
        }
    }
    for task in listening.values() {
        task.abort();
    }
    while tasks.join_next().await.is_some() {}
    // Every stream holds a place.
    let all = u32::try_from(CLIENTS_MAX).unwrap_or(u32::MAX);
    if places.acquire_many(all).await.is_err() {
        tracing::trace!("nobody closes the semaphore");
    }
}

async fn listen(service: ServiceName, address: SocketAddr, shared: Arc<Shared>, places: Arc<Semaphore>) {
    let listener = loop {
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(error) => {
                tracing::warn!(%service, %address, %error, "cannot listen, and go on trying");
                sleep(RETRY).await;
            }
        }
    };
    let address = listener.local_addr().unwrap_or(address);
    tracing::info!(%service, %address, "offers a service");
    shared.bound.send_modify(|bound| _ = bound.insert(service.clone(), address));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((client, _)) => {
                let (service, shared) = (service.clone(), Arc::clone(&shared));
                // Bounded by its place, and waited for by the places; it outlives the offer, which the gateway ends.
                tokio::spawn(async move {
                    stream::run(client, &service, &shared).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%service, %error, "cannot accept a client");
                sleep(RETRY).await;
            }
        }
    }
}
