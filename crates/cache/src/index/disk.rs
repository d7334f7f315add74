//! The index on disk: one redb file, written behind by one thread.
//!
//! Changes are applied in batches, each one transaction. A file that cannot be read is put aside and started anew; one
//! that cannot be written costs what a restart would have known, and no request.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use bailey_oci::{Algorithm, Digest, Image, Tag};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use bailey_oci::visibility::Place;

use super::{BlobRecord, ImagePin, ListRecord, TagRecord};

const META: TableDefinition<&str, u32> = TableDefinition::new("meta");
const BLOBS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("blobs");
const LINKS: TableDefinition<(&[u8], &str), ()> = TableDefinition::new("links");
const TAGS: TableDefinition<&str, &[u8]> = TableDefinition::new("tags");
const LISTS: TableDefinition<&str, &[u8]> = TableDefinition::new("lists");
const PINS: TableDefinition<&[u8], ()> = TableDefinition::new("pins");
const IMAGE_PINS: TableDefinition<&str, &[u8]> = TableDefinition::new("image_pins");

/// Raised when what is written changes its meaning; another version's file is started anew.
const VERSION: u32 = 1;
/// What redb may keep of its file in memory: the index answers from its own, so little is read twice.
const CACHE_BYTES: usize = 4 << 20;
/// As many changes may wait for the disk before those who make more wait, too; some 100 bytes each.
const WAITING_MAX: usize = 4096;
/// As many changes go into one transaction.
const BATCH_MAX: usize = 1024;

type Result<T, E = Box<redb::Error>> = std::result::Result<T, E>;

/// One thing to write; None and false remove.
#[derive(Debug)]
pub(super) enum Change {
    Blob(Digest, Option<BlobRecord>),
    Link(Digest, Arc<Place>, bool),
    Tag(Arc<Place>, Tag, Option<TagRecord>),
    List(String, ListRecord),
    Pin(Digest, bool),
    ImagePin(Image, Option<ImagePin>),
    /// Answers once all before it is written.
    Flush(SyncSender<()>),
}

/// What was found in the file.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub blobs: HashMap<Digest, BlobRecord>,
    pub links: Vec<(Digest, Place)>,
    pub tags: Vec<((Place, Tag), TagRecord)>,
    pub pins: HashSet<Digest>,
    pub image_pins: BTreeMap<Image, ImagePin>,
}

#[derive(Debug)]
pub(super) struct Disk {
    database: Option<Arc<Database>>,
    changes: Mutex<Option<SyncSender<Change>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Disk {
    pub fn open(path: &Path) -> (Self, Loaded) {
        let opened = load(path).or_else(|error| {
            if path.exists() {
                tracing::warn!(%error, "the index cannot be read; it is made anew from the blobs, and tags are asked again");
                // Put aside rather than removed: it may say what went wrong.
                let _put_aside = std::fs::rename(path, path.with_extension("damaged"));
            }
            load(path)
        });
        match opened {
            Ok((database, loaded)) => (Self::start(Arc::new(database)), loaded),
            Err(error) => {
                tracing::error!(%error, "the index cannot be written; a restart will ask upstreams again");
                (Self::none(), Loaded::default())
            }
        }
    }

    /// A disk that keeps nothing.
    pub fn none() -> Self {
        Self { database: None, changes: Mutex::new(None), writer: Mutex::new(None) }
    }

    pub fn send(&self, change: Change) {
        let sender = self.changes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // The writer ends only after this disk is dropped.
        if let Some(sender) = sender
            && sender.send(change).is_err()
        {
            tracing::error!("the index is not written any more");
        }
    }

    pub fn flush(&self) {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.send(Change::Flush(sender));
        // Without a writer there is nothing to wait for.
        let _written = receiver.recv();
    }

    pub fn list(&self, key: &str) -> Option<ListRecord> {
        let database = self.database.as_ref()?;
        let read = || -> Result<Option<ListRecord>, redb::Error> {
            let table = database.begin_read()?.open_table(LISTS)?;
            Ok(table.get(key)?.and_then(|bytes| serde_json::from_slice(bytes.value()).ok()))
        };
        read().unwrap_or_default()
    }

    fn start(database: Arc<Database>) -> Self {
        let (sender, receiver) = mpsc::sync_channel(WAITING_MAX);
        let writing = database.clone();
        let writer =
            thread::Builder::new().name("index".to_owned()).spawn(move || write_all(&writing, &receiver));
        let writer = writer.inspect_err(|error| tracing::error!(%error, "no thread to write the index")).ok();
        Self { database: Some(database), changes: Mutex::new(Some(sender)), writer: Mutex::new(writer) }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A writer that panicked has said so on its own.
            let _joined = writer.join();
        }
    }
}

