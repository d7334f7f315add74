//! How much may still be written, so that a large document gives a page that opens.

use super::{PAGE_BYTES_MAX, escape};

/// Bytes that are left.
#[derive(Debug)]
pub struct Budget {
    left: usize,
}

impl Budget {
    /// The budget of a page. Some is for its frame, the style sheet, and what is longer than estimated.
    pub fn of_page() -> Self {
        Self { left: PAGE_BYTES_MAX - PAGE_BYTES_MAX / 6 }
    }

    /// Takes the bytes if there are as many.
    pub fn take(&mut self, bytes: usize) -> bool {
        let fits = self.left.checked_sub(bytes);
        self.left = fits.unwrap_or(self.left);
        fits.is_some()
    }

    /// Takes a part of what is left away, for something that must not take it all.
    pub fn split(&mut self, percent: usize) -> Self {
        let bytes = self.left / 100 * percent;
        self.left -= bytes;
        Self { left: bytes }
    }

    /// Puts back what was not used.
    pub fn join(&mut self, rest: &Self) {
        self.left += rest.left;
    }

    /// Lets something have a part of what is left, and has the rest of it back.
    pub fn lend<T>(&mut self, percent: usize, spend: impl FnOnce(&mut Self) -> T) -> T {
        let mut part = self.split(percent);
        let spent = spend(&mut part);
        self.join(&part);
        spent
    }

    /// The first items, as many as there is room for.
    pub fn fitting<'a, T>(&mut self, items: &'a [T], bytes: impl Fn(&T) -> usize) -> &'a [T] {
        let fit = items.iter().take_while(|item| self.take(bytes(item))).count();
        items.get(..fit).unwrap_or(items)
    }
}

/// Bytes of markup and of texts.
pub fn cost<'a>(markup: usize, texts: impl IntoIterator<Item = &'a str>) -> usize {
    markup + texts.into_iter().map(escape::bytes).sum::<usize>()
}
