//! Byte ranges of RFC 9110, section 14, on content of known length.
//!
//! A `Range` that cannot be understood, or that asks for more pieces than is sensible, is ignored, as the RFC allows:
//! the answer is then the whole content with 200. One that is understood and meets no byte is answered 416.

use std::fmt;

/// The most pieces of one answer. RFC 9110, 14.2 lets a server ignore requests for many small ranges.
pub const PIECES_MAX: usize = 16;

/// The unit in `Accept-Ranges` and `Range`.
pub const UNIT: &str = "bytes";

/// What of some content is wanted, as a client wrote it; None when all of it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges(Vec<Spec>);

/// One range before the length of the content is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spec {
    /// `first-` and `first-last`, both inclusive.
    From { first: u64, last: Option<u64> },
    /// `-length`: the end of the content.
    Suffix { length: u64 },
}

/// Bytes `first..=last` of some content; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    pub first: u64,
    pub last: u64,
}

/// What to answer to a range on content of known length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// 200 and everything.
    Whole,
    /// 206, `Content-Range` and these bytes.
    Single(Span),
    /// 206, `multipart/byteranges` and these pieces, in the order asked.
    Several(Vec<Span>),
    /// 416 and `Content-Range: bytes */length`.
    Unsatisfiable,
}

impl Ranges {
    /// Reads the value of a `Range` header; None means that it is to be ignored.
    pub fn parse(value: &str) -> Option<Self> {
        let (unit, list) = value.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case(UNIT) {
            return None;
        }
        let mut specs = Vec::new();
        // Empty elements of a list are allowed and mean nothing (RFC 9110, 5.6.1.2).
        for part in list.split(',').map(|part| part.trim_matches([' ', '\t'])).filter(|part| !part.is_empty())
        {
            if specs.len() == PIECES_MAX {
                return None;
            }
            specs.push(Spec::parse(part)?);
        }
        (!specs.is_empty()).then_some(Self(specs))
    }

    pub fn specs(&self) -> &[Spec] {
        &self.0
    }

    /// Says what to serve of content of `length` bytes.
    ///
    /// Several pieces that together are longer than the content are no honest wish (RFC 9110, 17.15), and the whole
    /// is served.
    pub fn resolve(&self, length: u64) -> Served {
        let spans: Vec<_> = self.0.iter().filter_map(|spec| spec.resolve(length)).collect();
        match spans.as_slice() {
            [] => Served::Unsatisfiable,
            [span] => Served::Single(*span),
            many => {
                let sum = many.iter().fold(0u64, |sum, span| sum.saturating_add(span.len()));
                if sum > length { Served::Whole } else { Served::Several(spans) }
            }
        }
    }

    /// The offset of a single open-ended range: what can be answered before the length is known.
    pub fn open_from(&self) -> Option<u64> {
        match self.0.as_slice() {
            [Spec::From { first, last: None }] => Some(*first),
            _ => None,
        }
    }
}

/// Says what to serve where no `Range` header may have come.
pub fn resolve(value: Option<&str>, length: u64) -> Served {
    value.and_then(Ranges::parse).map_or(Served::Whole, |ranges| ranges.resolve(length))
}

impl Spec {
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        if first.is_empty() {
            return Some(Self::Suffix { length: number(last)? });
        }
        let first = number(first)?;
        let last = if last.is_empty() { None } else { Some(number(last)?) };
        Some(Self::From { first, last })
    }

    fn resolve(self, length: u64) -> Option<Span> {
        let end = length.checked_sub(1)?;
        match self {
            // A last byte before the first is wrong, and may be rejected (RFC 9110, 14.2); as the conformance suite of
            // the distribution specification wants it, it meets no byte.
            Self::From { first, last: Some(last) } if last < first => None,
            Self::From { first, last } => {
                (first <= end).then(|| Span { first, last: last.map_or(end, |last| last.min(end)) })
            }
            Self::Suffix { length: 0 } => None,
            Self::Suffix { length: wanted } => Some(Span { first: length.saturating_sub(wanted), last: end }),
        }
    }
}

impl Span {
    /// How many bytes; at least one.
    #[expect(clippy::len_without_is_empty, reason = "a span is never empty")]
    pub fn len(&self) -> u64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }

    /// The value of `Content-Range` for this part of `length` bytes.
    pub fn content_range(&self, length: u64) -> String {
        format!("{UNIT} {self}/{length}")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// The value of `Content-Range` that goes with 416.
pub fn unsatisfied(length: u64) -> String {
    format!("{UNIT} */{length}")
}

/// What an upstream says that it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    pub span: Span,
    /// The length of the whole, unless it said `*`.
    pub length: Option<u64>,
}

impl ContentRange {
    /// Reads the value of a `Content-Range` header of a 206; None when it contradicts itself.
    pub fn parse(value: &str) -> Option<Self> {
        let (unit, rest) = value.trim().split_once(' ')?;
        let (span, length) = rest.trim().split_once('/')?;
        let (first, last) = span.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        let length = if length == "*" { None } else { Some(number(length)?) };
        let fits = first <= last && length.is_none_or(|length| last < length);
        (unit.eq_ignore_ascii_case(UNIT) && fits).then_some(Self { span: Span { first, last }, length })
    }
}

/// A multipart answer: what stands around the pieces, so that its length is known before it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart {
    boundary: String,
    media_type: String,
    pieces: Vec<Span>,
    length: u64,
}

impl Multipart {
    /// Lays out `pieces` of content of `length` bytes.
    ///
    /// `boundary` is up to 70 letters and digits that the content is unlikely to hold; the caller draws it at random.
    pub fn new(boundary: &str, media_type: &str, pieces: Vec<Span>, length: u64) -> Self {
        Self { boundary: boundary.to_owned(), media_type: media_type.to_owned(), pieces, length }
    }

    /// The value of `Content-Type`.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// The value of `Content-Length`.
    pub fn content_length(&self) -> u64 {
        let parts = self.parts().map(|(head, span)| (head.len() as u64).saturating_add(span.len()));
        parts.fold(self.end().len() as u64, u64::saturating_add)
    }

    /// Each piece with the text that goes in front of it.
    pub fn parts(&self) -> impl Iterator<Item = (String, Span)> {
        self.pieces.iter().enumerate().map(|(n, span)| {
            let start = if n == 0 { "" } else { "\r\n" };
            let range = span.content_range(self.length);
            let head = format!(
                "{start}--{}\r\nContent-Type: {}\r\nContent-Range: {range}\r\n\r\n",
                self.boundary, self.media_type
            );
            (head, *span)
        })
    }

    /// The text behind the last piece.
    pub fn end(&self) -> String {
        format!("\r\n--{}--\r\n", self.boundary)
    }
}

/// Digits only: `parse` alone would take a sign. A number beyond what fits is beyond all content.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
