//! Which bytes of a blob an answer holds, with what stands between them.

use bailey_oci::media;
use bailey_oci::range::{Multipart, Served, Span, unsatisfied};

/// The bytes of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Text to send before a span, and the span.
    pub pieces: Vec<(String, Span)>,
    /// Text after the last.
    pub end: String,
}

/// How to answer to a range of a blob of `size` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub length: u64,
    pub parts: Parts,
}

/// Lays out an answer.
pub fn lay_out(served: Served, size: u64, boundary: &str) -> Extent {
    let octets = ("content-type", media::OCTETS.to_owned());
    match served {
        Served::Whole => {
            let pieces = match size.checked_sub(1) {
                Some(last) => vec![(String::new(), Span { first: 0, last })],
                None => Vec::new(),
            };
            Extent {
                status: 200,
                headers: vec![octets],
                length: size,
                parts: Parts { pieces, end: String::new() },
            }
        }
        Served::Single(span) => Extent {
            status: 206,
            headers: vec![octets, ("content-range", span.content_range(size))],
            length: span.len(),
            parts: Parts { pieces: vec![(String::new(), span)], end: String::new() },
        },
        Served::Several(spans) => {
            let multipart = Multipart::new(boundary, media::OCTETS, spans, size);
            Extent {
                status: 206,
                headers: vec![("content-type", multipart.content_type())],
                length: multipart.content_length(),
                parts: Parts { pieces: multipart.parts().collect(), end: multipart.end() },
            }
        }
        Served::Unsatisfiable => Extent {
            status: 416,
            headers: vec![("content-range", unsatisfied(size))],
            length: 0,
            parts: Parts { pieces: Vec::new(), end: String::new() },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_that_of_texts_and_spans_together() {
        for served in [
            Served::Whole,
            Served::Single(Span { first: 3, last: 9 }),
            Served::Several(vec![Span { first: 0, last: 0 }, Span { first: 5, last: 6 }]),
            Served::Unsatisfiable,
        ] {
            let extent = lay_out(served, 10, "boundary");
            let pieces: u64 =
                extent.parts.pieces.iter().map(|(text, span)| text.len() as u64 + span.len()).sum();
            assert_eq!(pieces + extent.parts.end.len() as u64, extent.length);
        }
        assert_eq!(lay_out(Served::Whole, 0, "b").parts.pieces, []);
    }
}
