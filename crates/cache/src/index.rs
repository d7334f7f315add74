//! What is known about blobs, tags and lists: sizes and media types, who may see a blob, which digest a tag had.
//!
//! All of it but the bodies of lists is in memory, where every question is answered; `disk` keeps it across restarts,
//! written behind by one thread. A lost index loses no blob: the store is scanned at the start, media types are read
//! from manifests, and links come back when the upstream is asked once.
//!
//! INVARIANT: what is on disk was in memory before, in the same order; a crash loses only the newest changes.

mod disk;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use bailey_oci::visibility::Place;
use bailey_oci::{Digest, Image, Tag, Target};
use serde::{Deserialize, Serialize};

use disk::{Change, Disk};

/// The index; clones share it.
#[derive(Clone, Debug)]
pub struct Index(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    memory: RwLock<Memory>,
    disk: Disk,
}

/// What is known about a blob.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct BlobRecord {
    pub size: u64,
    /// As the upstream said it; kept for manifests.
    pub media_type: Option<Arc<str>>,
    /// Seconds since 1970.
    pub accessed: u64,
}

/// What a tag meant when the upstream was last asked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TagRecord {
    pub digest: Digest,
    /// Seconds since 1970.
    pub checked: u64,
}

/// A list as the upstream last answered it: tags or referrers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ListRecord {
    pub media_type: String,
    /// The `Link` header of the upstream, unchanged.
    pub link: Option<String>,
    pub filters_applied: Option<String>,
    pub body: String,
    /// Seconds since 1970.
    pub seen: u64,
}

/// An image that is never evicted, and what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ImagePin {
    /// The machines that it has to be there for.
    pub targets: Vec<Target>,
    /// Whether the configuration names it; such a pin goes when the configuration does not name it any more.
    pub configured: bool,
    /// Its manifests and blobs; none before it was looked at once. The first is the one that its name means.
    pub digests: Vec<Digest>,
    /// Of all of them together.
    pub bytes: u64,
    /// When all of it was last found to be here, in seconds since 1970; 0 for never.
    pub checked: u64,
    /// Why not all of it is here.
    pub problem: Option<String>,
}

#[derive(Debug, Default)]
struct Memory {
    blobs: HashMap<Digest, BlobRecord>,
    links: HashMap<Digest, HashSet<Arc<Place>>>,
    /// One allocation for each place, however many links it has.
    places: HashSet<Arc<Place>>,
    tags: HashMap<(Arc<Place>, Tag), TagRecord>,
    pins: HashSet<Digest>,
    image_pins: BTreeMap<Image, ImagePin>,
}

impl Memory {
    fn place(&mut self, place: &Place) -> Arc<Place> {
        if let Some(known) = self.places.get(place) {
            return known.clone();
        }
        let place = Arc::new(place.clone());
        self.places.insert(place.clone());
        place
    }
}

impl Index {
    /// Opens the index in a file; starts an empty one where it is missing or damaged. Blocks.
    pub fn open(path: &Path) -> Self {
        let (disk, loaded) = Disk::open(path);
        let (blobs, pins, image_pins) = (loaded.blobs, loaded.pins, loaded.image_pins);
        let mut memory = Memory { blobs, pins, image_pins, ..Memory::default() };
        for (digest, place) in loaded.links {
            let place = memory.place(&place);
            memory.links.entry(digest).or_default().insert(place);
        }
        for ((place, tag), record) in loaded.tags {
            let place = memory.place(&place);
            memory.tags.insert((place, tag), record);
        }
        Self(Arc::new(Inner { memory: RwLock::new(memory), disk }))
    }

    /// An index that is kept in memory alone.
    pub fn in_memory() -> Self {
        Self(Arc::new(Inner { memory: RwLock::default(), disk: Disk::none() }))
    }

    pub fn blob(&self, digest: &Digest) -> Option<BlobRecord> {
        self.read(|memory| memory.blobs.get(digest).cloned())
    }

    /// The blobs that are known, in no order.
    pub fn digests(&self) -> Vec<Digest> {
        self.read(|memory| memory.blobs.keys().copied().collect())
    }

    /// Records a blob that is in the store now.
    pub fn put_blob(&self, digest: Digest, size: u64, media_type: Option<Arc<str>>, accessed: u64) {
        let record = BlobRecord { size, media_type, accessed };
        self.write(|memory| memory.blobs.insert(digest, record.clone()));
        self.0.disk.send(Change::Blob(digest, Some(record)));
    }

    /// Records when blobs were last read.
    pub fn accessed(&self, touched: Vec<(Digest, u64)>) {
        for (digest, at) in touched {
            let record = self.write(|memory| {
                let record = memory.blobs.get_mut(&digest)?;
                record.accessed = at;
                Some(record.clone())
            });
            if let Some(record) = record {
                self.0.disk.send(Change::Blob(digest, Some(record)));
            }
        }
    }

    /// Forgets a blob and who may see it; its pin stays.
    pub fn forget(&self, digest: &Digest) {
        let links = self.write(|memory| {
            memory.blobs.remove(digest);
            memory.links.remove(digest).unwrap_or_default()
        });
        self.0.disk.send(Change::Blob(*digest, None));
        for place in links {
            self.0.disk.send(Change::Link(*digest, place, false));
        }
    }

