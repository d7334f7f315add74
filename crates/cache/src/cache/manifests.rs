//! Manifests for clients: by digest from the store, by tag as fresh as the policy asks, else from the upstream.
//!
//! INVARIANT: the bytes and the media type that a client gets are those that the upstream sent.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bailey_oci::freshness::{Asked, Decision, Known};
use bailey_oci::manifest::{BYTES_MAX, Manifest as Parsed, served_type};
use bailey_oci::media::{self, MediaType};
use bailey_oci::status::Cause;
use bailey_oci::visibility::{Client, Place};
use bailey_oci::{Algorithm, Digest, Reference, Tag};
use bytes::Bytes;
use http::{Method, header};
use tokio::time::Instant;

use super::blobs::Kind;
use super::{Cache, REVALIDATE};
use crate::clock;
use crate::index::TagRecord;
use crate::store::fill::{Failure, Fill};
use crate::upstream::{Answer, Ask, CONTENT_DIGEST, Problem, text};

/// How much of manifests is kept in memory; they are some kilobytes each.
const MEMORY_BYTES_MAX: usize = 16 << 20;

/// A manifest as its upstream sent it.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub digest: Digest,
    pub media_type: Arc<str>,
    pub bytes: Bytes,
}

/// A manifest for a client, and why it could not be checked, if so.
#[derive(Clone, Debug)]
pub struct Served {
    pub manifest: Manifest,
    pub stale: Option<Stale>,
}

/// That a tag is served as it was.
#[derive(Clone, Copy, Debug)]
pub struct Stale {
    pub cause: Cause,
    /// Since the upstream was last heard.
    pub age: Duration,
}

/// Where a manifest that is here was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Memory,
    Disk,
}

/// Manifests that were served lately.
#[derive(Debug, Default)]
pub(super) struct Memory(RwLock<(HashMap<Digest, Manifest>, usize)>);

impl Memory {
    pub(super) fn get(&self, digest: &Digest) -> Option<Manifest> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).0.get(digest).cloned()
    }

    pub(super) fn put(&self, manifest: &Manifest) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if held.1 + manifest.bytes.len() > MEMORY_BYTES_MAX {
            *held = (HashMap::new(), 0);
        }
        if held.0.insert(manifest.digest, manifest.clone()).is_none() {
            held.1 += manifest.bytes.len();
        }
    }
}

impl Cache {
    /// Gives a manifest to a client that asks for it in `place`.
    pub async fn manifest(
        self: &Arc<Self>,
        client: &Client,
        place: &Place,
        reference: &Reference,
        deadline: Instant,
    ) -> Result<Served, Problem> {
        self.may_read(client, place)?;
        match reference {
            Reference::Digest(digest) => {
                if let Some((manifest, from)) = self.stored(digest).await {
                    self.prove(client, place, *digest, Kind::Manifest, None, deadline).await?;
                    self.note_children(place, &manifest, from);
                    self.metrics.hit(&place.upstream, manifest.bytes.len() as u64);
                    return Ok(Served { manifest, stale: None });
                }
                self.miss(client, deadline).await?;
                self.metrics.miss(&place.upstream);
                let manifest = self.fetch(place, reference, deadline).await?;
                Ok(Served { manifest, stale: None })
            }
            Reference::Tag(tag) => {
                if self.index().tag(place, tag).is_none() {
                    self.miss(client, deadline).await?;
                }
                self.tagged(place, tag, deadline).await
            }
        }
    }

    /// The same for the cache's own use, which may read everything.
    pub(super) async fn resolve(
        self: &Arc<Self>,
        place: &Place,
        reference: &Reference,
        deadline: Instant,
    ) -> Result<Served, Problem> {
        match reference {
            Reference::Digest(digest) => match self.stored(digest).await {
                Some((manifest, from)) => {
                    self.note_children(place, &manifest, from);
                    Ok(Served { manifest, stale: None })
                }
                None => {
                    let manifest = self.fetch(place, reference, deadline).await?;
                    Ok(Served { manifest, stale: None })
                }
            },
            Reference::Tag(tag) => self.tagged(place, tag, deadline).await,
        }
    }

