//! Generated images: configs, layers, manifests, indexes and artifacts, the same for the same seed.

use bailey_oci::{Algorithm, Digest, Hasher};
use bytes::Bytes;
use serde_json::{Value, json};

/// Whose media types an image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    Oci,
    Docker,
}

impl Flavour {
    pub fn manifest(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.manifest.v1+json",
            Self::Docker => "application/vnd.docker.distribution.manifest.v2+json",
        }
    }

    pub fn index(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.index.v1+json",
            Self::Docker => "application/vnd.docker.distribution.manifest.list.v2+json",
        }
    }

    pub(super) fn config(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.config.v1+json",
            Self::Docker => "application/vnd.docker.container.image.v1+json",
        }
    }

    fn layer(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Docker => "application/vnd.docker.image.rootfs.diff.tar.gzip",
        }
    }
}

/// What a blob holds.
#[derive(Clone, Debug)]
pub enum Content {
    Bytes(Bytes),
    /// So many zeros, which take no memory.
    Zeros(u64),
}

#[derive(Clone, Debug)]
pub struct Blob {
    pub digest: Digest,
    pub content: Content,
}

/// A layer to be made.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    seed: u64,
    size: u64,
    algorithm: Algorithm,
    zeros: bool,
}

impl Layer {
    /// Bytes that nothing compresses.
    pub fn random(seed: u64, size: u64) -> Self {
        Self { seed, size, algorithm: Algorithm::Sha256, zeros: false }
    }

    /// Zeros: any size, no memory.
    pub fn sparse(size: u64) -> Self {
        Self { seed: 0, size, algorithm: Algorithm::Sha256, zeros: true }
    }

    /// The same, under another digest algorithm.
    pub fn digested_with(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    pub fn blob(self) -> Blob {
        if !self.zeros {
            return Blob::of(self.algorithm, random(self.seed, self.size));
        }
        let mut hasher = Hasher::new(self.algorithm);
        let zeros = vec![0; 1 << 20];
        let mut left = self.size;
        while left > 0 {
            let step = left.min(1 << 20);
            hasher.update(zeros.get(..usize::try_from(step).unwrap_or_default()).unwrap_or_default());
            left -= step;
        }
        Blob { digest: hasher.finish(), content: Content::Zeros(self.size) }
    }
}

impl Blob {
    pub fn of(algorithm: Algorithm, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { digest: Digest::of(algorithm, &bytes), content: Content::Bytes(bytes) }
    }

    pub fn size(&self) -> u64 {
        self.content.size()
    }
}

impl Content {
    pub fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(size) => *size,
        }
    }

    /// Up to `max` bytes from `offset` on.
    pub(super) fn piece(&self, offset: u64, max: u64) -> Bytes {
        let length = self.size().saturating_sub(offset).min(max);
        match self {
            Self::Bytes(bytes) => {
                let range = usize::try_from(offset).ok().zip(usize::try_from(offset + length).ok());
                range.map(|(from, to)| bytes.slice(from..to)).unwrap_or_default()
            }
            Self::Zeros(_) => Bytes::from(vec![0; usize::try_from(length).unwrap_or_default()]),
        }
    }
}

/// A manifest as stored: its bytes and the type that it is served with.
#[derive(Clone, Debug)]
pub struct Stored {
    pub digest: Digest,
    pub media_type: String,
    pub bytes: Bytes,
}

/// A manifest or index with everything below it.
#[derive(Clone, Debug)]
pub struct Image {
    /// All manifests; the last is the one that the image is known by.
    pub manifests: Vec<Stored>,
    pub blobs: Vec<Blob>,
}

