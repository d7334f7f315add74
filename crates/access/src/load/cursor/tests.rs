use std::io::{self, Read};

use super::{CHUNK, Cursor, Place};

/// Gives a few bytes at a time.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (now, later) = self.0.split_at(self.1.min(self.0.len()).min(buffer.len()));
        self.0 = later;
        buffer[..now.len()].copy_from_slice(now);
        Ok(now.len())
    }
}

#[test]
fn lines_and_bytes_are_counted_across_reads() {
    let text = b"ab\ncd\n\nef";
    let mut cursor = Cursor::new(Drip(text, 2), 100);
    let mut places = Vec::new();
    while cursor.peek().unwrap().is_some() {
        places.push(cursor.place());
        cursor.advance(1);
    }
    let expected = [(1, 0), (1, 1), (1, 2), (2, 3), (2, 4), (2, 5), (3, 6), (4, 7), (4, 8)];
    assert_eq!(places, expected.map(|(line, byte)| Place { line, byte }));
}

#[test]
fn what_is_kept_spans_reads() {
    let mut cursor = Cursor::new(Drip(b"0123456789", 3), 100);
    cursor.peek().unwrap();
    cursor.advance(2);
    cursor.mark();
    for _ in 0..6 {
        cursor.peek().unwrap();
        cursor.advance(1);
    }
    assert_eq!(cursor.kept(), Some(&b"234567"[..]));
    cursor.release();
    assert_eq!(cursor.kept(), None);
    assert_eq!(cursor.peek().unwrap(), Some(b'8'));
}

#[test]
fn what_is_too_much_is_passed_over_in_little_memory() {
    let long = vec![b'x'; 8 * CHUNK];
    let mut cursor = Cursor::new(&long[..], 2 * CHUNK);
    cursor.mark();
    while cursor.peek().unwrap().is_some() {
        cursor.advance(cursor.rest().len());
    }
    assert_eq!(cursor.kept(), None);
    assert!(!cursor.is_keeping());
    assert_eq!(cursor.place().byte, long.len() as u64);
    assert!(cursor.buffer.len() <= 4 * CHUNK, "{}", cursor.buffer.len());
}
