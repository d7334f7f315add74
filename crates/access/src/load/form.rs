//! In which form a file is, by its first bytes.

#[cfg(test)]
mod tests;

use std::io::{self, Read};

use zeroize::Zeroizing;

/// How many bytes are looked at: enough to find the mark of a tar archive.
const LOOKED_AT: u64 = 512;

/// A form that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Yaml,
}

/// The first bytes of a reader; fewer than usual if it has no more.
pub(super) fn first_bytes(reader: &mut impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut start = Zeroizing::new(Vec::with_capacity(LOOKED_AT as usize));
    reader.by_ref().take(LOOKED_AT).read_to_end(&mut start)?;
    Ok(start)
}

/// Whether it is gzip.
pub(super) fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(b"\x1f\x8b")
}

/// The form, or why it cannot be read and what to do.
pub(super) fn of(start: &[u8]) -> Result<Form, &'static str> {
    const PACKED: [&[u8]; 6] =
        [b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"7z\xbc\xaf"];
    if PACKED.iter().any(|magic| start.starts_with(magic)) || start.get(257..262) == Some(b"ustar") {
        return Err("it is packed, or packed twice; unpack it first");
    }
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return Err("it is in UTF-16, as some shells write it; save it as UTF-8");
    }
    let is_binary = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace() && *byte != 0x1b;
    if start.iter().any(is_binary) {
        return Err("it is neither JSON nor YAML");
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let second = text.get(1..).and_then(|rest| rest.trim_ascii_start().first());
    match text.first() {
        None if (start.len() as u64) < LOOKED_AT => {
            Err("it is empty, as if writing it had failed; dump it again")
        }
        Some(b'{') if matches!(second, None | Some(b'"' | b'}')) => Ok(Form::Json),
        Some(b'[') if matches!(second, None | Some(b'"' | b'{' | b'[' | b']')) => Ok(Form::Json),
        _ => Ok(Form::Yaml),
    }
}
