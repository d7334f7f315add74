//! Nothing secret comes out, nothing hostile breaks it, and what was not looked into is said.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::json;
use zeroize::Zeroizing;

use super::super::{
    Extraction, Extractor, Fingerprint, FingerprintKey, Mark, NotAFingerprint, Origin, Unread, UnreadReason,
    WeakKey, keys::Canonical,
};
use super::{STRONG, base64, extract, extractor, one, opaque};

/// Planted wherever a secret can be. It looks random, as secrets do.
const MARKER: &str = "mK7qV2xW9zR4tB8nL3pD";

/// One text of each known format, with the marker in all places that are secret.
fn planted() -> Vec<(String, String)> {
    let auth = base64(format!("robot:{MARKER}"));
    let kubeconfig = json!({
        "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": format!("https://u:{MARKER}@api.one.example")}}],
        "users": [
            {"name": "t", "user": {"token": MARKER}}, {"name": "b", "user": {"username": "admin", "password": MARKER}},
            {"name": "k", "user": {"client-key-data": base64(MARKER), "client-certificate-data": base64(MARKER)}},
            {"name": "x", "user": {"exec": {"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": MARKER}]}}},
            {"name": MARKER, "user": {"token": MARKER}},
        ],
    });
    let texts = [
        MARKER.to_owned(),
        base64(MARKER),
        format!("{MARKER}\n"),
        json!({"auths": {"registry.example": {"auth": auth}, MARKER: {"auth": auth}}}).to_string(),
        json!({"auths": {"registry.example": {"username": MARKER, "password": MARKER, "identitytoken": MARKER}}}).to_string(),
        json!({"registry.example": {"username": "robot", "password": MARKER}}).to_string(),
        kubeconfig.to_string(),
        json!({"bearerToken": MARKER, "username": MARKER, "password": MARKER, "tlsClientConfig": {"keyData": base64(MARKER)}}).to_string(),
        json!({"type": "service_account", "private_key": MARKER, "client_email": MARKER, "private_key_id": MARKER}).to_string(),
        json!({"tokens": {MARKER: "alice"}, "deep": [{MARKER: {"password": MARKER}}]}).to_string(),
        json!({"kind": "Secret", "metadata": {"name": MARKER}, "data": {"x": base64(MARKER)}, "stringData": {MARKER: MARKER}}).to_string(),
        format!("user: {MARKER}\npassword: {MARKER}\nhost: {MARKER}\n"),
        format!("export TOKEN={MARKER}\nUSER={MARKER}\n"),
        format!("[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = {MARKER}\n"),
        format!("postgres://{MARKER}:{MARKER}@{MARKER}.one.example/db?password={MARKER}"),
        format!("https://{MARKER}@github.com/acme/app"),
        format!("https://hooks.slack.com/services/{MARKER}"),
        format!("Server={MARKER};User Id={MARKER};Password={MARKER}"),
        format!("alice:$2y$05${MARKER}\n{MARKER}:$2y$05${MARKER}\n"),
        format!("some text\nrequirepass {MARKER}\nauth = \"{MARKER}\"\n"),
        format!("-----BEGIN PRIVATE KEY-----\n{MARKER}{MARKER}\n-----END PRIVATE KEY-----\n"),
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{MARKER}{MARKER}\n-----END OPENSSH PRIVATE KEY-----\n"),
        format!("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{MARKER}{MARKER}\n-----END PGP PRIVATE KEY BLOCK-----\n"),
        format!("AGE-SECRET-KEY-1{}\n", MARKER.to_ascii_uppercase()),
        format!("{}.{}.{MARKER}", base64(r#"{"alg":"none"}"#).replace('=', ""), base64(json!({"jti": MARKER}).to_string()).replace('=', "")),
    ];
    texts.into_iter().enumerate().map(|(n, text)| (format!("value-{n}"), text)).collect()
}

fn assert_silent(found: &Extraction, marker: &str) {
    let mut written = format!("{found:?}\n{found:#?}\n{}", serde_json::to_string(found).unwrap());
    for credential in &found.credentials {
        written += &format!("{credential:?}{:?}", credential.marks().collect::<Vec<_>>());
        written += &credential.fingerprints.iter().map(ToString::to_string).collect::<String>();
    }
    let hex: String = marker.bytes().map(|byte| format!("{byte:02x}")).collect();
    let forms = [marker.to_owned(), base64(marker), base64(format!("robot:{marker}")), hex];
    for form in forms {
        let form = form.trim_end_matches('=');
        assert!(
            !written.to_ascii_lowercase().contains(&form.to_ascii_lowercase()),
            "`{form}` is in {written}"
        );
    }
}

#[test]
fn a_planted_value_is_in_no_output() {
    let data: Vec<(String, String)> = planted();
    for (name, text) in &data {
        for origin in [Origin::Secret("Opaque"), Origin::Plain] {
            let found = extract(origin, &[(name, text)]);
            assert!(origin == Origin::Plain || !found.credentials.is_empty(), "nothing found in {text}");
            assert_silent(&found, MARKER);
        }
    }
    let all: Vec<_> =
        data.iter().map(|(name, text)| (name.as_str(), text.as_str())).chain([(MARKER, MARKER)]).collect();
    assert_silent(&extract(Origin::Secret("Opaque"), &all), MARKER);
    let token = [("token-id", "h2fake"), ("token-secret", MARKER)];
    assert_silent(&extract(Origin::Secret("bootstrap.kubernetes.io/token"), &token), MARKER);
}

#[test]
fn a_fact_that_looks_secret_is_not_shown_even_if_it_was_not_taken_for_one() {
    let google = json!({
        "type": "service_account", "private_key": STRONG, "client_email": format!("{MARKER}@p.example"),
        "private_key_id": MARKER, "project_id": MARKER,
    });
    for (name, text) in [
        ("google.json", google.to_string()),
        ("values.yaml", format!("user: {MARKER}\nhost: {MARKER}:443\npassword: {STRONG}\n")),
        ("url", format!("https://{MARKER}:{STRONG}@registry.example")),
        (".dockercfg", json!({"registry.example": {"username": MARKER, "password": STRONG}}).to_string()),
    ] {
        let found = extract(Origin::Secret("Opaque"), &[(name, &text)]);
        assert_eq!(found.credentials.len(), 1, "{found:#?}");
        assert_silent(&found, MARKER);
    }
}

#[test]
fn a_weak_value_is_in_no_output_and_leaves_no_fingerprint() {
    for (name, text) in planted().into_iter().map(|(name, text)| (name, text.replace(MARKER, "hunter22"))) {
        let found = extract(Origin::Secret("Opaque"), &[(&name, &text)]);
        for credential in found.credentials.iter().filter(|credential| credential.weak) {
            assert!(credential.fingerprints.is_empty());
            assert!(!credential.facts.values().any(|value| value == "hunter22"), "{credential:?}");
        }
    }
}

#[test]
fn keys_are_not_shown() {
    let Extractor { key, local, .. } = extractor();
    assert_eq!(format!("{key:?}{local:?}"), "FingerprintKey { epoch: \"test\", .. }LocalKey(..)");
}

#[test]
fn fingerprints_depend_on_key_group_and_epoch() {
    let root = Zeroizing::new([3; 32]);
    let fingerprint = |key: FingerprintKey| {
        let data = [("password".to_owned(), STRONG.as_bytes().to_vec())].into();
        let found = Extractor { key, ..extractor() }.credentials(Origin::Secret("Opaque"), &data);
        found.credentials[0].fingerprints[0]
    };
    let derived = |group: &str, epoch: &str| fingerprint(FingerprintKey::derive(&root, group, epoch));
    assert_eq!(derived("one", "2026-11"), derived("one", "2026-11"));
    assert_eq!(FingerprintKey::derive(&root, "one", "2026-11").epoch(), "2026-11");
    let all = [
        derived("one", "2026-11"),
        derived("one", "2026-12"),
        derived("two", "2026-11"),
        derived("one2", "026-11"),
        fingerprint(FingerprintKey::new("2026-11", root.clone())),
        fingerprint(extractor().key),
    ];
    for (n, one) in all.iter().enumerate() {
        assert!(all.iter().skip(n + 1).all(|other| one != other));
    }
}

/// What is published must mean the same in the next version.
#[test]
fn a_fingerprint_stays_what_it_is() {
    assert_eq!(one("password", STRONG).fingerprints[0].to_string(), "75a58410a4cfd91327e349895c553308");
}

#[test]
fn a_fingerprint_is_read_back() {
    let found = one("password", STRONG).fingerprints[0];
    assert_eq!(found.to_string().parse(), Ok(found));
    for text in ["", "0", "+0000000000000000000000000000000", &"g".repeat(32), &"0".repeat(33)] {
        assert_eq!(text.parse::<Fingerprint>(), Err(NotAFingerprint));
    }
}

#[test]
fn marks_tell_what_may_leave_the_process() {
    assert!(one("password", STRONG).marks().all(|mark| matches!(mark, Mark::Exported(_))));
    assert!(one("password", "changeme").marks().all(|mark| matches!(mark, Mark::Local(_))));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn a_bomb_is_not_unpacked_and_is_reported() {
    // A bomb within a small file: members of gzip add up.
    let bomb = gzip(&gzip(&vec![b' '; 1 << 20]).repeat(65));
    let found = extract(Origin::Secret("helm.sh/release.v1"), &[("release", &base64(bomb))]);
    assert_eq!(found.unread, [Unread { key: "release".to_owned(), reason: UnreadReason::TooLarge }]);
    let truncated = gzip(
        json!({"chart": {}, "info": {}, "manifest": "", "config": {"password": STRONG}})
            .to_string()
            .as_bytes(),
    );
    let half = base64(&truncated[..truncated.len() / 2]);
    assert_eq!(extract(Origin::Secret("helm.sh/release.v1"), &[("release", &half)]).unread, []);
}

#[test]
fn deep_and_long_documents_are_reported() {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let found = extract(Origin::Secret("Opaque"), &[("deep.json", &deep)]);
    assert_eq!(found.unread, [Unread { key: "deep.json".to_owned(), reason: UnreadReason::TooDeep }]);

    let mut nested = json!({"password": STRONG}).to_string();
    for _ in 0..7 {
        nested =
            json!({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": nested}}}}}}}}}}).to_string();
    }
    let found = extract(Origin::Secret("Opaque"), &[("nested", &nested)]);
    assert_eq!(found.unread.iter().map(|unread| unread.reason).collect::<Vec<_>>(), [UnreadReason::TooDeep]);

    let many: Vec<_> = (0..3000).map(|n| json!({"password": format!("{STRONG}{n}")})).collect();
    let found = extract(Origin::Secret("Opaque"), &[("many.json", &json!(many).to_string())]);
    assert_eq!(found.credentials.len(), 2000);
    let reasons: Vec<_> = found.unread.iter().map(|unread| unread.reason).collect();
    assert_eq!(reasons, [UnreadReason::TooMany]);
}

#[test]
fn what_is_malformed_is_still_a_value() {
    for (kind, name) in [
        ("kubernetes.io/dockerconfigjson", ".dockerconfigjson"),
        ("kubernetes.io/tls", "tls.key"),
        ("helm.sh/release.v1", "release"),
    ] {
        let found = extract(Origin::Secret(kind), &[(name, STRONG)]);
        assert!(super::share(&found.credentials, &[one("password", STRONG)]), "{kind}");
    }
    assert_eq!(
        opaque(&[("a", "{\"password\": "), ("b", "-----BEGIN PRIVATE KEY-----"), ("c", "=")]).len(),
        0
    );
}

fn origin() -> impl Strategy<Value = Origin<'static>> {
    prop_oneof![
        Just(Origin::Plain),
        Just(Origin::Secret("Opaque")),
        Just(Origin::Secret("kubernetes.io/dockerconfigjson")),
        Just(Origin::Secret("helm.sh/release.v1")),
        Just(Origin::Secret("bootstrap.kubernetes.io/token")),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[-._a-zA-Z0-9]{1,20}",
        prop::sample::select(vec![
            "password",
            ".dockercfg",
            ".dockerconfigjson",
            "release",
            "value",
            "config",
            "server",
            "tls.key",
            "token-id"
        ])
        .prop_map(str::to_owned),
    ]
}

/// Openings of all formats, so that noise after them reaches the readers.
fn opening() -> impl Strategy<Value = Vec<u8>> {
    let openings: Vec<&[u8]> = vec![
        b"",
        b"{",
        b"[",
        b"a: ",
        b"- ",
        b"---\n",
        b"-----BEGIN PRIVATE KEY-----\n",
        b"-----BEGIN OPENSSH PRIVATE KEY-----\n",
        b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
        b"\xfe\xed\xfe\xed",
        b"\x30\x82\x01\x02\x02\x01\x00",
        b"\x30\x77\x02\x01\x01",
        b"openssh-key-v1\0",
        b"\xc5\x20\x04",
        b"AGE-SECRET-KEY-1",
        b"eyJhbGciOiJub25lIn0.eyJ",
        b"https://",
        b"a=b\n",
        b"a:$2y$",
        b"{\"auths\":{\"a\":{\"auth\":\"",
        b"{\"kind\":\"Config\",\"users\":[{\"name\":\"a\",\"user\":{\"token\":\"",
    ];
    prop::sample::select(openings).prop_map(<[u8]>::to_vec)
}

proptest! {
    #[test]
    fn no_bytes_break_it(origin in origin(), values in prop::collection::vec((name(), opening(), prop::collection::vec(any::<u8>(), 0..300), any::<bool>()), 1..4)) {
        let data: BTreeMap<_, _> = values.into_iter().map(|(name, opening, noise, encode)| {
            let bytes = [opening, noise].concat();
            (name, if encode { base64(bytes).into_bytes() } else { bytes })
        }).collect();
        let found = extractor().credentials(origin, &data);
        prop_assert!(found.credentials.iter().all(|credential| credential.weak != credential.local.is_empty()));
        prop_assert!(found.credentials.iter().all(|credential| credential.weak == credential.fingerprints.is_empty()));
    }

    #[test]
    fn no_text_breaks_it(origin in origin(), name in name(), opening in opening(), text in "[ -~\n\t\\PC]{0,300}") {
        let bytes = [opening, text.into_bytes()].concat();
        extractor().credentials(origin, &[(name, bytes)].into());
    }

    #[test]
    fn no_damage_to_a_format_breaks_it_or_makes_it_talk(which in 0usize..25, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let (name, text) = planted().swap_remove(which);
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let found = extractor().credentials(Origin::Secret("Opaque"), &[(name, bytes)].into());
        assert_silent(&found, MARKER);
    }

    #[test]
    fn a_strong_password_is_found_whatever_it_is(password in "[a-zA-Z0-9!#%&*+,./:;?@^_~-]{16,40}") {
        let found = opaque(&[("password", &password), ("second_password", &format!("{password}\n"))]);
        // A few look like a path, an address or something else that is known.
        if found.len() == 2 {
            prop_assert!(found[0].shares_with(&found[1]));
        }
    }
}

#[test]
fn a_key_of_a_file_is_the_same_whatever_ends_its_line_and_shows_nothing_of_it() {
    let text = "5f4dcc3b5aa765d61d8327deb882cf99e10adc3949ba59abbe56e057f20f883e";
    let key = FingerprintKey::of_secret(text.as_bytes()).unwrap();
    let same = FingerprintKey::of_secret(format!("{text}\r\n").as_bytes()).unwrap();
    let other = FingerprintKey::of_secret(text.replace('5', "6").as_bytes()).unwrap();
    assert_eq!(key.epoch(), same.epoch());
    assert_ne!(key.epoch(), other.epoch());
    assert!(!format!("{key:?}").contains(text.get(..8).unwrap()) && !text.contains(key.epoch()));
    let canonical = Canonical::value("qT7vXz2mLw9RkB4h");
    assert_eq!(key.fingerprint(&canonical), same.fingerprint(&canonical));
    assert_ne!(key.fingerprint(&canonical), other.fingerprint(&canonical));
}

#[test]
fn a_secret_that_could_be_guessed_makes_no_key() {
    assert_eq!(FingerprintKey::of_secret(b"password\n").unwrap_err(), WeakKey::Short { bytes: 8 });
    assert_eq!(FingerprintKey::of_secret(&[0; 64]).unwrap_err(), WeakKey::Plain { different: 1 });
}
