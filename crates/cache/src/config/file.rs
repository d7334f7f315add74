//! The configuration file, as written, and what becomes of it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bailey_oci::freshness::{Freshness, Gone, Policy, Rule, StaleIfError, Tags};
use bailey_oci::pattern::Pattern;
use bailey_oci::trust::Trust;
use bailey_oci::visibility::{Audience, Grant, Visibility};
use bailey_oci::{Digest, Image, Registry, Target};
use serde::Deserialize;

use super::limits::FileLimits;
use super::{Config, ConfigError, UpstreamConfig, text, url, usual};
use crate::serve::tls::Files;
use crate::upstream::credentials::Source;

/// What a file says, or flags in its form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    pub listen: Option<SocketAddr>,
    pub admin: Option<SocketAddr>,
    pub store: Option<PathBuf>,
    pub budget: Option<String>,
    #[serde(default)]
    pub upstreams: Vec<FileUpstream>,
    pub default_upstream: Option<String>,
    pub parent: Option<String>,
    pub parent_ca_file: Option<PathBuf>,
    pub tls: Option<FileTls>,
    #[serde(default)]
    pub freshness: FileFreshness,
    #[serde(default)]
    pub visibility: FileVisibility,
    #[serde(default)]
    pub limits: FileLimits,
    #[serde(default)]
    pub pins: Vec<String>,
    #[serde(default)]
    pub pin_platforms: Vec<String>,
    pub scrub_every: Option<String>,
    pub grace: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileUpstream {
    pub name: String,
    pub url: Option<String>,
    pub username: Option<String>,
    pub password_file: Option<PathBuf>,
    pub docker_config: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    /// Hosts of token services on other domains.
    #[serde(default)]
    pub realms: Vec<String>,
    /// Hosts with private addresses that redirects may lead to.
    #[serde(default)]
    pub private_hosts: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileTls {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub client_ca: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileFreshness {
    /// For tags that no rule matches: `immutable`, or a time.
    pub tags: Option<String>,
    /// `unlimited`, `never`, or a time.
    pub stale_if_error: Option<String>,
    pub gone: Option<FileGone>,
    #[serde(default)]
    pub rules: Vec<FileRule>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileGone {
    Keep,
    Follow,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileRule {
    pub images: Option<Pattern>,
    /// `versions`, or a pattern.
    pub tags: String,
    /// `immutable`, or a time.
    pub fresh: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileVisibility {
    /// Whether repositories that no grant names are for everyone; true if absent.
    pub everyone: Option<bool>,
    #[serde(default)]
    pub grants: Vec<FileGrant>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileGrant {
    pub images: Pattern,
    #[serde(default)]
    pub everyone: bool,
    #[serde(default)]
    pub clusters: BTreeSet<Arc<str>>,
    #[serde(default)]
    pub tenants: BTreeSet<Arc<str>>,
}

impl File {
    /// Reads the text of a file; the error names the place.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    /// Lays what flags say over what the file says.
    pub fn overlaid(self, flags: Self) -> Self {
        let mut upstreams = self.upstreams;
        upstreams.extend(flags.upstreams);
        Self {
            listen: flags.listen.or(self.listen),
            admin: flags.admin.or(self.admin),
            store: flags.store.or(self.store),
            budget: flags.budget.or(self.budget),
            upstreams,
            default_upstream: flags.default_upstream.or(self.default_upstream),
            parent: flags.parent.or(self.parent),
            parent_ca_file: flags.parent_ca_file.or(self.parent_ca_file),
            tls: flags.tls.or(self.tls),
            freshness: self.freshness,
            visibility: self.visibility,
            limits: self.limits,
            pins: self.pins,
            pin_platforms: self.pin_platforms,
            scrub_every: flags.scrub_every.or(self.scrub_every),
            grace: flags.grace.or(self.grace),
        }
    }

    /// Checks everything and makes a configuration of it.
    pub fn config(self) -> Result<Config, ConfigError> {
        let upstreams =
            self.upstreams.into_iter().map(FileUpstream::config).collect::<Result<Vec<_>, _>>()?;
        if upstreams.is_empty() {
            return Err(ConfigError::NoUpstream);
        }
        let store = self.store.ok_or(ConfigError::Missing { field: "store", flag: "--store DIR" })?;
        let budget = self.budget.ok_or(ConfigError::Missing { field: "budget", flag: "--budget 10GiB" })?;
        let wanted = "a number of bytes such as `10GiB`";
        let bytes_max = text::bytes(&budget).ok_or(ConfigError::Value {
            field: "budget".to_owned(),
            text: budget,
            wanted,
        })?;
        let default_upstream = self.default_upstream.map(|name| name.parse::<Registry>()).transpose()?;
        let parent = self.parent.map(|address| url("parent", &address)).transpose()?;
        let tls = self.tls.map(|tls| Files {
            certificate: tls.certificate,
            key: tls.key,
            client_ca: tls.client_ca,
        });
        let grace = self.grace.map(|grace| time("grace", &grace)).transpose()?;
        let pin_platforms = targets(&self.pin_platforms)?;
        let (pins, pinned_images) = pins(self.pins, &upstreams)?;
        let (shares, networks) = self.limits.config()?;
        let config = Config {
            shares,
            networks,
            listen: self.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 5000))),
            admin: self.admin.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))),
            bytes_max,
            default_upstream,
            parent,
            parent_ca: self.parent_ca_file,
            tls,
            freshness: self.freshness.policy()?,
            visibility: self.visibility.config(),
            pins,
            pinned_images,
            pin_platforms,
            scrub: self.scrub_every.map(|every| time("scrubEvery", &every)).transpose()?,
            grace: grace.unwrap_or(Duration::from_secs(20)),
            ..Config::local(store, bytes_max, upstreams)
        };
        config.registries()?;
        Ok(config)
    }
}

