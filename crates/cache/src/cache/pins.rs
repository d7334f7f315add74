//! Images that are kept here: fetched ahead, fetched again when something of them got lost, and never evicted.
//!
//! What is pinned is written to the index and so outlives a restart. A pin is filled one part after another, through
//! the same fetches as everything else, so nodes that ask meanwhile cost nothing more.
//!
//! INVARIANT: blobs are pinned before they are fetched; what a moved tag meant before stays pinned until what it means
//! now is here.

use std::sync::Arc;
use std::time::Duration;

use bailey_oci::freshness::Freshness;
use bailey_oci::manifest::Manifest as Parsed;
use bailey_oci::{Digest, Image, MediaType, Reference, Target};
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::Cache;
use crate::clock;
use crate::index::{ImagePin, Index};
use crate::store::fill::{Failure, Fill};
use crate::upstream::Problem;

/// How long a manifest may take that nobody waits for.
const MANIFEST: Duration = Duration::from_secs(20);
/// Blobs of one image that are fetched at a time, as a node does.
const BLOBS_AT_A_TIME: usize = 3;
/// As many indexes may lie in each other, and an image may have as many parts.
const DEPTH_MAX: u8 = 4;
const PARTS_MAX: usize = 10_000;
/// How often a pinned tag is looked at again; whether its registry is asked is decided by its freshness.
const TAGS_EVERY_SECONDS: u64 = 300;

/// A pinned image, as people are told.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Pinned {
    pub image: Image,
    /// The machines that it is kept for.
    pub platforms: Vec<Target>,
    /// What its name means here; absent before it was fetched once.
    pub digest: Option<Digest>,
    /// Of all its manifests and blobs.
    pub bytes: u64,
    /// Whether all of it is here.
    pub ready: bool,
    /// Whether the configuration names it, so that only the configuration can take it away.
    pub configured: bool,
    /// Why not all of it is here, or why its tag could not be looked up again.
    pub problem: Option<String>,
}

/// What is pinned, by name; `holds` tells whether a blob is here.
pub fn pinned(index: &Index, holds: impl Fn(&Digest) -> bool) -> Vec<Pinned> {
    let tell = |(image, pin): (Image, ImagePin)| Pinned {
        image,
        digest: pin.digests.first().copied(),
        bytes: pin.bytes,
        ready: is_here(&pin, &holds),
        platforms: pin.targets,
        configured: pin.configured,
        problem: pin.problem,
    };
    index.image_pins().into_iter().map(tell).collect()
}

fn is_here(pin: &ImagePin, holds: impl Fn(&Digest) -> bool) -> bool {
    pin.checked > 0 && !pin.digests.is_empty() && pin.digests.iter().all(holds)
}

impl Cache {
    /// What is pinned, by name.
    pub fn pinned(&self) -> Vec<Pinned> {
        pinned(self.index(), |digest| self.store.size(digest).is_some())
    }

    /// Has pins looked at now rather than at the next turn.
    pub fn wake_pins(&self) {
        self.pins_changed.notify_one();
    }

    /// Waits until pins were changed.
    pub async fn pins_changed(&self) {
        self.pins_changed.notified().await;
    }

    /// Fetches what is missing of pinned images, and looks up their tags where that is due.
    pub async fn fill_pins(self: &Arc<Self>) {
        for (image, pin) in self.index().image_pins() {
            let here = is_here(&pin, |digest| self.store.size(digest).is_some());
            if here && !self.is_due(&image, &pin) {
                continue;
            }
            let result = self.fill_pin(&image, &pin).await;
            if let Err(problem) = &result {
                tracing::warn!(%image, %problem, "a pinned image is not complete");
            }
            self.store.change_image_pin(&image, |now| {
                let mut now = now?;
                now.problem = result.err().map(|problem| problem.to_string());
                Some(now)
            });
        }
    }

    fn is_due(&self, image: &Image, pin: &ImagePin) -> bool {
        let Reference::Tag(tag) = &image.reference else { return false };
        let fresh = self.freshness.freshness(&image.registry, &image.repository, tag);
        fresh != Freshness::Immutable && clock::now().saturating_sub(pin.checked) >= TAGS_EVERY_SECONDS
    }

