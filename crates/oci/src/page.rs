//! Which page of a list is asked for: `n`, `last`, and whatever an upstream's own paging needs.
//!
//! Registries page tags and referrers by `Link` headers whose query is theirs (`next_page`, opaque `last`), so unknown
//! parameters are kept and handed back. A page that was parsed makes a query that parses to it again.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// As many parameters as a request may have; more is no honest client.
const PARAMETERS_MAX: usize = 32;

/// What RFC 3986 calls unreserved, and what media types and digests are made of besides.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A page of tags or referrers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Page {
    /// At most how many entries are wanted.
    pub n: Option<u32>,
    /// After which entry the page starts.
    pub last: Option<String>,
    /// Parameters of the upstream's own paging, in the order they came.
    pub rest: Vec<(String, String)>,
}

impl Page {
    /// Whether the list is asked for from its start and as a whole.
    pub fn is_whole(&self) -> bool {
        self.n.is_none() && self.last.is_none() && self.rest.is_empty()
    }

    /// The query that asks for this page, without `?`; empty when nothing is asked.
    pub fn query(&self) -> String {
        let n = self.n.map(|n| ("n".to_owned(), n.to_string()));
        let last = self.last.clone().map(|last| ("last".to_owned(), last));
        let pairs: Vec<_> = n.into_iter().chain(last).chain(self.rest.iter().cloned()).collect();
        write_query(pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }
}

/// Why a query is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("the query has more than {PARAMETERS_MAX} parameters")]
    TooMany,
    #[error("the query is not valid percent-encoded UTF-8")]
    Encoding,
    #[error("`n={0}` in the query is no number of entries")]
    Number(String),
}

/// The parameters of a query, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    /// Takes `key=value&key=value` apart. A plus sign stays one: media types hold it, and no value here holds a space.
    pub fn parse(text: &'a str) -> Result<Self, QueryError> {
        let mut pairs = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            if pairs.len() == PARAMETERS_MAX {
                return Err(QueryError::TooMany);
            }
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            pairs.push((decode(key)?, decode(value)?));
        }
        Ok(Self(pairs))
    }

    /// Takes the first value of `key` out, and drops further ones.
    pub fn take(&mut self, key: &str) -> Option<String> {
        let found = self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone().into_owned());
        self.0.retain(|(name, _)| name != key);
        found
    }

    /// The page that the remaining parameters ask for.
    pub fn into_page(mut self) -> Result<Page, QueryError> {
        let n = match self.take("n").filter(|text| !text.is_empty()) {
            Some(text) => Some(number(&text)?),
            None => None,
        };
        let last = self.take("last").filter(|text| !text.is_empty());
        let rest = self.0.into_iter().map(|(key, value)| (key.into_owned(), value.into_owned())).collect();
        Ok(Page { n, last, rest })
    }
}

/// Writes pairs as a query without `?`.
pub(crate) fn write_query<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut query = String::new();
    for (key, value) in pairs {
        if !query.is_empty() {
            query.push('&');
        }
        query.extend([encode(key), "=".into(), encode(value)]);
    }
    query
}

/// Decodes one percent-encoded piece.
pub(crate) fn decode(text: &str) -> Result<Cow<'_, str>, QueryError> {
    if !text.contains('%') {
        return Ok(text.into());
    }
    percent_decode_str(text).decode_utf8().map_err(|_| QueryError::Encoding)
}

/// A number beyond what fits asks for more than anybody has: it is the largest that fits.
fn number(text: &str) -> Result<u32, QueryError> {
    if text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(text.parse().unwrap_or(u32::MAX));
    }
    Err(QueryError::Number(text.chars().take(32).collect()))
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.query())
    }
}

#[cfg(test)]
mod tests;
