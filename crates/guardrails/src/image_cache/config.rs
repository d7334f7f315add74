//! The configuration file of a cache, and the volumes that it names files of.
//!
//! It is written as JSON, which is YAML. Nothing secret is in it: only where the cache finds it.

use bailey_api::{CacheFreshness, CacheGone, CacheUpstream, ImageCacheSpec, WorkloadCaches};
use serde_json::{Map, Value, json};

use super::{ADMIN_PORT, PORT};

/// Where blobs are kept in a pod.
pub const STORE: &str = "/var/lib/bailey/cache";

/// A configuration and what has to be mounted for it.
pub struct Config {
    pub text: String,
    pub volumes: Vec<Volume>,
}

/// A Secret or ConfigMap, mounted read-only.
pub struct Volume {
    pub name: String,
    pub path: String,
    pub source: Value,
}

/// The configuration of the cache in the management cluster, which has the credentials.
pub fn management(spec: &ImageCacheSpec, budget: &str) -> Config {
    let mut volumes = Vec::new();
    let upstreams: Vec<_> = spec
        .upstreams
        .iter()
        .enumerate()
        .map(|(n, upstream)| of_upstream(n, upstream, &mut volumes))
        .collect();
    let mut config = common(budget, upstreams, spec.default_upstream.as_deref(), &spec.freshness);
    pin(&mut config, spec);
    if let Some(tls) = &spec.tls {
        let at = mount(&mut volumes, "tls", secret(&tls.secret));
        let mut files = json!({ "certificate": format!("{at}/tls.crt"), "key": format!("{at}/tls.key") });
        if let (true, Some(files)) = (tls.client_certificates, files.as_object_mut()) {
            files.insert("clientCa".to_owned(), json!(format!("{at}/ca.crt")));
        }
        config.insert("tls".to_owned(), files);
    }
    finished(config, volumes)
}

/// The configuration of a cache in a workload cluster, which has no credentials.
pub fn workload(spec: &ImageCacheSpec, caches: &WorkloadCaches, budget: &str) -> Config {
    let mut volumes = Vec::new();
    let upstream = |upstream: &CacheUpstream| {
        let mut text = Map::new();
        put(&mut text, "name", Some(&upstream.name));
        // A parent is asked in place of all of them.
        put(&mut text, "url", upstream.url.as_ref().filter(|_| caches.parent.is_none()));
        Value::Object(text)
    };
    let upstreams = spec.upstreams.iter().map(upstream).collect();
    let mut config = common(budget, upstreams, spec.default_upstream.as_deref(), &caches.freshness);
    put(&mut config, "parent", caches.parent.as_ref());
    if let Some(name) = &caches.parent_ca_config_map {
        let at = mount(&mut volumes, "parent-ca", config_map(name));
        put(&mut config, "parentCaFile", Some(format!("{at}/ca.crt")));
    }
    pin(&mut config, spec);
    finished(config, volumes)
}

fn common(
    budget: &str,
    upstreams: Vec<Value>,
    default_upstream: Option<&str>,
    freshness: &CacheFreshness,
) -> Map<String, Value> {
    let mut config = Map::new();
    put(&mut config, "listen", Some(format!("0.0.0.0:{PORT}")));
    put(&mut config, "admin", Some(format!("0.0.0.0:{ADMIN_PORT}")));
    put(&mut config, "store", Some(STORE));
    put(&mut config, "budget", Some(budget));
    put(&mut config, "upstreams", Some(upstreams));
    put(&mut config, "defaultUpstream", default_upstream);
    let freshness = of_freshness(freshness);
    put(&mut config, "freshness", (!freshness.is_empty()).then_some(freshness));
    config
}

fn pin(config: &mut Map<String, Value>, spec: &ImageCacheSpec) {
    let pins: Vec<_> = spec.pins.iter().chain(&spec.bootstrap).collect();
    put(config, "pins", (!pins.is_empty()).then_some(pins));
    put(config, "pinPlatforms", (!spec.pin_platforms.is_empty()).then_some(&spec.pin_platforms));
}

fn of_upstream(number: usize, upstream: &CacheUpstream, volumes: &mut Vec<Volume>) -> Value {
    let mut text = Map::new();
    put(&mut text, "name", Some(&upstream.name));
    put(&mut text, "url", upstream.url.as_ref());
    if let Some(name) = &upstream.docker_config_secret {
        let at = mount(volumes, &format!("upstream-{number}"), secret(name));
        put(&mut text, "dockerConfig", Some(format!("{at}/.dockerconfigjson")));
    }
    if let Some(basic) = &upstream.basic_auth {
        let at = mount(volumes, &format!("upstream-{number}"), secret(&basic.password_secret));
        put(&mut text, "username", Some(&basic.username));
        put(&mut text, "passwordFile", Some(format!("{at}/password")));
    }
    if let Some(name) = &upstream.ca_config_map {
        let at = mount(volumes, &format!("upstream-ca-{number}"), config_map(name));
        put(&mut text, "caFile", Some(format!("{at}/ca.crt")));
    }
    put(&mut text, "realms", (!upstream.realms.is_empty()).then_some(&upstream.realms));
    put(&mut text, "privateHosts", (!upstream.private_hosts.is_empty()).then_some(&upstream.private_hosts));
    Value::Object(text)
}

fn of_freshness(freshness: &CacheFreshness) -> Map<String, Value> {
    let mut text = Map::new();
    put(&mut text, "tags", freshness.tags.as_ref());
    put(&mut text, "staleIfError", freshness.stale_if_error.as_ref());
    let gone = freshness.gone.map(|gone| match gone {
        CacheGone::Keep => "keep",
        CacheGone::Follow => "follow",
    });
    put(&mut text, "gone", gone);
    put(&mut text, "rules", (!freshness.rules.is_empty()).then_some(&freshness.rules));
    text
}

fn mount(volumes: &mut Vec<Volume>, name: &str, source: Value) -> String {
    let path = format!("/etc/bailey/{name}");
    volumes.push(Volume { name: name.to_owned(), path: path.clone(), source });
    path
}

fn secret(name: &str) -> Value {
    // For the group of the pod, so that the cache, which is not root, can read it.
    json!({ "secret": { "secretName": name, "defaultMode": 0o440 } })
}

fn config_map(name: &str) -> Value {
    json!({ "configMap": { "name": name } })
}

fn put(map: &mut Map<String, Value>, key: &str, value: Option<impl serde::Serialize>) {
    if let Some(value) = value.and_then(|value| serde_json::to_value(value).ok()) {
        map.insert(key.to_owned(), value);
    }
}

fn finished(config: Map<String, Value>, volumes: Vec<Volume>) -> Config {
    Config { text: format!("{:#}\n", Value::Object(config)), volumes }
}
