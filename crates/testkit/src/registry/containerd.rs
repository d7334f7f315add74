//! A pull as containerd does it, request by request (`core/remotes/docker` of containerd 2.x).
//!
//! HEAD for the tag, whose digest and length are believed; GET of the manifest by digest; of an index, the manifest
//! of one platform; then the config and three layers at a time. A body that ends with FIN too early is asked for
//! again from where it ended, three times without progress; a reset is not. Layers may be fetched in chunks, each an
//! open-ended range that is closed after its part.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bailey_oci::manifest::{Child, Descriptor};
use bailey_oci::media::{self, Kind};
use bailey_oci::{Digest, Hasher, Manifest, MediaType};
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::http::{Answer, BodyEnd, Http};

/// What is asked for with a tag.
const ACCEPT: &str = "application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.oci.image.index.v1+json, */*";
/// What is sent with each GET; a server that compresses by it changes bytes.
const ACCEPT_ENCODING: &str = "zstd, gzip, deflate";
const LAYERS_AT_ONCE: usize = 3;
const TRIES_WITHOUT_PROGRESS: usize = 3;

/// A node's containerd with one mirror.
#[derive(Clone, Debug)]
pub struct Containerd {
    http: Http,
    /// The registry of the image, sent as `ns=`.
    namespace: Option<String>,
    /// The part of a layer that is fetched with one request.
    chunk_bytes: Option<u64>,
}

/// What came of a pull.
#[derive(Clone, Debug)]
pub struct Pulled {
    pub digest: Digest,
    pub media_type: String,
    /// The manifests that were read: the index, if there is one, and that of the platform.
    pub manifests: Vec<(Digest, String, Bytes)>,
    pub blobs: Vec<PulledBlob>,
    /// From the start to the head of the answer to the first manifest.
    pub manifest_after: Duration,
    /// From the start to the first byte of the layer that came last.
    pub last_first_byte_after: Duration,
    pub took: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PulledBlob {
    pub digest: Digest,
    pub size: u64,
    /// How often it had to be asked for again.
    pub resumed: usize,
    first_byte_at: Instant,
}

/// Why a pull failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    #[error("{what}: status {status}: {body}")]
    Status { what: String, status: u16, body: String },
    #[error("{what}: the body ended ({end:?}) after {got} bytes")]
    Broken { what: String, end: BodyEnd, got: u64 },
    #[error("{what}: the bytes are not those of the digest")]
    WrongDigest { what: String },
    #[error("{what}: {why}")]
    Other { what: String, why: String },
}

/// How far a blob is read.
struct SoFar {
    got: u64,
    hasher: Hasher,
    first_byte_at: Option<Instant>,
    chunk: Option<u64>,
}

impl PullError {
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}

impl Containerd {
    pub fn new(mirror: SocketAddr) -> Self {
        Self { http: Http::new(mirror), namespace: None, chunk_bytes: None }
    }

    /// For images of this registry.
    #[must_use]
    pub fn of(self, registry: &str) -> Self {
        Self { namespace: Some(registry.to_owned()), ..self }
    }

    /// With layers fetched in chunks of so many bytes, as with `concurrent_layer_fetch_buffer`.
    #[must_use]
    pub fn in_chunks(self, bytes: u64) -> Self {
        Self { chunk_bytes: Some(bytes), ..self }
    }

    pub fn http(&self) -> &Http {
        &self.http
    }

    /// Pulls a tag.
    pub async fn pull(&self, repository: &str, tag: &str) -> Result<Pulled, PullError> {
        let started = Instant::now();
        let (digest, media_type, manifest_after) = self.resolve(repository, tag).await?;
        self.fetch(repository, digest, media_type, started, manifest_after).await
    }

    /// Pulls by digest, which containerd resolves with a HEAD as well.
    pub async fn pull_digest(&self, repository: &str, digest: Digest) -> Result<Pulled, PullError> {
        self.pull(repository, &digest.to_string()).await
    }

