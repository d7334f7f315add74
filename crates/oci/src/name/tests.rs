use proptest::prelude::*;

use super::*;

#[test]
fn repository_names_of_any_depth_and_up_to_255_bytes_are_taken() {
    let deep = vec!["a"; 128].join("/");
    let long = "x".repeat(REPOSITORY_LEN_MAX);
    for name in ["a", "0", "library/debian", "a/b.c/d_e/f__g/h-i/j---k", "a1b2", &deep, &long] {
        assert_eq!(name.parse::<Repository>().unwrap().as_str(), name);
    }
    assert_eq!(deep.len(), 255);
    assert_eq!(format!("{long}x").parse::<Repository>(), Err(NameError::RepositoryTooLong(256)));
}

#[test]
fn what_is_no_repository_name_is_refused() {
    for name in [
        "", "/", "a/", "/a", "a//b", "A", "a.", ".a", "a..b", "a___b", "a._b", "a-.b", "-a", "a-", "a:b",
        "é", "a b", "a/../b", "a%2fb",
    ] {
        assert!(name.parse::<Repository>().is_err(), "{name}");
    }
}

#[test]
fn tags_take_128_characters_and_start_with_a_word_character() {
    let long = "v".repeat(TAG_LEN_MAX);
    for tag in ["latest", "1", "_", "V1.0-rc_2", &long] {
        assert_eq!(tag.parse::<Tag>().unwrap().as_str(), tag);
    }
    for tag in ["", ".a", "-a", "a b", "a/b", "a:b", "é", &format!("{long}v")] {
        assert!(tag.parse::<Tag>().is_err(), "{tag}");
    }
}

#[test]
fn a_reference_with_a_colon_is_a_digest_or_nothing() {
    let digest = format!("sha256:{}", "a".repeat(64));
    assert!(matches!(digest.parse::<Reference>().unwrap(), Reference::Digest(_)));
    assert!(matches!("sha256".parse::<Reference>().unwrap(), Reference::Tag(_)));
    assert!(matches!("sha256:abc".parse::<Reference>(), Err(NameError::Digest(_))));
}

proptest! {
    #[test]
    fn names_of_the_grammar_are_taken_and_print_the_same(name in "[a-z0-9]{1,4}((\\.|_|__|-{1,3})[a-z0-9]{1,3}){0,3}(/[a-z0-9]{1,4}((\\.|_|__|-{1,3})[a-z0-9]{1,3}){0,2}){0,5}") {
        let repository: Repository = name.parse().unwrap();
        prop_assert_eq!(repository.to_string(), name);
    }

    #[test]
    fn no_text_makes_a_name_panic(text in "\\PC{0,300}|[a-z0-9._/-]{0,300}") {
        if let Ok(repository) = text.parse::<Repository>() {
            prop_assert_eq!(repository.as_str(), text.as_str());
        }
        if let Ok(reference) = text.parse::<Reference>() {
            prop_assert_eq!(reference.to_string(), text.as_str());
        }
    }
}
