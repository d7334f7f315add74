//! Identities of age, which SOPS uses. Format: the age specification, C2SP `age.md`.

use bech32::{Bech32, Hrp};
use zeroize::Zeroizing;

use super::public_key::x25519_public;

const IDENTITY: &str = "AGE-SECRET-KEY-1";

/// An identity and the recipient that `.sops.yaml` names.
pub(super) struct Identity {
    pub(super) public: [u8; 32],
    pub(super) recipient: String,
}

/// Returns the words of a text that are meant to be X25519 identities.
pub(super) fn candidates(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
        .filter(|word| word.starts_with(IDENTITY))
}

/// Derives the recipient of an identity.
pub(super) fn read(word: &str) -> Option<Identity> {
    let (prefix, bytes) = bech32::decode(word).ok()?;
    let bytes = Zeroizing::new(bytes);
    if !prefix.as_str().eq_ignore_ascii_case("age-secret-key-") {
        return None;
    }
    let secret: Zeroizing<[u8; 32]> = Zeroizing::new(bytes.as_slice().try_into().ok()?);
    let public = x25519_public(&secret);
    let recipient = bech32::encode::<Bech32>(Hrp::parse("age").ok()?, &public).ok()?;
    Some(Identity { public, recipient })
}
