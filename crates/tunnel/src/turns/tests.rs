#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop")]

use proptest::prelude::*;

use super::*;

const CHUNK: usize = 64 << 10;

/// Serves what is in flight as a processor does that shares itself among all chunks, for so many rounds.
///
/// Returns the bytes of each cluster. `streams[i]` streams of cluster `i` ask for the next chunk as soon as one is done.
fn processor(streams: &[usize], limits: Limits, chunks: usize) -> Vec<usize> {
    let mut turns = Turns::new(limits);
    let (mut sent, mut owner) = (vec![0; streams.len()], HashMap::new());
    let mut running = VecDeque::new();
    let mut now = Duration::ZERO;
    for (cluster, count) in streams.iter().enumerate() {
        for _ in 0..*count {
            owner.insert(turns.ask(&cluster, CHUNK, now), cluster);
        }
    }
    for _ in 0..chunks {
        while let Some(ticket) = turns.next(now) {
            running.push_back((owner.remove(&ticket).unwrap(), ticket));
        }
        // The oldest of all that run is finished first, which shares the processor evenly.
        let (cluster, ticket) = running.pop_front().unwrap();
        now += Duration::from_micros(200);
        sent[cluster] += CHUNK;
        turns.done(&cluster, ticket);
        owner.insert(turns.ask(&cluster, CHUNK, now), cluster);
    }
    sent
}

#[test]
fn one_with_64_streams_leaves_nine_with_two_each_their_share() {
    let mut streams = vec![2; 10];
    streams[0] = 64;
    let sent = processor(&streams, Limits::default(), 4000);
    let fair = sent.iter().sum::<usize>() / 10;
    for (cluster, bytes) in sent.iter().enumerate() {
        assert!(*bytes * 10 >= fair * 9 && *bytes * 10 <= fair * 11, "{cluster}: {bytes} of {fair}");
    }
}

#[test]
fn who_is_alone_has_everything() {
    let mut turns = Turns::new(Limits::default());
    for _ in 0..64 {
        turns.ask(&0, CHUNK, Duration::ZERO);
    }
    let granted: Vec<_> = std::iter::from_fn(|| turns.next(Duration::ZERO)).collect();
    assert_eq!(granted.len() * CHUNK, Limits::default().process);
    turns.ask(&1, CHUNK, Duration::ZERO);
    turns.done(&0, granted[0]);
    let next = turns.next(Duration::ZERO);
    assert!(next.is_some(), "the other one comes first");
    assert_eq!(turns.clusters[&1].in_flight, CHUNK);
}

#[test]
fn a_rate_is_kept_and_shared_by_turns() {
    let limits = Limits {
        rate: Some(100_000_000),
        process: usize::MAX / 2,
        contended: usize::MAX / 2,
        ..Limits::default()
    };
    let mut turns = Turns::new(limits);
    let (mut owner, mut sent) = (HashMap::new(), [0_usize; 4]);
    let mut now = Duration::ZERO;
    for (cluster, count) in [64, 1, 1, 1].into_iter().enumerate() {
        for _ in 0..count {
            owner.insert(turns.ask(&cluster, CHUNK, now), cluster);
        }
    }
    while now < Duration::from_secs(2) {
        while let Some(ticket) = turns.next(now) {
            let cluster = owner.remove(&ticket).unwrap();
            sent[cluster] += CHUNK;
            turns.done(&cluster, ticket);
            owner.insert(turns.ask(&cluster, CHUNK, now), cluster);
        }
        now += turns.pause(now).unwrap();
    }
    let all: usize = sent.iter().sum();
    assert!((190_000_000..=202_000_000).contains(&all), "{all}");
    for bytes in sent {
        assert!(bytes * 100 >= all / 4 * 95, "{sent:?}");
    }
}

