use super::*;

fn pods() -> Kind {
    Kind {
        group: String::new(),
        version: "v1".to_owned(),
        plural: "pods".to_owned(),
        kind: "Pod".to_owned(),
        metadata: false,
        keeps: true,
    }
}

fn object(text: &str) -> Object {
    Object { body: text.as_bytes().into(), secret: None }
}

fn named(uid: &str, kind: Option<&str>) -> Object {
    Object { body: b"{\"kind\":\"Secret\"}"[..].into(), secret: Some((uid.into(), kind.map(Into::into))) }
}

fn key(name: &str) -> Box<str> {
    format!("a/{name}").into()
}

#[test]
fn only_what_differs_is_told() {
    let mut kept = Kept::new(pods());
    assert!(!kept.take(Event::Starts));
    assert!(!kept.take(Event::Listed(key("p"), object("1"))));
    assert!(kept.take(Event::Complete), "the first list is news");
    assert!(!kept.take(Event::Is(key("p"), object("1"))));
    assert!(kept.take(Event::Is(key("p"), object("2"))));
    assert!(!kept.take(Event::Gone(key("q"))));
    // The same again after a reconnection; then one that went meanwhile.
    kept.take(Event::Starts);
    kept.take(Event::Listed(key("p"), object("2")));
    assert!(!kept.take(Event::Complete));
    kept.take(Event::Starts);
    assert!(kept.take(Event::Complete));
    assert!(kept.objects.is_empty());
}

#[test]
fn a_refused_kind_stays_a_gap_through_all_attempts_and_is_told_once() {
    let mut kept = Kept::new(pods());
    assert_eq!(kept.why_not().as_deref(), Some("it is still being read"));
    assert!(kept.fail("forbidden".to_owned()));
    for _ in 0..3 {
        kept.take(Event::Starts);
        assert_eq!(kept.why_not().as_deref(), Some("forbidden"));
        assert!(!kept.fail("forbidden".to_owned()));
    }
    kept.take(Event::Starts);
    assert!(kept.take(Event::Complete), "that it may be read now is news");
    assert_eq!(kept.why_not(), None);
}

#[test]
fn what_is_kept_counts_for_a_while_when_the_watch_fails() {
    let mut kept = Kept::new(pods());
    kept.take(Event::Complete);
    kept.fail("no answer".to_owned());
    assert_eq!(kept.why_not(), None);
    let ago = |time: Duration| Instant::now().checked_sub(time).unwrap();
    let second = Duration::from_secs(1);
    let failing =
        |since, last| Some(Failing { since: ago(since), last: ago(last), why: "no answer".to_owned() });
    kept.failing = failing(STALE + second, second);
    kept.take(Event::Starts);
    assert!(!kept.fail("still no answer".to_owned()));
    assert_eq!(kept.why_not().as_deref(), Some("still no answer"));
    // A watch on which nothing happens does not say that it works again.
    kept.failing = failing(STALE + QUIET + second, QUIET + second);
    assert_eq!(kept.why_not(), None);
    kept.fail("no answer".to_owned());
    assert_eq!(kept.why_not(), None, "that is a new failure");
}

#[test]
fn a_secret_keeps_its_type_and_one_made_anew_has_none() {
    let mut kept = Kept::new(Kind::secrets());
    kept.take(Event::Complete);
    kept.take(Event::Is(key("s"), named("1", Some("Opaque"))));
    assert!(!kept.take(Event::Is(key("s"), named("1", None))), "nothing has changed");
    assert_eq!(kept.objects[&*key("s")], named("1", Some("Opaque")));
    kept.take(Event::Starts);
    kept.take(Event::Listed(key("s"), named("1", None)));
    assert!(!kept.take(Event::Complete));
    assert!(kept.take(Event::Is(key("s"), named("2", None))));
    assert_eq!(kept.objects[&*key("s")], named("2", None));
}

#[test]
fn a_list_is_made_of_what_is_kept() {
    let read = |kind: &Kind, objects: &[Object]| -> Value {
        let mut text = String::new();
        listing(kind, objects).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let list = |kind: &str, items: Value| json!({"apiVersion": "v1", "kind": kind, "items": items});
    assert_eq!(read(&pods(), &[]), list("PodList", json!([])));
    let two = [object("{\"a\":1}"), object("{\"b\":2}")];
    assert_eq!(read(&pods(), &two), list("PodList", json!([{"a": 1}, {"b": 2}])));
    let typed = read(&Kind::secrets(), &[named("1", Some("a/b\"")), named("2", None)]);
    assert_eq!(typed, list("SecretList", json!([{"type": "a/b\"", "kind": "Secret"}, {"kind": "Secret"}])));
}

#[test]
fn of_a_secret_only_names_and_what_it_opens_are_kept() {
    let kept = secret(&json!({"metadata": {
        "name": "s", "namespace": "a", "uid": "1", "resourceVersion": "7",
        "labels": {"team": "MARKER", "cluster.x-k8s.io/cluster-name": "one"},
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "MARKER", "kubernetes.io/service-account.name": "app"},
    }}));
    let body: Value = serde_json::from_slice(&kept.body).unwrap();
    assert_eq!(
        body,
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": "s", "namespace": "a", "labels": {"cluster.x-k8s.io/cluster-name": "one"},
            "annotations": {"kubernetes.io/service-account.name": "app"}}})
    );
}
