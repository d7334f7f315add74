//! Images by their full names, and the machines that they are for.
//!
//! A full name has a registry, a repository and a tag or a digest: nothing is completed by where somebody is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::manifest::Platform;
use crate::name::{Reference, Repository};
use crate::registry::{Registry, looks_like_host};
use crate::visibility::Place;

/// An image by its full name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Image {
    pub registry: Registry,
    pub repository: Repository,
    pub reference: Reference,
}

/// What kind of machine an image is for, as OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    pub os: String,
    pub architecture: String,
    /// Any of them where absent.
    pub variant: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no image; write REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@DIGEST")]
pub struct ImageError(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no platform; write OS/ARCHITECTURE, as in `linux/amd64`")]
pub struct TargetError(String);

impl Image {
    /// The repository that the image is in.
    pub fn place(&self) -> Place {
        Place { upstream: self.registry.clone(), repository: self.repository.clone() }
    }
}

impl Image {
    /// Reads a name as pods have it: without a registry it is of Docker Hub, without a tag it is `latest`.
    pub fn short(text: &str) -> Result<Self, ImageError> {
        let named = text.split_once('/').is_some_and(|(first, _)| looks_like_host(first));
        let full = if named { text.to_owned() } else { format!("docker.io/{text}") };
        let last = full.rsplit('/').next().unwrap_or_default();
        let complete = if last.contains([':', '@']) { full } else { format!("{full}:latest") };
        complete.parse().map_err(|_| ImageError(text.to_owned()))
    }
}

impl FromStr for Image {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        let wrong = || ImageError(text.to_owned());
        let (registry, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (name, reference) = match rest.split_once('@') {
            // A tag before a digest says nothing more.
            Some((name, digest)) => (name.split(':').next().unwrap_or(name), digest),
            None => rest.rsplit_once(':').ok_or_else(wrong)?,
        };
        let registry: Registry = registry.parse().map_err(|_| wrong())?;
        let repository: Repository = name.parse().map_err(|_| wrong())?;
        Ok(Self {
            repository: registry.complete(repository),
            registry,
            reference: reference.parse().map_err(|_| wrong())?,
        })
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.reference.digest().is_some() { '@' } else { ':' };
        write!(f, "{}/{}{mark}{}", self.registry, self.repository, self.reference)
    }
}

impl TryFrom<String> for Image {
    type Error = ImageError;

    fn try_from(text: String) -> Result<Self, ImageError> {
        text.parse()
    }
}

impl From<Image> for String {
    fn from(image: Image) -> Self {
        image.to_string()
    }
}

impl Target {
    /// What most machines are.
    pub fn usual() -> Self {
        Self { os: "linux".to_owned(), architecture: "amd64".to_owned(), variant: None }
    }

    /// Whether a part of an index is for this. What names no platform, such as a nested index, is for all.
    pub fn wants(&self, platform: Option<&Platform>) -> bool {
        platform.is_none_or(|platform| {
            platform.os == self.os
                && platform.architecture == self.architecture
                && self.variant.as_ref().is_none_or(|wanted| platform.variant.as_ref() == Some(wanted))
        })
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let mut parts = text.split('/');
        let (os, architecture, variant) = (parts.next(), parts.next(), parts.next().map(str::to_owned));
        match (os, architecture, parts.next()) {
            (Some(os), Some(architecture), None)
                if !os.is_empty() && !architecture.is_empty() && variant.as_deref() != Some("") =>
            {
                Ok(Self { os: os.to_owned(), architecture: architecture.to_owned(), variant })
            }
            _ => Err(TargetError(text.to_owned())),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

impl TryFrom<String> for Target {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, TargetError> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

#[cfg(test)]
mod tests;
