use std::time::Duration;

use tokio::time::timeout;

use super::{Drain, Interrupts};

const SHORT: Duration = Duration::from_millis(50);

#[tokio::test(start_paused = true)]
async fn a_signal_waits_until_the_drain_starts() {
    let drain = Drain::new();
    let (signal, last) = (drain.signal(), drain.last());
    assert!(!signal.is_started() && !last.is_draining());
    assert!(timeout(SHORT, signal.started()).await.is_err());
    drain.start();
    signal.started().await;
    assert!(signal.is_started() && last.is_draining());
}

#[tokio::test(start_paused = true)]
async fn the_drain_finishes_with_the_last_signal_and_does_not_wait_for_the_last() {
    let drain = Drain::new();
    let (one, last) = (drain.signal(), drain.last());
    let two = one.clone();
    drain.start();
    drop(one);
    assert!(timeout(SHORT, drain.finished()).await.is_err());
    drop(two);
    drain.finished().await;
    assert!(timeout(SHORT, last.ended()).await.is_err());
    drain.end();
    last.ended().await;
}

#[tokio::test]
async fn a_phase_never_goes_back() {
    let drain = Drain::new();
    let last = drain.last();
    drain.end();
    drain.start();
    last.ended().await;
    assert!(last.is_draining());
}

#[tokio::test]
async fn work_stops_when_the_drain_is_gone() {
    let drain = Drain::new();
    let (signal, last) = (drain.signal(), drain.last());
    drop(drain);
    signal.started().await;
    last.ended().await;
    assert!(signal.is_started() && last.is_draining());
}

#[tokio::test]
async fn interrupts_come_in_order() {
    let (sender, mut interrupts) = Interrupts::channel();
    sender.send("SIGTERM").await.unwrap();
    sender.send("SIGINT").await.unwrap();
    assert_eq!(interrupts.next().await, "SIGTERM");
    assert_eq!(interrupts.next().await, "SIGINT");
}
