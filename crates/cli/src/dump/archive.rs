//! Files of a tar archive, read as they pass by.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bailey_access::Loader;
use tar::{Archive, Entry, EntryType};

use super::Ending;

/// More entries than this are in no dump.
const ENTRIES_MAX: usize = 200_000;
/// Names are never longer than this, whatever the archive says.
const NAME_BYTES_MAX: u64 = 64 << 10;

/// Reads the files of an archive that hold objects. An archive that is damaged is a gap.
pub(super) fn read(loader: &mut Loader<'_>, name: &str, reader: impl Read) {
    let mut skipped = Skipped::default();
    if let Err(error) = entries(loader, name, reader, &mut skipped) {
        let why = format!("the archive is damaged or cut off ({error}); pack it again");
        loader.missing(format!("the rest of `{name}`"), why);
    }
    if skipped.links > 0 {
        let why = "links are not followed; pack the archive with what they point to (`tar --dereference`)";
        loader.missing(format!("{} links in `{name}`", skipped.links), why);
    }
    if skipped.archives > 0 {
        let why = "archives in archives are not read; unpack the outer one";
        loader.missing(format!("{} archives in `{name}`", skipped.archives), why);
    }
}

/// Entries that are left out, and may hold something.
#[derive(Default)]
struct Skipped {
    links: u64,
    archives: u64,
}

fn entries(loader: &mut Loader<'_>, name: &str, reader: impl Read, skipped: &mut Skipped) -> io::Result<()> {
    let mut archive = Archive::new(reader);
    // Raw: the reader of extended names has no bound of its own.
    let entries = archive.entries()?.raw(true);
    let mut long_name = None;
    for (number, entry) in entries.enumerate() {
        if number >= ENTRIES_MAX {
            return Err(io::Error::other(format!("it has more than {ENTRIES_MAX} entries")));
        }
        let mut entry = entry?;
        match entry.header().entry_type() {
            EntryType::GNULongName => long_name = Some(read_name(&mut entry)?),
            EntryType::XHeader => long_name = pax_path(&read_name(&mut entry)?).or(long_name),
            EntryType::XGlobalHeader | EntryType::GNULongLink | EntryType::Directory => {}
            EntryType::Regular | EntryType::Continuous => {
                let path = match long_name.take() {
                    Some(name) => PathBuf::from(String::from_utf8_lossy(&name).into_owned()),
                    None => entry.header().path()?.into_owned(),
                };
                match Ending::of(&path) {
                    Ending::Objects => {
                        loader.source(&Path::new(name).join(clean(&path)).display().to_string());
                        loader.load(&mut entry).map_err(|error| error.source)?;
                    }
                    Ending::Archive => skipped.archives += 1,
                    Ending::Other => {}
                }
            }
            kind => {
                long_name = None;
                skipped.links += u64::from(kind.is_symlink() || kind.is_hard_link());
            }
        }
    }
    Ok(())
}

/// The path without what would lead out of the archive. Nothing is written there; it is for people.
fn clean(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, std::path::Component::Normal(_))).collect()
}

fn read_name(entry: &mut Entry<'_, impl Read>) -> io::Result<Vec<u8>> {
    let mut name = Vec::new();
    entry.take(NAME_BYTES_MAX).read_to_end(&mut name)?;
    while name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}

/// `path` in an extended header: lines of `LENGTH KEY=VALUE`.
fn pax_path(header: &[u8]) -> Option<Vec<u8>> {
    header.split(|byte| *byte == b'\n').find_map(|line| {
        let space = line.iter().position(|byte| *byte == b' ')?;
        line.get(space + 1..)?.strip_prefix(b"path=").map(<[u8]>::to_vec)
    })
}
