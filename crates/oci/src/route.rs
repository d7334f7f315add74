//! What a request of the distribution API asks for, and of which upstream.
//!
//! The upstream is named by `ns=` (what containerd adds for a mirror), by a first path part that is a listed registry
//! (`/v2/registry.example/acme/app/...`, what CRI-O and people write), or it is the default; in this order. Only
//! listed registries are ever the answer. A request without any is refused rather than guessed at: a 404 would say
//! that the image does not exist.

use std::borrow::Cow;
use std::fmt;

use crate::digest::{Digest, DigestError};
use crate::errors::Code;
use crate::name::{NameError, Reference, Repository};
use crate::page::{self, Page, Query, QueryError};
use crate::registry::{Registry, Upstreams, looks_like_host};

/// The longest path and query together, in bytes; names, digests and paging stay far below.
pub const TARGET_LEN_MAX: usize = 8 * 1024;

/// What a path of the distribution API means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/v2/`, by which clients ask whether the API is spoken here.
    Base,
    Request(Request),
}

/// Something of one repository of one upstream.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Request {
    pub upstream: Registry,
    /// Without the registry, and with `library/` where Docker Hub needs it.
    pub repository: Repository,
    pub resource: Resource,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    Manifest(Reference),
    Blob(Digest),
    Tags(Page),
    Referrers {
        subject: Digest,
        artifact_type: Option<String>,
        /// Paging of the upstream's own.
        page: Page,
    },
}

/// Why a path means nothing here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("the path is not of the distribution API: it starts with `/v2/`")]
    NotApi,
    #[error("the path and query are longer than {TARGET_LEN_MAX} bytes")]
    TooLong,
    #[error("this cache serves manifests, blobs, tags and referrers for reading; `{0}` is none of them")]
    Unsupported(String),
    #[error("`{0}` holds an encoded slash: write slashes between the parts of a name as they are")]
    EncodedSlash(String),
    #[error(transparent)]
    Name(NameError),
    #[error(transparent)]
    Digest(DigestError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(
        "registry `{0}` is not among this cache's upstreams: add it there, or take this cache out of the node's mirrors \
         for it"
    )]
    UnknownUpstream(String),
    #[error(
        "no registry is named and this cache has no default upstream: add `?ns=REGISTRY` or write the registry in \
         front of the repository"
    )]
    NoUpstream,
}

impl RouteError {
    /// The code to send in the body.
    pub fn code(&self) -> Code {
        match self {
            Self::NotApi | Self::Unsupported(_) => Code::Unsupported,
            Self::TooLong | Self::EncodedSlash(_) | Self::Name(_) | Self::Query(_) => Code::NameInvalid,
            Self::Digest(_) => Code::DigestInvalid,
            Self::UnknownUpstream(_) | Self::NoUpstream => Code::Denied,
        }
    }

    /// The HTTP status to send. 404 only for paths that no image can be at.
    pub fn status(&self) -> u16 {
        match self {
            Self::NotApi | Self::Unsupported(_) => 404,
            Self::TooLong => 414,
            Self::EncodedSlash(_) | Self::Name(_) | Self::Digest(_) | Self::Query(_) => 400,
            Self::UnknownUpstream(_) | Self::NoUpstream => 403,
        }
    }
}

impl From<NameError> for RouteError {
    fn from(error: NameError) -> Self {
        match error {
            NameError::Digest(error) => Self::Digest(error),
            other => Self::Name(other),
        }
    }
}

/// Reads a request's path and query, both as they came on the wire.
pub fn route(path: &str, query: Option<&str>, upstreams: &Upstreams) -> Result<Route, RouteError> {
    let query = query.unwrap_or_default();
    if path.len().saturating_add(query.len()) > TARGET_LEN_MAX {
        return Err(RouteError::TooLong);
    }
    let rest = match path.strip_prefix("/v2") {
        Some("" | "/") => return Ok(Route::Base),
        Some(rest) => rest.strip_prefix('/').ok_or(RouteError::NotApi)?,
        None => return Err(RouteError::NotApi),
    };
    let mut query = Query::parse(query)?;
    let namespace = query.take("ns").filter(|text| !text.is_empty());
    let parts = rest.split('/').map(page::decode).collect::<Result<Vec<_>, _>>()?;
    if let Some(part) = parts.iter().find(|part| part.contains('/')) {
        return Err(RouteError::EncodedSlash(part.chars().take(80).collect()));
    }
    let (name, resource) = split(&parts, query)?;
    let (upstream, name) = choose(name, namespace.as_deref(), upstreams)?;
    let repository: Repository = name.join("/").parse()?;
    let repository = upstream.complete(repository);
    Ok(Route::Request(Request { upstream: upstream.clone(), repository, resource }))
}

