use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use super::{
    Decision, Identity, Loss, Observation, Seen, Standing, Timings, decide, next_spec, released_spec,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn me() -> Identity {
    Identity::exact("me")
}

fn held_by(holder: &str) -> LeaseSpec {
    next_spec(None, &Identity::exact(holder), &Timings::default(), at(1_000))
}

fn as_candidate(spec: Option<&LeaseSpec>, unchanged_for: Duration) -> Decision {
    decide(&Seen { spec, unchanged_for }, Standing::Candidate, &me(), &Timings::default())
}

fn as_leader(spec: Option<&LeaseSpec>, unrenewed_for: Duration) -> Decision {
    let seen = Seen { spec, unchanged_for: Duration::ZERO };
    decide(&seen, Standing::Leader { unrenewed_for }, &me(), &Timings::default())
}

#[test]
fn a_candidate_takes_a_lease_that_nobody_holds() {
    let released = released_spec(Some(&held_by("other")), &Identity::exact("other"), at(1_001)).unwrap();
    let cleared = LeaseSpec { holder_identity: Some(String::new()), ..held_by("other") };
    for spec in [None, Some(&LeaseSpec::default()), Some(&released), Some(&cleared)] {
        assert_eq!(as_candidate(spec, Duration::ZERO), Decision::Acquire, "{spec:?}");
    }
}

#[test]
fn a_candidate_waits_until_it_has_seen_the_lease_unchanged_for_its_duration() {
    let spec = held_by("other");
    assert_eq!(as_candidate(Some(&spec), Duration::ZERO), Decision::Wait);
    assert_eq!(as_candidate(Some(&spec), Duration::from_millis(14_999)), Decision::Wait);
    assert_eq!(as_candidate(Some(&spec), seconds(15)), Decision::Acquire);
}

#[test]
fn the_duration_that_the_holder_wrote_counts() {
    let spec = LeaseSpec { lease_duration_seconds: Some(60), ..held_by("other") };
    assert_eq!(as_candidate(Some(&spec), seconds(59)), Decision::Wait);
    assert_eq!(as_candidate(Some(&spec), seconds(60)), Decision::Acquire);
    for nonsense in [None, Some(0), Some(-5)] {
        let spec = LeaseSpec { lease_duration_seconds: nonsense, ..held_by("other") };
        assert_eq!(as_candidate(Some(&spec), seconds(14)), Decision::Wait, "{nonsense:?}");
        assert_eq!(as_candidate(Some(&spec), seconds(15)), Decision::Acquire, "{nonsense:?}");
    }
}

#[test]
fn a_candidate_goes_on_with_its_own_lease() {
    assert_eq!(as_candidate(Some(&held_by("me")), Duration::ZERO), Decision::Acquire);
}

#[test]
fn a_leader_renews_its_own_lease_until_the_renew_deadline() {
    let spec = held_by("me");
    assert_eq!(as_leader(Some(&spec), Duration::ZERO), Decision::Renew);
    assert_eq!(as_leader(Some(&spec), Duration::from_millis(9_999)), Decision::Renew);
    assert_eq!(as_leader(Some(&spec), seconds(10)), Decision::Lost(Loss::Overdue));
}

#[test]
fn a_leader_stops_when_the_lease_is_another_s_or_nobody_s() {
    let taken = Decision::Lost(Loss::Taken { holder: "other".to_owned() });
    assert_eq!(as_leader(Some(&held_by("other")), Duration::ZERO), taken);
    assert_eq!(as_leader(None, Duration::ZERO), Decision::Lost(Loss::Cleared));
    assert_eq!(as_leader(Some(&LeaseSpec::default()), Duration::ZERO), Decision::Lost(Loss::Cleared));
}

#[test]
fn acquiring_writes_holder_times_and_one_more_transition() {
    let first = held_by("other");
    assert_eq!((first.lease_transitions, first.lease_duration_seconds), (Some(0), Some(15)));
    let taken = next_spec(Some(&first), &me(), &Timings::default(), at(2_000));
    assert_eq!(taken.holder_identity.as_deref(), Some("me"));
    assert_eq!(taken.acquire_time, Some(MicroTime(at(2_000))));
    assert_eq!(taken.renew_time, Some(MicroTime(at(2_000))));
    assert_eq!(taken.lease_transitions, Some(1));
}

#[test]
fn renewing_changes_only_the_renew_time() {
    let first = held_by("me");
    let renewed = next_spec(Some(&first), &me(), &Timings::default(), at(1_002));
    assert_eq!(renewed, LeaseSpec { renew_time: Some(MicroTime(at(1_002))), ..first });
}

#[test]
fn releasing_clears_only_the_own_holder() {
    let released = released_spec(Some(&held_by("me")), &me(), at(1_005)).unwrap();
    assert_eq!(released.holder_identity, None);
    assert_eq!(released.lease_duration_seconds, Some(15));
    assert_eq!(released_spec(Some(&held_by("other")), &me(), at(1_005)), None);
    assert_eq!(released_spec(None, &me(), at(1_005)), None);
    let next = next_spec(Some(&released), &Identity::exact("other"), &Timings::default(), at(1_006));
    assert_eq!(next.lease_transitions, Some(1));
}

#[test]
fn an_observation_counts_from_the_last_change_seen() {
    let start = Instant::now();
    let mut observation = Observation::default();
    let first = held_by("other");
    assert_eq!(observation.read(Some(&first), start + seconds(100)), Duration::ZERO);
    assert_eq!(observation.read(Some(&first), start + seconds(110)), seconds(10));
    let renewed = next_spec(Some(&first), &Identity::exact("other"), &Timings::default(), at(9_000));
    assert_eq!(observation.read(Some(&renewed), start + seconds(112)), Duration::ZERO);
    assert_eq!(observation.read(Some(&renewed), start + seconds(113)), seconds(1));
}

#[test]
fn timings_must_leave_the_leader_time_to_stop() {
    assert!(
        Timings::new(seconds(15), seconds(10), seconds(2)).is_ok_and(|timings| timings == Timings::default())
    );
    for (lease, renew, retry) in [(10, 10, 2), (15, 2, 2), (15, 10, 0), (0, 0, 0)] {
        let error = Timings::new(seconds(lease), seconds(renew), seconds(retry)).unwrap_err();
        assert_eq!(error.reason(), "LeaseTimingsInvalid");
    }
    let odd = Timings::new(Duration::from_millis(1_500), seconds(1), Duration::from_millis(100)).unwrap();
    assert_eq!(next_spec(None, &me(), &odd, at(0)).lease_duration_seconds, Some(2));
}

#[test]
fn identities_of_one_name_differ() {
    let (one, two) = (Identity::unique("pod-1"), Identity::unique("pod-1"));
    assert_ne!(one, two);
    assert!(one.to_string().starts_with("pod-1_"), "{one}");
    assert!(Identity::unique("").to_string().starts_with("bailey_"));
}