    /// Asks what a tag is: its digest, its media type, and how long the answer took.
    pub async fn resolve(
        &self,
        repository: &str,
        reference: &str,
    ) -> Result<(Digest, String, Duration), PullError> {
        let path = format!("/v2/{repository}/manifests/{reference}");
        let answer = self.ask("HEAD", &path, &[("accept", ACCEPT)]).await?;
        let after = answer.head_after;
        let digest = answer.header("docker-content-digest").and_then(|text| text.parse().ok());
        let media_type = answer.header("content-type").unwrap_or_default().to_owned();
        if let (Some(digest), Some(_length)) = (digest, answer.header("content-length")) {
            return Ok((digest, media_type, after));
        }
        // Without both headers the manifest is fetched to see for itself.
        let answer = self.ask("GET", &path, &[("accept", ACCEPT)]).await?;
        let media_type = answer.header("content-type").unwrap_or_default().to_owned();
        let bytes = whole(&path, answer).await?;
        Ok((Digest::of(bailey_oci::Algorithm::Sha256, &bytes), media_type, after))
    }

    async fn fetch(
        &self,
        repository: &str,
        digest: Digest,
        media_type: String,
        started: Instant,
        manifest_after: Duration,
    ) -> Result<Pulled, PullError> {
        let mut manifests = Vec::new();
        let mut next = (digest, media_type.clone());
        let blobs = loop {
            let (digest, media_type) = next;
            let bytes = self.manifest(repository, digest, &media_type).await?;
            let what = format!("{repository}@{digest}");
            let parsed = MediaType::new(&media_type).map_err(|error| other(&what, error))?;
            let manifest = Manifest::parse(&bytes, &parsed).map_err(|error| other(&what, error))?;
            manifests.push((digest, media_type, bytes));
            if parsed.kind() != Kind::Index {
                break manifest.blobs().cloned().collect::<Vec<_>>();
            }
            let chosen = manifest.manifests().find(|child| is_for_this_node(child));
            let Some(chosen) = chosen.or_else(|| manifest.manifests().next()) else { break Vec::new() };
            next = (chosen.descriptor.digest, chosen.descriptor.media_type.clone());
        };
        let blobs = self.blobs(repository, blobs).await?;
        let last = blobs.iter().map(|blob| blob.first_byte_at.duration_since(started)).max();
        Ok(Pulled {
            digest,
            media_type,
            manifests,
            blobs,
            manifest_after,
            last_first_byte_after: last.unwrap_or_default(),
            took: started.elapsed(),
        })
    }

    async fn manifest(&self, repository: &str, digest: Digest, media_type: &str) -> Result<Bytes, PullError> {
        let path = format!("/v2/{repository}/manifests/{digest}");
        let accept = format!("{media_type}, */*");
        let headers = [("accept", accept.as_str()), ("accept-encoding", ACCEPT_ENCODING)];
        let answer = self.ask("GET", &path, &headers).await?;
        let bytes = whole(&path, answer).await?;
        if Digest::of(digest.algorithm(), &bytes) != digest {
            return Err(PullError::WrongDigest { what: path });
        }
        Ok(bytes)
    }

    async fn blobs(&self, repository: &str, blobs: Vec<Descriptor>) -> Result<Vec<PulledBlob>, PullError> {
        let slots = Arc::new(Semaphore::new(LAYERS_AT_ONCE));
        let mut tasks = JoinSet::new();
        for descriptor in blobs {
            let (client, slots, repository) = (self.clone(), Arc::clone(&slots), repository.to_owned());
            tasks.spawn(async move {
                let _slot = slots.acquire_owned().await;
                client.blob(&repository, &descriptor).await
            });
        }
        let mut pulled = Vec::new();
        while let Some(done) = tasks.join_next().await {
            pulled.push(done.map_err(|error| other(repository, error))??);
        }
        Ok(pulled)
    }

