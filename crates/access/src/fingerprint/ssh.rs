//! Private keys in OpenSSH's own format. Their public half is readable even where the private one is encrypted.
//!
//! Format: `PROTOCOL.key` and RFC 4253, 6.6, of OpenSSH.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::public_key::PublicKey;

const MAGIC: &[u8] = b"openssh-key-v1\0";

/// The public half of an OpenSSH key.
pub(super) struct SshKey {
    /// The key, if TLS has the same kind of key; else nothing, and `blob` is what is compared.
    pub(super) public: Option<PublicKey>,
    pub(super) blob: Vec<u8>,
}

impl SshKey {
    /// Returns the fingerprint as `ssh-keygen -l` prints it.
    pub(super) fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&self.blob)))
    }
}

/// Reads the bytes of an `OPENSSH PRIVATE KEY` block.
pub(super) fn read(bytes: &[u8]) -> Option<SshKey> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let _cipher = field(&mut rest)?;
    let _key_derivation = field(&mut rest)?;
    let _options = field(&mut rest)?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    if u32::from_be_bytes(*count) != 1 {
        return None;
    }
    let blob = field(&mut rest)?;
    Some(SshKey { public: public(blob), blob: blob.to_vec() })
}

fn public(blob: &[u8]) -> Option<PublicKey> {
    let mut rest = blob;
    match field(&mut rest)? {
        b"ssh-rsa" => {
            let exponent = field(&mut rest)?;
            PublicKey::rsa(field(&mut rest)?, exponent)
        }
        b"ssh-ed25519" => PublicKey::ed25519(field(&mut rest)?),
        b"ecdsa-sha2-nistp256" | b"ecdsa-sha2-nistp384" | b"ecdsa-sha2-nistp521" => {
            let curve = field(&mut rest)?;
            PublicKey::ec_named(curve, field(&mut rest)?)
        }
        _ => None,
    }
}

/// Takes a string with its length before it.
fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (field, after) = after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    *rest = after;
    Some(field)
}
