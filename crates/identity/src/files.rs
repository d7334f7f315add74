//! Credentials from files, read again when they change: no process restarts for a new certificate.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bailey_process::drain::Signal;
use bailey_process::telemetry::report;
use tokio::sync::watch;
use tokio::time::sleep;
use zeroize::Zeroizing;

use crate::credentials::{Credentials, CredentialsError, Current};

/// Mounted Secrets change by a rename of a folder, which watches of files do not see.
const EVERY: Duration = Duration::from_secs(1);

/// Where the files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The chain, leaf first, in PEM.
    pub certificate: PathBuf,
    /// The key, in PEM.
    pub key: PathBuf,
    /// The authorities.
    pub bundle: Bundle,
}

/// Where authorities are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bundle {
    /// In a file, in PEM, which is read again with the others.
    File(PathBuf),
    /// Here, in PEM.
    Pem(String),
}

/// Files that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What they say is no use.
    #[error("cannot use the certificate {path} with its key and bundle")]
    Credentials {
        /// The certificate.
        path: PathBuf,
        /// Why.
        source: CredentialsError,
    },
}

type Contents = (Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>);

/// Reads the files, and gives what follows their changes.
pub async fn follow(files: Files) -> Result<(Current, Follow), FilesError> {
    let contents = read(&files).await?;
    let first = parse(&files, &contents)?;
    let (sender, current) = watch::channel(Some(Arc::new(first)));
    Ok((current, Follow { files, contents, sender }))
}

/// Follows the files.
#[derive(Debug)]
pub struct Follow {
    files: Files,
    contents: Contents,
    sender: watch::Sender<Option<Arc<Credentials>>>,
}

impl Follow {
    /// Runs until the drain; what cannot be used leaves the last that could.
    pub async fn run(mut self, signal: Signal) {
        let mut failed = String::new();
        loop {
            tokio::select! {
                () = signal.started() => return,
                () = sleep(EVERY) => {}
            }
            let fresh = match read(&self.files).await {
                Ok(contents) if contents == self.contents => continue,
                Ok(contents) => parse(&self.files, &contents).map(|fresh| (contents, fresh)),
                Err(error) => Err(error),
            };
            match fresh {
                Ok((contents, fresh)) => {
                    self.contents = contents;
                    failed.clear();
                    tracing::info!(not_after = fresh.certificate.not_after, "new certificate");
                    self.sender.send_replace(Some(Arc::new(fresh)));
                }
                // The three files change one after the other, so a try between fails; said once for each cause.
                Err(error) if report(&error) != failed => {
                    failed = report(&error);
                    tracing::warn!(error = failed, "the last certificate is kept");
                }
                Err(_) => {}
            }
        }
    }
}

async fn read(files: &Files) -> Result<Contents, FilesError> {
    let read = async |path: &PathBuf| match tokio::fs::read(path).await {
        Ok(bytes) => Ok(Zeroizing::new(bytes)),
        Err(source) => Err(FilesError::Read { path: path.clone(), source }),
    };
    let bundle = match &files.bundle {
        Bundle::File(path) => read(path).await?,
        Bundle::Pem(pem) => Zeroizing::new(pem.clone().into_bytes()),
    };
    Ok((read(&files.certificate).await?, read(&files.key).await?, bundle))
}

fn parse(files: &Files, (certificate, key, bundle): &Contents) -> Result<Credentials, FilesError> {
    Credentials::from_pem(certificate, key, bundle)
        .map_err(|source| FilesError::Credentials { path: files.certificate.clone(), source })
}
