//! A blob on its way in: one writer, many readers of the growing file.
//!
//! The writer hashes what it writes and shows readers how far they may read. Readers read the file by position and never
//! wait for each other or for the writer's disk. Whoever leaves changes nothing for the others.
//!
//! INVARIANT: the last bytes are shown only after all bytes together were found to have the digest, so a reader never
//! gets a whole body that is wrong.
//! INVARIANT: a fill that is dropped unfinished leaves no file and no reservation.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bailey_oci::{Digest, Hasher, Reservation};
use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::{Hold, Store};
use crate::clock;
use crate::upstream::Problem;

/// How many times the disk is relieved for one write before the fill gives up.
const RELIEF_MAX: usize = 3;

/// What readers know about a fill.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The growing file; absent until the upstream answered and room was reserved.
    pub file: Option<Arc<File>>,
    /// The length of the blob, if it is known.
    pub total: Option<u64>,
    /// How many bytes may be read.
    pub readable: u64,
    /// How the fill ended.
    pub end: Option<Result<(), Failure>>,
    /// Keeps the blob from eviction while anybody follows the fill that it came in by.
    pub(super) hold: Option<Arc<Hold>>,
}

impl Progress {
    /// Whether all bytes are here and found right, and the blob is on its way into the store.
    pub fn is_whole(&self) -> bool {
        self.end.is_none() && self.total.is_some_and(|total| self.readable == total)
    }
}

/// Why a fill ended without a blob.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// The blob does not fit: readers stream it past the store.
    #[error("there is no room for the blob")]
    NoRoom,
    /// The disk failed otherwise; also then, what the upstream gives can be streamed.
    #[error("the disk failed")]
    Disk(#[source] Arc<io::Error>),
    /// The process ends, or the task broke off.
    #[error("the fill was given up")]
    Abandoned,
    #[error(transparent)]
    Upstream(#[from] Problem),
}

impl Failure {
    /// Names the kind of failure for metric labels and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoRoom => "NoRoom",
            Self::Disk(_) => "DiskFailed",
            Self::Abandoned => "Abandoned",
            Self::Upstream(problem) => problem.cause.reason(),
        }
    }
}

/// Follows a fill.
#[derive(Clone, Debug)]
pub struct Fill {
    pub digest: Digest,
    progress: watch::Receiver<Progress>,
}

impl Fill {
    /// Makes a fill and the end that tells its readers.
    pub fn new(digest: Digest) -> (Teller, Self) {
        let (sender, progress) = watch::channel(Progress::default());
        (Teller(sender), Self { digest, progress })
    }

    /// Says how far the fill is now.
    pub fn now(&mut self) -> Progress {
        self.progress.borrow_and_update().clone()
    }

    /// Waits until the fill got further than when [`Fill::now`] was last asked.
    pub async fn changed(&mut self) {
        // A teller that is gone has told an end before; see its `Drop`.
        if self.progress.changed().await.is_err() {
            tracing::trace!("the fill is over");
        }
    }

    /// Waits until there is something to serve or the fill has ended.
    pub async fn started(&mut self) -> Progress {
        let ready = |progress: &Progress| {
            progress.end.is_some() || (progress.file.is_some() && progress.total.is_some())
        };
        match self.progress.wait_for(ready).await {
            Ok(progress) => progress.clone(),
            Err(_) => Progress { end: Some(Err(Failure::Abandoned)), ..Progress::default() },
        }
    }
}

/// Tells readers how far a fill is. Dropped without an end, it tells that the fill was given up.
#[derive(Debug)]
pub struct Teller(watch::Sender<Progress>);

impl Teller {
    /// Ends a fill; the first end counts.
    pub fn end(&self, end: Result<(), Failure>) {
        self.0.send_if_modified(|progress| {
            let first = progress.end.is_none();
            if first {
                progress.end = Some(end);
            }
            first
        });
    }

    pub fn has_ended(&self) -> bool {
        self.0.borrow().end.is_some()
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.end(Err(Failure::Abandoned));
    }
}

/// The one writer of a fill.
#[derive(Debug)]
pub struct Writer {
    digest: Digest,
    space: Arc<Mutex<Space>>,
    file: Arc<File>,
    /// Absent only while a write is under way, or after one broke off.
    hasher: Option<Hasher>,
    written: u64,
    total: Option<u64>,
}

/// The file of a fill and the room it has. Shared with a write under way, which outlives a task that is stopped.
#[derive(Debug)]
struct Space {
    store: Store,
    path: PathBuf,
    /// Absent once the fill is committed.
    reservation: Option<Reservation>,
}

impl Drop for Space {
    fn drop(&mut self) {
        let Some(reservation) = self.reservation.take() else { return };
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::error!(%error, "cannot remove an unfinished fill; the next start sweeps it");
        }
        self.store.budget().cancel(reservation);
    }
}

impl Store {
    /// Starts to write a blob: reserves its length, or what is written as it comes where the length is unknown.
    pub async fn begin(&self, digest: Digest, total: Option<u64>) -> Result<Writer, Failure> {
        let store = self.clone();
        let begun = spawn_blocking(move || {
            let reservation = store.reserve(total.unwrap_or(0)).ok_or(Failure::NoRoom)?;
            match store.0.layout.create_fill() {
                Ok((path, file)) => {
                    Ok((Space { store, path, reservation: Some(reservation) }, Arc::new(file)))
                }
                Err(error) => {
                    store.budget().cancel(reservation);
                    Err(disk(error))
                }
            }
        });
        let (space, file) = begun.await.map_err(|_| Failure::Abandoned)??;
        let hasher = Some(Hasher::new(digest.algorithm()));
        Ok(Writer { digest, space: Arc::new(Mutex::new(space)), file, hasher, written: 0, total })
    }
}