    async fn tagged(
        self: &Arc<Self>,
        place: &Place,
        tag: &Tag,
        deadline: Instant,
    ) -> Result<Served, Problem> {
        let record = self.index().tag(place, tag);
        let held = match &record {
            Some(record) => self.stored(&record.digest).await.map(|(manifest, from)| {
                self.note_children(place, &manifest, from);
                (manifest, record.checked)
            }),
            None => None,
        };
        let age = |checked: u64| Duration::from_secs(clock::now().saturating_sub(checked));
        let known =
            held.as_ref().map_or(Known::Nothing, |(_, checked)| Known::Checked { age: age(*checked) });
        let freshness = self.freshness.freshness(&place.upstream, &place.repository, tag);
        let mut problem = Problem::of(Cause::UpstreamError);
        let mut decision = self.freshness.decide(freshness, known, None);
        // Asking, then fetching, then serving is the longest way; each step decides once more.
        for _ in 0..4 {
            match (decision, &held) {
                (Decision::Serve, Some((manifest, _))) => {
                    self.metrics.hit(&place.upstream, manifest.bytes.len() as u64);
                    return Ok(Served { manifest: manifest.clone(), stale: None });
                }
                (Decision::ServeStale(cause), Some((manifest, checked))) => {
                    self.metrics.stale(&place.upstream);
                    tracing::info!(%place, %tag, %problem, "served as it was");
                    let stale = Some(Stale { cause, age: age(*checked) });
                    return Ok(Served { manifest: manifest.clone(), stale });
                }
                (Decision::Revalidate, Some((manifest, _))) => {
                    let asked = match self.check(place, tag, manifest.digest, deadline).await {
                        Ok(true) => Asked::Same,
                        Ok(false) => Asked::Other,
                        Err(error) => {
                            problem = error;
                            Asked::Failed(problem.cause)
                        }
                    };
                    decision = self.freshness.decide(freshness, known, Some(asked));
                }
                (Decision::Fetch, _) => match self.fetch(place, &tag.clone().into(), deadline).await {
                    Ok(manifest) => {
                        self.metrics.miss(&place.upstream);
                        return Ok(Served { manifest, stale: None });
                    }
                    Err(error) => {
                        problem = error;
                        decision =
                            self.freshness.decide(freshness, known, Some(Asked::Failed(problem.cause)));
                    }
                },
                (Decision::NotFound, _) => {
                    self.index().put_tag(place, tag, None);
                    return Err(Problem { cause: Cause::NotFound, ..problem });
                }
                (
                    Decision::Unavailable(_)
                    | Decision::Serve
                    | Decision::ServeStale(_)
                    | Decision::Revalidate,
                    _,
                ) => {
                    return Err(problem);
                }
            }
        }
        Err(problem)
    }

    /// A manifest that is here, from memory or from the store.
    async fn stored(&self, digest: &Digest) -> Option<(Manifest, Origin)> {
        if let Some(manifest) = self.manifests.get(digest)
            && self.store.touch(digest)
        {
            return Some((manifest, Origin::Memory));
        }
        let record = self.index().blob(digest)?;
        let blob = self.store.read(digest).filter(|blob| blob.size <= BYTES_MAX as u64)?;
        let digest = *digest;
        let read = tokio::task::spawn_blocking(move || {
            use std::os::unix::fs::FileExt as _;
            let mut bytes = vec![0; usize::try_from(blob.size).unwrap_or(0)];
            blob.file.read_exact_at(&mut bytes, 0).ok()?;
            // It is small, so it is checked each time it is read from the disk.
            (Digest::of(digest.algorithm(), &bytes) == digest).then_some(Bytes::from(bytes))
        });
        let Some(bytes) = read.await.ok().flatten() else {
            self.store.discard(&digest);
            return None;
        };
        let media_type = record.media_type.or_else(|| claimed(&bytes))?;
        let manifest = Manifest { digest, media_type, bytes };
        self.manifests.put(&manifest);
        Some((manifest, Origin::Disk))
    }

