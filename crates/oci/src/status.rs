//! What a node is told when there is nothing to give it, and what an upstream meant by what it said.
//!
//! INVARIANT: never 401, since a client would then hand its own credentials to this cache. Never 429, since containerd
//! repeats that at once. 404 only when the upstream itself said so, since it means that the image does not exist.
//! Everything else is 503 with `Retry-After`, on which containerd goes to its next host.

use std::fmt;
use std::time::Duration;

use crate::errors::Code;

/// The header that says why, in one of the words of [`Cause::reason`].
pub const REASON_HEADER: &str = "bailey-reason";

/// Why something is not to be had, or could not be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The upstream says that it does not exist.
    NotFound,
    /// The upstream wants other credentials than this cache has, or none can be sent.
    Unauthorized,
    /// The upstream refuses it to the credentials that it got.
    Forbidden,
    /// The upstream wants to be asked less.
    RateLimited,
    /// The upstream said that something is wrong on its side, or nothing that makes sense.
    UpstreamError,
    /// No answer within its time, or no connection.
    Unreachable,
    /// The upstream failed lately, and its next probe is not due.
    BreakerOpen,
    /// The upstream sent other bytes than the digest asks for, or too few of them, each time.
    WrongContent,
    /// A policy of this cache refuses it, such as where a redirect may lead.
    Policy,
    /// The cluster that asks has had as many cold misses as it may have.
    OverLimit,
}

/// What of an HTTP answer's status decides about a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// 200 or 206: content follows.
    Content,
    /// 301, 302, 303, 307, 308: it is elsewhere.
    Redirect,
    /// 304, to a conditional request.
    NotModified,
    /// 416: the range begins beyond the end.
    BeyondEnd,
    Failed(Cause),
}

impl Meaning {
    /// What an upstream means by this status.
    pub fn of(status: u16) -> Self {
        match status {
            200 | 206 => Self::Content,
            301 | 302 | 303 | 307 | 308 => Self::Redirect,
            304 => Self::NotModified,
            416 => Self::BeyondEnd,
            // Gone is what the upstream itself says about the image, too.
            404 | 410 => Self::Failed(Cause::NotFound),
            401 | 407 => Self::Failed(Cause::Unauthorized),
            403 | 451 => Self::Failed(Cause::Forbidden),
            429 => Self::Failed(Cause::RateLimited),
            _ => Self::Failed(Cause::UpstreamError),
        }
    }
}

impl Cause {
    pub const ALL: [Self; 10] = [
        Self::NotFound,
        Self::Unauthorized,
        Self::Forbidden,
        Self::RateLimited,
        Self::UpstreamError,
        Self::Unreachable,
        Self::BreakerOpen,
        Self::WrongContent,
        Self::Policy,
        Self::OverLimit,
    ];

    /// One word for a header, a log and the label of a metric.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "UpstreamNotFound",
            Self::Unauthorized => "UpstreamUnauthorized",
            Self::Forbidden => "UpstreamForbidden",
            Self::RateLimited => "UpstreamRateLimited",
            Self::UpstreamError => "UpstreamError",
            Self::Unreachable => "UpstreamUnreachable",
            Self::BreakerOpen => "UpstreamFailedLately",
            Self::WrongContent => "UpstreamWrongContent",
            Self::Policy => "RefusedByPolicy",
            Self::OverLimit => "ClusterOverLimit",
        }
    }

    /// What a person reads about it.
    pub fn message(self) -> &'static str {
        match self {
            Self::NotFound => "the upstream registry says that this does not exist",
            Self::Unauthorized => {
                "the upstream registry wants credentials: give this cache some that may pull the repository, if it exists"
            }
            Self::Forbidden => {
                "the upstream registry refuses this: check that this cache's credentials may pull the repository"
            }
            Self::RateLimited => {
                "the upstream registry limits how often it is asked: wait, or use credentials"
            }
            Self::UpstreamError => "the upstream registry answered with an error",
            Self::Unreachable => "the upstream registry did not answer in time",
            Self::BreakerOpen => "the upstream registry failed a moment ago and is asked again soon",
            Self::WrongContent => "the upstream registry sent other bytes than the digest asks for",
            Self::Policy => "the policy of this cache does not let it fetch this",
            Self::OverLimit => {
                "the cluster asks for more that is not here than its limit lets it: wait, or raise `missesPerMinute`"
            }
        }
    }

    /// Whether the upstream as a whole is in trouble, for its breaker, rather than this one request.
    pub fn is_outage(self) -> bool {
        matches!(self, Self::RateLimited | Self::UpstreamError | Self::Unreachable)
    }

    /// Whether asking again at once may help.
    pub fn is_worth_retrying(self) -> bool {
        matches!(self, Self::UpstreamError | Self::Unreachable | Self::WrongContent)
    }
}

/// What a node is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub code: Code,
    /// When to ask again, in whole seconds.
    pub retry_after: Option<Duration>,
}

/// Whether a manifest or a blob was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Manifest,
    Blob,
    /// Tags and referrers.
    List,
}

/// How soon to ask again where the upstream did not say, and how soon at most.
const RETRY_AFTER: Duration = Duration::from_secs(5);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// What to tell a node that cannot be given what it wants.
///
/// `upstream_says` is when the upstream or its breaker wants to be asked again.
pub fn answer(cause: Cause, wanted: Wanted, upstream_says: Option<Duration>) -> Answer {
    if cause == Cause::NotFound {
        let code = match wanted {
            Wanted::Manifest => Code::ManifestUnknown,
            Wanted::Blob => Code::BlobUnknown,
            Wanted::List => Code::NameUnknown,
        };
        return Answer { status: 404, code, retry_after: None };
    }
    let code = match cause {
        Cause::Unauthorized | Cause::Forbidden | Cause::Policy => Code::Denied,
        _ => Code::Unavailable,
    };
    let wait = upstream_says.unwrap_or(RETRY_AFTER).clamp(Duration::from_secs(1), RETRY_AFTER_MAX);
    Answer { status: 503, code, retry_after: Some(Duration::from_secs(wait.as_secs())) }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

#[cfg(test)]
mod tests;
