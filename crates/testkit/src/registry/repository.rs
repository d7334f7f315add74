//! What an upstream holds, and what it says to a path.

use std::collections::{BTreeMap, HashMap};

use bailey_oci::{Digest, Manifest, MediaType};
use serde_json::{Value, json};

use super::answer::Reply;
use super::content::{Blob, Content, Image, Stored};

/// All repositories by name.
#[derive(Debug, Default)]
pub(super) struct Repositories(BTreeMap<String, Repository>);

#[derive(Debug, Default)]
struct Repository {
    tags: BTreeMap<String, Digest>,
    manifests: HashMap<Digest, Stored>,
    blobs: HashMap<Digest, Content>,
    referrers: HashMap<Digest, Vec<Value>>,
}

impl Repositories {
    pub fn push(&mut self, name: &str, tag: Option<&str>, image: &Image) {
        let repository = self.0.entry(name.to_owned()).or_default();
        for blob in &image.blobs {
            repository.blobs.insert(blob.digest, blob.content.clone());
        }
        for stored in &image.manifests {
            repository.add(stored);
        }
        if let Some(tag) = tag {
            repository.tags.insert(tag.to_owned(), image.digest());
        }
    }

    pub fn push_blob(&mut self, name: &str, blob: &Blob) {
        let repository = self.0.entry(name.to_owned()).or_default();
        repository.blobs.insert(blob.digest, blob.content.clone());
    }

    pub fn untag(&mut self, name: &str, tag: &str) {
        if let Some(repository) = self.0.get_mut(name) {
            repository.tags.remove(tag);
        }
    }

    /// Removes a repository with all that is in it.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Answers what comes behind `/v2/`.
    pub fn answer(&self, path: &str, query: &str, has_referrers: bool) -> Reply {
        let Some((rest, last)) = path.rsplit_once('/') else { return unknown("NAME_UNKNOWN") };
        let Some((name, kind)) = rest.rsplit_once('/') else { return unknown("NAME_UNKNOWN") };
        let Some(repository) = self.0.get(name) else { return unknown("NAME_UNKNOWN") };
        match (kind, last) {
            ("manifests", reference) => repository.manifest(reference),
            ("blobs", digest) => repository.blob(digest),
            ("tags", "list") => repository.tag_list(name, query),
            ("referrers", digest) if has_referrers => repository.referrers(digest, query),
            _ => unknown("UNSUPPORTED"),
        }
    }
}

impl Repository {
    fn add(&mut self, stored: &Stored) {
        let media_type = MediaType::new(&stored.media_type).ok();
        let manifest = media_type.and_then(|media_type| Manifest::parse(&stored.bytes, &media_type).ok());
        if let Some(manifest) = manifest
            && let Some(subject) = &manifest.subject
            && !self.manifests.contains_key(&stored.digest)
        {
            let referrer = json!({
                "mediaType": stored.media_type, "digest": stored.digest.to_string(), "size": stored.bytes.len(),
                "artifactType": manifest.artifact_type,
            });
            self.referrers.entry(subject.digest).or_default().push(referrer);
        }
        self.manifests.insert(stored.digest, stored.clone());
    }

    fn manifest(&self, reference: &str) -> Reply {
        let digest = self.tags.get(reference).copied().or_else(|| reference.parse().ok());
        match digest.and_then(|digest| self.manifests.get(&digest)) {
            Some(stored) => Reply::content(&stored.media_type, Content::Bytes(stored.bytes.clone()))
                .header("docker-content-digest", stored.digest),
            None => unknown("MANIFEST_UNKNOWN"),
        }
    }

    fn blob(&self, digest: &str) -> Reply {
        let found = digest.parse::<Digest>().ok().and_then(|digest| self.blobs.get(&digest));
        match found {
            Some(content) => Reply::content("application/octet-stream", content.clone())
                .header("docker-content-digest", digest)
                .with_ranges(),
            None => unknown("BLOB_UNKNOWN"),
        }
    }

    fn tag_list(&self, name: &str, query: &str) -> Reply {
        let last = parameter(query, "last").unwrap_or_default();
        let n = parameter(query, "n").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
        let mut after = self.tags.keys().filter(|tag| last.is_empty() || tag.as_str() > last);
        let page: Vec<_> = after.by_ref().take(n).collect();
        let reply = Reply::json(&json!({ "name": name, "tags": page }));
        match (page.last(), after.next()) {
            (Some(last), Some(_)) => {
                reply.header("link", format!("</v2/{name}/tags/list?n={n}&last={last}>; rel=\"next\""))
            }
            _ => reply,
        }
    }

    fn referrers(&self, subject: &str, query: &str) -> Reply {
        let digest = subject.parse::<Digest>().ok();
        let all = digest.and_then(|digest| self.referrers.get(&digest)).cloned().unwrap_or_default();
        let wanted =
            parameter(query, "artifactType").map(|kind| kind.replace("%2B", "+").replace("%2F", "/"));
        let fits = |referrer: &Value| {
            wanted
                .as_deref()
                .is_none_or(|kind| referrer.get("artifactType").and_then(Value::as_str) == Some(kind))
        };
        let some: Vec<_> = all.into_iter().filter(fits).collect();
        let media_type = super::Flavour::Oci.index();
        let reply = Reply::json(&json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": some }))
            .header("content-type", media_type);
        if wanted.is_some() { reply.header("oci-filters-applied", "artifactType") } else { reply }
    }
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

fn unknown(code: &str) -> Reply {
    Reply::json(&json!({ "errors": [{ "code": code, "message": "unknown to the test's upstream" }] }))
        .status(404)
}
