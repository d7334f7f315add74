//! Media types: what kind of thing a manifest is, by the type that its upstream gave it.
//!
//! The type is kept as it came and sent again as it came: clients read a manifest by it, and containerd takes a
//! `text/plain` one for the first Docker schema and refuses it.

use std::fmt;
use std::sync::Arc;

/// `application/octet-stream`, the type of every blob.
pub const OCTETS: &str = "application/octet-stream";

/// The manifest types to ask an upstream for, in order of liking: the value of `Accept`.
pub const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.oci.artifact.manifest.v1+json, application/json, */*;q=0.1";

const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_ARTIFACT: &str = "application/vnd.oci.artifact.manifest.v1+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_SCHEMA1: [&str; 2] = [
    "application/vnd.docker.distribution.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v1+prettyjws",
];

/// Longer than any that is registered; RFC 6838 allows 127 for each of its two names.
const LEN_MAX: usize = 255;

/// The type of a manifest, as its upstream wrote it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MediaType(Arc<str>);

/// What a manifest refers to, as far as a cache cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Other manifests, one for each platform or purpose.
    Index,
    /// A config and layers; or an artifact's blobs.
    Manifest,
    /// Docker's first schema: signed, without sizes, refused by today's clients.
    Schema1,
    /// Anything else, `text/plain` and `application/json` among them.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no media type: it is written as `type/subtype`")]
pub struct MediaTypeError(String);

impl MediaType {
    /// Takes the value of a `Content-Type` header, parameters included.
    pub fn new(text: &str) -> Result<Self, MediaTypeError> {
        let text = text.trim();
        let wrong = || MediaTypeError(text.chars().take(80).collect());
        let (kind, rest) = essence(text).split_once('/').ok_or_else(wrong)?;
        let printable = text.bytes().all(|b| (0x20..0x7f).contains(&b));
        if text.len() > LEN_MAX || !printable || !is_token(kind) || !is_token(rest) {
            return Err(wrong());
        }
        Ok(Self(text.into()))
    }

    /// The type as it came.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The type without parameters.
    pub fn essence(&self) -> &str {
        essence(&self.0)
    }

    pub fn kind(&self) -> Kind {
        kind(self.essence())
    }
}

/// The kind that a type means, without parameters.
pub fn kind(essence: &str) -> Kind {
    let is = |known: &str| essence.eq_ignore_ascii_case(known);
    if is(OCI_INDEX) || is(DOCKER_INDEX) {
        Kind::Index
    } else if is(OCI_MANIFEST) || is(DOCKER_MANIFEST) || is(OCI_ARTIFACT) {
        Kind::Manifest
    } else if DOCKER_SCHEMA1.into_iter().any(is) {
        Kind::Schema1
    } else {
        Kind::Other
    }
}

fn essence(text: &str) -> &str {
    text.split_once(';').map_or(text, |(essence, _)| essence).trim_end()
}

/// A token of RFC 9110, 5.6.2.
pub(crate) fn is_token(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(fits)
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
