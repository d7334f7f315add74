use super::*;

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn checked(age: u64) -> Known {
    Known::Checked { age: secs(age) }
}

const ERRORS: [Cause; 6] = [
    Cause::Unauthorized,
    Cause::Forbidden,
    Cause::RateLimited,
    Cause::UpstreamError,
    Cause::Unreachable,
    Cause::BreakerOpen,
];

#[test]
fn before_asking_what_is_fresh_is_served_and_the_rest_checked_or_fetched() {
    let policy = Policy::default();
    let cases = [
        (Freshness::Immutable, checked(1_000_000), Decision::Serve),
        (Freshness::For(secs(60)), checked(59), Decision::Serve),
        (Freshness::For(secs(60)), checked(60), Decision::Revalidate),
        (Freshness::For(secs(0)), checked(0), Decision::Revalidate),
        (Freshness::Immutable, Known::Nothing, Decision::Fetch),
        (Freshness::For(secs(60)), Known::Nothing, Decision::Fetch),
    ];
    for (freshness, known, decision) in cases {
        assert_eq!(policy.decide(freshness, known, None), decision, "{freshness:?} {known:?}");
    }
}

#[test]
fn what_the_upstream_confirms_is_served_and_what_it_changed_fetched() {
    let policy = Policy::default();
    let ttl = Freshness::For(secs(60));
    assert_eq!(policy.decide(ttl, checked(100), Some(Asked::Same)), Decision::Serve);
    assert_eq!(policy.decide(ttl, checked(100), Some(Asked::Other)), Decision::Fetch);
    assert_eq!(policy.decide(ttl, Known::Nothing, Some(Asked::Same)), Decision::Fetch);
    assert_eq!(policy.decide(ttl, Known::Nothing, Some(Asked::Other)), Decision::Fetch);
}

#[test]
fn an_upstream_that_cannot_be_asked_makes_what_is_here_stale_within_its_bound() {
    let ttl = Freshness::For(secs(60));
    let table = [
        (StaleIfError::Never, 61, false),
        (StaleIfError::For(secs(100)), 100, true),
        (StaleIfError::For(secs(100)), 101, false),
        (StaleIfError::Unlimited, u64::MAX, true),
    ];
    for (stale_if_error, age, stale) in table {
        let policy = Policy { stale_if_error, ..Policy::default() };
        for cause in ERRORS {
            let decision = policy.decide(ttl, checked(age), Some(Asked::Failed(cause)));
            let expected = if stale { Decision::ServeStale(cause) } else { Decision::Unavailable(cause) };
            assert_eq!(decision, expected, "{stale_if_error:?} {age} {cause:?}");
        }
    }
}

#[test]
fn what_is_not_here_is_missing_only_if_the_upstream_says_so() {
    for stale_if_error in [StaleIfError::Never, StaleIfError::Unlimited] {
        let policy = Policy { stale_if_error, ..Policy::default() };
        for freshness in [Freshness::Immutable, Freshness::For(secs(60))] {
            let decide = |cause| policy.decide(freshness, Known::Nothing, Some(Asked::Failed(cause)));
            assert_eq!(decide(Cause::NotFound), Decision::NotFound);
            for cause in ERRORS {
                assert_eq!(decide(cause), Decision::Unavailable(cause));
            }
        }
    }
}

#[test]
fn a_tag_that_the_upstream_deleted_is_kept_or_follows() {
    let decide = |gone, stale_if_error| {
        let policy = Policy { gone, stale_if_error, ..Policy::default() };
        policy.decide(Freshness::For(secs(60)), checked(100), Some(Asked::Failed(Cause::NotFound)))
    };
    assert_eq!(decide(Gone::Keep, StaleIfError::Never), Decision::ServeStale(Cause::NotFound));
    assert_eq!(decide(Gone::Follow, StaleIfError::Unlimited), Decision::NotFound);
}

#[test]
fn the_first_rule_that_matches_decides() {
    let rule = |images: &str, tags, freshness| Rule { images: images.parse().unwrap(), tags, freshness };
    let policy = Policy {
        rules: vec![
            rule("registry.example/moving/*", Tags::Matching(Pattern::any()), Freshness::For(secs(0))),
            rule("*", Tags::Versions, Freshness::Immutable),
            rule("docker.io/library/*", Tags::Matching("stable*".parse().unwrap()), Freshness::For(secs(5))),
        ],
        otherwise: Freshness::For(secs(60)),
        ..Policy::default()
    };
    let of = |registry: &str, repository: &str, tag: &str| {
        policy.freshness(&registry.parse().unwrap(), &repository.parse().unwrap(), &tag.parse().unwrap())
    };
    assert_eq!(of("registry.example", "moving/app", "1.2.3"), Freshness::For(secs(0)));
    assert_eq!(of("registry.example", "app", "1.2.3"), Freshness::Immutable);
    assert_eq!(of("docker.io", "library/debian", "stable-slim"), Freshness::For(secs(5)));
    assert_eq!(of("docker.io", "acme/debian", "stable-slim"), Freshness::For(secs(60)));
}

#[test]
fn whole_versions_are_told_from_moving_ones() {
    for tag in ["1.2.3", "v1.2.3", "v0.0.0", "1.2.3-rc.1", "v10.20.30-alpine"] {
        assert!(is_version(tag), "{tag}");
    }
    for tag in ["1", "1.2", "v1", "latest", "1.2.3.4", "1.2.x", "1..3", "vv1.2.3", "1.2.3-", "", "-", "v"] {
        assert!(!is_version(tag), "{tag}");
    }
}
