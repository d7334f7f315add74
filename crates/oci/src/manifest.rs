//! What a manifest refers to: config, layers, other manifests, its subject.
//!
//! Only looked at. The bytes are what is stored and served, so their digest stays what it was; whatever is unknown or
//! odd in them is passed over. Needed for HEAD answers on blobs that are not here, for links between blobs and
//! repositories, and for fetching ahead.

use serde::Deserialize;

use crate::digest::Digest;
use crate::media::{self, Kind, MediaType};

/// The largest manifest taken, in bytes: what the distribution specification asks registries to accept at least,
/// and containerd at most.
pub const BYTES_MAX: usize = 4 * 1024 * 1024;

/// More children than this are not looked at; no image has as many.
const CHILDREN_MAX: usize = 10_000;

/// What one manifest says about others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The type that the text itself claims, which is not necessarily the one it was served with.
    pub claimed_type: Option<String>,
    /// The type of an artifact, as listed among referrers.
    pub artifact_type: Option<String>,
    /// Config, layers, blobs and manifests, in the order they stand; those of unknown algorithms are left out.
    pub children: Vec<Child>,
    /// What this is an attachment to.
    pub subject: Option<Descriptor>,
}

/// One thing that a manifest is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    pub role: Role,
    pub descriptor: Descriptor,
    /// Of manifests in an index.
    pub platform: Option<Platform>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Config,
    Layer,
    Manifest,
}

impl Role {
    /// Whether it is asked for under `/blobs/`.
    pub fn is_blob(self) -> bool {
        self != Self::Manifest
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub digest: Digest,
    pub size: u64,
    pub media_type: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Platform {
    #[serde(default)]
    pub os: String,
    #[serde(default)]
    pub architecture: String,
    #[serde(default)]
    pub variant: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("the manifest has {0} bytes: at most {BYTES_MAX} are taken")]
    TooLarge(usize),
    #[error("the manifest is not the JSON object that its type promises: {0}")]
    Json(String),
}

impl Manifest {
    /// Reads what `bytes`, served as `media_type`, refer to.
    ///
    /// Types that are no manifest's (Docker's first schema, `text/plain`) refer to nothing that could be read.
    pub fn parse(bytes: &[u8], media_type: &MediaType) -> Result<Self, ManifestError> {
        if bytes.len() > BYTES_MAX {
            return Err(ManifestError::TooLarge(bytes.len()));
        }
        let kind = media_type.kind();
        if kind == Kind::Schema1 {
            return Ok(Self::default());
        }
        // A list would be taken for the fields in their order.
        let is_object = bytes.trim_ascii_start().starts_with(b"{");
        match serde_json::from_slice::<Raw>(bytes) {
            Ok(raw) if is_object => Ok(raw.read()),
            Ok(_) if kind != Kind::Other => Err(ManifestError::Json("it is a list".to_owned())),
            Ok(_) => Ok(Self::default()),
            // What does not claim to be one may well be none.
            Err(_) if kind == Kind::Other => Ok(Self::default()),
            Err(error) => Err(ManifestError::Json(error.to_string())),
        }
    }

    /// The blobs that this manifest is made of.
    pub fn blobs(&self) -> impl Iterator<Item = &Descriptor> {
        self.children.iter().filter(|child| child.role.is_blob()).map(|child| &child.descriptor)
    }

    /// The manifests of an index.
    pub fn manifests(&self) -> impl Iterator<Item = &Child> {
        self.children.iter().filter(|child| child.role == Role::Manifest)
    }
}

/// The fields of all kinds of manifest together, each in whatever shape it comes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    media_type: Loose<String>,
    #[serde(default)]
    artifact_type: Loose<String>,
    #[serde(default)]
    config: Loose<RawDescriptor>,
    #[serde(default)]
    layers: Loose<Vec<Loose<RawDescriptor>>>,
    #[serde(default)]
    blobs: Loose<Vec<Loose<RawDescriptor>>>,
    #[serde(default)]
    manifests: Loose<Vec<Loose<RawDescriptor>>>,
    #[serde(default)]
    subject: Loose<RawDescriptor>,
}

/// A value, or something else in its place.
#[derive(Deserialize)]
#[serde(untagged)]
enum Loose<T> {
    Value(T),
    Other(serde::de::IgnoredAny),
}

impl<T> Default for Loose<T> {
    fn default() -> Self {
        Self::Other(serde::de::IgnoredAny)
    }
}

impl<T> Loose<T> {
    fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Other(_) => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    digest: String,
    size: u64,
    #[serde(default)]
    media_type: Loose<String>,
    #[serde(default)]
    artifact_type: Loose<String>,
    #[serde(default)]
    platform: Loose<Platform>,
}

impl RawDescriptor {
    fn read(self) -> Option<(Descriptor, Option<Platform>)> {
        let digest = self.digest.parse().ok()?;
        let media_type = self.media_type.value().or(self.artifact_type.value()).unwrap_or_default();
        Some((Descriptor { digest, size: self.size, media_type }, self.platform.value()))
    }

    fn child(self, role: Role) -> Option<Child> {
        let (descriptor, platform) = self.read()?;
        // An index may list blobs among its manifests, and a layer may be typed as a manifest; the list decides.
        Some(Child { role, descriptor, platform })
    }
}

impl Raw {
    fn read(self) -> Manifest {
        let list = |list: Loose<Vec<Loose<RawDescriptor>>>, role| {
            let all = list.value().unwrap_or_default().into_iter();
            all.filter_map(Loose::value).filter_map(move |raw| raw.child(role))
        };
        let config = self.config.value().and_then(|raw| raw.child(Role::Config));
        let config_type = config.as_ref().map(|config| config.descriptor.media_type.clone());
        let children = config
            .into_iter()
            .chain(list(self.layers, Role::Layer))
            .chain(list(self.blobs, Role::Layer))
            .chain(list(self.manifests, Role::Manifest))
            .take(CHILDREN_MAX)
            .collect();
        Manifest {
            claimed_type: self.media_type.value(),
            // The rule of the referrers API: without a type of its own, an artifact has that of its config.
            artifact_type: self.artifact_type.value().filter(|text| !text.is_empty()).or(config_type),
            children,
            subject: self.subject.value().and_then(RawDescriptor::read).map(|(descriptor, _)| descriptor),
        }
    }
}

/// The type to serve a manifest with, when its upstream named none that a client could use.
///
/// Some object stores answer `text/plain` or nothing. A text that claims a type which is a manifest's is served as
/// that; everything else stays as the upstream said.
pub fn served_type(said: Option<&MediaType>, manifest: &Manifest) -> Option<MediaType> {
    let useful = said.filter(|said| said.kind() != Kind::Other);
    let claimed = manifest.claimed_type.as_deref().filter(|text| media::kind(text) != Kind::Other);
    useful.cloned().or_else(|| claimed.and_then(|text| MediaType::new(text).ok())).or_else(|| said.cloned())
}

#[cfg(test)]
mod tests;
