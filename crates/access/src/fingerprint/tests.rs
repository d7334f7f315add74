//! One credential in many forms, weak values, and what must never come out.

mod corpus;
mod encodings;
mod key_pairs;
mod noise;
mod secrecy;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{Credential, CredentialKind, Extraction, Extractor, FingerprintKey, LocalKey, Origin};

/// 2026-11-30, in the middle of all tokens of the tests.
const NOW: i64 = 1_796_000_000;
/// A password that nobody guesses.
const STRONG: &str = "qT7vXz2mLw9RkB4h";

fn extractor() -> Extractor {
    Extractor {
        key: FingerprintKey::new("test", Zeroizing::new([7; 32])),
        local: LocalKey::new(Zeroizing::new([9; 32])),
        now_seconds: NOW,
    }
}

fn extract(origin: Origin<'_>, data: &[(&str, &str)]) -> Extraction {
    let data: BTreeMap<_, _> = data.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())).collect();
    extractor().credentials(origin, &data)
}

fn opaque(data: &[(&str, &str)]) -> Vec<Credential> {
    extract(Origin::Secret("Opaque"), data).credentials
}

fn plain(data: &[(&str, &str)]) -> Vec<Credential> {
    extract(Origin::Plain, data).credentials
}

/// The one credential of one value.
fn one(name: &str, value: &str) -> Credential {
    let found = opaque(&[(name, value)]);
    let [credential] = found.as_slice() else { panic!("`{name}` has not one credential but {found:#?}") };
    credential.clone()
}

fn share(left: &[Credential], right: &[Credential]) -> bool {
    left.iter().any(|one| right.iter().any(|other| one.shares_with(other)))
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = base64(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn kinds(credentials: &[Credential]) -> Vec<CredentialKind> {
    credentials.iter().map(|credential| credential.kind).collect()
}
