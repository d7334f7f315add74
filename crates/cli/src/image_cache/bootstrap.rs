//! `bailey cache bootstrap`: the images without which a cluster does not start, told from its pods.
//!
//! Those are of pods in `kube-system` and of pods with one of the two critical priorities, whose images nobody else's
//! cache can give them. A pod's status says by which digest an image runs; where it does not, the image is named by tag.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use bailey_api::ImageCache;
use serde_json::Value;

use crate::args::CacheBootstrapArguments;
use crate::exit::Exit;
use crate::output::Output;
use crate::{CliError, manifests};

/// An image as it should be listed, and a pod that runs it.
type Images = BTreeMap<String, String>;

/// Prints the list, or what of it an ImageCache lacks.
pub fn run(arguments: &CacheBootstrapArguments) -> Result<Output, CliError> {
    let needed = needed(&pods(&arguments.pods)?);
    if needed.is_empty() {
        return Err(CliError::Usage(
            "there is no pod of `kube-system` or of critical priority; give all pods: kubectl get pods -A -o json"
                .to_owned(),
        ));
    }
    let Some(path) = &arguments.check else {
        let lines = needed.iter().map(|(image, pod)| format!("- {image} # {pod}\n"));
        return Ok(Output::new(lines.collect::<String>(), Exit::Clean));
    };
    let missing = missing(&needed, &listed(path)?);
    let mut text = String::new();
    for (image, pod) in &missing {
        let _ = writeln!(text, "missing {image} # {pod}");
    }
    let _ = writeln!(text, "{} images are needed, {} of them not in the list", needed.len(), missing.len());
    Ok(Output::new(text, if missing.is_empty() { Exit::Clean } else { Exit::Findings }))
}

fn pods(path: &Path) -> Result<Vec<Value>, CliError> {
    let failed = |source| CliError::File { action: "read", path: path.to_owned(), source };
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed)?;
        text
    } else {
        std::fs::read_to_string(path).map_err(failed)?
    };
    Ok(manifests::parse(path, &text)?.into_iter().map(|manifest| manifest.object).collect())
}

fn needed(pods: &[Value]) -> Images {
    let mut images = Images::new();
    for pod in pods.iter().filter(|pod| is_needed(pod)) {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
        for list in ["initContainerStatuses", "containerStatuses"] {
            let statuses = pod.pointer(&format!("/status/{list}")).and_then(Value::as_array);
            for status in statuses.into_iter().flatten() {
                images.entry(image(status)).or_insert_with(|| name.clone());
            }
        }
    }
    images.remove("");
    images
}

fn is_needed(pod: &Value) -> bool {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let critical = ["system-node-critical", "system-cluster-critical"];
    text("/kind") == "Pod"
        && (text("/metadata/namespace") == "kube-system"
            || critical.contains(&text("/spec/priorityClassName")))
}

/// By digest if the node knows one that a registry knows, too.
fn image(status: &Value) -> String {
    let text = |key: &str| status.get(key).and_then(Value::as_str).unwrap_or_default();
    let by_digest = text("imageID");
    let by_digest = by_digest.split_once("://").map_or(by_digest, |(_, rest)| rest);
    let image = if by_digest.contains('@') { by_digest } else { text("image") };
    full(image)
}

/// The image with its registry.
fn full(image: &str) -> String {
    match image.split_once('/') {
        Some((registry, _)) if registry.contains(['.', ':']) || registry == "localhost" => image.to_owned(),
        Some(_) => format!("docker.io/{image}"),
        None if image.is_empty() => String::new(),
        None => format!("docker.io/library/{image}"),
    }
}

fn listed(path: &Path) -> Result<Vec<String>, CliError> {
    let mut listed = Vec::new();
    for manifest in manifests::read(&[path.to_owned()])?.iter().filter(|manifest| manifest.is("ImageCache")) {
        let cache: ImageCache = serde_json::from_value(manifest.object.clone())
            .map_err(|error| manifest.error(format!("cannot be read: {error}")))?;
        listed.extend(cache.spec.bootstrap.into_iter().chain(cache.spec.pins));
    }
    Ok(listed)
}

/// What is in no list, neither by its name nor by its digest.
fn missing<'a>(needed: &'a Images, listed: &[String]) -> Vec<(&'a String, &'a String)> {
    let digest = |image: &str| image.split_once('@').map(|(_, digest)| digest.to_owned());
    let held = |image: &String| {
        listed.iter().any(|entry| {
            entry == image
                || digest(image).is_some_and(|found| digest(entry) == Some(found.clone()) || *entry == found)
        })
    };
    needed.iter().filter(|(image, _)| !held(image)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(namespace: &str, priority: &str, image: &str, id: &str) -> Value {
        json!({
            "kind": "Pod", "metadata": { "name": "p", "namespace": namespace },
            "spec": { "priorityClassName": priority },
            "status": { "containerStatuses": [{ "image": image, "imageID": id }] },
        })
    }

    #[test]
    fn only_what_a_cluster_starts_with_is_listed_and_by_digest_where_one_is_known() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let pods = [
            pod("kube-system", "", "r.example/dns:1", &format!("r.example/dns@{digest}")),
            pod("network", "system-node-critical", "acme/cni:2", "sha256:0123"),
            pod("shop", "", "r.example/shop:1", &format!("r.example/shop@{digest}")),
            pod("kube-system", "", "debian:13", ""),
        ];
        let images: Vec<_> = needed(&pods).into_keys().collect();
        let expected =
            ["docker.io/acme/cni:2", "docker.io/library/debian:13", &format!("r.example/dns@{digest}")];
        assert_eq!(images, expected);
    }

    #[test]
    fn an_image_is_held_by_its_name_or_by_its_digest_anywhere() {
        let digest = format!("sha256:{}", "b".repeat(64));
        let by_digest = format!("r.example/dns@{digest}");
        let needed = Images::from([
            (by_digest.clone(), "a/b".to_owned()),
            ("r.example/cni:1".to_owned(), "a/c".to_owned()),
        ]);
        let lacks = |listed: &[&str]| {
            let listed: Vec<_> = listed.iter().map(ToString::to_string).collect();
            missing(&needed, &listed).into_iter().map(|(image, _)| image.clone()).collect::<Vec<_>>()
        };
        assert_eq!(lacks(&[]), ["r.example/cni:1".to_owned(), by_digest.clone()]);
        assert_eq!(lacks(&[&format!("mirror.example/dns@{digest}"), "r.example/cni:1"]), [""; 0]);
        assert_eq!(lacks(&[&digest, "r.example/cni:2"]), ["r.example/cni:1"]);
    }
}
