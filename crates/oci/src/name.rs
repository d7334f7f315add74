//! Names of the distribution specification: repositories, tags, and references that are either a tag or a digest.
//!
//! The grammars are those of `spec.md`, "Pulling manifests". A name that was parsed prints as it was written; clones
//! share their text.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, DigestError};

/// The longest repository name, in bytes: clients limit host and name together to 255 (`spec.md`).
pub const REPOSITORY_LEN_MAX: usize = 255;
/// The longest tag, in bytes.
pub const TAG_LEN_MAX: usize = 128;

/// The name of a repository within its registry, such as `library/debian`; of any depth.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Repository(Arc<str>);

/// A tag, such as `v1.2.3`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tag(Arc<str>);

/// What a manifest is asked for by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference {
    Tag(Tag),
    Digest(Digest),
}

/// Why a text is no repository, tag or reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("repository name is {0} bytes long: at most {REPOSITORY_LEN_MAX} are allowed")]
    RepositoryTooLong(usize),
    #[error(
        "`{0}` is no repository name: its parts between slashes are lower-case letters and digits, separated by `.`, \
         `_`, `__` or `-`"
    )]
    Repository(String),
    #[error(
        "`{0}` is no tag: a tag is at most {TAG_LEN_MAX} letters, digits, `_`, `.` and `-`, and starts with a letter, \
         a digit or `_`"
    )]
    Tag(String),
    /// The text holds a colon, so it can only have been meant as a digest.
    #[error(transparent)]
    Digest(#[from] DigestError),
}

impl Repository {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Tag {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Reference {
    /// The digest, when it is one.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Digest(digest) => Some(*digest),
            Self::Tag(_) => None,
        }
    }

    /// The tag, when it is one.
    pub fn tag(&self) -> Option<&Tag> {
        match self {
            Self::Tag(tag) => Some(tag),
            Self::Digest(_) => None,
        }
    }
}

impl FromStr for Repository {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.len() > REPOSITORY_LEN_MAX {
            return Err(NameError::RepositoryTooLong(text.len()));
        }
        if text.split('/').all(is_component) {
            return Ok(Self(text.into()));
        }
        Err(NameError::Repository(text.to_owned()))
    }
}

impl FromStr for Tag {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let starts = text.bytes().next().is_some_and(word);
        if starts && text.len() <= TAG_LEN_MAX && text.bytes().all(|b| word(b) || matches!(b, b'.' | b'-')) {
            return Ok(Self(text.into()));
        }
        Err(NameError::Tag(text.chars().take(TAG_LEN_MAX + 1).collect()))
    }
}

impl FromStr for Reference {
    type Err = NameError;

    /// A text with a colon is a digest or nothing: no tag holds one.
    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.contains(':') { Ok(Self::Digest(text.parse()?)) } else { Ok(Self::Tag(text.parse()?)) }
    }
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
fn is_component(text: &str) -> bool {
    let word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut rest = text.as_bytes();
    loop {
        let words = rest.iter().take_while(|byte| word(byte)).count();
        let (run, after) = rest.split_at(words);
        if run.is_empty() {
            return false;
        }
        let separators = after.iter().take_while(|byte| !word(byte)).count();
        let (separator, next) = after.split_at(separators);
        match separator {
            [] => return true,
            b"." | b"_" | b"__" => {}
            dashes if dashes.iter().all(|byte| *byte == b'-') => {}
            _ => return false,
        }
        rest = next;
    }
}

macro_rules! text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }
    };
}

text!(Repository);
text!(Tag);

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => tag.fmt(f),
            Self::Digest(digest) => fmt::Display::fmt(digest, f),
        }
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for Reference {
    fn from(digest: Digest) -> Self {
        Self::Digest(digest)
    }
}

impl From<Tag> for Reference {
    fn from(tag: Tag) -> Self {
        Self::Tag(tag)
    }
}

#[cfg(test)]
mod tests;
