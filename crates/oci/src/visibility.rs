//! Who may be given what: repositories are for everyone or for named clusters and tenants, and a blob is as visible as
//! the repositories that it was seen in.
//!
//! Content is kept once whoever brought it, so knowing a digest must not be enough: a blob of a private repository is
//! not served through another one. INVARIANT: content is given out only if the client may read the repository that it
//! asks, and the content is known from a repository that the client may read, or the upstream has just been asked.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::name::Repository;
use crate::pattern::Pattern;
use crate::registry::Registry;

/// A repository of an upstream: what content is linked to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub upstream: Registry,
    pub repository: Repository,
}

/// Who asks, as proven by its certificate or the listener it came through.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    pub cluster: Option<Arc<str>>,
    pub tenants: BTreeSet<Arc<str>>,
    /// Where no cluster is proven, the one whose share this counts to; it opens nothing.
    pub guest_of: Option<Arc<str>>,
}

impl Client {
    /// The cluster whose share of a cache this counts to.
    pub fn party(&self) -> Option<Arc<str>> {
        self.cluster.as_ref().or(self.guest_of.as_ref()).cloned()
    }
}

/// Whom a repository is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    Everyone,
    /// Whoever is of one of these clusters or tenants; nobody if there are none.
    Only {
        clusters: BTreeSet<Arc<str>>,
        tenants: BTreeSet<Arc<str>>,
    },
}

/// Which repositories, written `REGISTRY/REPOSITORY`, are for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub images: Pattern,
    pub audience: Audience,
}

/// All grants of one cache.
#[derive(Clone, Debug)]
pub struct Visibility {
    /// The first that matches decides.
    pub grants: Vec<Grant>,
    /// For repositories that no grant names.
    pub otherwise: Audience,
}

/// What a client that asks for content by digest gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// What is here.
    Serve,
    /// What is here, once the upstream has been asked for it in this repository and has it.
    AskUpstream,
    /// Nothing: the repository is not for this client. Said alike whether the content exists or not.
    Refuse,
}

impl Default for Visibility {
    /// All is for everyone: right for a cache without credentials.
    fn default() -> Self {
        Self { grants: Vec::new(), otherwise: Audience::Everyone }
    }
}

impl Audience {
    /// The audience that nobody is in.
    pub fn nobody() -> Self {
        Self::Only { clusters: BTreeSet::new(), tenants: BTreeSet::new() }
    }

    pub fn has(&self, client: &Client) -> bool {
        match self {
            Self::Everyone => true,
            Self::Only { clusters, tenants } => {
                client.cluster.as_ref().is_some_and(|cluster| clusters.contains(cluster))
                    || !tenants.is_disjoint(&client.tenants)
            }
        }
    }
}

impl Visibility {
    /// Whom a repository is for.
    pub fn audience(&self, place: &Place) -> &Audience {
        let text = place.to_string();
        let grant = self.grants.iter().find(|grant| grant.images.matches(&text));
        grant.map_or(&self.otherwise, |grant| &grant.audience)
    }

    /// Whether a client may ask a repository anything: tags, manifests, referrers, blobs.
    pub fn may_read(&self, client: &Client, place: &Place) -> bool {
        self.audience(place).has(client)
    }

    /// Whether nothing is kept from anybody: then it does not matter where content came from.
    pub fn is_open(&self) -> bool {
        let audiences = self.grants.iter().map(|grant| &grant.audience).chain([&self.otherwise]);
        audiences.into_iter().all(|audience| *audience == Audience::Everyone)
    }

    /// Decides about content that is here and linked to `links`, asked for in `place`.
    pub fn access<'a>(
        &self,
        client: &Client,
        place: &Place,
        links: impl IntoIterator<Item = &'a Place>,
    ) -> Access {
        if !self.may_read(client, place) {
            return Access::Refuse;
        }
        // Another repository will do if this client could have read the content there: shared layers are fetched once.
        let known = links.into_iter().any(|link| link == place || self.may_read(client, link));
        if known { Access::Serve } else { Access::AskUpstream }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.upstream, self.repository)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
