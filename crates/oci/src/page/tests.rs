use proptest::prelude::*;

use super::*;

fn page(text: &str) -> Result<Page, QueryError> {
    Query::parse(text)?.into_page()
}

#[test]
fn n_and_last_are_read_and_other_parameters_kept() {
    let read = page("n=10&last=v1.0&next_page=a%2Fb%3D").unwrap();
    assert_eq!(read.n, Some(10));
    assert_eq!(read.last.as_deref(), Some("v1.0"));
    assert_eq!(read.rest, [("next_page".to_owned(), "a/b=".to_owned())]);
    assert_eq!(read.query(), "n=10&last=v1.0&next_page=a/b%3D");
    assert!(page("").unwrap().is_whole());
    assert!(page("n=&last=").unwrap().is_whole());
}

#[test]
fn a_plus_sign_stays_one() {
    let mut query = Query::parse("artifactType=application/vnd.example+json").unwrap();
    assert_eq!(query.take("artifactType").as_deref(), Some("application/vnd.example+json"));
}

#[test]
fn what_is_no_page_is_refused() {
    assert_eq!(page("n=-1"), Err(QueryError::Number("-1".to_owned())));
    assert_eq!(page("n=%ff"), Err(QueryError::Encoding));
    assert_eq!(page(&"a=b&".repeat(33)), Err(QueryError::TooMany));
    assert_eq!(page("n=99999999999").unwrap().n, Some(u32::MAX));
}

proptest! {
    #[test]
    fn a_page_survives_its_query(n in any::<Option<u32>>(), last in prop::option::of("\\PC{1,20}"), rest in prop::collection::vec(("[a-z_]{3,8}", "\\PC{0,20}"), 0..5)) {
        let rest: Vec<_> = rest.into_iter().filter(|(key, _)| key != "last").collect();
        let before = Page { n, last, rest };
        prop_assert_eq!(page(&before.query()).unwrap(), before);
    }

    #[test]
    fn no_query_makes_the_parser_panic(text in "\\PC{0,60}|[a-z=&%0-9]{0,80}") {
        let _either = page(&text);
    }
}