impl FileUpstream {
    /// An upstream as a flag says it: `NAME=URL`, or `NAME`.
    pub fn flag(text: &str) -> Result<Self, ConfigError> {
        let UpstreamConfig { name, url, .. } = UpstreamConfig::parse(text)?;
        Ok(Self {
            name: name.to_string(),
            url: Some(url.to_string()),
            username: None,
            password_file: None,
            docker_config: None,
            ca_file: None,
            realms: Vec::new(),
            private_hosts: Vec::new(),
        })
    }

    fn config(self) -> Result<UpstreamConfig, ConfigError> {
        let name: Registry = self.name.parse()?;
        let address = self.url.unwrap_or_else(|| usual(&name));
        let url = url(&format!("upstreams.{name}.url"), &address)?;
        let credentials = match (self.username, self.password_file, self.docker_config) {
            (None, None, None) => Source::Anonymous,
            (Some(username), Some(file), None) => Source::Password { username, file },
            (None, None, Some(file)) => Source::DockerConfig { file, registry: name.to_string() },
            _ => return Err(ConfigError::Credentials { name }),
        };
        let lower = |hosts: Vec<String>| hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let trust = Trust { realm_hosts: lower(self.realms), private_hosts: lower(self.private_hosts) };
        Ok(UpstreamConfig { name, url, credentials, ca_file: self.ca_file, trust })
    }
}

impl FileFreshness {
    fn policy(self) -> Result<Policy, ConfigError> {
        let default = Policy::default();
        let rules = self.rules.into_iter().map(FileRule::rule).collect::<Result<_, _>>()?;
        let otherwise = self.tags.map(|text| freshness("freshness.tags", &text)).transpose()?;
        let stale_if_error = match self.stale_if_error.as_deref() {
            None => default.stale_if_error,
            Some("unlimited") => StaleIfError::Unlimited,
            Some("never") => StaleIfError::Never,
            Some(text) => StaleIfError::For(time("freshness.staleIfError", text)?),
        };
        let gone = match self.gone {
            None => default.gone,
            Some(FileGone::Keep) => Gone::Keep,
            Some(FileGone::Follow) => Gone::Follow,
        };
        Ok(Policy { rules, otherwise: otherwise.unwrap_or(default.otherwise), stale_if_error, gone })
    }
}

impl FileRule {
    fn rule(self) -> Result<Rule, ConfigError> {
        let wanted = "`versions`, or a pattern such as `release-*`";
        let wrong = || ConfigError::Value {
            field: "freshness.rules.tags".to_owned(),
            text: self.tags.clone(),
            wanted,
        };
        let tags = match self.tags.as_str() {
            "versions" => Tags::Versions,
            pattern => Tags::Matching(pattern.parse().map_err(|_| wrong())?),
        };
        let freshness = freshness("freshness.rules.fresh", &self.fresh)?;
        Ok(Rule { images: self.images.unwrap_or_else(Pattern::any), tags, freshness })
    }
}

impl FileVisibility {
    fn config(self) -> Visibility {
        let grant = |grant: FileGrant| Grant {
            images: grant.images,
            audience: if grant.everyone {
                Audience::Everyone
            } else {
                Audience::Only { clusters: grant.clusters, tenants: grant.tenants }
            },
        };
        let otherwise = if self.everyone.unwrap_or(true) { Audience::Everyone } else { Audience::nobody() };
        Visibility { grants: self.grants.into_iter().map(grant).collect(), otherwise }
    }
}

fn targets(texts: &[String]) -> Result<Vec<Target>, ConfigError> {
    if texts.is_empty() {
        return Ok(vec![Target::usual()]);
    }
    Ok(texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
}

/// Tells digests from images, which have to be of an upstream.
fn pins(texts: Vec<String>, upstreams: &[UpstreamConfig]) -> Result<(Vec<Digest>, Vec<Image>), ConfigError> {
    let (mut digests, mut images) = (Vec::new(), Vec::new());
    for text in texts {
        if let Ok(digest) = text.parse() {
            digests.push(digest);
            continue;
        }
        match text.parse::<Image>() {
            Ok(image) if upstreams.iter().any(|upstream| upstream.name == image.registry) => {
                images.push(image)
            }
            Ok(_) | Err(_) => return Err(ConfigError::Pin { text }),
        }
    }
    Ok((digests, images))
}

fn freshness(field: &str, text: &str) -> Result<Freshness, ConfigError> {
    if text == "immutable" {
        return Ok(Freshness::Immutable);
    }
    time(field, text).map(Freshness::For)
}

fn time(field: &str, value: &str) -> Result<Duration, ConfigError> {
    let wanted = "a time such as `60s`, `5m`, `12h` or `7d`";
    text::duration(value).ok_or_else(|| ConfigError::Value {
        field: field.to_owned(),
        text: value.to_owned(),
        wanted,
    })
}
