//! Where real manifests and whole management clusters lie that are no part of the repository.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The folder of the corpora: the one that `BAILEY_CORPORA` names, else `../shared/corpora` beside the project.
///
/// None, and a word on standard error about what is skipped, where there is no such folder. A folder that is named and not there is a
/// mistake and no reason to skip.
///
/// # Panics
///
/// If `BAILEY_CORPORA` names no folder.
pub fn corpora(test: &str) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("BAILEY_CORPORA").map(PathBuf::from) {
        assert!(named.is_dir(), "BAILEY_CORPORA names no folder: {}", named.display());
        return Some(named);
    }
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let beside = project.and_then(Path::parent).map(|parent| parent.join("shared/corpora"));
    let found = beside.filter(|folder| folder.is_dir());
    if found.is_none() {
        // Not by a macro: what a test prints by one is shown only if it fails.
        let why = "there is no ../shared/corpora beside the project, and BAILEY_CORPORA names none";
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
    }
    found
}
