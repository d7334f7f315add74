//! Which keys are taken.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::*;
use crate::Exit;

const KEY: &str = "9c1185a5c5e9fc54612808977ee8f548b2258d31a4b7d5c2f1e0f9a8b7c6d5e4\n";

/// Why a file of this content and mode is no key.
fn refused(content: &[u8], mode: u32) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("key");
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    let arguments = FingerprintArguments { fingerprint: true, fingerprint_key: Some(path.clone()) };
    let error = ledger(&arguments).err()?;
    assert_eq!(error.exit(), Exit::Usage);
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    Some(text)
}

#[test]
fn a_random_key_that_is_not_for_everybody_is_taken() {
    assert_eq!(refused(KEY.as_bytes(), 0o600), None);
    assert_eq!(refused(KEY.as_bytes(), 0o440), None);
}

#[test]
fn a_key_that_everybody_can_read_or_write_is_refused_with_the_way_out() {
    for mode in [0o644, 0o602] {
        let text = refused(KEY.as_bytes(), mode).unwrap();
        assert!(text.contains(&format!("{mode:03o}")) && text.contains("chmod 600"), "{text}");
        assert!(!text.contains("9c1185a5"), "{text}");
    }
}

#[test]
fn a_key_that_could_be_guessed_is_refused_without_telling_it() {
    let text = refused(b"correct horse battery\n", 0o600).unwrap();
    assert!(text.contains("it has 21 bytes") && text.contains("openssl rand -hex 32"), "{text}");
    assert!(!text.contains("horse"), "{text}");
    assert!(refused(&[b'x'; 100], 0o600).unwrap().contains("not random"));
    assert!(refused(&[7; 100_000], 0o600).unwrap().contains("right file"));
}

#[test]
fn a_key_that_is_not_there_is_named() {
    let path = Some(PathBuf::from("/nowhere/key"));
    let error = ledger(&FingerprintArguments { fingerprint: true, fingerprint_key: path }).unwrap_err();
    assert_eq!(error.to_string(), "cannot read the fingerprint key `/nowhere/key`");
}

#[test]
fn without_the_flag_nothing_takes_values() {
    assert!(ledger(&FingerprintArguments::default()).unwrap().is_none());
}
