//! Blobs on disk: plain files named by digest, within a hard budget of bytes.
//!
//! A blob comes in as a fill ([`fill`]) and becomes visible by one rename after its bytes were hashed. What may be kept,
//! what is evicted and when is decided by [`bailey_oci::budget`]; this module does to files what was decided.
//!
//! INVARIANT: committed blobs and fills in flight, as reserved, never exceed the budget.
//! INVARIANT: no file's existence means that somebody works on it; the process holds a lock that dies with it.
//! INVARIANT: a blob that is being read counts as pinned, so its space is not promised to another meanwhile.

pub mod fill;
mod layout;

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bailey_oci::{Budget, Digest, Hasher, Image, Limits, Reservation, Room};
use rustix::fs::Advice;

use crate::clock;
use crate::index::{ImagePin, Index};
use layout::{Found, Layout};

/// How long a fill waits for removals that another asked for, and how often: together a second.
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);
const REMOVAL_PAUSES_MAX: usize = 200;
/// How much of a blob is hashed at a time by a scrub.
const SCRUB_STEP: usize = 1 << 20;

/// A store; clones share it.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    layout: Layout,
    index: Index,
    /// Never held across an await, nor while a file is touched.
    budget: Mutex<Budget>,
    /// Locked for as long as the store is open.
    _lock: File,
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("store `{path}` is in use by another process; give each cache a folder of its own")]
    InUse { path: PathBuf },
    #[error("cannot {action} in store `{path}`; check that the folder may be written")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

/// What was found and done while a store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    pub blobs: usize,
    /// Fills of a process that ended in the middle.
    pub fills_swept: usize,
    /// Files whose size is not the one that was committed.
    pub damaged: usize,
    /// Blobs over the budget.
    pub evicted: usize,
}

