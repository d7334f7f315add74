//! The two encodings that requests and answers need.

/// Encodes bytes as padded base64, as Secrets carry their values.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let sextet = (group >> (18 - 6 * position)) & 0x3f;
            let letter = ALPHABET.get(sextet as usize).copied().unwrap_or(b'=');
            encoded.push(if position > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    encoded
}

/// Appends a query component, percent-encoded but for the unreserved characters of RFC 3986.
pub(crate) fn push_query_component(target: &mut String, component: &str) {
    for byte in component.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            target.push(char::from(byte));
        } else {
            target.push('%');
            for nibble in [byte >> 4, byte & 0xf] {
                let digit = char::from_digit(u32::from(nibble), 16).unwrap_or('0');
                target.push(digit.to_ascii_uppercase());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{base64, push_query_component};

    #[test]
    fn base64_follows_the_vectors_of_rfc_4648() {
        let vectors = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (plain, encoded) in vectors {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn query_components_are_percent_encoded() {
        let mut query = String::new();
        push_query_component(&mut query, "metadata.name=a b");
        assert_eq!(query, "metadata.name%3Da%20b");
    }
}
