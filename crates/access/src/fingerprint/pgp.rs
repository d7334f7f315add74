//! OpenPGP secret keys (RFC 9580, and version 5 of LibrePGP), as far as their public half, which is readable even
//! where the secret one is encrypted.

use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use super::keys::hex;

const SECRET_KEY: u8 = 5;

/// The public half of a primary key.
pub(super) struct PgpKey {
    /// The body of the public-key packet.
    pub(super) public: Vec<u8>,
    /// The fingerprint as `gpg --fingerprint` and `.sops.yaml` have it.
    pub(super) fingerprint: String,
}

/// Reads the primary keys among the packets of a `PGP PRIVATE KEY BLOCK`.
pub(super) fn read(bytes: &[u8]) -> Vec<PgpKey> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((tag, body, after)) = packet(rest) {
        keys.extend((tag == SECRET_KEY).then(|| key(body)).flatten());
        rest = after;
    }
    keys
}

fn key(body: &[u8]) -> Option<PgpKey> {
    let version = *body.first()?;
    let length = match version {
        4 => 6 + material(*body.get(5)?, body.get(6..)?)?,
        5 | 6 => 10 + usize::try_from(u32::from_be_bytes(*body.get(6..)?.first_chunk()?)).ok()?,
        _ => return None,
    };
    let public = body.get(..length)?.to_vec();
    let fingerprint = match version {
        4 => {
            let length = u16::try_from(length).ok()?.to_be_bytes();
            hex(&Sha1::new().chain_update([0x99]).chain_update(length).chain_update(&public).finalize())
        }
        _ => {
            let length = u32::try_from(length).ok()?.to_be_bytes();
            let mark = if version == 5 { 0x9a } else { 0x9b };
            hex(&Sha256::new().chain_update([mark]).chain_update(length).chain_update(&public).finalize())
        }
    };
    Some(PgpKey { public, fingerprint: fingerprint.to_ascii_uppercase() })
}

/// Returns the length of what is public of one algorithm (RFC 9580, 5.5.5).
fn material(algorithm: u8, bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    match algorithm {
        1..=3 => numbers(&mut rest, 2)?,
        16 | 20 => numbers(&mut rest, 3)?,
        17 => numbers(&mut rest, 4)?,
        19 | 22 => {
            counted(&mut rest)?;
            numbers(&mut rest, 1)?;
        }
        18 => {
            counted(&mut rest)?;
            numbers(&mut rest, 1)?;
            counted(&mut rest)?;
        }
        25 | 27 => rest = rest.get(32..)?,
        26 => rest = rest.get(56..)?,
        28 => rest = rest.get(57..)?,
        _ => return None,
    }
    Some(bytes.len() - rest.len())
}

/// Skips numbers with their length in bits before them.
fn numbers(rest: &mut &[u8], count: usize) -> Option<()> {
    for _ in 0..count {
        let (bits, after) = rest.split_first_chunk::<2>()?;
        *rest = after.get(usize::from(u16::from_be_bytes(*bits)).div_ceil(8)..)?;
    }
    Some(())
}

/// Skips bytes with their count before them.
fn counted(rest: &mut &[u8]) -> Option<()> {
    let (length, after) = rest.split_first()?;
    *rest = after.get(usize::from(*length)..)?;
    Some(())
}

/// Takes one packet: its tag, its body, and what follows. Keys never come in partial lengths.
fn packet(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (head, rest) = bytes.split_first()?;
    if head & 0x80 == 0 {
        return None;
    }
    let (tag, length, rest) =
        if head & 0x40 != 0 { new_length(head & 0x3f, rest)? } else { old_length(*head, rest)? };
    let (body, after) = rest.split_at_checked(length)?;
    Some((tag, body, after))
}

fn new_length(tag: u8, rest: &[u8]) -> Option<(u8, usize, &[u8])> {
    let (first, rest) = rest.split_first()?;
    match first {
        0..=191 => Some((tag, usize::from(*first), rest)),
        192..=223 => {
            let (second, rest) = rest.split_first()?;
            Some((tag, (usize::from(*first) - 192) * 256 + usize::from(*second) + 192, rest))
        }
        255 => number::<4>(tag, rest),
        _ => None,
    }
}

fn old_length(head: u8, rest: &[u8]) -> Option<(u8, usize, &[u8])> {
    let tag = (head >> 2) & 0x0f;
    match head & 3 {
        0 => number::<1>(tag, rest),
        1 => number::<2>(tag, rest),
        2 => number::<4>(tag, rest),
        _ => Some((tag, rest.len(), rest)),
    }
}

fn number<const BYTES: usize>(tag: u8, rest: &[u8]) -> Option<(u8, usize, &[u8])> {
    let (length, rest) = rest.split_first_chunk::<BYTES>()?;
    let length = length.iter().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
    Some((tag, length, rest))
}
