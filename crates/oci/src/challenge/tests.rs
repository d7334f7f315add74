use proptest::prelude::*;

use super::*;

fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
    let text = |text: Option<&str>| text.map(str::to_owned);
    Challenge::Bearer(Bearer {
        realm: realm.to_owned(),
        service: text(service),
        scope: text(scope),
        error: None,
    })
}

fn basic(realm: &str) -> Challenge {
    Challenge::Basic { realm: realm.to_owned() }
}

fn other(scheme: &str) -> Challenge {
    Challenge::Other(scheme.to_owned())
}

#[test]
fn challenges_are_read_in_all_the_ways_that_registries_write_them() {
    let auth = "https://auth.example/token";
    let cases = [
        (
            r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull""#,
            vec![bearer(auth, Some("registry.example"), Some("repository:a/b:pull"))],
        ),
        (
            r#"bearer   REALM = "https://auth.example/token" , service=r.example"#,
            vec![bearer(auth, Some("r.example"), None)],
        ),
        // A comma within quotes separates nothing.
        (
            r#"Bearer realm="https://auth.example/token",scope="repository:a:pull,push""#,
            vec![bearer(auth, None, Some("repository:a:pull,push"))],
        ),
        (r#"Basic realm="Registry \"Realm\"""#, vec![basic(r#"Registry "Realm""#)]),
        ("Basic", vec![basic("")]),
        (
            r#"Basic realm="x", Bearer realm="https://auth.example/token",service="s""#,
            vec![basic("x"), bearer(auth, Some("s"), None)],
        ),
        (r#"Negotiate, Basic realm=x"#, vec![other("negotiate"), basic("x")]),
        (r#"Negotiate YIIabc==, Basic realm="x""#, vec![other("negotiate"), basic("x")]),
        (r#",, Digest realm="d", nonce="a,b", Basic realm=x ,"#, vec![other("digest"), basic("x")]),
        // No realm, nowhere to go.
        (r#"Bearer service="s""#, vec![other("bearer")]),
        (r#"Bearer error="insufficient_scope""#, vec![other("bearer")]),
        // Broken: what came before counts.
        (r#"Basic realm="x", Bearer realm="https://auth.ex"#, vec![basic("x"), other("bearer")]),
        ("", vec![]),
        ("=", vec![]),
        ("\"", vec![]),
    ];
    for (value, challenges) in cases {
        assert_eq!(parse([value]), challenges, "{value}");
    }
}

#[test]
fn an_error_tells_why_a_token_did_not_do() {
    let value = r#"Bearer realm="https://auth.example/token",error="insufficient_scope""#;
    let challenges = parse([value]);
    let [Challenge::Bearer(bearer)] = challenges.as_slice() else { panic!("{challenges:?}") };
    assert_eq!(bearer.error.as_deref(), Some("insufficient_scope"));
}

#[test]
fn several_headers_are_one_list_and_a_token_is_preferred() {
    let challenges = parse(["Basic realm=x", "Bearer realm=\"https://auth.example/\""]);
    assert_eq!(choose(&challenges), Some(&bearer("https://auth.example/", None, None)));
    assert_eq!(choose(&challenges[..1]), Some(&basic("x")));
    assert_eq!(choose(&parse(["Negotiate"])), None);
}

#[test]
fn a_token_is_asked_for_the_scope_that_is_wanted_or_else_for_reading() {
    let repository: Repository = "acme/app".parse().unwrap();
    let mut bearer = Bearer { service: Some("a b".to_owned()), ..Bearer::default() };
    assert_eq!(bearer.scope_for(&repository), "repository:acme/app:pull");
    bearer.scope = Some(" ".to_owned());
    assert_eq!(bearer.scope_for(&repository), "repository:acme/app:pull");
    bearer.scope = Some("aws".to_owned());
    assert_eq!(bearer.query(&bearer.scope_for(&repository)), "service=a%20b&scope=aws");
    assert_eq!(
        bearer.query("repository:a:pull  repository:b:pull"),
        "service=a%20b&scope=repository%3Aa%3Apull&scope=repository%3Ab%3Apull"
    );
}

#[test]
fn endless_lists_are_cut() {
    assert_eq!(parse(["Negotiate,".repeat(1000).as_str()]).len(), CHALLENGES_MAX);
    let many = format!("Basic {}", "a=b,".repeat(1000));
    assert_eq!(parse([many.as_str()]), [basic("")]);
}

proptest! {
    #[test]
    fn no_header_makes_the_parser_panic(value in "\\PC{0,80}|[A-Za-z\"\\\\=, é]{0,80}") {
        let _any = parse([value.as_str()]);
    }

    #[test]
    fn any_text_survives_its_quotes(realm in "\\PC{0,30}", service in "\\PC{0,30}") {
        let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let value = format!("Basic realm=x, Bearer realm=\"{}\", service=\"{}\"", quote(&realm), quote(&service));
        prop_assert_eq!(parse([value.as_str()]), vec![basic("x"), bearer(&realm, Some(&service), None)]);
    }
}