    async fn fill_pin(self: &Arc<Self>, image: &Image, pin: &ImagePin) -> Result<(), Problem> {
        let parts = self.parts(image, &pin.targets).await?;
        let bytes = parts.iter().map(|(_, size, _)| size).sum();
        let digests: Vec<_> = parts.iter().map(|(digest, ..)| *digest).collect();
        let kept = self.store.change_image_pin(image, |now| {
            let mut now = now?;
            if !digests.iter().all(|digest| now.digests.contains(digest)) {
                // Not here yet: what the name means is told, and what it meant is kept meanwhile.
                let before = std::mem::replace(&mut now.digests, digests.clone());
                now.digests.extend(before.into_iter().filter(|digest| !digests.contains(digest)));
            }
            now.bytes = bytes;
            Some(now)
        });
        if kept.is_none() {
            return Ok(());
        }
        let place = image.place();
        let blobs: Vec<_> =
            parts.iter().filter(|(.., is_blob)| *is_blob).map(|(digest, ..)| *digest).collect();
        let fetched: Vec<_> = stream::iter(blobs)
            .map(|digest| async move {
                match self.fill(&image.place(), digest, None) {
                    Some((fill, _)) => ended(fill).await,
                    None => Ok(()),
                }
            })
            .buffer_unordered(BLOBS_AT_A_TIME)
            .collect()
            .await;
        fetched.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (digest, ..) in &parts {
            if self.store.size(digest).is_none() {
                return Err(Problem::nonsense(format!("{digest} of it is not kept; is there room for it?")));
            }
            self.index().link(*digest, &place);
        }
        self.store.change_image_pin(image, |now| {
            let mut now = now?;
            now.digests = digests;
            now.checked = clock::now();
            Some(now)
        });
        tracing::info!(%image, bytes, "a pinned image is here");
        Ok(())
    }

    /// All manifests and blobs of an image for some machines, with their sizes and whether they are blobs; the one that
    /// the image's name means is the first.
    async fn parts(
        self: &Arc<Self>,
        image: &Image,
        targets: &[Target],
    ) -> Result<Vec<(Digest, u64, bool)>, Problem> {
        let place = image.place();
        let mut parts: Vec<(Digest, u64, bool)> = Vec::new();
        let mut next = vec![(image.reference.clone(), 0)];
        while let Some((reference, depth)) = next.pop() {
            let manifest = self.resolve(&place, &reference, Instant::now() + MANIFEST).await?.manifest;
            let media_type =
                MediaType::new(&manifest.media_type).map_err(|error| Problem::nonsense(error.to_string()))?;
            let parsed = Parsed::parse(&manifest.bytes, &media_type)
                .map_err(|error| Problem::nonsense(error.to_string()))?;
            let mut add = |digest, size, is_blob| {
                if !parts.iter().any(|(known, ..)| *known == digest) {
                    parts.push((digest, size, is_blob));
                }
            };
            add(manifest.digest, manifest.bytes.len() as u64, false);
            for blob in parsed.blobs() {
                add(blob.digest, blob.size, true);
            }
            if parts.len() > PARTS_MAX {
                return Err(Problem::nonsense("an image of more parts than are taken"));
            }
            if depth < DEPTH_MAX {
                let wanted = parsed
                    .manifests()
                    .filter(|child| targets.iter().any(|target| target.wants(child.platform.as_ref())));
                next.extend(wanted.map(|child| (child.descriptor.digest.into(), depth + 1)));
            }
        }
        Ok(parts)
    }
}

/// Waits for the end of a fill.
async fn ended(mut fill: Fill) -> Result<(), Problem> {
    loop {
        match fill.now().end {
            Some(Ok(())) => return Ok(()),
            Some(Err(Failure::Upstream(problem))) => return Err(problem),
            Some(Err(failure)) => return Err(Problem::unreachable(failure.to_string())),
            None => fill.changed().await,
        }
    }
}
