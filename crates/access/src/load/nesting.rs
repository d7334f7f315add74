//! Where a JSON object or array ends, found 64 bytes at a time and without parsing it.
//!
//! Knows strings and escapes, and counts brackets of both forms alike: whether they match, and whether what is between
//! them is JSON, is for the parser to say. Takes a value in any number of parts, so that it need not be in memory.

#[cfg(test)]
mod tests;

/// How far into a value the bytes seen so far lead.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Nesting {
    depth: u64,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    /// Takes the next bytes of a value whose first byte is a bracket. Once the value ends: how many of these bytes are
    /// still its own.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let (blocks, rest) = bytes.as_chunks::<64>();
        let mut before = 0;
        for block in blocks {
            if let Some(end) = self.block(block) {
                return Some(before + end);
            }
            before += block.len();
        }
        self.bytes(rest).map(|end| before + end)
    }

    fn block(&mut self, block: &[u8; 64]) -> Option<usize> {
        let marks = Marks::of(block);
        if self.escaped || marks.backslash != 0 {
            return self.bytes(block);
        }
        let carried = if self.in_string { u64::MAX } else { 0 };
        let inside = up_to_each(marks.quote) ^ carried;
        self.in_string = inside >> 63 == 1;
        let (open, close) = (marks.open & !inside, marks.close & !inside);
        let closes = u64::from(close.count_ones());
        if self.depth > closes {
            self.depth = self.depth - closes + u64::from(open.count_ones());
            return None;
        }
        let mut brackets = open | close;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            if self.bracket(open >> at & 1 == 1) {
                return Some(at as usize + 1);
            }
            brackets &= brackets - 1;
        }
        None
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
            } else {
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' | b'}' | b']' if self.bracket(matches!(byte, b'{' | b'[')) => {
                        return Some(at + 1);
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// Counts a bracket; true if it ends the value.
    fn bracket(&mut self, opens: bool) -> bool {
        self.depth = if opens { self.depth + 1 } else { self.depth.saturating_sub(1) };
        self.depth == 0
    }
}

/// Bit N stands for byte N of a block.
struct Marks {
    quote: u64,
    backslash: u64,
    open: u64,
    close: u64,
}

impl Marks {
    fn of(block: &[u8; 64]) -> Self {
        /// Makes `[` of `{` and `]` of `}` the same byte; no other byte becomes one of them.
        const FOLD: u64 = repeat(0x20);
        let mut marks = Self { quote: 0, backslash: 0, open: 0, close: 0 };
        let (words, _) = block.as_chunks::<8>();
        for (number, bytes) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*bytes);
            let folded = word | FOLD;
            let shift = 8 * number;
            marks.quote |= equal(word, b'"') << shift;
            marks.backslash |= equal(word, b'\\') << shift;
            marks.open |= equal(folded, b'{') << shift;
            marks.close |= equal(folded, b'}') << shift;
        }
        marks
    }
}

const fn repeat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// A bit for each byte of the word, set where it is this one.
fn equal(word: u64, byte: u8) -> u64 {
    const LOW: u64 = repeat(0x7f);
    let different = word ^ repeat(byte);
    // The high bit of each byte: set exactly where all others of `different` are zero. No byte carries into the next.
    let high = !(((different & LOW) + LOW) | different | LOW);
    // Gathers bit 0 of each byte in the top byte: bit 8·i meets 2^(56−7·i) in exactly one product.
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Each bit becomes the exclusive or of itself and all below: set from an opening quote up to before its closing one.
fn up_to_each(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}