    /// After a restart, remembers again what a manifest says about the sizes of its parts: a length that contradicts it
    /// is then found at the head of an upstream's answer.
    fn note_children(&self, place: &Place, manifest: &Manifest, from: Origin) {
        if from == Origin::Memory {
            return;
        }
        let parsed =
            MediaType::new(&manifest.media_type).ok().map(|kind| Parsed::parse(&manifest.bytes, &kind));
        if let Some(Ok(parsed)) = parsed {
            let sizes = parsed.children.iter().map(|child| (child.descriptor.digest, child.descriptor.size));
            self.note_sizes(place, sizes);
        }
    }

    /// Asks the upstream whether a tag still means this digest.
    async fn check(
        self: &Arc<Self>,
        place: &Place,
        tag: &Tag,
        digest: Digest,
        deadline: Instant,
    ) -> Result<bool, Problem> {
        let deadline = deadline.min(Instant::now() + REVALIDATE);
        let (cache, at, named) = (self.clone(), place.clone(), tag.clone());
        let ask = || async move {
            let answer = cache.head(&at, &named.clone().into(), Instant::now() + REVALIDATE).await?;
            let same = said(&answer) == Some(digest);
            if same {
                let record = TagRecord { digest, checked: clock::now() };
                cache.index().put_tag(&at, &named, Some(record));
            }
            Ok(same)
        };
        self.fly(&self.flights.checks, (place.clone(), tag.clone()), deadline, ask).await
    }

    /// Asks the upstream whether it gives a manifest out here.
    pub(super) async fn probe_manifest(
        &self,
        place: &Place,
        digest: Digest,
        deadline: Instant,
    ) -> Result<(), Problem> {
        self.head(place, &digest.into(), deadline).await.map(drop)
    }

    async fn head(&self, place: &Place, reference: &Reference, deadline: Instant) -> Result<Answer, Problem> {
        let ask = manifest_ask(Method::HEAD, place, reference);
        self.remote(place)?.upstream.ask(&ask, deadline).await
    }

    /// Fetches a manifest, once however many want it.
    async fn fetch(
        self: &Arc<Self>,
        place: &Place,
        reference: &Reference,
        deadline: Instant,
    ) -> Result<Manifest, Problem> {
        let (cache, at, wanted) = (self.clone(), place.clone(), reference.clone());
        let ask = || async move {
            let mut result = cache.fetch_once(&at, &wanted).await;
            // Wrong bytes are often wrong once: a proxy on the way, a node of the upstream that is broken.
            if result.as_ref().is_err_and(|problem| problem.cause == Cause::WrongContent) {
                result = cache.fetch_once(&at, &wanted).await;
            }
            result
        };
        self.fly(&self.flights.manifests, (place.clone(), reference.clone()), deadline, ask).await
    }

