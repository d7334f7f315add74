//! Why an upstream gave nothing that can be used: a cause that decides, and what a person wants to know besides.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bailey_oci::status::{Cause, Meaning};

/// What an upstream said instead of content, or that it said nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub cause: Cause,
    /// How long the upstream, or its breaker, asks to be left alone.
    pub retry_after: Option<Duration>,
    /// What exactly happened; never a credential, a token or a signed URL.
    pub detail: Option<Arc<str>>,
}

impl Problem {
    pub fn of(cause: Cause) -> Self {
        Self { cause, retry_after: None, detail: None }
    }

    /// The problem that a status means, if it means one.
    pub fn status(status: u16, retry_after: Option<Duration>) -> Self {
        let cause = match Meaning::of(status) {
            Meaning::Failed(cause) => cause,
            _ => Cause::UpstreamError,
        };
        Self { cause, retry_after, detail: Some(format!("status {status}").into()) }
    }

    /// No answer: no address, no connection, no TLS, or the time was over.
    pub fn unreachable(detail: impl Into<Arc<str>>) -> Self {
        Self { detail: Some(detail.into()), ..Self::of(Cause::Unreachable) }
    }

    /// An answer that makes no sense.
    pub fn nonsense(detail: impl Into<Arc<str>>) -> Self {
        Self { detail: Some(detail.into()), ..Self::of(Cause::UpstreamError) }
    }

    /// Something that this cache does not do.
    pub fn refused(detail: impl Into<Arc<str>>) -> Self {
        Self { detail: Some(detail.into()), ..Self::of(Cause::Policy) }
    }

    /// Other bytes, or another number of bytes, than the digest or the manifest asks for.
    pub fn wrong(detail: impl Into<Arc<str>>) -> Self {
        Self { detail: Some(detail.into()), ..Self::of(Cause::WrongContent) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}
