//! How pins are changed: by a socket in the store of a cache that runs, or in the store itself.
//!
//! Whoever may open the socket may change pins, so its file is for the cache's own user; the network has no such door.
//! One line of JSON asks, one line answers.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bailey_oci::{Image, Registry, Target};
use bailey_process::drain::Signal;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::cache::{Cache, Pinned, pinned};
use crate::index::ImagePin;
use crate::store::{Store, StoreError};

/// A list of a thousand images is some 100 KB.
const LINE_MAX: u64 = 4 << 20;
const EXCHANGE: Duration = Duration::from_secs(30);
/// People at a keyboard, and scripts.
const CONNECTIONS_MAX: usize = 16;

/// What is asked of pins.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Request {
    Pin { images: Vec<Image>, platforms: Vec<Target> },
    Unpin { images: Vec<Image> },
    List,
}

/// What came of it: all that is pinned now, or why nothing was done.
pub type Reply = Result<Vec<Pinned>, String>;

/// Why nothing can be asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("`{path}` is no folder of a cache: it has no `blobs`")]
    NoStore { path: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the cache that uses `{path}` does not answer at its socket")]
    Socket { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Refused(String),
    #[error("a step broke off")]
    Broken(#[source] tokio::task::JoinError),
}

/// Asks the cache that uses a store, or changes the store when none does.
pub async fn ask(folder: &Path, request: Request) -> Result<Vec<Pinned>, ControlError> {
    if !folder.join("blobs").is_dir() {
        return Err(ControlError::NoStore { path: folder.to_owned() });
    }
    let path = socket(folder);
    let reply = match UnixStream::connect(&path).await {
        Ok(stream) => {
            let failed = |source| ControlError::Socket { path: folder.to_owned(), source };
            timeout(EXCHANGE, exchange(stream, &request))
                .await
                .map_err(|_| failed(io::ErrorKind::TimedOut.into()))?
                .map_err(failed)?
        }
        // None listens, so either none runs, or the lock of the store says so.
        Err(_) => {
            let folder = folder.to_owned();
            let change = move || -> Result<Reply, StoreError> {
                // Nothing is fetched here, so nothing has to make room.
                let (store, _) = Store::open(folder, u64::MAX)?;
                let reply = apply(&store, &request, |_| true);
                store.index().flush();
                Ok(reply)
            };
            spawn_blocking(change).await.map_err(ControlError::Broken)??
        }
    };
    reply.map_err(ControlError::Refused)
}

async fn exchange(stream: UnixStream, request: &Request) -> io::Result<Reply> {
    let mut stream = BufReader::new(stream);
    let mut line = serde_json::to_vec(request).map_err(io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = String::new();
    stream.read_line(&mut answer).await?;
    serde_json::from_str(&answer).map_err(io::Error::other)
}

/// Where the socket of a store is.
fn socket(folder: &Path) -> PathBuf {
    folder.join("control.sock")
}

/// Takes the socket of a store that this process has locked; None, and a warning, where that cannot be. Blocks shortly.
pub fn bind(folder: &Path) -> Option<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = socket(folder);
    // Left by a process that is gone: the lock is ours.
    let _removed = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).and_then(|listener| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    });
    let warn = |error: &io::Error| {
        tracing::warn!(path = %path.display(), %error, "no socket for pins; they can be changed by the configuration");
    };
    listener.inspect_err(warn).ok()
}

/// Answers at the socket until the drain starts.
pub async fn serve(
    listener: Option<UnixListener>,
    cache: Arc<Cache>,
    signal: Signal,
) -> Result<(), Infallible> {
    let Some(listener) = listener else {
        signal.started().await;
        return Ok(());
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = signal.started() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => drop(connections.spawn(answer(stream, cache.clone()))),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept at the socket for pins");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    connections.shutdown().await;
    Ok(())
}

async fn answer(stream: UnixStream, cache: Arc<Cache>) {
    let exchanged = timeout(EXCHANGE, async {
        let (read, mut write) = stream.into_split();
        let mut line = String::new();
        BufReader::new(read.take(LINE_MAX)).read_line(&mut line).await?;
        let reply = match serde_json::from_str::<Request>(&line) {
            Ok(request) => {
                let serves = |name: &Registry| cache.upstreams().any(|upstream| upstream.name() == name);
                let reply = apply(cache.store(), &request, serves);
                cache.wake_pins();
                reply
            }
            Err(error) => Err(format!("the request cannot be understood: {error}")),
        };
        let mut line = serde_json::to_vec(&reply).map_err(io::Error::other)?;
        line.push(b'\n');
        write.write_all(&line).await
    });
    match exchanged.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a request for pins broke off"),
        Err(_) => tracing::debug!("a request for pins took too long"),
    }
}

/// Does what is asked; all of it or, when one image is refused, nothing.
fn apply(store: &Store, request: &Request, serves: impl Fn(&Registry) -> bool) -> Reply {
    match request {
        Request::Pin { images, platforms } => {
            if let Some(image) = images.iter().find(|image| !serves(&image.registry)) {
                let name = &image.registry;
                return Err(format!(
                    "`{image}` is of {name}, which this cache does not serve; see its upstreams"
                ));
            }
            for image in images {
                store.change_image_pin(image, |pin| {
                    let mut pin = pin.unwrap_or_default();
                    // One that the configuration names is for its machines, and for these.
                    let new = platforms.iter().filter(|target| !pin.targets.contains(target)).cloned();
                    let new: Vec<_> = new.collect();
                    if !new.is_empty() {
                        pin.targets.extend(new);
                        pin.checked = 0;
                    }
                    Some(pin)
                });
            }
        }
        Request::Unpin { images } => {
            let pins = store.index().image_pins();
            for image in images {
                match pins.get(image) {
                    None => {
                        return Err(format!("`{image}` is not pinned; `bailey cache pins` lists what is"));
                    }
                    Some(pin) if pin.configured => {
                        return Err(format!(
                            "`{image}` is pinned by the configuration; take it out of `pins` there"
                        ));
                    }
                    Some(_) => {}
                }
            }
            for image in images {
                store.change_image_pin(image, |_| None);
            }
        }
        Request::List => {}
    }
    Ok(pinned(store.index(), |digest| store.size(digest).is_some()))
}

/// Makes the pins of images those that the configuration names, besides those that people made. Blocks.
pub fn configure(store: &Store, images: &[Image], targets: &[Target]) {
    for (image, pin) in store.index().image_pins() {
        if pin.configured && !images.contains(&image) {
            store.change_image_pin(&image, |_| None);
        }
    }
    for image in images {
        store.change_image_pin(image, |pin| {
            let pin = pin.unwrap_or_default();
            let checked = if pin.targets == targets { pin.checked } else { 0 };
            Some(ImagePin { configured: true, targets: targets.to_vec(), checked, ..pin })
        });
    }
}
