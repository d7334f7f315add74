//! Pulls images through a cache, as a node would, and throws the bytes away: the cache has them then.

use std::path::Path;
use std::time::Duration;

pub use bailey_oci::Image;
use bailey_oci::image::TargetError;
use bailey_oci::manifest::{BYTES_MAX, Manifest};
use bailey_oci::media::{self, Kind, MediaType};
use bailey_oci::plan::Parts;
use bailey_oci::trust::Trust;
use bailey_oci::{Algorithm, Digest, Reference, Target};
use http::{Method, header};
use rustls::RootCertStore;
use std::sync::Arc;
use tokio::time::Instant;

use crate::config::{ConfigError, url};
use crate::upstream::connect::{CaError, roots};
use crate::upstream::credentials::Source;
use crate::upstream::{Answer, Ask, Problem, Settings, Upstream, text};

/// How long a cache may take to answer; it answers within five seconds, whatever upstreams do.
const ANSWER: Duration = Duration::from_secs(10);
/// As many indexes may lie in each other.
const DEPTH_MAX: u8 = 4;

/// Why images cannot be pulled at all.
#[derive(Debug, thiserror::Error)]
pub enum PrefetchError {
    #[error(transparent)]
    Platform(#[from] TargetError),
    #[error(transparent)]
    Address(#[from] ConfigError),
    #[error(transparent)]
    Certificates(#[from] CaError),
}

/// What was pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulled {
    pub digest: Digest,
    pub bytes: u64,
}

/// Pulls through one cache.
#[derive(Debug)]
pub struct Prefetch {
    cache: url::Url,
    roots: Arc<RootCertStore>,
    target: Target,
}

impl Prefetch {
    /// Prepares to pull through the cache at `address`. Blocks shortly.
    pub fn new(address: &str, ca_file: Option<&Path>, platform: &str) -> Result<Self, PrefetchError> {
        let target = platform.parse()?;
        Ok(Self { cache: url("--cache", address)?, roots: roots(ca_file)?, target })
    }

    /// Pulls one image: its manifests and its blobs.
    pub async fn pull(&self, image: &Image) -> Result<Pulled, Problem> {
        let cache = self.upstream(image);
        let mut pulled: Option<Pulled> = None;
        let mut next = vec![(image.reference.clone(), 0)];
        while let Some((reference, depth)) = next.pop() {
            let (digest, length, manifest) = self.manifest(&cache, image, &reference).await?;
            let sum = pulled.get_or_insert(Pulled { digest, bytes: 0 });
            sum.bytes += length;
            for blob in manifest.blobs() {
                sum.bytes += blob_bytes(&cache, image, blob.digest).await?;
            }
            if depth < DEPTH_MAX {
                let wanted = manifest.manifests().filter(|child| self.target.wants(child.platform.as_ref()));
                next.extend(wanted.map(|child| (child.descriptor.digest.into(), depth + 1)));
            }
        }
        pulled.ok_or_else(|| Problem::nonsense("an image without a manifest"))
    }

    /// The manifests and blobs of an image and their sizes; asks for manifests only.
    pub async fn parts(&self, image: &Image) -> Result<Parts, Problem> {
        let cache = self.upstream(image);
        let mut parts = Parts::new();
        let mut next = vec![(image.reference.clone(), 0)];
        while let Some((reference, depth)) = next.pop() {
            let (digest, length, manifest) = self.manifest(&cache, image, &reference).await?;
            parts.insert(digest, length);
            parts.extend(manifest.blobs().map(|blob| (blob.digest, blob.size)));
            if depth < DEPTH_MAX {
                let wanted = manifest.manifests().filter(|child| self.target.wants(child.platform.as_ref()));
                next.extend(wanted.map(|child| (child.descriptor.digest.into(), depth + 1)));
            }
        }
        Ok(parts)
    }

    /// The cache, asked for what is in the image's registry.
    fn upstream(&self, image: &Image) -> Upstream {
        let settings = Settings {
            name: image.registry.clone(),
            url: self.cache.clone(),
            prefix: Some(image.registry.to_string()),
            credentials: Source::Anonymous,
            trust: Trust::default(),
        };
        Upstream::new(settings, self.roots.clone())
    }

    async fn manifest(
        &self,
        cache: &Upstream,
        image: &Image,
        reference: &Reference,
    ) -> Result<(Digest, u64, Manifest), Problem> {
        let answer = ask(cache, image, format!("manifests/{reference}"), Some(media::ACCEPT)).await?;
        let media_type =
            text(&answer.headers, header::CONTENT_TYPE).and_then(|text| MediaType::new(text).ok());
        let media_type = media_type.ok_or_else(|| Problem::nonsense("a manifest without a media type"))?;
        let bytes = answer.body.whole(BYTES_MAX, Instant::now() + ANSWER).await?;
        let algorithm = reference.digest().map_or(Algorithm::Sha256, |digest| digest.algorithm());
        let digest = Digest::of(algorithm, &bytes);
        if reference.digest().is_some_and(|wanted| wanted != digest) {
            return Err(Problem::wrong("the manifest has another digest"));
        }
        let manifest =
            Manifest::parse(&bytes, &media_type).map_err(|error| Problem::nonsense(error.to_string()))?;
        if media_type.kind() == Kind::Schema1 {
            return Err(Problem::nonsense("a manifest of a kind that nodes do not take any more"));
        }
        Ok((digest, bytes.len() as u64, manifest))
    }
}

async fn blob_bytes(cache: &Upstream, image: &Image, digest: Digest) -> Result<u64, Problem> {
    let mut answer = ask(cache, image, format!("blobs/{digest}"), None).await?;
    let mut bytes = 0;
    while let Some(piece) = answer.body.next().await? {
        bytes += piece.len() as u64;
    }
    Ok(bytes)
}

async fn ask(
    cache: &Upstream,
    image: &Image,
    rest: String,
    accept: Option<&'static str>,
) -> Result<Answer, Problem> {
    let ask = Ask { method: Method::GET, repository: image.repository.clone(), rest, accept, range: None };
    cache.ask(&ask, Instant::now() + ANSWER).await
}

#[cfg(test)]
mod tests {
    use bailey_testkit::registry::{Flavour, Image as Made, Layer, Upstream as Remote};

    use super::*;
    use crate::Config;
    use crate::config::UpstreamConfig;

    #[tokio::test]
    async fn what_was_prefetched_is_there_when_the_upstream_is_not() {
        bailey_process::crypto::install();
        let folder = tempfile::tempdir().unwrap();
        let mut remote = Remote::start().await.unwrap();
        let made = Made::new(Flavour::Docker, 1, &[Layer::random(1, 300_000), Layer::random(2, 10)]);
        remote.push("acme/app", "v1", &made);
        let registry =
            UpstreamConfig::anonymous("registry.example".parse().unwrap(), remote.url().parse().unwrap());
        let cache = crate::start(Config::local(folder.path(), 1 << 30, vec![registry])).await.unwrap();
        let prefetch = Prefetch::new(&format!("http://{}", cache.listen), None, "linux/amd64").unwrap();
        let image = "registry.example/acme/app:v1".parse().unwrap();
        let pulled = prefetch.pull(&image).await.unwrap();
        assert_eq!(pulled.digest, made.digest());
        assert!(pulled.bytes > 300_010, "{pulled:?}");
        remote.close().await;
        assert_eq!(prefetch.pull(&image).await.unwrap(), pulled);
        let problem = prefetch.pull(&"registry.example/acme/app:v2".parse().unwrap()).await.unwrap_err();
        assert_eq!(problem.cause, bailey_oci::status::Cause::Unreachable);
        cache.stop().await.unwrap();
    }
}
