//! Dumps on disk: files, folders, and archives of either, of one or several clusters.
//!
//! What was named and cannot be read is an error. What is found inside a folder or archive and cannot be read is a gap.
//! An archive is never unpacked: its files are read as they pass by, and its links are not followed.

mod archive;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bailey_access::{Gap, Inflate, Loader, SecretValues, Snapshot};

use crate::CliError;

/// Stands for standard input where a path can be given.
const STANDARD_INPUT: &str = "-";
/// Folders are not followed deeper than this.
const DEPTH_MAX: usize = 64;

/// Hears how far reading is: the file, and how many of its bytes are read.
pub type Progress<'p> = dyn FnMut(&Path, u64) + 'p;

/// Reads dumps, each with the name of its cluster if it has one. Dumps of one name, and all that have none, are of one
/// cluster. Values of Secrets are read only if somebody takes them.
///
/// # Errors
///
/// If a path cannot be read, or the dumps of a cluster hold no Kubernetes object at all.
pub fn load_dumps<'d>(
    dumps: impl IntoIterator<Item = (Option<&'d str>, &'d Path)>,
    mut values: Option<&mut dyn SecretValues>,
    progress: &mut Progress<'_>,
) -> Result<Snapshot, CliError> {
    let mut clusters: Vec<(Option<&str>, Vec<&Path>)> = Vec::new();
    for (name, path) in dumps {
        match clusters.iter_mut().find(|(known, _)| *known == name) {
            Some((_, paths)) => paths.push(path),
            None => clusters.push((name, vec![path])),
        }
    }
    let mut snapshot = Snapshot::default();
    for (name, paths) in clusters {
        let gaps_before = snapshot.gaps.len();
        let mut loader = Loader::new(&mut snapshot, name);
        if let Some(values) = &mut values {
            loader = loader.open_secrets(&mut **values);
        }
        let mut reading = Reading { loader, progress };
        for path in &paths {
            reading.named(path)?;
        }
        let is_empty = reading.loader.counts().is_empty();
        reading.loader.finish();
        if is_empty {
            return Err(nothing(&paths, snapshot.gaps.get(gaps_before)));
        }
    }
    Ok(snapshot)
}

fn nothing(paths: &[&Path], gap: Option<&Gap>) -> CliError {
    let paths: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    let reason = gap.map_or_else(
        || {
            "files are taken by their endings: .json, .yaml, .yml, .ndjson, also in .gz, .tar, .tgz"
                .to_owned()
        },
        |gap| format!("{}: {}", gap.what, gap.why),
    );
    CliError::Usage(format!("there is no Kubernetes object in {}; {reason}", paths.join(", ")))
}

struct Reading<'r, 'p, 'l> {
    loader: Loader<'l>,
    progress: &'r mut Progress<'p>,
}

/// What a file is for a reader of dumps, by its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Objects, also compressed.
    Objects,
    /// A tar archive, also compressed.
    Archive,
    /// Nothing that is read, such as a log.
    Other,
}

impl Ending {
    fn of(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
        // Hidden files, and what macOS puts beside each file of an archive.
        if name.starts_with('.') {
            return Self::Other;
        }
        let inner = name.strip_suffix(".gz").unwrap_or(&name);
        let ends = |endings: &[&str]| endings.iter().any(|ending| inner.ends_with(ending));
        if ends(&[".json", ".yaml", ".yml", ".ndjson", ".jsonl"]) {
            Self::Objects
        } else if ends(&[".tar", ".tgz"]) {
            Self::Archive
        } else {
            Self::Other
        }
    }
}

impl Reading<'_, '_, '_> {
    /// Reads what somebody named.
    fn named(&mut self, path: &Path) -> Result<(), CliError> {
        let failed = |source| CliError::File { action: "read", path: path.to_owned(), source };
        if path.as_os_str() == STANDARD_INPUT {
            return self.file(Path::new("standard input"), io::stdin().lock()).map_err(failed);
        }
        if fs::metadata(path).map_err(failed)?.is_dir() {
            let entries = entries(path).map_err(failed)?;
            self.folder(&entries, DEPTH_MAX);
            return Ok(());
        }
        let file = File::open(path).map_err(failed)?;
        self.file(path, file).map_err(failed)
    }

    /// Reads what is in a folder.
    fn folder(&mut self, paths: &[PathBuf], depth: usize) {
        for path in paths {
            let found = match fs::symlink_metadata(path) {
                Ok(metadata) if metadata.is_dir() => self.inner_folder(path, depth),
                _ if Ending::of(path) == Ending::Other => continue,
                Ok(_) => File::open(path).and_then(|file| match file.metadata()?.is_dir() {
                    // A link to a folder, which may be one that it is in.
                    true => Ok(()),
                    false => self.file(path, file),
                }),
                Err(error) => Err(error),
            };
            if let Err(error) = found {
                let why =
                    format!("it cannot be read ({error}); make it readable, or leave it out of the folder");
                self.loader.missing(format!("`{}`", path.display()), why);
            }
        }
    }

    fn inner_folder(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        match depth.checked_sub(1) {
            _ if is_hidden => {}
            Some(depth) => self.folder(&entries(path)?, depth),
            None => return Err(io::Error::other("it is in too many folders")),
        }
        Ok(())
    }

    /// Reads a file, whatever its ending says.
    fn file(&mut self, path: &Path, reader: impl Read) -> io::Result<()> {
        let mut reader = Watched { reader, path, bytes: 0, progress: &mut *self.progress };
        let start = first_bytes(&mut reader)?;
        let name = path.display().to_string();
        if start.starts_with(b"\x1f\x8b") {
            let mut inflated = Inflate::new(start.chain(reader));
            match first_bytes(&mut inflated) {
                Ok(start) => objects_or_archive(&mut self.loader, &name, start, inflated),
                Err(error) => {
                    self.loader.missing(
                        format!("everything in `{name}`"),
                        format!("it cannot be inflated: {error}"),
                    );
                    Ok(())
                }
            }
        } else {
            objects_or_archive(&mut self.loader, &name, start, reader)
        }
    }
}

fn objects_or_archive(
    loader: &mut Loader<'_>,
    name: &str,
    start: Vec<u8>,
    rest: impl Read,
) -> io::Result<()> {
    let is_archive = start.get(257..262) == Some(b"ustar");
    let whole = start.chain(rest);
    if is_archive {
        archive::read(loader, name, whole);
        return Ok(());
    }
    loader.source(name);
    loader.load(whole).map_err(|error| error.source)
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// As many bytes as the mark of a tar archive needs; fewer if there are no more.
fn first_bytes(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    reader.by_ref().take(512).read_to_end(&mut start)?;
    Ok(start)
}

/// Tells how far a file is read.
struct Watched<'w, 'p, R> {
    reader: R,
    path: &'w Path,
    bytes: u64,
    progress: &'w mut Progress<'p>,
}

impl<R: Read> Read for Watched<'_, '_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.bytes = self.bytes.saturating_add(count as u64);
        (self.progress)(self.path, self.bytes);
        Ok(count)
    }
}
