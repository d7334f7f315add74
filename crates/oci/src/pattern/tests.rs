use proptest::prelude::*;

use super::*;

#[test]
fn stars_take_slashes_and_question_marks_one_character() {
    let cases = [
        ("*", "", true),
        ("registry.example/acme/*", "registry.example/acme/a/b", true),
        ("registry.example/acme/*", "registry.example/acmes/a", false),
        ("*:v1.*", "registry.example/app:v1.2", true),
        ("v?", "v1", true),
        ("v?", "v", false),
        ("v?", "v12", false),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-c-b", false),
        ("**", "x", true),
    ];
    for (pattern, text, matches) in cases {
        assert_eq!(pattern.parse::<Pattern>().unwrap().matches(text), matches, "{pattern} {text}");
    }
    assert_eq!("".parse::<Pattern>(), Err(PatternError::Empty));
    assert_eq!("x".repeat(513).parse::<Pattern>(), Err(PatternError::TooLong));
}

/// By recursion over both texts: slow and plain.
fn naive(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|n| naive(rest, &text[n..])),
        ([b'?', pattern @ ..], [_, text @ ..]) => naive(pattern, text),
        ([a, pattern @ ..], [b, text @ ..]) => a == b && naive(pattern, text),
        _ => false,
    }
}

proptest! {
    #[test]
    fn matching_agrees_with_trying_everything(pattern in "[ab*?]{1,8}", text in "[ab]{0,10}") {
        let parsed: Pattern = pattern.parse().unwrap();
        prop_assert_eq!(parsed.matches(&text), naive(pattern.as_bytes(), text.as_bytes()));
    }
}
