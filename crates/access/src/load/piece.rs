//! The text of one object, in whichever form it came, and how it is parsed.
//!
//! INVARIANT: what is said about text that cannot be parsed never quotes it. It may be a Secret.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::de::{DeserializeSeed, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::Error as YamlError;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};

use super::nesting::Nesting;

/// One object, unparsed or as a value.
#[derive(Clone, Copy)]
pub(super) enum Piece<'p> {
    /// JSON, from its first to its last byte.
    Json(&'p [u8]),
    /// A YAML document.
    Yaml(&'p str),
    /// A value.
    Value(&'p Value),
}

/// Why a piece does not parse, without its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// What is wrong with it: `is not valid JSON`.
    pub(super) what: &'static str,
    /// Lines before the fault, within the piece.
    pub(super) lines: u32,
    /// Bytes before the fault, within the piece; zero where that is not known.
    pub(super) bytes: u64,
}

impl Fault {
    /// A fault of the object as a whole.
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, lines: 0, bytes: 0 }
    }
}

/// What an object says that it is; empty where it does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head<'p> {
    /// `apiVersion`.
    pub(super) api_version: Cow<'p, str>,
    /// `kind`.
    pub(super) kind: Cow<'p, str>,
}

impl<'p> Piece<'p> {
    /// Parses it.
    pub(super) fn read<T: Deserialize<'p>>(self) -> Result<T, Fault> {
        self.read_seed(std::marker::PhantomData)
    }

    /// Parses it by a seed.
    pub(super) fn read_seed<S: DeserializeSeed<'p> + Copy>(self, seed: S) -> Result<S::Value, Fault> {
        match self {
            Self::Json(bytes) => {
                let mut parser = serde_json::Deserializer::from_slice(bytes);
                let value = seed.deserialize(&mut parser);
                value
                    .and_then(|value| parser.end().map(|()| value))
                    .map_err(|error| json_fault(&error, bytes))
            }
            Self::Yaml(text) => {
                let read = |duplicates| {
                    let options = yaml_options(duplicates);
                    let read = |parser: serde_saphyr::Deserializer<'p, '_>| seed.deserialize(parser);
                    serde_saphyr::with_deserializer_from_str_with_options(text, options, read)
                };
                // Looking out for equal keys costs as much again as parsing, and hardly any text has them.
                let value = read(DuplicateKeyPolicy::PassThrough);
                value.or_else(|_| read(DuplicateKeyPolicy::LastWins)).map_err(|error| yaml_fault(&error))
            }
            Self::Value(value) => {
                seed.deserialize(value).map_err(|_| Fault::new("has a value of the wrong type"))
            }
        }
    }

    /// What it says that it is. Text that cannot be parsed says nothing.
    pub(super) fn head(self) -> Head<'p> {
        match self {
            Self::Json(bytes) => json_head(bytes).unwrap_or_default(),
            Self::Yaml(text) => yaml_head(text).or_else(|| self.read().ok()).unwrap_or_default(),
            Self::Value(_) => self.read().unwrap_or_default(),
        }
    }

    /// Its text; empty for a value.
    pub(super) fn text(self) -> &'p [u8] {
        match self {
            Self::Json(bytes) => bytes,
            Self::Yaml(text) => text.as_bytes(),
            Self::Value(_) => &[],
        }
    }

    /// Whether the text holds a word. For a value that is not known, so it may.
    pub(super) fn may_mention(self, word: &str) -> bool {
        matches!(self, Self::Value(_)) || memchr::memmem::find(self.text(), word.as_bytes()).is_some()
    }
}

impl<'de: 'p, 'p> Deserialize<'de> for Head<'p> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'p> {
            #[serde(borrow, default)]
            api_version: Option<super::wire::Text<'p>>,
            #[serde(borrow, default)]
            kind: Option<super::wire::Text<'p>>,
        }
        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            api_version: wire.api_version.unwrap_or_default().0,
            kind: wire.kind.unwrap_or_default().0,
        })
    }
}

/// Reads no further than to the second of the two: in what an API server wrote, they come first.
fn json_head(bytes: &[u8]) -> Option<Head<'_>> {
    let mut head = Head::default();
    let mut rest = blank(bytes).strip_prefix(b"{")?;
    loop {
        rest = blank(rest);
        let (key, after) = json_string(rest)?;
        rest = blank(blank(after).strip_prefix(b":")?);
        let after = json_skip(rest)?;
        let value = rest.get(..rest.len() - after.len()).unwrap_or_default();
        match key {
            b"apiVersion" => head.api_version = json_text(value),
            b"kind" => head.kind = json_text(value),
            _ => {}
        }
        if !head.kind.is_empty() && !head.api_version.is_empty() {
            return Some(head);
        }
        rest = blank(after);
        match rest.strip_prefix(b",") {
            Some(after) => rest = after,
            None => return Some(head),
        }
    }
}

