use proptest::prelude::*;

use super::Nesting;

/// The same by the book, one byte after the other.
fn naive(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_u64, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        if escaped {
            escaped = false;
        } else if in_string {
            match byte {
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_string = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
    }
    None
}

#[test]
fn a_value_ends_with_its_last_bracket() {
    for (text, end) in [
        ("{}", 2),
        ("[],[]", 2),
        (r#"{"a":"}"} "#, 9),
        (r#"{"a":"\"}"}]"#, 11),
        (r#"{"a":"\\"}"}"#, 10),
        (r#"[{"a":[1,{"b":{}}]}],"#, 20),
    ] {
        assert_eq!(Nesting::default().advance(text.as_bytes()), Some(end), "{text}");
    }
    assert_eq!(Nesting::default().advance(br#"{"a": [1, 2}"#), None);
}

#[test]
fn an_escape_on_the_edge_of_a_block_counts() {
    for padding in 50..80 {
        for tail in [r#"\"}"}x"#, r#"\\"}x"#, r#"\\\"}"}x"#] {
            let text = format!("{{\"a\":\"{}{tail}", "-".repeat(padding));
            assert_eq!(Nesting::default().advance(text.as_bytes()), Some(text.len() - 1), "{text}");
        }
    }
}

proptest! {
    #[test]
    fn it_agrees_with_the_book_however_the_bytes_are_cut(
        body in prop::collection::vec(prop::sample::select(br#"{}[]"\ax"#.to_vec()), 0..400),
        cuts in prop::collection::vec(1_usize..130, 1..8),
    ) {
        let mut bytes = vec![b'{'];
        bytes.extend(body);
        let mut nesting = Nesting::default();
        let (mut before, mut found) = (0, None);
        let mut sizes = cuts.iter().cycle();
        while before < bytes.len() && found.is_none() {
            let size = (*sizes.next().unwrap()).min(bytes.len() - before);
            found = nesting.advance(&bytes[before..before + size]).map(|end| before + end);
            before += size;
        }
        prop_assert_eq!(found, naive(&bytes));
    }

    #[test]
    fn no_other_byte_is_taken_for_a_bracket(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = vec![b'['];
        bytes.extend(body);
        prop_assert_eq!(Nesting::default().advance(&bytes), naive(&bytes));
    }
}