impl Writer {
    /// How many bytes were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Lets readers at the file: the upstream is known to have the blob.
    pub fn show(&self, teller: &Teller) {
        teller
            .0
            .send_modify(|progress| (progress.file, progress.total) = (Some(self.file.clone()), self.total));
    }

    /// Appends bytes, hashes them, and shows them to readers unless they are the last.
    pub async fn write(&mut self, bytes: Vec<Bytes>, teller: &Teller) -> Result<(), Failure> {
        let count: u64 = bytes.iter().map(|bytes| bytes.len() as u64).sum();
        let after = self.written.saturating_add(count);
        if self.total.is_some_and(|total| after > total) {
            return Err(wrong_length());
        }
        let mut hasher = self.hasher.take().ok_or(Failure::Abandoned)?;
        let (space, file, mut at) = (self.space.clone(), self.file.clone(), self.written);
        let written = spawn_blocking(move || {
            let store = lock(&space).grow(after)?;
            for bytes in &bytes {
                write_at(&store, &file, bytes, at)?;
                hasher.update(bytes);
                at += bytes.len() as u64;
            }
            Ok::<_, Failure>(hasher)
        });
        self.hasher = Some(written.await.map_err(|_| Failure::Abandoned)??);
        let before = self.written;
        self.written = after;
        // Where the end is not known, any batch may be the last.
        let readable = if self.total.is_some_and(|total| after < total) { after } else { before };
        teller.0.send_if_modified(|progress| {
            let further = readable > progress.readable;
            progress.readable = progress.readable.max(readable);
            further
        });
        Ok(())
    }

    /// Checks the digest, shows the last bytes, and makes the blob part of the store. The caller tells the end.
    pub async fn finish(mut self, media_type: Option<Arc<str>>, teller: &Teller) -> Result<u64, Failure> {
        let written = self.written;
        if self.total.is_some_and(|total| total != written) {
            return Err(wrong_length());
        }
        let hasher = self.hasher.take().ok_or(Failure::Abandoned)?;
        if hasher.finish() != self.digest {
            return Err(Problem::wrong("the bytes have another digest").into());
        }
        teller.0.send_modify(|progress| (progress.total, progress.readable) = (Some(written), written));
        let hold =
            spawn_blocking(move || self.commit(media_type)).await.map_err(|_| Failure::Abandoned)??;
        teller.0.send_modify(|progress| progress.hold = hold);
        Ok(written)
    }

    /// Renames the fill to its digest. The bytes go to the disk first: a power cut must not leave a name without them.
    fn commit(self, media_type: Option<Arc<str>>) -> Result<Option<Arc<Hold>>, Failure> {
        self.file.sync_data().map_err(disk)?;
        let mut space = lock(&self.space);
        let store = space.store.clone();
        let target = store.0.layout.blob(&self.digest);
        if let Some(shard) = target.parent() {
            fs::create_dir_all(shard).map_err(disk)?;
        }
        fs::rename(&space.path, &target).map_err(disk)?;
        let now = clock::now();
        store.0.index.put_blob(self.digest, self.written, media_type, now);
        let Some(reservation) = space.reservation.take() else { return Ok(None) };
        // In one go, so that nobody evicts it in between: whoever follows the fill has the file open.
        let mut budget = store.budget();
        if !budget.commit(reservation, self.digest, self.written, now) {
            tracing::debug!(digest = %self.digest, "the blob was there already");
        }
        let held = budget.hold(&self.digest, now);
        drop(budget);
        Ok(held.then(|| Arc::new(Hold { store, digest: self.digest })))
    }
}

impl Space {
    fn grow(&mut self, bytes: u64) -> Result<Store, Failure> {
        let reservation = self.reservation.as_mut().ok_or(Failure::Abandoned)?;
        if self.store.grow(reservation, bytes) { Ok(self.store.clone()) } else { Err(Failure::NoRoom) }
    }
}

fn lock(space: &Mutex<Space>) -> MutexGuard<'_, Space> {
    // Nothing of it is half changed when a holder panics.
    space.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_at(store: &Store, file: &File, bytes: &[u8], at: u64) -> Result<(), Failure> {
    let mut relieved = 0;
    loop {
        match file.write_all_at(bytes, at) {
            Ok(()) => return Ok(()),
            Err(error) if is_full(&error) && relieved < RELIEF_MAX => {
                relieved += 1;
                if !store.relieve(bytes.len() as u64) {
                    return Err(Failure::NoRoom);
                }
            }
            Err(error) if is_full(&error) => return Err(Failure::NoRoom),
            Err(error) => return Err(disk(error)),
        }
    }
}

fn wrong_length() -> Failure {
    Problem::wrong("the length is not the one that was announced").into()
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

fn disk(error: io::Error) -> Failure {
    if is_full(&error) { Failure::NoRoom } else { Failure::Disk(Arc::new(error)) }
}
