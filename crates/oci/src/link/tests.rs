use proptest::prelude::*;

use super::*;

fn query(value: &str) -> Option<String> {
    next([value]).map(|page| page.query())
}

#[test]
fn the_next_page_is_found_however_it_is_written() {
    let cases = [
        (r#"</v2/acme/app/tags/list?n=10&last=v1>; rel="next""#, Some("n=10&last=v1")),
        (r#"</v2/acme/app/tags/list?last=v1&n=10>; rel=next"#, Some("n=10&last=v1")),
        (r#"<https://evil.example/any/path?n=1&last=b#x>; rel="next""#, Some("n=1&last=b")),
        (r#"</a?next_page=to%3Dken>;rel="next""#, Some("next_page=to%3Dken")),
        (
            r#"</first?n=1>; rel="first", </next?n=2&last=a,b>; title="a, b"; rel="prefetch Next""#,
            Some("n=2&last=a%2Cb"),
        ),
        (r#"<?n=1&last=a>; rel="next""#, Some("n=1&last=a")),
        // What this cache adds itself does not come from an upstream.
        (r#"</a?ns=evil.example&last=a&artifactType=x>; rel="next""#, Some("last=a")),
        // Nothing to ask for would be the first page again, for ever.
        (r#"</a>; rel="next""#, None),
        (r#"</a?>; rel="next""#, None),
        (r#"</a?n=1>; rel="prev""#, None),
        (r#"</a?n=1>"#, None),
        ("", None),
        ("<", None),
    ];
    for (value, expected) in cases {
        assert_eq!(query(value).as_deref(), expected, "{value}");
    }
    assert_eq!(next(["</a?n=1>; rel=first", "</b?n=2>; rel=next"]).and_then(|page| page.n), Some(2));
}

#[test]
fn a_client_is_led_back_to_this_cache() {
    let page = Page { n: Some(5), last: Some("v 1".to_owned()), rest: Vec::new() };
    assert_eq!(
        to_next("/v2/acme/app/tags/list", [("ns", "registry.example:5000")], &page),
        r#"</v2/acme/app/tags/list?ns=registry.example%3A5000&n=5&last=v%201>; rel="next""#
    );
    assert_eq!(to_next("/v2/<x>\r\n", [], &page), r#"</v2/x?n=5&last=v%201>; rel="next""#);
}

proptest! {
    #[test]
    fn no_header_makes_the_parser_panic(value in "\\PC{0,80}|[<>;,=\"?a-z ]{0,80}") {
        let _any = next([value.as_str()]);
    }

    #[test]
    fn a_page_survives_its_link(n in any::<Option<u32>>(), last in "\\PC{1,20}", token in "\\PC{0,20}") {
        let page = Page { n, last: Some(last), rest: vec![("token".to_owned(), token)] };
        let link = to_next("/v2/a/tags/list", [("ns", "registry.example")], &page);
        prop_assert_eq!(next([link.as_str()]), Some(page));
    }
}
