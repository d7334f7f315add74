//! A reply before it is sent: status, headers, and what of some content.

use bailey_oci::range::{self, Served};
use serde_json::Value;

use super::content::Content;

#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub content: Content,
    /// Which bytes of the content are the body.
    pub offset: u64,
    pub length: u64,
    ranges: bool,
}

impl Reply {
    pub fn content(media_type: &str, content: Content) -> Self {
        let length = content.size();
        let headers = vec![("content-type".to_owned(), media_type.to_owned())];
        Self { status: 200, headers, content, offset: 0, length, ranges: false }
    }

    pub fn json(value: &Value) -> Self {
        Self::content("application/json", Content::Bytes(value.to_string().into()))
    }

    pub fn empty(status: u16) -> Self {
        Self { headers: Vec::new(), ..Self::content("", Content::Zeros(0)) }.status(status)
    }

    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Sets a header, in place of one of that name.
    pub fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.retain(|(key, _)| key != name);
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// Lets a part of the content be asked for.
    pub fn with_ranges(self) -> Self {
        Self { ranges: true, ..self }.header("accept-ranges", range::UNIT)
    }

    /// Narrows the body to what `Range` asks for. Several pieces get everything, as many object stores do it.
    pub fn narrowed(mut self, value: Option<&str>) -> Self {
        if !self.ranges || self.status != 200 {
            return self;
        }
        let size = self.content.size();
        match range::resolve(value, size) {
            Served::Whole | Served::Several(_) => self,
            Served::Single(span) => {
                (self.offset, self.length) = (span.first, span.len());
                self.status(206).header("content-range", span.content_range(size))
            }
            Served::Unsatisfiable => Self::empty(416).header("content-range", range::unsatisfied(size)),
        }
    }

    /// The head as sent, which announces `length` bytes unless that is None.
    pub fn head(&self, length: Option<u64>) -> String {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(length) = length {
            head.push_str(&format!("content-length: {length}\r\n"));
        }
        head.push_str("\r\n");
        head
    }
}
