//! Patterns of names in a configuration: `registry.example/acme/*`.
//!
//! `*` stands for any run of characters, slashes included, and `?` for one. Matching takes at most the product of both
//! lengths in steps, whatever the pattern.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest pattern, in bytes.
const LEN_MAX: usize = 512;

/// A pattern over the text of a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is empty: write `*` to match everything")]
    Empty,
    #[error("the pattern is longer than {LEN_MAX} bytes")]
    TooLong,
}

impl Pattern {
    /// The pattern that matches everything.
    pub fn any() -> Self {
        Self("*".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn matches(&self, text: &str) -> bool {
        glob(self.0.as_bytes(), text.as_bytes())
    }
}

/// Matches by going back to the last star only: what an earlier one took never has to change.
fn glob(mut pattern: &[u8], mut text: &[u8]) -> bool {
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern, text) {
            ([b'*', rest @ ..], _) => {
                retry = Some((rest, text));
                pattern = rest;
            }
            ([wanted, pattern_rest @ ..], [found, text_rest @ ..]) if wanted == found || *wanted == b'?' => {
                pattern = pattern_rest;
                text = text_rest;
            }
            ([], []) => return true,
            _ => {
                let Some((after_star, [_, rest @ ..])) = retry else { return false };
                retry = Some((after_star, rest));
                pattern = after_star;
                text = rest;
            }
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        match text.len() {
            0 => Err(PatternError::Empty),
            1..=LEN_MAX => Ok(Self(text.to_owned())),
            _ => Err(PatternError::TooLong),
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
