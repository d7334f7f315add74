use proptest::prelude::*;

use super::*;

/// FIPS 180-4's well-known hashes of nothing and of "abc".
const VECTORS: [(&[u8], &str); 4] = [
    (b"", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (b"abc", "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
        b"",
        "sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
         47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
    ),
    (
        b"abc",
        "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    ),
];

#[test]
fn known_vectors_hash_and_print() {
    for (bytes, text) in VECTORS {
        let digest: Digest = text.parse().unwrap();
        assert_eq!(digest, Digest::of(digest.algorithm(), bytes));
        assert_eq!(digest.to_string(), text);
        assert_eq!(digest.raw().len(), digest.algorithm().raw_len());
        assert_eq!(Digest::from_raw(digest.algorithm(), digest.raw()), Some(digest));
    }
}

#[test]
fn what_is_no_digest_is_refused_with_its_reason() {
    let hex = "a".repeat(64);
    for text in ["", ":", "sha256", "SHA256:", "-:aa", "sha256 :aa", &format!("Sha256:{hex}")] {
        assert!(matches!(text.parse::<Digest>(), Err(DigestError::Malformed(_))), "{text}");
    }
    for text in
        ["blake3:00", "sha384:abcd", "multihash+base58:QmRZxt2b1FVZPNqd8hsiykDL3TdBDeTSPX9Kv46HmX4Gx8"]
    {
        assert!(matches!(text.parse::<Digest>(), Err(DigestError::Unsupported(_))), "{text}");
    }
    let upper = "A".repeat(64);
    for text in ["sha256:", "sha256:abc", &format!("sha256:{upper}"), &format!("sha512:{hex}"), "sha256:é"] {
        assert!(matches!(text.parse::<Digest>(), Err(DigestError::Encoding { .. })), "{text}");
    }
    assert!(format!("sha256:{hex}a").parse::<Digest>().is_err());
}

#[test]
fn a_hostile_text_is_not_repeated_whole() {
    let error = "x".repeat(1_000_000).parse::<Digest>().unwrap_err().to_string();
    assert!(error.len() < 300, "{}", error.len());
}

#[test]
fn raw_bytes_of_another_length_are_no_digest() {
    assert_eq!(Digest::from_raw(Algorithm::Sha256, &[0; 64]), None);
    assert_eq!(Digest::from_raw(Algorithm::Sha512, &[0; 32]), None);
}

proptest! {
    #[test]
    fn a_digest_survives_text_json_and_order(a in any::<[u8; 32]>(), b in any::<[u8; 32]>(), c in prop::collection::vec(any::<u8>(), 64)) {
        let short = Digest::from_raw(Algorithm::Sha256, &a).unwrap();
        let other = Digest::from_raw(Algorithm::Sha256, &b).unwrap();
        let long = Digest::from_raw(Algorithm::Sha512, &c).unwrap();
        for digest in [short, long] {
            prop_assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
            let json = serde_json::to_string(&digest).unwrap();
            prop_assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        }
        prop_assert_eq!(short.cmp(&other), short.to_string().cmp(&other.to_string()));
        prop_assert!(short < long);
    }

    #[test]
    fn no_text_makes_the_parser_panic_and_what_it_takes_prints_the_same(text in "(sha256|sha512|[a-z+]{1,9}):[0-9a-fA-F]{0,130}|\\PC{0,80}") {
        if let Ok(digest) = text.parse::<Digest>() {
            prop_assert_eq!(digest.to_string(), text);
        }
    }

    #[test]
    fn pieces_hash_like_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..600), at in 0usize..600) {
        let (head, tail) = bytes.split_at(at.min(bytes.len()));
        for algorithm in Algorithm::ALL {
            let mut hasher = Hasher::new(algorithm);
            hasher.update(head);
            hasher.update(tail);
            prop_assert_eq!(hasher.finish(), Digest::of(algorithm, &bytes));
        }
    }
}