#[test]
fn a_dead_connection_does_not_keep_the_others_of_its_cluster() {
    let mut turns = Turns::new(Limits::default());
    turns.ask(&1, CHUNK, Duration::ZERO);
    let stuck: Vec<_> = (0..4).map(|_| turns.ask(&0, CHUNK, Duration::ZERO)).collect();
    let granted = std::iter::from_fn(|| turns.next(Duration::ZERO)).count();
    assert_eq!(granted, 3, "one of the other and two of ours");
    assert_eq!(turns.pause(Duration::ZERO), Some(STUCK));
    assert_eq!(turns.next(STUCK), Some(stuck[2]));
    turns.done(&0, stuck[0]);
    turns.done(&0, stuck[2]);
    assert_eq!(turns.next(STUCK), Some(stuck[3]));
    assert_eq!(turns.load(), (CHUNK, 0));
}

#[test]
fn nothing_is_left_of_clusters_that_went() {
    let mut turns = Turns::new(Limits::default());
    for cluster in 0..1000 {
        let ticket = turns.ask(&cluster, CHUNK, Duration::ZERO);
        assert!(turns.cancel(&cluster, ticket));
    }
    assert_eq!(turns.next(Duration::from_secs(1)), None);
    assert_eq!((turns.load(), turns.clusters.len(), turns.order.len()), ((0, 0), 0, 0));
}

#[derive(Clone, Debug)]
enum Step {
    Ask(u8, usize),
    Done(usize),
    Cancel(usize),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..5, 1_usize..200_000).prop_map(|(cluster, bytes)| Step::Ask(cluster, bytes)),
        3 => any::<usize>().prop_map(Step::Done),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => (0_u16..100).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever is asked, done and cancelled: bounds hold, nothing is granted twice, and all that waits goes in the end.
    #[test]
    fn bounds_hold_and_nobody_is_forgotten(steps in prop::collection::vec(step(), 1..200), rate in prop::option::of(1_000_000_u64..1_000_000_000)) {
        let limits = Limits { rate, ..Limits::default() };
        let mut turns = Turns::new(limits);
        let (mut waiting, mut running) = (HashMap::new(), Vec::new());
        let mut now = Duration::ZERO;
        for step in steps {
            match step {
                Step::Ask(cluster, bytes) => {
                    prop_assert!(waiting.insert(turns.ask(&cluster, bytes, now), (cluster, bytes)).is_none());
                }
                Step::Done(at) if !running.is_empty() => {
                    let (cluster, _, ticket) = running.swap_remove(at % running.len());
                    turns.done(&cluster, ticket);
                    turns.done(&cluster, ticket);
                }
                Step::Cancel(at) if !waiting.is_empty() => {
                    let ticket = *waiting.keys().nth(at % waiting.len()).unwrap();
                    let (cluster, _) = waiting.remove(&ticket).unwrap();
                    prop_assert!(turns.cancel(&cluster, ticket));
                    prop_assert!(!turns.cancel(&cluster, ticket));
                }
                Step::Wait(millis) => now += Duration::from_millis(millis.into()),
                Step::Done(_) | Step::Cancel(_) => {}
            }
            while let Some(ticket) = turns.next(now) {
                let (cluster, bytes) = waiting.remove(&ticket).unwrap();
                running.push((cluster, bytes, ticket));
            }
            let bytes: usize = running.iter().map(|(_, bytes, _)| bytes).sum();
            let (counted, left) = turns.load();
            prop_assert!(counted <= bytes);
            prop_assert_eq!(left, waiting.len());
            prop_assert!(counted <= limits.process);
        }
        for _ in 0..10_000 {
            for (cluster, _, ticket) in running.drain(..) {
                turns.done(&cluster, ticket);
            }
            now += turns.pause(now).unwrap_or(Duration::ZERO) + Duration::from_micros(1);
            while let Some(ticket) = turns.next(now) {
                let (cluster, bytes) = waiting.remove(&ticket).unwrap();
                running.push((cluster, bytes, ticket));
            }
            if waiting.is_empty() {
                break;
            }
        }
        prop_assert!(waiting.is_empty());
    }
}