    /// Forgets all blobs but those that are kept.
    pub fn retain_blobs(&self, keep: impl Fn(&Digest) -> bool) {
        let gone: Vec<_> =
            self.read(|memory| memory.blobs.keys().filter(|digest| !keep(digest)).copied().collect());
        for digest in gone {
            self.forget(&digest);
        }
    }

    /// Records that the upstream gave the blob out through this repository.
    pub fn link(&self, digest: Digest, place: &Place) {
        let (place, new) = self.write(|memory| {
            let place = memory.place(place);
            let new = memory.links.entry(digest).or_default().insert(place.clone());
            (place, new)
        });
        if new {
            self.0.disk.send(Change::Link(digest, place, true));
        }
    }

    /// Whether the upstream is known to give the blob out through this repository.
    pub fn is_linked(&self, digest: &Digest, place: &Place) -> bool {
        self.read(|memory| memory.links.get(digest).is_some_and(|places| places.contains(place)))
    }

    /// The repositories through which the upstream gave the blob out.
    pub fn links(&self, digest: &Digest) -> Vec<Arc<Place>> {
        self.read(|memory| {
            memory.links.get(digest).map(|places| places.iter().cloned().collect()).unwrap_or_default()
        })
    }

    pub fn tag(&self, place: &Place, tag: &Tag) -> Option<TagRecord> {
        self.read(|memory| {
            let place = memory.places.get(place)?;
            memory.tags.get(&(place.clone(), tag.clone())).cloned()
        })
    }

    /// Records what a tag means; None forgets it.
    pub fn put_tag(&self, place: &Place, tag: &Tag, record: Option<TagRecord>) {
        let place = self.write(|memory| {
            let place = memory.place(place);
            match record.clone() {
                Some(record) => memory.tags.insert((place.clone(), tag.clone()), record),
                None => memory.tags.remove(&(place.clone(), tag.clone())),
            };
            place
        });
        self.0.disk.send(Change::Tag(place, tag.clone(), record));
    }

    /// The tags that are known of a repository, in order.
    pub fn tags(&self, place: &Place) -> Vec<Tag> {
        let mut tags: Vec<_> = self.read(|memory| {
            memory.tags.keys().filter(|(at, _)| **at == *place).map(|(_, tag)| tag.clone()).collect()
        });
        tags.sort();
        tags
    }

    /// A list as last seen. Blocks: it is read from disk, after what waits to be written.
    pub fn list(&self, key: &str) -> Option<ListRecord> {
        self.0.disk.flush();
        self.0.disk.list(key)
    }

    /// Keeps a list for when the upstream is away.
    pub fn put_list(&self, key: String, record: ListRecord) {
        self.0.disk.send(Change::List(key, record));
    }

    /// The blobs that were asked to be kept.
    pub fn pins(&self) -> Vec<Digest> {
        self.read(|memory| memory.pins.iter().copied().collect())
    }

    /// Records a pin; false when it was there.
    pub fn pin(&self, digest: Digest) -> bool {
        let new = self.write(|memory| memory.pins.insert(digest));
        if new {
            self.0.disk.send(Change::Pin(digest, true));
        }
        new
    }

    /// Takes a pin back; false when there was none.
    pub fn unpin(&self, digest: &Digest) -> bool {
        let was = self.write(|memory| memory.pins.remove(digest));
        if was {
            self.0.disk.send(Change::Pin(*digest, false));
        }
        was
    }

    /// Everything that must not be evicted: blobs that were pinned, and those of images that were.
    pub fn pinned(&self) -> HashSet<Digest> {
        self.read(|memory| {
            let of_images = memory.image_pins.values().flat_map(|pin| &pin.digests);
            memory.pins.iter().chain(of_images).copied().collect()
        })
    }

    /// The images that were asked to be kept.
    pub fn image_pins(&self) -> BTreeMap<Image, ImagePin> {
        self.read(|memory| memory.image_pins.clone())
    }

    /// Changes the pin of an image, or makes one; None from `change` takes it away, and so does it stay away.
    pub fn change_image_pin(
        &self,
        image: &Image,
        change: impl FnOnce(Option<ImagePin>) -> Option<ImagePin>,
    ) -> Option<ImagePin> {
        let (changed, pin) = self.write(|memory| {
            let before = memory.image_pins.get(image).cloned();
            let after = change(before.clone());
            match after.clone() {
                Some(pin) => memory.image_pins.insert(image.clone(), pin),
                None => memory.image_pins.remove(image),
            };
            (before != after, after)
        });
        if changed {
            self.0.disk.send(Change::ImagePin(image.clone(), pin.clone()));
        }
        pin
    }

    /// Waits until everything that was recorded before is on disk. Blocks.
    pub fn flush(&self) {
        self.0.disk.flush();
    }

    fn read<T>(&self, ask: impl FnOnce(&Memory) -> T) -> T {
        ask(&self.0.memory.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Memory) -> T) -> T {
        change(&mut self.0.memory.write().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
