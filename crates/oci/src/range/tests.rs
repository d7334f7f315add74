use proptest::prelude::*;

use super::*;

fn span(first: u64, last: u64) -> Span {
    Span { first, last }
}

#[test]
fn ranges_are_answered_as_rfc_9110_says() {
    let single = |first, last| Served::Single(span(first, last));
    let cases = [
        ("bytes=0-", 10, single(0, 9)),
        ("bytes=0-0", 10, single(0, 0)),
        ("bytes=9-", 10, single(9, 9)),
        ("bytes=3-5", 10, single(3, 5)),
        ("bytes=3-500", 10, single(3, 9)),
        ("BYTES = 3-5", 10, single(3, 5)),
        ("bytes=-3", 10, single(7, 9)),
        ("bytes=-300", 10, single(0, 9)),
        ("bytes=3-99999999999999999999999", 10, single(3, 9)),
        ("bytes=10-", 10, Served::Unsatisfiable),
        ("bytes=10-12,20-", 10, Served::Unsatisfiable),
        ("bytes=99999999999999999999999-", 10, Served::Unsatisfiable),
        ("bytes=-0", 10, Served::Unsatisfiable),
        ("bytes=0-", 0, Served::Unsatisfiable),
        ("bytes=-5", 0, Served::Unsatisfiable),
        ("bytes=0-1, 4-5", 10, Served::Several(vec![span(0, 1), span(4, 5)])),
        ("bytes=4-5,0-1,,-1", 10, Served::Several(vec![span(4, 5), span(0, 1), span(9, 9)])),
        // One of two is beyond the end: the other is served alone.
        ("bytes=20-,0-1", 10, single(0, 1)),
        // So is one that ends before it begins.
        ("bytes=5-3", 10, Served::Unsatisfiable),
        ("bytes=0-1,5-3", 10, single(0, 1)),
        // More than everything.
        ("bytes=0-,0-", 10, Served::Whole),
        // Not understood, so ignored.
        ("bytes=", 10, Served::Whole),
        ("bytes=,", 10, Served::Whole),
        ("bytes", 10, Served::Whole),
        ("bytes=a-b", 10, Served::Whole),
        ("bytes=-", 10, Served::Whole),
        ("bytes=+1-2", 10, Served::Whole),
        ("bytes=1 - 2", 10, Served::Whole),
        ("items=0-1", 10, Served::Whole),
    ];
    for (value, length, served) in cases {
        assert_eq!(resolve(Some(value), length), served, "{value} of {length}");
    }
    assert_eq!(resolve(None, 10), Served::Whole);
}

#[test]
fn sixteen_pieces_are_served_and_seventeen_ignored() {
    let list = |n: u64| (0..n).map(|n| format!("{n}-{n}")).collect::<Vec<_>>().join(",");
    assert!(
        matches!(resolve(Some(&format!("bytes={}", list(16))), 100), Served::Several(pieces) if pieces.len() == 16)
    );
    assert_eq!(resolve(Some(&format!("bytes={}", list(17))), 100), Served::Whole);
}

#[test]
fn an_open_range_can_be_answered_before_the_length_is_known() {
    let open = |value| Ranges::parse(value).and_then(|ranges| ranges.open_from());
    assert_eq!(open("bytes=5-"), Some(5));
    for value in ["bytes=5-6", "bytes=-5", "bytes=5-,7-"] {
        assert_eq!(open(value), None);
    }
}

#[test]
fn content_ranges_are_read_and_contradictions_refused() {
    assert_eq!(
        ContentRange::parse("bytes 5-9/10"),
        Some(ContentRange { span: span(5, 9), length: Some(10) })
    );
    assert_eq!(ContentRange::parse("Bytes 5-9/*"), Some(ContentRange { span: span(5, 9), length: None }));
    for value in
        ["", "bytes */10", "bytes 5-9/9", "bytes 9-5/10", "bytes 5-/10", "items 5-9/10", "bytes=5-9/10"]
    {
        assert_eq!(ContentRange::parse(value), None, "{value}");
    }
    assert_eq!(span(5, 9).content_range(10), "bytes 5-9/10");
    assert_eq!(unsatisfied(10), "bytes */10");
}

#[test]
fn a_multipart_answer_has_the_length_that_it_announces() {
    let content = b"0123456789";
    let pieces = vec![span(0, 1), span(4, 4), span(7, 9)];
    let multipart = Multipart::new("XyZ", "application/octet-stream", pieces, 10);
    let mut body = Vec::new();
    for (head, span) in multipart.parts() {
        body.extend(head.bytes());
        body.extend(&content[span.first as usize..=span.last as usize]);
    }
    body.extend(multipart.end().bytes());
    assert_eq!(body.len() as u64, multipart.content_length());
    let part = |range: &str, bytes: &str| {
        format!(
            "--XyZ\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes {range}/10\r\n\r\n{bytes}\r\n"
        )
    };
    let expected =
        [part("0-1", "01"), part("4-4", "4"), part("7-9", "789"), "--XyZ--\r\n".to_owned()].concat();
    assert_eq!(String::from_utf8(body).unwrap(), expected);
    assert_eq!(multipart.content_type(), "multipart/byteranges; boundary=XyZ");
}

proptest! {
    #[test]
    fn what_is_served_lies_within_the_content(value in "bytes=([0-9]{0,3}-[0-9]{0,3},?){0,5}|\\PC{0,30}", length in 0u64..400) {
        let spans = match resolve(Some(&value), length) {
            Served::Whole | Served::Unsatisfiable => Vec::new(),
            Served::Single(span) => vec![span],
            Served::Several(spans) => spans,
        };
        prop_assert!(spans.len() <= PIECES_MAX);
        prop_assert!(spans.iter().map(Span::len).sum::<u64>() <= length);
        for span in spans {
            prop_assert!(span.first <= span.last && span.last < length);
            let sent = ContentRange::parse(&span.content_range(length));
            prop_assert_eq!(sent, Some(ContentRange { span, length: Some(length) }));
        }
    }

    /// The naive way: mark each byte that the text of a range asks for.
    #[test]
    fn one_range_is_the_bytes_that_it_names(first in prop::option::of(0u64..40), last in prop::option::of(0u64..40), length in 0u64..40) {
        let text = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
        let value = format!("bytes={}-{}", text(first), text(last));
        let wanted: Vec<u64> = (0..length).filter(|byte| match (first, last) {
            (Some(first), Some(last)) => (first..=last).contains(byte),
            (Some(first), None) => *byte >= first,
            (None, Some(suffix)) => *byte >= length.saturating_sub(suffix),
            (None, None) => true,
        }).collect();
        let served = match resolve(Some(&value), length) {
            Served::Single(span) => (span.first..=span.last).collect(),
            Served::Whole => (0..length).collect(),
            _ => Vec::new(),
        };
let ignored = (first, last) == (None, None);
        prop_assert_eq!(served, if ignored { (0..length).collect() } else { wanted });
    }

    #[test]
    fn no_content_range_makes_the_parser_panic(value in "\\PC{0,30}|bytes [0-9]{0,25}-[0-9]{0,25}/[0-9*]{0,25}") {
        let _either = ContentRange::parse(&value);
    }
}
