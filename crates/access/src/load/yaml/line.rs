//! What a line of YAML is, seen alone. Only what block style says for certain: see YAML 1.2.2, chapters 6, 8 and 9.

/// Whether a document starts here.
pub(super) fn starts_document(line: &[u8]) -> bool {
    is_marker(line, b"---")
}

/// Whether a document ends here and none starts.
pub(super) fn ends_document(line: &[u8]) -> bool {
    is_marker(line, b"...")
}

fn is_marker(line: &[u8], marker: &[u8]) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// Whether there is more than blanks, a comment, a directive or a marker.
pub(super) fn has_content(line: &[u8]) -> bool {
    let rest = if starts_document(line) { line.get(3..).unwrap_or_default() } else { line };
    !matches!(rest.trim_ascii_start().first(), None | Some(b'#')) && !line.starts_with(b"%")
}

/// Blanks before what is on it.
pub(super) fn margin(line: &[u8]) -> usize {
    line.iter().take_while(|byte| **byte == b' ').count()
}

/// Blanks before the dash, if an entry of a sequence starts here.
pub(super) fn item_margin(line: &[u8]) -> Option<usize> {
    let margin = margin(line);
    let rest = line.get(margin..)?.strip_prefix(b"-")?;
    rest.first().is_none_or(u8::is_ascii_whitespace).then_some(margin)
}

/// Whether it is the field `items` of a document, its value on the lines below.
pub(super) fn is_items(line: &[u8]) -> bool {
    line.strip_prefix(b"items:").is_some_and(|rest| {
        let rest = rest.trim_ascii_start();
        rest.is_empty() || rest.starts_with(b"#")
    })
}

/// Whether there may be an alias (`*name`) in a text. If not, there is none.
pub(super) fn may_refer(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'*', bytes).any(|at| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let starts = before.is_none_or(|byte| byte.is_ascii_whitespace() || b"[{,".contains(byte));
        let named =
            bytes.get(at + 1).is_some_and(|byte| !byte.is_ascii_whitespace() && !b"'\",]}".contains(byte));
        starts && named
    })
}
