//! How a cache is set up: what a YAML file and flags say, checked and put together.
//!
//! A file and flags say the same things; where both say one, the flag counts, and upstreams of both are added up.

mod file;
mod limits;
mod text;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bailey_oci::freshness::Policy;
use bailey_oci::image::TargetError;
use bailey_oci::network::Network;
use bailey_oci::registry::{RegistryError, UpstreamsError};
use bailey_oci::trust::Trust;
use bailey_oci::visibility::Visibility;
use bailey_oci::{Digest, Image, Registry, Target, Upstreams};
use url::Url;

pub use file::{File, FileTls, FileUpstream};
pub use text::{bytes, duration};

use crate::fairness::Rules;
use crate::serve::tls::Files;
use crate::upstream::credentials::Source;

/// Everything that a cache has to be told.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    pub admin: SocketAddr,
    pub store: PathBuf,
    /// What blobs and fetches under way may take; the index, some megabytes, comes on top.
    pub bytes_max: u64,
    pub upstreams: Vec<UpstreamConfig>,
    pub default_upstream: Option<Registry>,
    /// Another cache that is asked in place of all upstreams.
    pub parent: Option<Url>,
    pub parent_ca: Option<PathBuf>,
    pub tls: Option<Files>,
    pub freshness: Policy,
    pub visibility: Visibility,
    /// What is never evicted, besides what is pinned already.
    pub pins: Vec<Digest>,
    /// Images that are fetched ahead and never evicted, and the machines that they are for.
    pub pinned_images: Vec<Image>,
    pub pin_platforms: Vec<Target>,
    /// What each cluster may take, and whose clients are known by their addresses.
    pub shares: Rules,
    pub networks: Networks,
    /// How often all blobs are hashed; None for never.
    pub scrub: Option<Duration>,
    /// How long connections may go on after the cache is asked to stop.
    pub grace: Duration,
}

/// Which cluster's clients come from where.
pub type Networks = Vec<(Network, Arc<str>)>;

/// One upstream.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    pub name: Registry,
    pub url: Url,
    pub credentials: Source,
    pub ca_file: Option<PathBuf>,
    pub trust: Trust,
}

/// Why a cache cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration `{path}`; check that the file exists and may be read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the configuration `{path}` cannot be understood: {message}")]
    Syntax { path: PathBuf, message: String },
    #[error("no `{field}` is given; say it with `{flag}` or in the configuration")]
    Missing { field: &'static str, flag: &'static str },
    #[error("no upstream is given; say one with `--upstream registry.example=https://registry.example`")]
    NoUpstream,
    #[error(
        "upstream `{text}` is not of the form NAME=URL, as in `registry.example=https://registry.example`"
    )]
    Upstream { text: String },
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Upstreams(#[from] UpstreamsError),
    #[error(
        "`{field}` is `{text}`, which is no URL with http or https and a host, and without a user, query or fragment"
    )]
    Url { field: String, text: String },
    #[error("`{field}` is `{text}`; write {wanted}")]
    Value { field: String, text: String, wanted: &'static str },
    #[error(
        "`pins` names `{text}`; write a digest, or an image as REGISTRY/REPOSITORY:TAG with a registry of `upstreams`"
    )]
    Pin { text: String },
    #[error("`limits.clusters` names `{name}` twice; put all of it in one entry")]
    ClusterTwice { name: Arc<str> },
    #[error("`pinPlatforms` cannot be used: {0}")]
    Platform(#[from] TargetError),
    #[error(
        "upstream `{name}` names credentials twice; give either `username` with `passwordFile`, or `dockerConfig`"
    )]
    Credentials { name: Registry },
}

impl Config {
    /// A cache on free ports of the loopback that serves `upstreams` from a folder; for tests and trials.
    pub fn local(store: impl Into<PathBuf>, bytes_max: u64, upstreams: Vec<UpstreamConfig>) -> Self {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            listen: any_port,
            admin: any_port,
            store: store.into(),
            bytes_max,
            upstreams,
            default_upstream: None,
            parent: None,
            parent_ca: None,
            tls: None,
            freshness: Policy::default(),
            visibility: Visibility::default(),
            pins: Vec::new(),
            pinned_images: Vec::new(),
            pin_platforms: vec![Target::usual()],
            shares: Rules::default(),
            networks: Vec::new(),
            scrub: None,
            grace: Duration::from_secs(20),
        }
    }

    /// The closed list of registries that requests may name.
    pub fn registries(&self) -> Result<Upstreams, ConfigError> {
        let names = self.upstreams.iter().map(|upstream| upstream.name.clone());
        Ok(Upstreams::new(names, self.default_upstream.clone())?)
    }
}

impl UpstreamConfig {
    /// An upstream that nobody has to log in to.
    pub fn anonymous(name: Registry, url: Url) -> Self {
        Self { name, url, credentials: Source::Anonymous, ca_file: None, trust: Trust::default() }
    }

    /// Reads `NAME=URL`, or `NAME` alone for its usual address.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let (name, address) = match text.split_once('=') {
            Some((name, address)) => (name, Some(address)),
            None => (text, None),
        };
        let name: Registry =
            name.trim().parse().map_err(|_| ConfigError::Upstream { text: text.to_owned() })?;
        let address = address.map_or_else(|| usual(&name), str::to_owned);
        let url = url("upstream", &address)?;
        Ok(Self::anonymous(name, url))
    }
}

/// Where a registry is unless somebody says otherwise.
fn usual(name: &Registry) -> String {
    format!("https://{}", name.api_host())
}

/// Reads an address that requests are sent to.
pub fn url(field: &str, text: &str) -> Result<Url, ConfigError> {
    let wrong = || ConfigError::Url { field: field.to_owned(), text: text.to_owned() };
    let url = Url::parse(text.trim()).map_err(|_| wrong())?;
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if matches!(url.scheme(), "http" | "https") && url.host().is_some() && plain {
        Ok(url)
    } else {
        Err(wrong())
    }
}

/// Reads a configuration file.
pub fn read(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    File::parse(&text).map_err(|message| ConfigError::Syntax { path: path.to_owned(), message })
}

#[cfg(test)]
mod tests;
