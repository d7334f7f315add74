//! Base64 and PEM, leniently: wrapped, escaped, indented, with or without padding.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const ANY_STANDARD: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const ANY_URL_SAFE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// One block between `-----BEGIN LABEL-----` and `-----END LABEL-----`.
pub(super) struct Block<'a> {
    pub(super) label: &'a str,
    /// The text between the lines, headers and checksum included.
    pub(super) body: &'a str,
}

impl Block<'_> {
    /// Returns the bytes of the block, without headers and the checksum of OpenPGP.
    pub(super) fn bytes(&self) -> Option<Zeroizing<Vec<u8>>> {
        let is_data = |line: &&str| !(line.contains(": ") || line.starts_with('=') && line.len() == 5);
        let mut data = Zeroizing::new(String::with_capacity(self.body.len()));
        data.extend(self.body.lines().map(str::trim).filter(is_data));
        decode(&data)
    }

    /// Says whether the block has the header by which OpenSSL marks encrypted keys in its old format.
    pub(super) fn is_encrypted(&self) -> bool {
        self.label.starts_with("ENCRYPTED") || self.body.contains("Proc-Type: 4,ENCRYPTED")
    }
}

/// Returns all blocks of a text, in order. A block without an end goes to the end of the text.
pub(super) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((label, after)) = rest
        .split_once("-----BEGIN ")
        .and_then(|(_, after)| after.split_once("-----"))
        .filter(|(l, _)| is_label(l))
    {
        let (body, tail) = after.split_once("-----END ").unwrap_or((after, ""));
        blocks.push(Block { label, body });
        rest = tail;
    }
    blocks
}

/// Turns the two characters `\n`, as many put them into environment variables, into line ends.
pub(super) fn unescape(text: &str) -> Zeroizing<String> {
    let mut lines = Zeroizing::new(String::with_capacity(text.len()));
    for line in text.split("\\n") {
        lines.push_str(line.strip_suffix("\\r").unwrap_or(line));
        lines.push('\n');
    }
    lines
}

/// Decodes base64 of either alphabet. Line ends do not matter.
pub(super) fn decode(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    // With room for all from the start, no part of it is left behind in memory that was too small.
    let mut packed = Zeroizing::new(String::with_capacity(text.len()));
    packed.extend(text.chars().filter(|letter| !letter.is_whitespace()));
    if packed.is_empty() {
        return None;
    }
    let engine = if packed.contains(['-', '_']) { &ANY_URL_SAFE } else { &ANY_STANDARD };
    let mut bytes = Zeroizing::new(vec![0; base64::decoded_len_estimate(packed.len())]);
    let length = engine.decode_slice(packed.as_bytes(), bytes.as_mut_slice()).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

/// Decodes base64 whose content is readable text, which a random password practically never is.
pub(super) fn decode_text(text: &str) -> Option<Zeroizing<String>> {
    if text.len() < 8 || text.bytes().any(|byte| byte == b' ') {
        return None;
    }
    let bytes = decode(text)?;
    let decoded = Zeroizing::new(std::str::from_utf8(&bytes).ok()?.trim().to_owned());
    let readable = decoded.chars().all(|letter| !letter.is_control() || letter.is_whitespace());
    (decoded.len() >= 6 && readable && decoded.is_ascii()).then_some(decoded)
}

fn is_label(label: &str) -> bool {
    label.len() < 64
        && label.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ')
}
