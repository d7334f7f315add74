//! The directory from a file, read again when it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bailey_process::drain::Signal;
use bailey_process::telemetry::report;
use bailey_tunnel::directory::{Directory, Index, Twice};
use tokio::sync::watch;
use tokio::time::sleep;

use super::Known;

/// Who is revoked has to be out within a second.
const EVERY: Duration = Duration::from_millis(250);

/// A directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The file cannot be read.
    #[error("cannot read the directory {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no directory.
    #[error("{path} is no directory of an installation")]
    Parse {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Box<serde_saphyr::Error>,
    },
    /// It contradicts itself.
    #[error("{path} contradicts itself")]
    Twice {
        /// Which.
        path: PathBuf,
        /// How.
        source: Twice,
    },
}

/// Reads a directory, and gives what follows its changes.
pub async fn follow(path: &Path) -> Result<(Known, FollowDirectory), DirectoryError> {
    let text = read(path).await?;
    let (sender, known) = watch::channel(Arc::new(parse(path, &text)?));
    Ok((known, FollowDirectory { path: path.to_owned(), text, sender }))
}

/// Follows a directory in a file.
#[derive(Debug)]
pub struct FollowDirectory {
    path: PathBuf,
    text: String,
    sender: watch::Sender<Arc<Index>>,
}

impl FollowDirectory {
    /// Runs until the drain; what cannot be used leaves the last that could, and is said once.
    pub async fn run(mut self, signal: Signal) {
        let mut failed = String::new();
        loop {
            tokio::select! {
                () = signal.started() => return,
                () = sleep(EVERY) => {}
            }
            let fresh = match read(&self.path).await {
                Ok(text) if text == self.text => continue,
                Ok(text) => parse(&self.path, &text).map(|index| (text, index)),
                Err(error) => Err(error),
            };
            match fresh {
                Ok((text, index)) => {
                    self.text = text;
                    failed.clear();
                    self.sender.send_replace(Arc::new(index));
                }
                Err(error) if report(&error) != failed => {
                    failed = report(&error);
                    tracing::warn!(error = failed, "the last directory is kept");
                }
                Err(_) => {}
            }
        }
    }
}

async fn read(path: &Path) -> Result<String, DirectoryError> {
    let error = |source| DirectoryError::Read { path: path.to_owned(), source };
    tokio::fs::read_to_string(path).await.map_err(error)
}

fn parse(path: &Path, text: &str) -> Result<Index, DirectoryError> {
    let error = |source| DirectoryError::Parse { path: path.to_owned(), source: Box::new(source) };
    let directory: Directory = serde_saphyr::from_str(text).map_err(error)?;
    Index::new(directory).map_err(|source| DirectoryError::Twice { path: path.to_owned(), source })
}
