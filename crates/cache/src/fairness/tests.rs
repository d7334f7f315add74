use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;

use super::*;

fn party(name: &str) -> Party {
    Some(name.into())
}

fn limited(fills: usize) -> Arc<Shares> {
    let each = Limits { fills, ..Limits::default() };
    Arc::new(Shares::new(Rules { each, ..Rules::default() }))
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_a_storm_of_fetches_leaves_turns_to_others() {
    let (turns, shares) = (Arc::new(Turns::default()), limited(FILLS_MAX));
    let before = Arc::new(AtomicUsize::new(0));
    let mut storm = JoinSet::new();
    for _ in 0..500 {
        let (turns, shares, before) = (turns.clone(), shares.clone(), before.clone());
        storm.spawn(async move {
            let _turn = turns.take(&shares, &party("a")).await.unwrap();
            before.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_secs(1)).await;
        });
    }
    sleep(Duration::from_millis(100)).await;
    assert_eq!(before.load(Ordering::Relaxed), FILLS_MAX);
    // It waits for one that ends, not for 436 that came before.
    let _turn = turns.take(&shares, &party("b")).await.unwrap();
    assert!(before.load(Ordering::Relaxed) <= 2 * FILLS_MAX);
    while storm.join_next().await.is_some() {}
    assert_eq!(*turns.free.lock().unwrap(), FILLS_MAX - 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_has_as_many_turns_as_its_limit_and_others_start_at_once() {
    let (turns, shares) = (Turns::default(), limited(2));
    let first = turns.take(&shares, &party("a")).await;
    let _second = turns.take(&shares, &party("a")).await;
    let third = tokio::time::timeout(Duration::from_secs(5), turns.take(&shares, &party("a"))).await;
    assert!(third.is_err());
    let _other = turns.take(&shares, &party("b")).await;
    drop(first);
    let third = tokio::time::timeout(Duration::from_secs(5), turns.take(&shares, &party("a"))).await;
    assert!(third.is_ok());
    assert_eq!(*turns.free.lock().unwrap(), FILLS_MAX - 3);
}

#[tokio::test(start_paused = true)]
async fn of_a_link_that_is_full_each_cluster_has_its_share_and_one_alone_has_all() {
    let shares = Arc::new(Shares::new(Rules { egress: Some(100e6), ..Rules::default() }));
    let start = |count: usize, name: &'static str, tasks: &mut JoinSet<()>, bytes: &Arc<AtomicUsize>| {
        for _ in 0..count {
            let (shares, bytes) = (shares.clone(), bytes.clone());
            tasks.spawn(async move {
                loop {
                    shares.send(&party(name), 100_000).await;
                    bytes.fetch_add(100_000, Ordering::Relaxed);
                }
            });
        }
    };
    let (mut tasks, a, b) = (JoinSet::new(), Arc::default(), Arc::default());
    start(50, "a", &mut tasks, &a);
    sleep(Duration::from_secs(2)).await;
    let alone = a.load(Ordering::Relaxed) as f64;
    assert!((1.9e8..2.2e8).contains(&alone), "{alone}");
    start(1, "b", &mut tasks, &b);
    sleep(Duration::from_secs(2)).await;
    let (a, b) = (a.load(Ordering::Relaxed) as f64 - alone, b.load(Ordering::Relaxed) as f64);
    assert!(b >= 0.9 * 1e8 && a + b < 2.2e8, "the storm {a}, the other {b}");
    tasks.shutdown().await;
    assert!(shares.egress.as_ref().unwrap().queue.lock().order.is_empty());
}

#[tokio::test(start_paused = true)]
async fn limits_of_one_cluster_hold_for_it_alone() {
    let slow = Limits { bytes_per_second: Some(1e6), misses_per_minute: Some(6.0), ..Limits::default() };
    let rules = Rules { clusters: [("a".into(), slow)].into(), ..Rules::default() };
    let shares = Shares::new(rules);
    assert_eq!((shares.piece(&party("a")), shares.piece(&party("b"))), (Some(PIECE), None));
    let started = Instant::now();
    for _ in 0..30 {
        shares.send(&party("a"), 100_000).await;
    }
    let took = started.elapsed().as_secs_f64();
    assert!((2.5..3.1).contains(&took), "{took}");
    let soon = || Instant::now() + Duration::from_secs(4);
    assert!(shares.miss(&party("a"), soon()).await.is_ok());
    assert!(shares.miss(&party("a"), soon()).await.is_err());
    assert!(shares.miss(&party("a"), Instant::now() + Duration::from_secs(20)).await.is_ok());
    for _ in 0..100 {
        assert!(shares.miss(&None, soon()).await.is_ok());
    }
}
