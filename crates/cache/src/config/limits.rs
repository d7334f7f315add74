//! What clusters may take of a cache, as the file says it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{ConfigError, Networks, text};
use crate::fairness::{Limits, Rules};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileLimits {
    /// Bytes that all clusters together are sent, and that are fetched for them, in a second.
    pub egress: Option<String>,
    pub ingress: Option<String>,
    /// For each cluster that `clusters` does not name.
    #[serde(default)]
    pub each: FileLimit,
    #[serde(default)]
    pub clusters: Vec<FileCluster>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileLimit {
    /// Fetches of one upstream at a time.
    pub fetches: Option<usize>,
    pub bytes_per_second: Option<String>,
    /// Requests that the store cannot answer.
    pub misses_per_minute: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileCluster {
    pub name: Arc<str>,
    /// Where its clients come from that show no certificate.
    #[serde(default)]
    pub networks: Vec<String>,
    pub fetches: Option<usize>,
    pub bytes_per_second: Option<String>,
    pub misses_per_minute: Option<u32>,
}

impl FileLimits {
    pub(super) fn config(self) -> Result<(Rules, Networks), ConfigError> {
        let each = self.each.limits("limits.each", Limits::default())?;
        let mut clusters = BTreeMap::new();
        let mut networks = Vec::new();
        for FileCluster { name, networks: own, fetches, bytes_per_second, misses_per_minute } in self.clusters
        {
            let field = format!("limits.clusters.{name}");
            for text in own {
                let network = text.parse().map_err(|_| ConfigError::Value {
                    field: format!("{field}.networks"),
                    text,
                    wanted: "an address and its length, such as `10.0.0.0/8` or `fd00::/8`",
                })?;
                networks.push((network, name.clone()));
            }
            let limit = FileLimit { fetches, bytes_per_second, misses_per_minute };
            if clusters.insert(name.clone(), limit.limits(&field, each)?).is_some() {
                return Err(ConfigError::ClusterTwice { name });
            }
        }
        let egress = rate("limits.egress", self.egress)?;
        let ingress = rate("limits.ingress", self.ingress)?;
        Ok((Rules { each, clusters, egress, ingress }, networks))
    }
}

impl FileLimit {
    fn limits(self, field: &str, otherwise: Limits) -> Result<Limits, ConfigError> {
        let count = |name: &str, count: Option<usize>| match count {
            Some(0) => Err(ConfigError::Value {
                field: format!("{field}.{name}"),
                text: "0".to_owned(),
                wanted: "a number of at least 1, or leave it out",
            }),
            count => Ok(count),
        };
        let misses = count("missesPerMinute", self.misses_per_minute.map(|count| count as usize))?;
        let bytes = rate(&format!("{field}.bytesPerSecond"), self.bytes_per_second)?;
        Ok(Limits {
            fills: count("fetches", self.fetches)?.unwrap_or(otherwise.fills),
            bytes_per_second: bytes.or(otherwise.bytes_per_second),
            misses_per_minute: misses.map(|count| count as f64).or(otherwise.misses_per_minute),
        })
    }
}

fn rate(field: &str, value: Option<String>) -> Result<Option<f64>, ConfigError> {
    let Some(value) = value else { return Ok(None) };
    match text::bytes(&value).filter(|bytes| *bytes > 0) {
        Some(bytes) => Ok(Some(bytes as f64)),
        None => Err(ConfigError::Value {
            field: field.to_owned(),
            text: value,
            wanted: "a number of bytes in a second such as `100MiB`",
        }),
    }
}
