//! Random numbers that are the same everywhere: SplitMix64 (Steele, Lea, Flood 2014).
//!
//! Each use has a stream of its own, so that what one kind of object draws changes no other kind.

/// A stream of numbers.
pub struct Random(u64);

impl Random {
    /// Begins the stream of this name; the name is mixed in by FNV-1a.
    pub fn new(seed: u64, stream: &str) -> Self {
        let name = stream.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ name)
    }

    /// Draws 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number below `end`; 0 where there is none.
    pub fn below(&mut self, end: usize) -> usize {
        // The bias of the remainder is below 1 in 2^40 for ends in the millions.
        self.bits().checked_rem(end as u64).unwrap_or_default() as usize
    }

    /// Is true this often in 100.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// Draws one of some; none of nothing.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let at = self.below(items.len());
        items.get(at)
    }

    /// Draws a word; the empty one of nothing.
    pub fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.pick(words).copied().unwrap_or_default()
    }

    /// Draws by weight.
    pub fn weighted<T: Copy>(&mut self, first: T, items: &[(usize, T)]) -> T {
        let mut left = self.below(items.iter().map(|(weight, _)| weight).sum());
        for (weight, item) in items {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *item,
            }
        }
        first
    }

    /// Draws `length` characters as generated names of Kubernetes have.
    pub fn suffix(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..length).map(|_| char::from(self.pick(LETTERS).copied().unwrap_or(b'x'))).collect()
    }

    /// Draws a UUID of version 4.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.bits(), self.bits());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0x0fff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_stream_give_the_same_numbers() {
        let draw = |seed, stream| Random::new(seed, stream).bits();
        assert_eq!(draw(1, "pods"), draw(1, "pods"));
        assert_ne!(draw(1, "pods"), draw(2, "pods"));
        assert_ne!(draw(1, "pods"), draw(1, "secrets"));
        // The published first output of SplitMix64 from the state 0.
        assert_eq!(Random(0).bits(), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn draws_stay_in_bounds_and_reach_them() {
        let mut random = Random::new(7, "bounds");
        let drawn: std::collections::BTreeSet<usize> = (0..200).map(|_| random.below(5)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.pick::<u8>(&[]), None);
        assert_eq!((0..200).map(|_| random.weighted(9, &[(0, 1), (3, 2)])).max(), Some(2));
    }

    #[test]
    fn a_uuid_has_the_form_of_version_4() {
        let uuid = Random::new(1, "uuid").uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uuid}");
    }
}