/// Splits a path into the parts of its name and the resource at its end.
///
/// From the end, since `manifests`, `blobs` and `tags` are also good parts of a name.
fn split<'p, 't>(
    parts: &'p [Cow<'t, str>],
    mut query: Query<'_>,
) -> Result<(&'p [Cow<'t, str>], Resource), RouteError> {
    let unsupported = || RouteError::Unsupported(shown(parts));
    let [name @ .., kind, last] = parts else { return Err(unsupported()) };
    if name.is_empty() {
        return Err(unsupported());
    }
    let resource = match (kind.as_ref(), last.as_ref()) {
        ("manifests", reference) => Resource::Manifest(reference.parse::<Reference>()?),
        ("blobs", digest) => Resource::Blob(digest.parse().map_err(RouteError::Digest)?),
        ("tags", "list") => Resource::Tags(query.into_page()?),
        ("referrers", digest) => Resource::Referrers {
            subject: digest.parse().map_err(RouteError::Digest)?,
            artifact_type: query.take("artifactType").filter(|kind| !kind.is_empty()),
            page: query.into_page()?,
        },
        _ => return Err(unsupported()),
    };
    Ok((name, resource))
}

/// Picks the upstream, and what of the name belongs to the repository.
fn choose<'p, 't, 'u>(
    name: &'p [Cow<'t, str>],
    namespace: Option<&str>,
    upstreams: &'u Upstreams,
) -> Result<(&'u Registry, &'p [Cow<'t, str>]), RouteError> {
    let (first, rest) = match name {
        [first, rest @ ..] if !rest.is_empty() => (Some(first.as_ref()), rest),
        _ => (None, name),
    };
    let unknown = |text: &str| RouteError::UnknownUpstream(text.chars().take(80).collect());
    if let Some(namespace) = namespace {
        let upstream = upstreams.find(namespace).ok_or_else(|| unknown(namespace))?;
        // A mirror whose URL ends in `/v2/REGISTRY` says the registry twice.
        let twice = first.and_then(|first| upstreams.find(first)).is_some_and(|named| named == upstream);
        return Ok((upstream, if twice { rest } else { name }));
    }
    match first {
        Some(first) if let Some(upstream) = upstreams.find(first) => Ok((upstream, rest)),
        Some(first) if looks_like_host(first) => Err(unknown(first)),
        _ => Ok((upstreams.default_upstream().ok_or(RouteError::NoUpstream)?, name)),
    }
}

fn shown(parts: &[Cow<'_, str>]) -> String {
    parts.join("/").chars().take(80).collect()
}

impl Request {
    /// The path and query that ask an upstream for this, `/v2/` included.
    pub fn target(&self) -> String {
        let name = &self.repository;
        let with_query = |path: String, query: String| {
            if query.is_empty() { path } else { format!("{path}?{query}") }
        };
        match &self.resource {
            Resource::Manifest(reference) => format!("/v2/{name}/manifests/{reference}"),
            Resource::Blob(digest) => format!("/v2/{name}/blobs/{digest}"),
            Resource::Tags(page) => with_query(format!("/v2/{name}/tags/list"), page.query()),
            Resource::Referrers { subject, artifact_type, page } => {
                let kind = artifact_type.as_deref().map(|kind| ("artifactType", kind));
                let query = [page::write_query(kind.into_iter()), page.query()];
                let query: Vec<_> = query.into_iter().filter(|part| !part.is_empty()).collect();
                with_query(format!("/v2/{name}/referrers/{subject}"), query.join("&"))
            }
        }
    }

    /// The same with the registry in front of the repository: how a cache above this one is asked.
    pub fn target_of_parent(&self) -> String {
        let own = self.target();
        match own.strip_prefix("/v2/") {
            Some(rest) => format!("/v2/{}/{rest}", self.upstream),
            None => own,
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target_of_parent())
    }
}

#[cfg(test)]
mod tests;