impl Image {
    /// An image of these layers.
    pub fn new(flavour: Flavour, seed: u64, layers: &[Layer]) -> Self {
        let config = json!({
            "architecture": "amd64", "os": "linux", "seed": seed,
            "rootfs": { "type": "layers", "diff_ids": [] },
        });
        let config = Blob::of(Algorithm::Sha256, spaced(&config));
        let layers: Vec<_> = layers.iter().map(|layer| layer.blob()).collect();
        let described: Vec<_> = layers.iter().map(|layer| descriptor(layer, flavour.layer())).collect();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": flavour.manifest(),
            "config": descriptor(&config, flavour.config()),
            "layers": described,
        });
        let manifest = Stored::of(flavour.manifest(), spaced(&manifest));
        Self { manifests: vec![manifest], blobs: [config].into_iter().chain(layers).collect() }
    }

    /// An index of these images, for as many platforms; an image may be an index itself.
    pub fn index(flavour: Flavour, images: &[Self]) -> Self {
        const PLATFORMS: [&str; 6] = ["amd64", "arm64", "arm", "s390x", "ppc64le", "riscv64"];
        let described = images.iter().zip(PLATFORMS.iter().cycle()).map(|(image, architecture)| {
            let mut descriptor = image.root().descriptor();
            if let Some(fields) = descriptor.as_object_mut() {
                fields.insert("platform".to_owned(), json!({ "architecture": architecture, "os": "linux" }));
            }
            descriptor
        });
        let index = json!({
            "schemaVersion": 2, "mediaType": flavour.index(), "manifests": described.collect::<Vec<_>>(),
        });
        let index = Stored::of(flavour.index(), spaced(&index));
        let below = |image: &Self| image.manifests.clone();
        Self {
            manifests: images.iter().flat_map(below).chain([index]).collect(),
            blobs: images.iter().flat_map(|image| image.blobs.clone()).collect(),
        }
    }

    /// An artifact, such as a signature, of one blob, attached to `subject` if there is one.
    pub fn artifact(artifact_type: &str, seed: u64, subject: Option<&Stored>) -> Self {
        let empty = Blob::of(Algorithm::Sha256, "{}");
        let content = Layer::random(seed, 700).blob();
        let mut manifest = json!({
            "schemaVersion": 2, "mediaType": Flavour::Oci.manifest(), "artifactType": artifact_type,
            "config": descriptor(&empty, "application/vnd.oci.empty.v1+json"),
            "layers": [descriptor(&content, artifact_type)],
            "annotations": { "seed": seed.to_string() },
        });
        if let (Some(subject), Some(fields)) = (subject, manifest.as_object_mut()) {
            fields.insert("subject".to_owned(), subject.descriptor());
        }
        let manifest = Stored::of(Flavour::Oci.manifest(), spaced(&manifest));
        Self { manifests: vec![manifest], blobs: vec![empty, content] }
    }

    /// The manifest or index that the image is known by.
    pub fn root(&self) -> &Stored {
        // Every constructor puts one there.
        static NONE: std::sync::OnceLock<Stored> = std::sync::OnceLock::new();
        self.manifests.last().unwrap_or_else(|| NONE.get_or_init(|| Stored::of("", Vec::new())))
    }

    pub fn digest(&self) -> Digest {
        self.root().digest
    }

    /// Layers and other blobs behind the first, which is the config.
    pub fn layers(&self) -> &[Blob] {
        self.blobs.get(1..).unwrap_or_default()
    }

    /// The bytes of all blobs.
    pub fn blob_bytes(&self) -> u64 {
        self.blobs.iter().map(Blob::size).sum()
    }
}

impl Stored {
    pub fn of(media_type: &str, bytes: impl Into<Bytes>) -> Self {
        Self::digested_with(Algorithm::Sha256, media_type, bytes)
    }

    pub fn digested_with(algorithm: Algorithm, media_type: &str, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { digest: Digest::of(algorithm, &bytes), media_type: media_type.to_owned(), bytes }
    }

    fn descriptor(&self) -> Value {
        json!({ "mediaType": self.media_type, "digest": self.digest.to_string(), "size": self.bytes.len() })
    }
}

pub(super) fn descriptor(blob: &Blob, media_type: &str) -> Value {
    json!({ "mediaType": media_type, "digest": blob.digest.to_string(), "size": blob.size() })
}

/// JSON as nobody else would write it, so that whoever writes it anew changes the digest.
pub(super) fn spaced(value: &Value) -> Vec<u8> {
    format!("{value:#}\n \n").replace("\": ", "\" :\t").into_bytes()
}

fn random(seed: u64, size: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}
