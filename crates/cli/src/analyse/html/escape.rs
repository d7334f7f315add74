//! Text as a page shows it: markup escaped, and what cannot be seen or reorders text made visible.

use std::fmt::{self, Write};

use askama::filters::Escaper;

/// Escapes for HTML text and quoted attributes, and writes hidden characters as `\u{202e}`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        // Most text is plain ASCII names, which go through in one piece.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && entity(char::from(byte)).is_none()) {
            return dest.write_str(text);
        }
        text.chars().try_for_each(|char| self.write_escaped_char(&mut dest, char))
    }

    fn write_escaped_char<W: Write>(&self, mut dest: W, char: char) -> fmt::Result {
        match entity(char) {
            Some(entity) => dest.write_str(entity),
            None if hidden(char) => write!(dest, "{}", char.escape_default()),
            None => dest.write_char(char),
        }
    }
}

/// The text with hidden characters written out, not yet escaped for HTML.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if hidden(char) { shown.extend(char.escape_default()) } else { shown.push(char) }
    }
    shown
}

/// Bytes that a text takes on the page.
pub fn bytes(text: &str) -> usize {
    let of = |char: char| match entity(char) {
        Some(entity) => entity.len(),
        None if hidden(char) => char.escape_default().len(),
        None => char.len_utf8(),
    };
    text.chars().map(of).sum()
}

fn entity(char: char) -> Option<&'static str> {
    match char {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        _ => None,
    }
}

/// Controls, and of Unicode's format and default-ignorable characters (`DerivedCoreProperties.txt`) those that hide or
/// reorder what is around them; and the two of the basic plane that HTML forbids.
fn hidden(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fdd0}'..='\u{fdef}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}
