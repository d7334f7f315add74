//! The embedded files.

use include_dir::{Dir, include_dir};

use crate::{Attack, Result};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/catalogue");

/// Reads every attack of the catalogue, ordered by id.
pub fn catalogue() -> Result<Vec<Attack>> {
    let mut attacks = FILES
        .files()
        .filter_map(|file| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?)))
        .map(|(stem, text)| Attack::parse(stem, text))
        .collect::<Result<Vec<_>>>()?;
    attacks.sort_by(|left, right| left.id().cmp(right.id()));
    Ok(attacks)
}

#[cfg(test)]
mod tests;
