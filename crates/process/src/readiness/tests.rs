use super::Readiness;

#[test]
fn nothing_registered_is_ready() {
    assert!(Readiness::new().pending().is_empty());
}

#[test]
fn each_guard_counts_until_it_is_dropped() {
    let readiness = Readiness::new();
    let webhooks = readiness.register("webhooks");
    let caches = readiness.register("caches");
    assert_eq!(readiness.pending(), ["caches", "webhooks"]);
    drop(caches);
    assert_eq!(readiness.pending(), ["webhooks"]);
    webhooks.ready();
    assert!(readiness.pending().is_empty());
}

#[test]
fn two_guards_of_one_name_must_both_go() {
    let readiness = Readiness::new();
    let (one, two) = (readiness.register("caches"), readiness.clone().register("caches"));
    drop(one);
    assert_eq!(readiness.pending(), ["caches"]);
    drop(two);
    assert!(readiness.pending().is_empty());
}

#[test]
fn a_guard_moved_into_a_panicking_thread_is_dropped() {
    let readiness = Readiness::new();
    let guard = readiness.register("caches");
    let ended = std::thread::spawn(move || {
        let _guard = guard;
        panic!("expected in this test");
    })
    .join();
    assert!(ended.is_err());
    assert!(readiness.pending().is_empty());
}
