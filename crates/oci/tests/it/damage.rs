//! What is good is changed at random: bytes flipped, taken out, put in, repeated, and joined with other good inputs.

use std::time::{Duration, SystemTime};

use bailey_oci::manifest::Manifest;
use bailey_oci::media::MediaType;
use bailey_oci::trust::Trust;
use bailey_oci::{Digest, Pattern, Reference, Registry, Repository, Upstreams, route};
use bailey_oci::{challenge, hosts_toml, link, pace, range, trust};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const GOOD: [&str; 30] = [
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "library/debian",
    "v1.2.3-rc.1",
    "registry.example:5000",
    "[fd00::1]:5000",
    "/v2/registry.example/acme/app/manifests/v1",
    "/v2/acme/app/blobs/sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "/v2/acme/app/tags/list",
    "n=10&last=v1&ns=docker.io",
    "artifactType=application%2Fvnd.example%2Bjson&next_page=abc%3D",
    "bytes=0-9, 100-, -5",
    "bytes 0-9/100",
    "Bearer realm=\"https://auth.example/token\",service=\"registry.example\",scope=\"repository:a/b:pull\"",
    "Basic realm=\"a \\\"b\\\"\", Negotiate YII==, Digest nonce=x",
    "</v2/acme/app/tags/list?n=10&last=v1>; rel=\"next\", <x>; rel=first",
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "100;w=21600",
    "https://auth.example/token?x=y#z",
    "https://[::ffff:10.0.0.1]:8443/path",
    "//other.example/path",
    "application/vnd.oci.image.index.v1+json; charset=utf-8",
    "registry.example/acme/*:v?",
    "server = \"https://registry.example\"",
    "[host.\"http://127.0.0.1:5000\"]\n  capabilities = [\"pull\", \"resolve\"]\n  client = [[\"a\", \"b\"]]\n",
    "v2.1.4",
    "{\"schemaVersion\":2,\"config\":{\"digest\":\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"size\":0}}",
    "{\"manifests\":[{\"mediaType\":\"a/b\",\"digest\":\"sha512:00\",\"size\":1,\"platform\":{\"os\":\"linux\"}}]}",
    "{\"layers\":[[],{},null,{\"size\":18446744073709551616}],\"subject\":{\"digest\":5}}",
    "\u{0}\u{7f}é\u{fffd}\u{1f980}",
    "%2f%00%ff%zz",
];

#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    Remove(Index, usize),
    Insert(Index, Vec<u8>),
    Repeat(Index, usize),
    Join(&'static str),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        (any::<Index>(), 1usize..9).prop_map(|(at, count)| Damage::Remove(at, count)),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..9))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (any::<Index>(), 1usize..200).prop_map(|(at, times)| Damage::Repeat(at, times)),
        select(GOOD.to_vec()).prop_map(Damage::Join),
    ]
}

fn damaged() -> impl Strategy<Value = String> {
    (select(GOOD.to_vec()), prop::collection::vec(damage(), 0..6)).prop_map(|(good, all)| {
        let mut bytes = good.as_bytes().to_vec();
        for damage in all {
            apply(&mut bytes, damage);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn apply(bytes: &mut Vec<u8>, damage: Damage) {
    let place = |at: Index, bytes: &[u8]| at.index(bytes.len() + 1);
    match damage {
        Damage::Flip(at, mask) => {
            let at = place(at, bytes);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= mask;
            }
        }
        Damage::Remove(at, count) => {
            let at = place(at, bytes);
            drop(bytes.drain(at..(at + count).min(bytes.len())));
        }
        Damage::Insert(at, new) => {
            let at = place(at, bytes);
            drop(bytes.splice(at..at, new));
        }
        Damage::Repeat(at, times) => {
            let at = place(at, bytes);
            let tail = bytes.get(at..).unwrap_or_default().to_vec();
            bytes.extend(tail.repeat(times.min(4000 / tail.len().max(1))));
        }
        Damage::Join(good) => bytes.extend(good.bytes()),
    }
}

fn upstreams() -> Upstreams {
    let names = ["docker.io", "registry.example", "registry.example:5000"];
    let names = names.map(|name| name.parse::<Registry>().unwrap());
    Upstreams::new(names.clone(), names.first().cloned()).unwrap()
}

/// Gives a text to everything that reads texts from elsewhere.
fn read_by_all(text: &str) -> Result<(), TestCaseError> {
    if let Ok(digest) = text.parse::<Digest>() {
        prop_assert_eq!(digest.to_string(), text);
    }
    if let Ok(repository) = text.parse::<Repository>() {
        prop_assert_eq!(repository.as_str(), text);
    }
    if let Ok(reference) = text.parse::<Reference>() {
        prop_assert_eq!(reference.to_string(), text);
    }
    if let Ok(pattern) = text.parse::<Pattern>() {
        let _either = pattern.matches(text);
    }
    let _either = text.parse::<Registry>();
    let upstreams = upstreams();
    for (path, query) in [(text, None), ("/v2/acme/app/tags/list", Some(text)), (text, Some(text))] {
        if let Ok(route::Route::Request(request)) = route::route(path, query, &upstreams) {
            prop_assert!(upstreams.contains(&request.upstream));
        }
    }
    for length in [0, 1, 10, u64::MAX] {
        if let range::Served::Single(span) = range::resolve(Some(text), length) {
            prop_assert!(span.first <= span.last && span.last < length);
        }
    }
    let _either = range::ContentRange::parse(text);
    prop_assert!(challenge::parse([text, text]).len() <= 16);
    let _either = link::next([text]);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    prop_assert!(pace::retry_after(text, now).is_none_or(|wait| wait <= pace::WAIT_MAX));
    let _either = pace::quota(text);
    let from = "https://registry.acme.com/v2/".parse().unwrap();
    if let Ok(hop) = trust::redirect(&from, text, &Trust::default()) {
        let same = hop.url.host_str() == Some("registry.acme.com") && hop.url.port().is_none();
        prop_assert_eq!(hop.keeps_authorization, same, "{}", hop.url);
    }
    if let Ok(realm) = trust::realm(&from, text, &Trust::default()) {
        prop_assert!(realm.host_str().is_some_and(|host| host.trim_end_matches('.').ends_with("acme.com")));
    }
    let _any = hosts_toml::check(text);
    let _either = hosts_toml::ContainerdVersion::parse(text);
    if let Ok(media_type) = MediaType::new(text) {
        prop_assert!(!media_type.as_str().contains(['\r', '\n']));
        let _either = Manifest::parse(text.as_bytes(), &media_type);
    }
    let index = MediaType::new("application/vnd.oci.image.index.v1+json").unwrap();
    let _either = Manifest::parse(text.as_bytes(), &index);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_damage_makes_a_parser_panic_or_believe_too_much(text in damaged()) {
        read_by_all(&text)?;
    }
}

#[test]
fn good_inputs_are_read_by_all_without_harm() {
    for text in GOOD {
        read_by_all(text).unwrap();
    }
}
