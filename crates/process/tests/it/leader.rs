use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bailey_process::drain::Drain;
use bailey_process::leader::{Candidate, Identity, LeaderError, Timings, lead};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::leases::Leases;

const SOON: Duration = Duration::from_secs(30);

fn candidate(identity: &str) -> Candidate {
    Candidate {
        namespace: "bailey-system".to_owned(),
        lease: "bailey-operator".to_owned(),
        identity: Identity::exact(identity),
        timings: Timings::new(Duration::from_secs(3), Duration::from_secs(2), Duration::from_millis(50))
            .unwrap(),
    }
}

#[tokio::test]
async fn one_works_the_other_waits_and_follows_after_the_release() {
    let leases = Leases::start().await;
    let drain = Drain::new();
    let (finish, finished) = oneshot::channel::<()>();
    let (first, second) = (drain.signal(), drain.signal());
    let client = leases.client.clone();
    let one = tokio::spawn(async move { lead(client, candidate("one"), &first, |_| finished).await });
    until(|| leases.holder().as_deref() == Some("one")).await;
    let client = leases.client.clone();
    let two = tokio::spawn(async move {
        lead(client, candidate("two"), &second, |leadership| async move { leadership.identity().to_string() })
            .await
    });
    // Longer than the lease holds: the renewals keep it.
    sleep(Duration::from_millis(3_500)).await;
    assert_eq!(leases.holder().as_deref(), Some("one"));
    finish.send(()).unwrap();
    assert!(timeout(SOON, one).await.unwrap().unwrap().unwrap().is_some());
    assert_eq!(timeout(SOON, two).await.unwrap().unwrap().unwrap().as_deref(), Some("two"));
    assert_eq!((leases.holder(), leases.transitions()), (None, Some(1)));
}

#[tokio::test]
async fn many_candidates_never_work_at_once() {
    let leases = Leases::start().await;
    let drain = Drain::new();
    let (working, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut candidates = tokio::task::JoinSet::new();
    for number in 0..5 {
        let (client, signal) = (leases.client.clone(), drain.signal());
        let (working, most) = (working.clone(), most.clone());
        candidates.spawn(async move {
            let work = |_| async move {
                most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(120)).await;
                working.fetch_sub(1, Ordering::SeqCst);
            };
            lead(client, candidate(&format!("candidate-{number}")), &signal, work).await
        });
    }
    for result in timeout(SOON * 2, candidates.join_all()).await.unwrap() {
        assert!(result.unwrap().is_some());
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(leases.transitions(), Some(4));
}

#[tokio::test]
async fn work_is_dropped_and_told_when_another_takes_the_lease() {
    let leases = Leases::start().await;
    let drain = Drain::new();
    let signal = drain.signal();
    let client = leases.client.clone();
    let (tell, told) = oneshot::channel();
    let leader = tokio::spawn(async move {
        let work = |leadership: bailey_process::leader::Leadership| {
            assert!(!leadership.is_lost());
            assert!(tell.send(leadership).is_ok());
            std::future::pending::<()>()
        };
        lead(client, candidate("one"), &signal, work).await
    });
    let leadership = timeout(SOON, told).await.unwrap().unwrap();
    leases.take("thief");
    timeout(SOON, leadership.lost()).await.unwrap();
    assert!(leadership.is_lost());
    let error = timeout(SOON, leader).await.unwrap().unwrap().unwrap_err();
    let wanted =
        "lease bailey-system/bailey-operator was taken by `thief`; this process stops so that only one works";
    assert_eq!(error.to_string(), wanted);
    assert_eq!(leases.holder().as_deref(), Some("thief"));
}

#[tokio::test]
async fn a_server_that_does_not_answer_ends_the_leadership_in_time() {
    let leases = Leases::start().await;
    let drain = Drain::new();
    let signal = drain.signal();
    let client = leases.client.clone();
    let leader = tokio::spawn(async move {
        lead(client, candidate("one"), &signal, |_| std::future::pending::<()>()).await
    });
    until(|| leases.exists()).await;
    leases.mute();
    let error = timeout(SOON, leader).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, LeaderError::Overdue { .. }), "{error}");
}

#[tokio::test]
async fn a_dead_leader_is_followed_after_its_lease() {
    let leases = Leases::start().await;
    let drain = Drain::new();
    let (first, second) = (drain.signal(), drain.signal());
    let client = leases.client.clone();
    let dead = tokio::spawn(async move {
        lead(client, candidate("dead"), &first, |_| std::future::pending::<()>()).await
    });
    until(|| leases.exists()).await;
    dead.abort();
    let next = lead(leases.client.clone(), candidate("next"), &second, |_| async {});
    assert!(timeout(SOON, next).await.unwrap().unwrap().is_some());
}

#[tokio::test]
async fn a_candidate_stops_waiting_when_the_drain_starts() {
    let leases = Leases::start().await;
    leases.mute();
    let drain = Drain::new();
    let signal = drain.signal();
    drain.start();
    let waited = lead(leases.client.clone(), candidate("one"), &signal, |_| async {});
    assert!(timeout(SOON, waited).await.unwrap().unwrap().is_none());
    assert!(!leases.exists());
}

async fn until(condition: impl Fn() -> bool) {
    let met = async {
        while !condition() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, met).await.unwrap();
}
