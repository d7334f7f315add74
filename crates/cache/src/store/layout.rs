//! Where files of a store lie: `blobs/<algorithm>/<2 hex>/<hex>`, `fills/<random>`, `index.redb`, `store.lock`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use bailey_oci::{Algorithm, Digest};

/// The folders of one store.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

/// A file that lies where a blob of this digest belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub digest: Digest,
    pub size: u64,
    /// Seconds since 1970.
    pub modified: u64,
}

impl Layout {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Makes the folders that are missing.
    pub fn create(&self) -> io::Result<()> {
        for algorithm in Algorithm::ALL {
            fs::create_dir_all(self.root.join("blobs").join(algorithm.as_str()))?;
        }
        fs::create_dir_all(self.fills())
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn index(&self) -> PathBuf {
        self.root.join("index.redb")
    }

    pub fn lock(&self) -> PathBuf {
        self.root.join("store.lock")
    }

    fn fills(&self) -> PathBuf {
        self.root.join("fills")
    }

    /// The place of a committed blob.
    pub fn blob(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        let shard = hex.get(..2).unwrap_or_default();
        self.root.join("blobs").join(digest.algorithm().as_str()).join(shard).join(&hex)
    }

    /// Makes a fill: a new file with a random name that says nothing about what it will hold.
    pub fn create_fill(&self) -> io::Result<(PathBuf, File)> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = self.fills().join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        Ok((path, file))
    }

    /// Removes all fills: at the start each of them was left by a process that is gone.
    pub fn sweep_fills(&self) -> io::Result<usize> {
        let mut swept = 0;
        for entry in fs::read_dir(self.fills())? {
            fs::remove_file(entry?.path())?;
            swept += 1;
        }
        Ok(swept)
    }

    /// Lists what lies where blobs belong; files with other names are left alone.
    pub fn scan(&self) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        for algorithm in Algorithm::ALL {
            for shard in fs::read_dir(self.root.join("blobs").join(algorithm.as_str()))? {
                let shard = shard?;
                if !shard.file_type()?.is_dir() {
                    continue;
                }
                for entry in fs::read_dir(shard.path())? {
                    found.extend(blob_at(algorithm, &entry?)?);
                }
            }
        }
        Ok(found)
    }
}

fn blob_at(algorithm: Algorithm, entry: &fs::DirEntry) -> io::Result<Option<Found>> {
    let name = entry.file_name();
    let digest = name.to_str().and_then(|hex| format!("{algorithm}:{hex}").parse().ok());
    let Some(digest) = digest else { return Ok(None) };
    let metadata = entry.metadata()?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    Ok(Some(Found { digest, size: metadata.len(), modified: modified.map_or(0, |passed| passed.as_secs()) }))
}
