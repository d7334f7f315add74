//! The key of fingerprints: random for one run, or from a file that somebody keeps.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use bailey_access::Ledger;
use bailey_access::fingerprint::{Extractor, FingerprintKey, LocalKey};
use zeroize::Zeroizing;

use super::args::FingerprintArguments;
use crate::CliError;

/// More than any key has.
const KEY_BYTES_MAX: u64 = 64 << 10;
/// Rights of others on a file.
#[cfg(unix)]
const OTHERS: u32 = 0o007;

/// What takes fingerprints, if the flags ask for them.
pub fn ledger(arguments: &FingerprintArguments) -> Result<Option<Ledger>, CliError> {
    if !arguments.fingerprint {
        return Ok(None);
    }
    let key = match &arguments.fingerprint_key {
        None => FingerprintKey::new("run", random()?),
        Some(path) => read(path)?,
    };
    let extractor =
        Extractor { key, local: LocalKey::new(random()?), now_seconds: jiff::Timestamp::now().as_second() };
    let ledger = Ledger::new(extractor);
    Ok(Some(match arguments.fingerprint_key {
        None => ledger,
        Some(_) => ledger.showing_fingerprints(),
    }))
}

fn random() -> Result<Zeroizing<[u8; 32]>, CliError> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut())
        .map_err(|error| CliError::internal("the system gives no random bytes", error.to_string()))?;
    Ok(bytes)
}

/// Reads a key. What is wrong with it is told without a byte of it.
fn read(path: &Path) -> Result<FingerprintKey, CliError> {
    let failed =
        |source| CliError::File { action: "read the fingerprint key", path: path.to_owned(), source };
    let wrong = |why: String| {
        CliError::Usage(format!("the fingerprint key in `{}` cannot be used: {why}", path.display()))
    };
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(wrong("it is a folder".to_owned()));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = metadata.permissions().mode();
        if mode & OTHERS != 0 {
            let path = path.display();
            return Err(wrong(format!(
                "its mode {:03o} lets everybody on this machine at it; chmod 600 {path}, or make another if it was read",
                mode & 0o777
            )));
        }
    }
    let mut secret = Zeroizing::new(Vec::new());
    file.by_ref().take(KEY_BYTES_MAX + 1).read_to_end(&mut secret).map_err(failed)?;
    if secret.len() as u64 > KEY_BYTES_MAX {
        return Err(wrong(format!("it has more than {KEY_BYTES_MAX} bytes; is it the right file?")));
    }
    FingerprintKey::of_secret(&secret).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests;