fn load(path: &Path) -> Result<(Database, Loaded)> {
    let opened = || -> Result<(Database, Loaded), redb::Error> {
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(path)?;
        let transaction = database.begin_write()?;
        let fits = {
            let mut meta = transaction.open_table(META)?;
            let version = meta.get("version")?.map(|version| version.value());
            if version.is_none() {
                meta.insert("version", VERSION)?;
            }
            version.is_none_or(|version| version == VERSION)
        };
        if !fits {
            return Err(redb::Error::UpgradeRequired(0));
        }
        let mut loaded = Loaded::default();
        for entry in transaction.open_table(BLOBS)?.iter()? {
            let (key, value) = entry?;
            if let (Some(digest), Ok(record)) = (digest(key.value()), serde_json::from_slice(value.value())) {
                loaded.blobs.insert(digest, record);
            }
        }
        for entry in transaction.open_table(LINKS)?.iter()? {
            let (key, _) = entry?;
            let (digest_bytes, place_text) = key.value();
            loaded.links.extend(digest(digest_bytes).zip(place(place_text)));
        }
        for entry in transaction.open_table(TAGS)?.iter()? {
            let (key, value) = entry?;
            let parsed =
                key.value().rsplit_once(' ').and_then(|(at, tag)| Some((place(at)?, tag.parse().ok()?)));
            loaded.tags.extend(parsed.zip(serde_json::from_slice(value.value()).ok()));
        }
        for entry in transaction.open_table(PINS)?.iter()? {
            loaded.pins.extend(digest(entry?.0.value()));
        }
        for entry in transaction.open_table(IMAGE_PINS)?.iter()? {
            let (key, value) = entry?;
            let pin = serde_json::from_slice(value.value()).ok();
            loaded.image_pins.extend(key.value().parse().ok().zip(pin));
        }
        transaction.open_table(LISTS)?;
        transaction.commit()?;
        Ok((database, loaded))
    };
    opened().map_err(Box::new)
}

fn write_all(database: &Database, changes: &Receiver<Change>) {
    while let Ok(first) = changes.recv() {
        let mut batch = vec![first];
        batch.extend(changes.try_iter().take(BATCH_MAX));
        let flushed: Vec<_> = batch
            .iter()
            .filter_map(|change| if let Change::Flush(sender) = change { Some(sender.clone()) } else { None })
            .collect();
        if let Err(error) = write(database, &batch) {
            tracing::error!(%error, "the index cannot be written; a restart will know less");
        }
        for sender in flushed {
            // Who asked may have gone.
            let _told = sender.send(());
        }
    }
}

fn write(database: &Database, batch: &[Change]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut blobs = transaction.open_table(BLOBS)?;
        let mut links = transaction.open_table(LINKS)?;
        let mut tags = transaction.open_table(TAGS)?;
        let mut lists = transaction.open_table(LISTS)?;
        let mut pins = transaction.open_table(PINS)?;
        let mut image_pins = transaction.open_table(IMAGE_PINS)?;
        for change in batch {
            match change {
                Change::Blob(digest, Some(record)) => {
                    blobs.insert(key(digest).as_slice(), json(record).as_slice())?;
                }
                Change::Blob(digest, None) => drop(blobs.remove(key(digest).as_slice())?),
                Change::Link(digest, place, true) => {
                    links.insert((key(digest).as_slice(), text(place).as_str()), ())?;
                }
                Change::Link(digest, place, false) => {
                    links.remove((key(digest).as_slice(), text(place).as_str()))?;
                }
                Change::Tag(place, tag, Some(record)) => {
                    tags.insert(format!("{} {tag}", text(place)).as_str(), json(record).as_slice())?;
                }
                Change::Tag(place, tag, None) => {
                    drop(tags.remove(format!("{} {tag}", text(place)).as_str())?)
                }
                Change::List(key, record) => drop(lists.insert(key.as_str(), json(record).as_slice())?),
                Change::Pin(digest, true) => drop(pins.insert(key(digest).as_slice(), ())?),
                Change::Pin(digest, false) => drop(pins.remove(key(digest).as_slice())?),
                Change::ImagePin(image, Some(pin)) => {
                    image_pins.insert(image.to_string().as_str(), json(pin).as_slice())?;
                }
                Change::ImagePin(image, None) => drop(image_pins.remove(image.to_string().as_str())?),
                Change::Flush(_) => {}
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

/// One byte for the algorithm, then the raw hash.
fn key(digest: &Digest) -> Vec<u8> {
    let algorithm = match digest.algorithm() {
        Algorithm::Sha256 => 1,
        Algorithm::Sha512 => 2,
    };
    let mut key = vec![algorithm];
    key.extend_from_slice(digest.raw());
    key
}

fn digest(key: &[u8]) -> Option<Digest> {
    let (algorithm, raw) = key.split_first()?;
    match algorithm {
        1 => Digest::from_raw(Algorithm::Sha256, raw),
        2 => Digest::from_raw(Algorithm::Sha512, raw),
        _ => None,
    }
}

/// Neither name holds a space.
fn text(place: &Place) -> String {
    format!("{} {}", place.upstream, place.repository)
}

fn place(text: &str) -> Option<Place> {
    let (upstream, repository) = text.split_once(' ')?;
    Some(Place { upstream: upstream.parse().ok()?, repository: repository.parse().ok()? })
}

fn json(record: &impl serde::Serialize) -> Vec<u8> {
    // Records are plain structs of texts and numbers, which always serialise.
    serde_json::to_vec(record).unwrap_or_default()
}
