//! An answer to a client: status, headers and body, before it is written.

use bailey_oci::visibility::Place;
use bailey_oci::{Digest, errors};
use bytes::Bytes;

use super::multipart::Parts;
use crate::cache::{Passing, Source};

/// An answer. `Content-Length` is in it as [`Answer::length`].
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    /// Of the body, also where none is sent: in answer to HEAD.
    pub length: u64,
    pub body: Body,
    /// Whether the connection ends with this answer.
    pub close: bool,
}

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    Empty,
    Bytes(Bytes),
    Blob(Box<BlobBody>),
}

/// A blob, or parts of one.
#[derive(Debug)]
pub struct BlobBody {
    pub place: Place,
    pub digest: Digest,
    pub source: Source,
    pub parts: Parts,
    /// The first piece of what goes past the store, asked for before the head is written: it may not be there.
    pub passing: Option<Passing>,
}

impl Answer {
    /// An answer with a short body.
    pub fn bytes(status: u16, media_type: &str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let headers = vec![("content-type", media_type.to_owned())];
        Self { status, headers, length: body.len() as u64, body: Body::Bytes(body), close: false }
    }

    /// An answer that says why there is no content, in the form of the distribution specification.
    pub fn error(status: u16, code: errors::Code, message: &str) -> Self {
        Self::bytes(status, errors::MEDIA_TYPE, errors::body(code, message))
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same without its body, for HEAD.
    pub fn without_body(mut self) -> Self {
        self.body = Body::Empty;
        self
    }

    /// Writes the head.
    pub fn head(&self, keep_alive: bool) -> Vec<u8> {
        let mut text = format!("HTTP/1.1 {} {}\r\n", self.status, phrase(self.status));
        for (name, value) in &self.headers {
            // Some values come from upstreams: whatever would end the line is left out.
            let value: String = value.chars().filter(|c| !c.is_control()).collect();
            text.push_str(name);
            text.push_str(": ");
            text.push_str(&value);
            text.push_str("\r\n");
        }
        // RFC 9110, section 8.6: none with 304, whose length would be that of the content.
        if self.status != 304 {
            text.push_str(&format!("content-length: {}\r\n", self.length));
        }
        if !keep_alive {
            text.push_str("connection: close\r\n");
        }
        text.push_str("docker-distribution-api-version: registry/2.0\r\n\r\n");
        text.into_bytes()
    }
}

fn phrase(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_its_length_and_no_value_can_break_a_line() {
        let answer = Answer::bytes(200, "text/plain", "hello").with("link", "a\r\nset-cookie: b");
        let head = String::from_utf8(answer.head(true)).unwrap();
        assert_eq!(
            head,
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nlink: aset-cookie: b\r\ncontent-length: 5\r\n\
             docker-distribution-api-version: registry/2.0\r\n\r\n"
        );
        let head = String::from_utf8(answer.without_body().head(false)).unwrap();
        assert!(head.contains("content-length: 5\r\nconnection: close\r\n"), "{head}");
    }
}