    /// Fetches one blob and checks it.
    pub async fn blob(&self, repository: &str, descriptor: &Descriptor) -> Result<PulledBlob, PullError> {
        let path = format!("/v2/{repository}/blobs/{}", descriptor.digest);
        let mut so_far = SoFar {
            got: 0,
            hasher: Hasher::new(descriptor.digest.algorithm()),
            first_byte_at: None,
            // A blob of one chunk is fetched without a range.
            chunk: self.chunk_bytes.filter(|chunk| *chunk < descriptor.size),
        };
        let (mut resumed, mut stuck) = (0, 0);
        loop {
            let before = so_far.got;
            let end = self.part(&path, descriptor, &mut so_far).await?;
            let got = so_far.got;
            match end {
                BodyEnd::Complete if got >= descriptor.size => break,
                BodyEnd::Complete if so_far.chunk.is_some() && got > before => {}
                BodyEnd::Cut => {
                    resumed += 1;
                    stuck = if got > before { 0 } else { stuck + 1 };
                    if stuck >= TRIES_WITHOUT_PROGRESS {
                        return Err(PullError::Broken { what: path, end, got });
                    }
                }
                BodyEnd::Complete | BodyEnd::Reset => return Err(PullError::Broken { what: path, end, got }),
            }
        }
        if so_far.hasher.finish() != descriptor.digest {
            return Err(PullError::WrongDigest { what: path });
        }
        let first_byte_at = so_far.first_byte_at.unwrap_or_else(Instant::now);
        Ok(PulledBlob { digest: descriptor.digest, size: so_far.got, resumed, first_byte_at })
    }

    /// Reads a body from where the last one ended until it ends itself, or until a chunk of it is read.
    async fn part(
        &self,
        path: &str,
        descriptor: &Descriptor,
        so_far: &mut SoFar,
    ) -> Result<BodyEnd, PullError> {
        let kind = if descriptor.media_type.is_empty() { media::OCTETS } else { &descriptor.media_type };
        let (accept, range) = (format!("{kind}, */*"), format!("bytes={}-", so_far.got));
        let mut headers = vec![("accept", accept.as_str()), ("accept-encoding", ACCEPT_ENCODING)];
        let ranged = so_far.got > 0 || so_far.chunk.is_some();
        if ranged {
            headers.push(("range", range.as_str()));
        }
        let mut answer = self.ask("GET", path, &headers).await?;
        let begins = format!("bytes {}-", so_far.got);
        if ranged && !answer.header("content-range").is_some_and(|value| value.starts_with(&begins)) {
            return Err(other(path, format!("{range} was answered {} without its range", answer.status)));
        }
        let chunk_ends = so_far.chunk.map_or(u64::MAX, |chunk| so_far.got.saturating_add(chunk));
        loop {
            let piece = match answer.piece().await {
                Ok(piece) => piece,
                Err(end) => return Ok(end),
            };
            so_far.first_byte_at.get_or_insert_with(Instant::now);
            let room = usize::try_from(chunk_ends - so_far.got).unwrap_or(usize::MAX).min(piece.len());
            so_far.hasher.update(piece.get(..room).unwrap_or_default());
            so_far.got += room as u64;
            if so_far.got > descriptor.size {
                return Err(other(path, "more bytes came than its descriptor says"));
            }
            if so_far.got == chunk_ends {
                return Ok(BodyEnd::Complete);
            }
        }
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Answer, PullError> {
        let target = match &self.namespace {
            Some(namespace) => format!("{path}?ns={namespace}"),
            None => path.to_owned(),
        };
        let sent = self.http.send(method, &target, headers).await;
        let answer = sent.map_err(|error| other(&target, format!("{error:#}")))?;
        if matches!(answer.status, 200 | 206) {
            return Ok(answer);
        }
        let status = answer.status;
        let (body, _) = answer.body().await;
        let body = String::from_utf8_lossy(&body).chars().take(300).collect();
        Err(PullError::Status { what: format!("{method} {target}"), status, body })
    }
}

async fn whole(what: &str, answer: Answer) -> Result<Bytes, PullError> {
    match answer.body().await {
        (bytes, BodyEnd::Complete) => Ok(bytes),
        (bytes, end) => Err(PullError::Broken { what: what.to_owned(), end, got: bytes.len() as u64 }),
    }
}

fn is_for_this_node(child: &Child) -> bool {
    child.platform.as_ref().is_some_and(|platform| platform.os == "linux" && platform.architecture == "amd64")
}

fn other(what: &str, why: impl ToString) -> PullError {
    PullError::Other { what: what.to_owned(), why: why.to_string() }
}