impl Store {
    /// Opens the store in a folder, with room for `bytes_max`. Blocks; never touches the network.
    pub fn open(folder: PathBuf, bytes_max: u64) -> Result<(Self, Opened), StoreError> {
        let failed = |action| {
            move |path: &Layout, source| StoreError::Io { action, path: path.root().to_owned(), source }
        };
        let layout = Layout::new(folder);
        layout.create().map_err(|source| failed("make folders")(&layout, source))?;
        let lock =
            File::create(layout.lock()).map_err(|source| failed("make the lock file")(&layout, source))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(StoreError::InUse { path: layout.root().to_owned() });
            }
            Err(fs::TryLockError::Error(source)) => return Err(failed("lock")(&layout, source)),
        }
        let fills_swept = layout.sweep_fills().map_err(|source| failed("sweep fills")(&layout, source))?;
        let found = layout.scan().map_err(|source| failed("list blobs")(&layout, source))?;
        let index = Index::open(&layout.index());
        let store = Self(Arc::new(Inner {
            layout,
            index,
            budget: Mutex::new(Budget::new(Limits::of(bytes_max))),
            _lock: lock,
        }));
        let opened = Opened { fills_swept, ..store.admit(found) };
        Ok((store, opened))
    }

    /// What is known about the blobs.
    pub fn index(&self) -> &Index {
        &self.0.index
    }

    /// Opens a blob for reading and counts the access; None when it is not here, or no longer whole.
    ///
    /// One `open` and one `fstat` of a local file: short enough for an async task.
    pub fn read(&self, digest: &Digest) -> Option<Blob> {
        let size = self.0.index.blob(digest)?.size;
        if !self.budget().hold(digest, clock::now()) {
            return None;
        }
        let hold = Hold { store: self.clone(), digest: *digest };
        let file = File::open(self.0.layout.blob(digest));
        let whole = file.and_then(|file| Ok((file.metadata()?.len() == size).then_some(file)));
        match whole {
            Ok(Some(file)) => {
                // Only advice: where it cannot be given, reading works as well.
                let _advised = rustix::fs::fadvise(&file, 0, None, Advice::Sequential);
                Some(Blob { file: Arc::new(file), size, _hold: Arc::new(hold) })
            }
            Ok(None) | Err(_) => {
                drop(hold);
                tracing::warn!(%digest, "a blob is gone or has another size; it is fetched again when asked for");
                self.discard(digest);
                None
            }
        }
    }

    /// The size of a blob that is here; None for others. Counts no access.
    pub fn size(&self, digest: &Digest) -> Option<u64> {
        let size = self.0.index.blob(digest)?.size;
        self.budget().contains(digest).then_some(size)
    }

    /// Counts an access to a blob whose bytes were served from memory. False when it is not here.
    pub fn touch(&self, digest: &Digest) -> bool {
        let mut budget = self.budget();
        let here = budget.contains(digest);
        budget.touch(digest, clock::now());
        here
    }

    /// Keeps a blob from eviction for good, whether it is here already or not.
    pub fn pin(&self, digest: Digest) {
        if self.0.index.pin(digest) {
            self.apply_pins();
        }
    }

    /// Takes a pin back.
    pub fn unpin(&self, digest: &Digest) {
        if self.0.index.unpin(digest) {
            self.apply_pins();
        }
    }

    /// Changes the pin of an image; see [`Index::change_image_pin`].
    pub fn change_image_pin(
        &self,
        image: &Image,
        change: impl FnOnce(Option<ImagePin>) -> Option<ImagePin>,
    ) -> Option<ImagePin> {
        let pin = self.0.index.change_image_pin(image, change);
        self.apply_pins();
        pin
    }

    /// Forgets a blob and removes its file; readers that have it open go on.
    pub fn discard(&self, digest: &Digest) {
        self.remove(&[*digest]);
    }

    /// Bytes that are kept, that are reserved by fills, and that may be used at most.
    pub fn usage(&self) -> Usage {
        let budget = self.budget();
        Usage {
            used_bytes: budget.used_bytes(),
            reserved_bytes: budget.reserved_bytes(),
            bytes_max: budget.limits().bytes_max,
            blobs: budget.len(),
        }
    }

    /// Writes access times that changed since the last call to the index.
    pub fn persist_accesses(&self) {
        let touched = self.budget().take_touched();
        self.0.index.accessed(touched);
    }

    /// Lists the blobs that are here.
    pub fn digests(&self) -> Vec<Digest> {
        self.0.index.digests()
    }

    /// Hashes one blob, and discards it when it is not what its name says. Blocks for as long as reading takes.
    pub fn scrub(&self, digest: &Digest) -> Scrubbed {
        let Some(blob) = self.read(digest) else { return Scrubbed::Absent };
        match hash(&blob, *digest) {
            Ok(actual) if actual == *digest => Scrubbed::Sound,
            Ok(_) | Err(_) => {
                drop(blob);
                tracing::warn!(%digest, "a blob does not have its digest any more; it is removed");
                self.discard(digest);
                Scrubbed::Damaged
            }
        }
    }

    /// Removes what is cold when more is used than the high water mark; says how many. Blocks.
    pub fn trim(&self) -> usize {
        let evict = self.budget().trim();
        self.remove(&evict);
        evict.len()
    }

    fn apply_pins(&self) {
        // One lock around both, so that of two changes at a time the later one stays.
        let mut budget = self.budget();
        budget.set_pins(self.0.index.pinned());
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        // Each change of the model is one call that either happens or not.
        self.0.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what was found on disk at the start.
    fn admit(&self, found: Vec<Found>) -> Opened {
        let mut damaged = Vec::new();
        self.apply_pins();
        for Found { digest, size, modified } in found {
            let accessed = match self.0.index.blob(&digest) {
                Some(record) if record.size != size => {
                    damaged.push(digest);
                    continue;
                }
                Some(record) => record.accessed,
                // A crash may leave an empty file under the right name: the name came to the disk, the bytes did not.
                None if size == 0 && !is_empty(&digest) => {
                    damaged.push(digest);
                    continue;
                }
                None => {
                    self.0.index.put_blob(digest, size, None, modified);
                    modified
                }
            };
            self.budget().adopt(digest, size, accessed);
        }
        self.0.index.retain_blobs(|digest| self.budget().contains(digest) || damaged.contains(digest));
        self.remove(&damaged);
        let evicted = self.trim();
        Opened { blobs: self.budget().len(), fills_swept: 0, damaged: damaged.len(), evicted }
    }

    /// Makes room for a fill, first by removing what the model evicts for it. None when there is none. Blocks.
    fn reserve(&self, bytes: u64) -> Option<Reservation> {
        for _ in 0..REMOVAL_PAUSES_MAX {
            let room = self.budget().reserve(bytes);
            match room {
                Room::Granted(reservation) => return Some(reservation),
                other if self.make_room(&other) => {}
                _ => return None,
            }
        }
        None
    }

    /// Makes a reservation be for `bytes` in all; false when there is no room for that. Blocks.
    fn grow(&self, reservation: &mut Reservation, bytes: u64) -> bool {
        for _ in 0..REMOVAL_PAUSES_MAX {
            let room = self.budget().grow(reservation, bytes);
            match room {
                None => return true,
                Some(other) if self.make_room(&other) => {}
                Some(_) => return false,
            }
        }
        false
    }

    /// Does what a reservation needs first; false when nothing helps.
    fn make_room(&self, room: &Room) -> bool {
        match room {
            Room::Granted(_) | Room::None { .. } => false,
            Room::Remove(digests) => {
                self.remove(digests);
                true
            }
            Room::Wait => {
                thread::sleep(REMOVAL_PAUSE);
                true
            }
        }
    }

    /// Frees bytes though the model has room: the disk is full of something else. True when anything was freed. Blocks.
    fn relieve(&self, bytes: u64) -> bool {
        let evict = self.budget().relieve(bytes);
        self.remove(&evict);
        !evict.is_empty()
    }

    fn remove(&self, digests: &[Digest]) {
        for digest in digests {
            match fs::remove_file(self.0.layout.blob(digest)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::error!(%digest, %error, "cannot remove a blob; it goes on counting against the budget");
                    self.budget().kept(digest, clock::now());
                }
                Ok(()) | Err(_) => {
                    self.0.index.forget(digest);
                    self.budget().removed(digest);
                }
            }
        }
    }
}

