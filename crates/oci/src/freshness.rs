//! Whether a tag that is known here may be served, has to be checked first, or is served although it could not be.
//!
//! Digests never change, so what is here under one is always right. A tag is immutable by a rule, or fresh for a time
//! since it was last checked. HEAD and GET ask the same function, so they cannot disagree.

use std::time::Duration;

use crate::name::{Repository, Tag};
use crate::pattern::Pattern;
use crate::registry::Registry;
use crate::status::Cause;

/// For how long a tag is what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// For ever: never checked again.
    Immutable,
    /// For this long after it was last checked; zero means to check each time.
    For(Duration),
}

/// For how long a tag is served although the upstream cannot be asked, counted from its last good check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleIfError {
    Never,
    For(Duration),
    Unlimited,
}

/// What happens to a tag that is here and that the upstream says does not exist any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It is still served: what runs here must be able to start again.
    Keep,
    /// It is gone here, too.
    Follow,
}

/// The rules for all tags.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The first that matches decides.
    pub rules: Vec<Rule>,
    /// For tags that no rule matches.
    pub otherwise: Freshness,
    pub stale_if_error: StaleIfError,
    pub gone: Gone,
}

/// Which tags a rule is about, and how fresh they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Over `REGISTRY/REPOSITORY`.
    pub images: Pattern,
    pub tags: Tags,
    pub freshness: Freshness,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    Matching(Pattern),
    /// Whole versions, `1.2.3` or `v1.2.3-rc.1`, which by custom are never moved; `1.2` is not one.
    Versions,
}

impl Default for Policy {
    /// Checks each tag once a minute, and keeps serving whatever the upstream does.
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            otherwise: Freshness::For(Duration::from_secs(60)),
            stale_if_error: StaleIfError::Unlimited,
            gone: Gone::Keep,
        }
    }
}

impl Policy {
    pub fn freshness(&self, upstream: &Registry, repository: &Repository, tag: &Tag) -> Freshness {
        let image = format!("{upstream}/{repository}");
        let rule = self.rules.iter().find(|rule| rule.images.matches(&image) && rule.tags.matches(tag));
        rule.map_or(self.otherwise, |rule| rule.freshness)
    }
}

impl Tags {
    fn matches(&self, tag: &Tag) -> bool {
        match self {
            Self::Matching(pattern) => pattern.matches(tag.as_str()),
            Self::Versions => is_version(tag.as_str()),
        }
    }
}

/// Three numbers with dots, a `v` before and a pre-release after them allowed.
fn is_version(tag: &str) -> bool {
    let rest = tag.strip_prefix('v').unwrap_or(tag);
    let (numbers, tail) = match rest.find('-') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    numbers.split('.').count() == 3 && numbers.split('.').all(number) && tail != "-"
}

/// What is known here about what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing, or the bytes are not here any more.
    Nothing,
    /// The bytes are here, and this long ago the upstream was last asked and said so.
    ///
    /// A clock that was set back makes an age of zero.
    Checked { age: Duration },
}

/// What came of asking the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It has what is here.
    Same,
    /// It has something else, or there was nothing here to compare with.
    Other,
    /// It did not say; also when the time for it was over, or the breaker did not let the question out.
    Failed(Cause),
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Serve what is here. After [`Asked::Same`], also note that it was checked now.
    Serve,
    /// Ask the upstream whether the tag is what it was (HEAD), within the time for it, then decide again.
    Revalidate,
    /// Fetch from the upstream. Should that fail, decide again with why.
    Fetch,
    /// Serve what is here, and say that it could not be checked.
    ServeStale(Cause),
    /// Say that it does not exist, since the upstream said so.
    NotFound,
    /// Say that it is not to be had at present.
    Unavailable(Cause),
}

impl Policy {
    /// Decides about a tag of this freshness, or a digest ([`Freshness::Immutable`]), before and after asking.
    pub fn decide(&self, freshness: Freshness, known: Known, asked: Option<Asked>) -> Decision {
        match (known, asked) {
            (Known::Nothing, None) => Decision::Fetch,
            (Known::Checked { age }, None) => match freshness {
                Freshness::Immutable => Decision::Serve,
                Freshness::For(ttl) if age < ttl => Decision::Serve,
                Freshness::For(_) => Decision::Revalidate,
            },
            (Known::Checked { .. }, Some(Asked::Same)) => Decision::Serve,
            (_, Some(Asked::Same | Asked::Other)) => Decision::Fetch,
            (Known::Nothing, Some(Asked::Failed(Cause::NotFound))) => Decision::NotFound,
            (Known::Nothing, Some(Asked::Failed(cause))) => Decision::Unavailable(cause),
            (Known::Checked { .. }, Some(Asked::Failed(Cause::NotFound))) => match self.gone {
                Gone::Keep => Decision::ServeStale(Cause::NotFound),
                Gone::Follow => Decision::NotFound,
            },
            (Known::Checked { age }, Some(Asked::Failed(cause))) => {
                let within = match self.stale_if_error {
                    StaleIfError::Never => false,
                    StaleIfError::For(limit) => age <= limit,
                    StaleIfError::Unlimited => true,
                };
                if within { Decision::ServeStale(cause) } else { Decision::Unavailable(cause) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
