//! Content digests: `sha256:` and `sha512:` followed by lower-case hex.
//!
//! The grammar is that of the OCI image specification (`descriptor.md`, "Digests"). A digest is kept as raw bytes, so
//! two that are equal are equal byte for byte, and one that was parsed prints as it was written.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// The digest of one blob or manifest.
///
/// Ordered by algorithm, then by bytes. `Copy`, at most 65 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(Bytes);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Bytes {
    Sha256([u8; 32]),
    Sha512([u8; 64]),
}

/// A hash algorithm that the image specification registers and that this cache checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    Sha256,
    Sha512,
}

/// Why a text is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// No `algorithm:hex`.
    #[error(
        "`{0}` is no digest: a digest is an algorithm, a colon and lower-case hex, as in `sha256:<64 hex>`"
    )]
    Malformed(String),
    /// A digest by the grammar, of an algorithm that this cache cannot check.
    #[error("digest algorithm `{0}` is not supported: use sha256 or sha512")]
    Unsupported(String),
    /// Too short, too long, upper case, or no hex.
    #[error(
        "`{text}` is no {algorithm} digest: it needs exactly {wanted} lower-case hex digits after the colon"
    )]
    Encoding { text: String, algorithm: Algorithm, wanted: usize },
}

impl Digest {
    /// Hashes `bytes`, which are at hand as a whole.
    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The digest of these raw bytes; None unless there are exactly as many as the algorithm makes.
    pub fn from_raw(algorithm: Algorithm, raw: &[u8]) -> Option<Self> {
        Some(Self(match algorithm {
            Algorithm::Sha256 => Bytes::Sha256(raw.try_into().ok()?),
            Algorithm::Sha512 => Bytes::Sha512(raw.try_into().ok()?),
        }))
    }

    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            Bytes::Sha256(_) => Algorithm::Sha256,
            Bytes::Sha512(_) => Algorithm::Sha512,
        }
    }

    /// The raw hash, 32 or 64 bytes.
    pub fn raw(&self) -> &[u8] {
        match &self.0 {
            Bytes::Sha256(raw) => raw,
            Bytes::Sha512(raw) => raw,
        }
    }

    /// The hash in lower-case hex, without the algorithm.
    pub fn hex(&self) -> String {
        let mut hex = String::with_capacity(self.raw().len() * 2);
        for byte in self.raw() {
            hex.push(nibble(byte >> 4));
            hex.push(nibble(byte & 0xf));
        }
        hex
    }
}

impl Algorithm {
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// The name in front of the colon.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// How many raw bytes a hash has.
    pub fn raw_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

/// Hashes a stream piece by piece.
#[derive(Clone)]
pub struct Hasher(State);

#[derive(Clone)]
enum State {
    Sha256(sha2::Sha256),
    Sha512(Box<sha2::Sha512>),
}

impl Hasher {
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => State::Sha512(Box::new(sha2::Sha512::new())),
        })
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
    }

    pub fn finish(self) -> Digest {
        Digest(match self.0 {
            State::Sha256(state) => Bytes::Sha256(state.finalize().into()),
            State::Sha512(state) => Bytes::Sha512(state.finalize().into()),
        })
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Sha256(_) => "Hasher(sha256)",
            State::Sha512(_) => "Hasher(sha512)",
        })
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let malformed = || DigestError::Malformed(shown(text));
        let (name, hex) = text.split_once(':').ok_or_else(malformed)?;
        let algorithm = match name {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            other if is_algorithm(other) && is_encoded(hex) => {
                return Err(DigestError::Unsupported(shown(other)));
            }
            _ => return Err(malformed()),
        };
        let wanted = algorithm.raw_len() * 2;
        let raw = (hex.len() == wanted).then(|| decode(hex)).flatten();
        raw.and_then(|raw| Self::from_raw(algorithm, &raw)).ok_or_else(|| DigestError::Encoding {
            text: shown(text),
            algorithm,
            wanted,
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm(), self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `algorithm-component *(separator algorithm-component)` of the image specification.
fn is_algorithm(text: &str) -> bool {
    let component =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.split(['+', '.', '_', '-']).all(component)
}

fn is_encoded(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'=' | b'_' | b'-'))
}

fn decode(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

fn nibble(value: u8) -> char {
    char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 })
}

/// What of a hostile text is repeated in an error: not more than an honest digest is long.
fn shown(text: &str) -> String {
    text.chars().take(140).collect()
}

#[cfg(test)]
mod tests;