/// JSON without the blanks at its start.
fn blank(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(bytes.len());
    bytes.get(end..).unwrap_or_default()
}

/// The inside of a string at the start, escapes as they are, and what comes behind it.
fn json_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = bytes.strip_prefix(b"\"")?;
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', inside.get(at..)?)?;
        if inside.get(at) == Some(&b'"') {
            return Some((inside.get(..at)?, inside.get(at + 1..)?));
        }
        at += 2;
    }
}

/// What comes behind the value at the start.
fn json_skip(bytes: &[u8]) -> Option<&[u8]> {
    match bytes.first()? {
        b'{' | b'[' => bytes.get(Nesting::default().advance(bytes)?..),
        b'"' => json_string(bytes).map(|(_, after)| after),
        _ => {
            let end = bytes.iter().position(|byte| matches!(byte, b',' | b'}' | b']'))?;
            bytes.get(end..)
        }
    }
}

fn json_text(value: &[u8]) -> Cow<'_, str> {
    serde_json::from_slice::<super::wire::Text<'_>>(value).unwrap_or_default().0
}

/// Reads the two off their lines where that is plain; none where it is not.
fn yaml_head(text: &str) -> Option<Head<'_>> {
    let first = text.lines().find(|line| {
        let line = line.trim_start();
        !(line.is_empty() || line.starts_with(['#', '%']) || line.starts_with("---"))
    })?;
    let margin = first.len() - first.trim_start_matches(' ').len();
    let mut head = Head::default();
    for line in text.lines() {
        let Some((blanks, line)) = line.split_at_checked(margin) else { continue };
        if !blanks.bytes().all(|byte| byte == b' ') {
            continue;
        }
        if let Some(value) = line.strip_prefix("apiVersion:") {
            head.api_version = Cow::Borrowed(plain(value)?);
        } else if let Some(value) = line.strip_prefix("kind:") {
            head.kind = Cow::Borrowed(plain(value)?);
        }
        if !head.kind.is_empty() && !head.api_version.is_empty() {
            return Some(head);
        }
    }
    None
}

fn plain(value: &str) -> Option<&str> {
    let value = value.trim();
    let is_plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./-".contains(&byte))
    };
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    is_plain(value).then_some(value)
}

/// Reads what `kubectl` reads: the last of two equal keys counts. The amounts follow from the bound on a document; the
/// depth stays at 64, more than schemas come to, since unoptimised it takes 25 KB of stack for each.
fn yaml_options(duplicate_keys: DuplicateKeyPolicy) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: 8_000_000,
            max_events: 20_000_000,
        },
        // People's manifests repeat a few hundred nodes by aliases; a bomb of 1 KB repeats a million in 400 MB.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
        duplicate_keys: duplicate_keys,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        emit_comments: false,
        with_snippet: false,
    }
}

fn json_fault(error: &serde_json::Error, bytes: &[u8]) -> Fault {
    let what = match error.classify() {
        serde_json::error::Category::Data => "has a value of the wrong type",
        _ if serde_json::from_slice::<IgnoredAny>(bytes).is_ok() => "is nested too deep or not in UTF-8",
        _ => "is not valid JSON",
    };
    let lines = error.line().saturating_sub(1);
    let start = match lines {
        0 => 0,
        lines => memchr::memchr_iter(b'\n', bytes).nth(lines - 1).map_or(0, |end| end + 1),
    };
    let at = start + error.column().saturating_sub(1);
    Fault { what, lines: u32::try_from(lines).unwrap_or(u32::MAX), bytes: at as u64 }
}

fn yaml_fault(error: &YamlError) -> Fault {
    let mut cause = error;
    // A fault in what an alias stands for is wrapped in one of the alias.
    while let YamlError::AliasError { error, .. } | YamlError::WithSnippet { error, .. } = cause {
        cause = error;
    }
    let what = match cause {
        YamlError::Unexpected { .. }
        | YamlError::NullIntoString { .. }
        | YamlError::InvalidScalar { .. }
        | YamlError::SerdeInvalidType { .. }
        | YamlError::SerdeInvalidValue { .. }
        | YamlError::SerdeMissingField { .. } => "has a value of the wrong type",
        YamlError::Budget { .. } => "is too large or nested too deep",
        YamlError::AliasReplayLimitExceeded { .. } => "repeats far too much by aliases",
        _ => "is not valid YAML",
    };
    let line = error.location().map_or(1, |location| location.line());
    Fault { what, lines: u32::try_from(line.saturating_sub(1)).unwrap_or(u32::MAX), bytes: 0 }
}