/// Bytes of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Committed blobs and reservations, in whole blocks of the disk.
    pub used_bytes: u64,
    pub reserved_bytes: u64,
    pub bytes_max: u64,
    pub blobs: usize,
}

/// What a scrub found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scrubbed {
    Sound,
    /// Not what its name says; it was removed.
    Damaged,
    Absent,
}

/// A committed blob, open for reading; it is not evicted while this lives.
#[derive(Clone, Debug)]
pub struct Blob {
    pub file: Arc<File>,
    pub size: u64,
    _hold: Arc<Hold>,
}

/// Lives as long as somebody reads a blob.
#[derive(Debug)]
pub(crate) struct Hold {
    store: Store,
    digest: Digest,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.store.budget().release(&self.digest);
    }
}

fn hash(blob: &Blob, digest: Digest) -> io::Result<Digest> {
    use std::os::unix::fs::FileExt as _;
    let mut hasher = Hasher::new(digest.algorithm());
    let mut buffer = vec![0; SCRUB_STEP];
    let mut offset = 0;
    loop {
        let count = blob.file.read_at(&mut buffer, offset)?;
        if count == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(buffer.get(..count).unwrap_or_default());
        offset += count as u64;
    }
}

fn is_empty(digest: &Digest) -> bool {
    Digest::of(digest.algorithm(), b"") == *digest
}

#[cfg(test)]
mod tests;
