//! What an upstream does wrong, on which requests, and how often.

use std::time::Duration;

/// Which requests a fault is for.
#[derive(Clone, Debug)]
pub struct On {
    method: Option<String>,
    path: String,
    skip: usize,
    times: usize,
}

impl On {
    /// Every request whose path and query hold this text; all if it is empty.
    pub fn path(part: impl ToString) -> Self {
        Self { method: None, path: part.to_string(), skip: 0, times: usize::MAX }
    }

    /// Only requests of this method.
    #[must_use]
    pub fn method(self, method: &str) -> Self {
        Self { method: Some(method.to_owned()), ..self }
    }

    /// Only the first so many of them.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    /// Only the first of them.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Not the first so many of them.
    #[must_use]
    pub fn after(self, skip: usize) -> Self {
        Self { skip, ..self }
    }

    /// Counts a request; whether the fault is for it.
    pub(super) fn takes(&mut self, method: &str, target: &str) -> bool {
        let meant = self.method.as_deref().is_none_or(|only| only == method) && target.contains(&self.path);
        if !meant {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let takes = self.times > 0;
        self.times = self.times.saturating_sub(1);
        takes
    }
}

/// What goes wrong. Offsets count the bytes of the body as sent.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing for so long, then the right answer.
    Delay(Duration),
    /// The body at so many bytes a second.
    Rate(u64),
    /// The right length is announced, and the connection ends with FIN at this offset.
    FinAt(u64),
    /// The right length is announced, and the connection is reset at this offset.
    ResetAt(u64),
    /// The body ends at this offset, and that is also the length that is announced.
    ShortAt(u64),
    /// The byte at this offset is another.
    WrongByte(u64),
    /// This status, these headers and this body.
    Status { status: u16, headers: Vec<(String, String)>, body: String },
    /// The connection is taken and nothing ever said.
    Hang,
    /// The connection is reset before anything is said.
    Reset,
    /// Headers come byte by byte, with this pause between two, for ever.
    SlowHead(Duration),
    /// A body without an end and without a length.
    Endless,
    /// `Range` is not looked at.
    NoRanges,
    /// This header is left out.
    Without(&'static str),
    /// This header has another value.
    Header(&'static str, String),
    /// Something that is not HTTP.
    Garbage,
}

impl Fault {
    pub fn status(status: u16) -> Self {
        Self::Status { status, headers: Vec::new(), body: String::new() }
    }

    pub fn unauthorized(challenge: &str) -> Self {
        Self::with(401, "www-authenticate", challenge)
    }

    pub fn too_many(retry_after_seconds: u64) -> Self {
        Self::with(429, "retry-after", &retry_after_seconds.to_string())
    }

    pub fn redirect(status: u16, location: &str) -> Self {
        Self::with(status, "location", location)
    }

    fn with(status: u16, name: &str, value: &str) -> Self {
        Self::Status { status, headers: vec![(name.to_owned(), value.to_owned())], body: String::new() }
    }
}
