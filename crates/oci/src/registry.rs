//! Which registry is meant: its name, and the closed list of those that this cache serves.
//!
//! INVARIANT: what a client writes is only ever compared with the list; nothing that it names is dialled.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::name::Repository;

/// The name that Docker Hub goes by in image names.
const HUB: &str = "docker.io";
/// Other names of Docker Hub: what old clients write, and the host that serves its API.
const HUB_ALIASES: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];
/// Longer than any DNS name with a port.
const NAME_LEN_MAX: usize = 262;

/// A registry as image names say it: a host, in lower case, with a port if there is one.
///
/// The aliases of Docker Hub are all `docker.io`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Registry(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no registry: write its host as image names do, with a port if it needs one, as in `registry.example` \
     or `registry.example:5000`"
)]
pub struct RegistryError(String);

impl Registry {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is Docker Hub, whose names alone are completed with `library/`.
    pub fn is_hub(&self) -> bool {
        &*self.0 == HUB
    }

    /// The host that serves this registry's API unless the configuration says another.
    pub fn api_host(&self) -> &str {
        if self.is_hub() { "registry-1.docker.io" } else { &self.0 }
    }

    /// Completes a one-word name of Docker Hub with `library/`; leaves all others alone.
    pub fn complete(&self, repository: Repository) -> Repository {
        if !self.is_hub() || repository.as_str().contains('/') {
            return repository;
        }
        // A name that gets too long by this cannot exist there, so it stays as it is and is answered 404 by the hub.
        format!("library/{repository}").parse().unwrap_or(repository)
    }
}

impl FromStr for Registry {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Self, RegistryError> {
        let wrong = || RegistryError(text.chars().take(NAME_LEN_MAX).collect());
        let (host, port) = split_port(text).ok_or_else(wrong)?;
        let port_fits = port.is_none_or(|port| {
            port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if text.len() > NAME_LEN_MAX || !port_fits || !is_host(host) {
            return Err(wrong());
        }
        let name = text.to_ascii_lowercase();
        Ok(Self(if HUB_ALIASES.contains(&name.as_str()) { HUB.into() } else { name.into() }))
    }
}

/// Whether the first part of a longer name can only be a host, by the rule of Docker's image names.
pub(crate) fn looks_like_host(part: &str) -> bool {
    part.contains(['.', ':']) || part == "localhost"
}

/// The host, with its brackets if it is an IPv6 address, and the port.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    if text.starts_with('[') {
        let end = text.find(']')?;
        let (host, rest) = text.split_at_checked(end + 1)?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        Some((host, port)) => Some((host, Some(port))),
        None => Some((text, None)),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let label = |label: &str| {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(fits) && !label.starts_with('-')
    };
    host.split('.').all(label)
}

/// The registries that this cache serves, and the one that is meant where a request names none.
#[derive(Clone, Debug, Default)]
pub struct Upstreams {
    names: Vec<Registry>,
    default: Option<Registry>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamsError {
    #[error("registry `{0}` is listed twice among the upstreams: docker.io and its aliases are one registry")]
    Twice(Registry),
    #[error("default upstream `{0}` is not among the upstreams: add it to them")]
    UnknownDefault(Registry),
}

impl Upstreams {
    /// Checks that the list has no doubles and holds the default.
    pub fn new(
        names: impl IntoIterator<Item = Registry>,
        default: Option<Registry>,
    ) -> Result<Self, UpstreamsError> {
        let mut listed = Vec::new();
        for name in names {
            if listed.contains(&name) {
                return Err(UpstreamsError::Twice(name));
            }
            listed.push(name);
        }
        match default {
            Some(default) if !listed.contains(&default) => Err(UpstreamsError::UnknownDefault(default)),
            default => Ok(Self { names: listed, default }),
        }
    }

    pub fn contains(&self, registry: &Registry) -> bool {
        self.names.contains(registry)
    }

    pub fn default_upstream(&self) -> Option<&Registry> {
        self.default.as_ref()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Registry> {
        self.names.iter()
    }

    /// The listed registry that `text` names, in any of its spellings.
    pub(crate) fn find(&self, text: &str) -> Option<&Registry> {
        // The hot path meets exact names; parsing is for other spellings.
        if let Some(name) = self.names.iter().find(|name| name.as_str() == text) {
            return Some(name);
        }
        let parsed: Registry = text.parse().ok()?;
        self.names.iter().find(|name| **name == parsed)
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Registry {
    type Error = RegistryError;

    fn try_from(text: String) -> Result<Self, RegistryError> {
        text.parse()
    }
}

impl From<Registry> for String {
    fn from(registry: Registry) -> Self {
        registry.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests;
