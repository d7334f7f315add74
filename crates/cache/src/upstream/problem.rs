//! Why an upstream gave nothing that can be used.

use std::sync::Arc;
use std::time::Duration;

/// What an upstream said instead of content, or that it said nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The upstream itself says that there is no such thing.
    #[error("the upstream has no such content")]
    NotFound,
    /// The upstream does not let this cache in, with the credential that it has.
    #[error("the upstream refuses access (status {status}); check the credential configured for it")]
    Denied { status: u16 },
    #[error("the upstream limits how much it is asked")]
    Limited { retry_after: Option<Duration> },
    #[error("the upstream answered with status {status}")]
    Failed { status: u16, retry_after: Option<Duration> },
    /// No answer: no address, no connection, no TLS, or the time was over.
    #[error("the upstream did not answer: {cause}")]
    Unreachable { cause: Arc<str> },
    /// It failed before and is left alone for now.
    #[error("the upstream did not answer lately and is asked again in {} s", retry_after.as_secs().max(1))]
    Away { retry_after: Duration },
    /// An answer that cannot be used, such as a redirect into a private network.
    #[error("the upstream's answer is not used: {cause}")]
    Unusable { cause: Arc<str> },
}

impl Problem {
    pub fn unreachable(cause: impl Into<Arc<str>>) -> Self {
        Self::Unreachable { cause: cause.into() }
    }

    pub fn unusable(cause: impl Into<Arc<str>>) -> Self {
        Self::Unusable { cause: cause.into() }
    }

    /// Names the kind of problem for metric labels, logs and the reason header.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound => "UpstreamNotFound",
            Self::Denied { .. } => "UpstreamDenied",
            Self::Limited { .. } => "UpstreamLimited",
            Self::Failed { .. } => "UpstreamFailed",
            Self::Unreachable { .. } => "UpstreamUnreachable",
            Self::Away { .. } => "UpstreamAway",
            Self::Unusable { .. } => "UpstreamUnusable",
        }
    }

    /// Whether the upstream is away, as opposed to having given an answer that means something.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::NotFound | Self::Denied { .. } => false,
            Self::Limited { .. }
            | Self::Failed { .. }
            | Self::Unreachable { .. }
            | Self::Away { .. }
            | Self::Unusable { .. } => true,
        }
    }

    /// How long the upstream, or the breaker, asks to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Limited { retry_after } | Self::Failed { retry_after, .. } => *retry_after,
            Self::Away { retry_after } => Some(*retry_after),
            Self::NotFound | Self::Denied { .. } | Self::Unreachable { .. } | Self::Unusable { .. } => None,
        }
    }
}