    async fn fetch_once(&self, place: &Place, reference: &Reference) -> Result<Manifest, Problem> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let ask = manifest_ask(Method::GET, place, reference);
        let answer = self.remote(place)?.upstream.ask(&ask, deadline).await?;
        self.metrics.quota(&place.upstream, &answer.headers);
        let (said_digest, said_length) =
            (said(&answer), text(&answer.headers, header::CONTENT_LENGTH).map(str::to_owned));
        let said_type =
            text(&answer.headers, header::CONTENT_TYPE).and_then(|text| MediaType::new(text).ok());
        let bytes = answer.body.whole(BYTES_MAX, deadline).await?;
        if said_length.is_some_and(|length| length != bytes.len().to_string()) {
            return Err(Problem::wrong("the manifest is shorter than was said"));
        }
        let wanted = reference.digest().or(said_digest);
        let digest = Digest::of(wanted.map_or(Algorithm::Sha256, |digest| digest.algorithm()), &bytes);
        if wanted.is_some_and(|wanted| wanted != digest) {
            return Err(Problem::wrong("the manifest has another digest"));
        }
        let parsed = match &said_type {
            Some(said_type) => {
                Parsed::parse(&bytes, said_type).map_err(|error| Problem::nonsense(error.to_string()))?
            }
            None => Parsed::default(),
        };
        let media_type = served_type(said_type.as_ref(), &parsed).map(|kind| Arc::from(kind.as_str()));
        let media_type = media_type.or_else(|| claimed(&bytes)).unwrap_or_else(|| media::OCTETS.into());
        let manifest = Manifest { digest, media_type, bytes };
        self.keep(place, &manifest).await;
        self.note_sizes(
            place,
            parsed.children.iter().map(|child| (child.descriptor.digest, child.descriptor.size)),
        );
        if let Reference::Tag(tag) = reference {
            self.index().put_tag(place, tag, Some(TagRecord { digest, checked: clock::now() }));
        }
        Ok(manifest)
    }

    /// Puts a manifest into the store; one that finds no room is served all the same.
    async fn keep(&self, place: &Place, manifest: &Manifest) {
        if self.store.size(&manifest.digest).is_none() {
            let written = async {
                let (teller, _) = Fill::new(manifest.digest);
                let mut writer = self.store.begin(manifest.digest, Some(manifest.bytes.len() as u64)).await?;
                if !manifest.bytes.is_empty() {
                    writer.write(vec![manifest.bytes.clone()], &teller).await?;
                }
                writer.finish(Some(manifest.media_type.clone()), &teller).await
            };
            match written.await {
                Ok(bytes) => self.metrics.filled(&place.upstream, bytes),
                Err(Failure::NoRoom) => {
                    tracing::warn!(%place, digest = %manifest.digest, "no room for a manifest")
                }
                Err(failure) => {
                    let failure = bailey_process::telemetry::report(&failure);
                    tracing::error!(%place, digest = %manifest.digest, failure, "a manifest is not kept");
                }
            }
        } else if self.index().blob(&manifest.digest).is_some_and(|record| record.media_type.is_none()) {
            let size = manifest.bytes.len() as u64;
            self.index().put_blob(manifest.digest, size, Some(manifest.media_type.clone()), clock::now());
        }
        self.index().link(manifest.digest, place);
        self.manifests.put(manifest);
    }
}

fn manifest_ask(method: Method, place: &Place, reference: &Reference) -> Ask {
    Ask {
        method,
        repository: place.repository.clone(),
        rest: format!("manifests/{reference}"),
        accept: Some(media::ACCEPT),
        range: None,
    }
}

/// The digest that an upstream says its answer has.
fn said(answer: &Answer) -> Option<Digest> {
    text(&answer.headers, CONTENT_DIGEST)?.parse().ok()
}

/// The type that a manifest says it has, for one whose record was lost.
fn claimed(bytes: &[u8]) -> Option<Arc<str>> {
    let json = MediaType::new("application/json").ok()?;
    let parsed = Parsed::parse(bytes, &json).ok()?;
    let text = parsed.claimed_type.clone();
    // In OCI manifests of old the type may be left out; which one it is shows in what they list.
    text.map(Arc::from).or_else(|| {
        let is_index = parsed.manifests().next().is_some();
        let is_manifest = parsed.blobs().next().is_some();
        match (is_index, is_manifest) {
            (true, _) => Some("application/vnd.oci.image.index.v1+json".into()),
            (false, true) => Some("application/vnd.oci.image.manifest.v1+json".into()),
            (false, false) => None,
        }
    })
}
