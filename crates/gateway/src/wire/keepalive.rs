//! Notices that the other side is gone.

use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{sleep, timeout};

/// Shorter than what any load balancer keeps an idle flow for (the shortest known default is 4 min).
const EVERY: Duration = Duration::from_secs(10);
/// With [`EVERY`], a dead path is noticed in under 30 s.
const ANSWER: Duration = Duration::from_secs(15);

/// Asks the other side for a sign until it gives none.
pub async fn keepalive(ping: Option<PingPong>) {
    // There is one PingPong for each connection, and this is the only place that takes it.
    let Some(mut ping) = ping else { return std::future::pending().await };
    loop {
        sleep(EVERY).await;
        match timeout(ANSWER, ping.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}
