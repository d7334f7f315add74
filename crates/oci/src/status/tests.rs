use std::collections::HashSet;

use super::*;

#[test]
fn a_node_hears_404_for_what_the_upstream_misses_and_503_for_all_else() {
    for cause in Cause::ALL {
        for wanted in [Wanted::Manifest, Wanted::Blob, Wanted::List] {
            let answer = answer(cause, wanted, None);
            assert_eq!(answer.status, if cause == Cause::NotFound { 404 } else { 503 }, "{cause:?}");
            assert_eq!(answer.retry_after.is_some(), answer.status == 503);
        }
    }
}

#[test]
fn no_status_of_an_upstream_becomes_401_or_429_and_only_404_and_410_become_404() {
    for status in 0..=999 {
        let Meaning::Failed(cause) = Meaning::of(status) else { continue };
        let told = answer(cause, Wanted::Manifest, None).status;
        assert_eq!(told, if matches!(status, 404 | 410) { 404 } else { 503 }, "{status}");
    }
}

#[test]
fn statuses_mean_what_they_do_in_http() {
    for status in [200, 206] {
        assert_eq!(Meaning::of(status), Meaning::Content);
    }
    for status in [301, 302, 303, 307, 308] {
        assert_eq!(Meaning::of(status), Meaning::Redirect);
    }
    assert_eq!(Meaning::of(416), Meaning::BeyondEnd);
    assert_eq!(Meaning::of(429), Meaning::Failed(Cause::RateLimited));
    for status in [100, 204, 300, 400, 405, 408, 500, 502, 503, 504] {
        assert_eq!(Meaning::of(status), Meaning::Failed(Cause::UpstreamError), "{status}");
    }
}

#[test]
fn when_to_ask_again_is_within_a_minute() {
    let after = |said| answer(Cause::RateLimited, Wanted::Manifest, said).retry_after.unwrap().as_secs();
    assert_eq!(after(None), 5);
    assert_eq!(after(Some(Duration::from_millis(10))), 1);
    assert_eq!(after(Some(Duration::from_secs(30))), 30);
    assert_eq!(after(Some(Duration::from_secs(21_600))), 60);
}

#[test]
fn each_cause_has_its_own_word_that_fits_a_header() {
    let words: HashSet<_> = Cause::ALL.iter().map(|cause| cause.reason()).collect();
    assert_eq!(words.len(), Cause::ALL.len());
    assert!(words.iter().all(|word| word.bytes().all(|b| b.is_ascii_alphabetic())));
}

#[test]
fn what_one_request_meets_does_not_open_the_breaker() {
    for cause in [Cause::NotFound, Cause::Unauthorized, Cause::Forbidden, Cause::WrongContent, Cause::Policy]
    {
        assert!(!cause.is_outage());
    }
}
