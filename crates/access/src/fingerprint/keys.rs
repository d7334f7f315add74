//! The keys of one run and what they make of a canonical credential.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use zeroize::{Zeroize as _, Zeroizing};

/// The key of one run or epoch. Without it a fingerprint cannot be tried against guesses.
///
/// Its bytes are zeroised when it goes, and `Debug` shows the epoch alone.
pub struct FingerprintKey {
    epoch: String,
    bytes: Zeroizing<[u8; 32]>,
}

impl FingerprintKey {
    /// Takes 32 bytes from a random source, which this crate has none of, and the name of their epoch.
    ///
    /// Fingerprints of different keys never match, so the epoch is published beside them.
    pub fn new(epoch: impl Into<String>, bytes: Zeroizing<[u8; 32]>) -> Self {
        Self { epoch: epoch.into(), bytes }
    }

    /// Derives the key that a group of installations shares for one epoch, from a root that their operator holds.
    pub fn derive(root: &Zeroizing<[u8; 32]>, group: &str, epoch: &str) -> Self {
        let names = [group.as_bytes(), epoch.as_bytes()];
        Self::new(epoch, Zeroizing::new(keyed(root, "bailey.dev/fingerprint/v1/group-key", &names)))
    }

    /// Makes the key that a secret of any form stands for, such as the content of a file; line breaks at its end are no
    /// part of it. Its epoch is a check value, from which the secret cannot be told.
    ///
    /// # Errors
    ///
    /// If the secret is so short or so plain that it could be guessed.
    pub fn of_secret(secret: &[u8]) -> Result<Self, WeakKey> {
        let end = secret.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
        let secret = secret.get(..end).unwrap_or_default();
        if secret.len() < KEY_BYTES_MIN {
            return Err(WeakKey::Short { bytes: secret.len() });
        }
        let different = secret.iter().collect::<std::collections::BTreeSet<_>>().len();
        if different < KEY_DIFFERENT_MIN {
            return Err(WeakKey::Plain { different });
        }
        let key = Zeroizing::new(blake3::derive_key("bailey.dev/fingerprint/v1/key-of-secret", secret));
        let check: [u8; 4] = keyed(&key, "bailey.dev/fingerprint/v1/epoch", &[]);
        Ok(Self::new(hex(&check), key))
    }

    /// Returns the name of the epoch.
    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    pub(super) fn fingerprint(&self, canonical: &Canonical) -> Fingerprint {
        Fingerprint(keyed(&self.bytes, canonical.domain.tag(), &canonical.parts()))
    }
}

/// How many bytes a secret must have for a key to be made of it.
const KEY_BYTES_MIN: usize = 32;
/// How many of them must differ: random hexadecimal digits have about 14 of 16.
const KEY_DIFFERENT_MIN: usize = 8;

/// A secret of which no key is made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeakKey {
    /// It has too few bytes.
    #[error(
        "it has {bytes} bytes, and a key has {KEY_BYTES_MIN} or more; make one with `openssl rand -hex 32`"
    )]
    Short {
        /// How many it has.
        bytes: usize,
    },
    /// It repeats itself.
    #[error(
        "it has but {different} different bytes, so it is not random; make one with `openssl rand -hex 32`"
    )]
    Plain {
        /// How many.
        different: usize,
    },
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FingerprintKey").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// A second key that lives and dies with the process, for values that are too easy to guess.
///
/// INVARIANT: nothing made with it can be serialised or displayed.
pub struct LocalKey(Zeroizing<[u8; 32]>);

impl LocalKey {
    /// Takes 32 bytes from a random source. They must not be stored, nor be those of a [`FingerprintKey`].
    pub fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    pub(super) fn mark(&self, canonical: &Canonical) -> LocalMark {
        LocalMark(keyed(&self.0, canonical.domain.tag(), &canonical.parts()))
    }
}

impl fmt::Debug for LocalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKey(..)")
    }
}

/// Stands for one credential: 128 bits of BLAKE3, keyed, over a domain tag and the canonical credential.
///
/// Shown and serialised as 32 hexadecimal digits. Equal exactly when the credentials are, under one key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 16]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is no fingerprint.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 32 hexadecimal digits, and this text is not; was it cut?")]
pub struct NotAFingerprint;

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotAFingerprint);
        }
        u128::from_str_radix(text, 16).map(|bits| Self(bits.to_be_bytes())).map_err(|_| NotAFingerprint)
    }
}

/// Stands for a weak credential inside this process. It can be compared, and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalMark([u8; 16]);

impl fmt::Debug for LocalMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalMark(..)")
    }
}

/// What is compared: fingerprints of different domains never match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    /// The text of a password, token or other secret.
    Value,
    /// Host, user and password.
    Login,
    /// The public half of a key pair.
    PublicKey,
    /// Issuer, subject and id of a JSON web token.
    TokenId,
    /// The bytes of a thing that is not opened.
    File,
}

impl Domain {
    fn tag(self) -> &'static str {
        match self {
            Self::Value => "bailey.dev/fingerprint/v1/value",
            Self::Login => "bailey.dev/fingerprint/v1/login",
            Self::PublicKey => "bailey.dev/fingerprint/v1/public-key",
            Self::TokenId => "bailey.dev/fingerprint/v1/token-id",
            Self::File => "bailey.dev/fingerprint/v1/file",
        }
    }
}

/// A credential in the one form that all its encodings come down to.
pub(super) struct Canonical {
    domain: Domain,
    parts: Vec<Zeroizing<Vec<u8>>>,
}

impl Canonical {
    pub(super) fn new(domain: Domain, parts: &[&[u8]]) -> Self {
        Self { domain, parts: parts.iter().map(|part| Zeroizing::new(part.to_vec())).collect() }
    }

    pub(super) fn value(text: &str) -> Self {
        Self::new(Domain::Value, &[text.as_bytes()])
    }

    fn parts(&self) -> Vec<&[u8]> {
        self.parts.iter().map(|part| part.as_slice()).collect()
    }
}

/// Each part goes in with its length, so that no two lists of parts run into the same bytes.
fn keyed<const BYTES: usize>(key: &[u8; 32], tag: &str, parts: &[&[u8]]) -> [u8; BYTES] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    for part in std::iter::once(&tag.as_bytes()).chain(parts) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut output = [0; BYTES];
    hasher.finalize_xof().fill(&mut output);
    hasher.zeroize();
    output
}

/// Writes bytes as lower-case hexadecimal digits, as `openssl` and others print digests.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
