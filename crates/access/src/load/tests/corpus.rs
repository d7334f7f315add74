//! Real manifests and dumps: what the loader counts must be what a parser of whole documents finds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{gaps, load};
use crate::load::Loader;
use crate::{ClusterFacts, Snapshot};

/// YAML files of the corpora; none if they are not there.
fn corpus() -> Vec<PathBuf> {
    fn find(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                find(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                found.push(path);
            }
        }
    }
    let Some(folder) = bailey_testkit::corpora("manifests and dumps as the loader reads them") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    find(&folder, &mut found);
    // Answers to a corpus are no objects.
    found.retain(|path| !path.to_string_lossy().ends_with(".answers.yaml"));
    found.sort();
    assert!(!found.is_empty(), "there is no .yaml in {}", folder.display());
    found
}

fn naive(text: &str) -> Vec<Value> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: 10_000_000, max_events: 100_000_000 },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options).unwrap();
    let objects = documents.into_iter().filter(|document| !document.is_null());
    objects
        .flat_map(|document| match document.get("items").and_then(Value::as_array) {
            Some(items) => items.clone(),
            None => vec![document],
        })
        .collect()
}

fn counts(objects: &[Value]) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for object in objects {
        let text = |field: &str| object[field].as_str().unwrap().to_owned();
        *counts.entry((text("apiVersion"), text("kind"))).or_default() += 1;
    }
    counts
}

fn numbers(cluster: &ClusterFacts) -> [usize; 6] {
    [
        cluster.namespaces.len(),
        cluster.service_accounts.len(),
        cluster.roles.len(),
        cluster.bindings.len(),
        cluster.secrets.len(),
        cluster.roles.iter().map(|role| role.rules.len()).sum(),
    ]
}

#[test]
fn a_corpus_is_read_whole_and_without_gaps() {
    for path in corpus() {
        let text = fs::read_to_string(&path).unwrap();
        let objects = naive(&text);
        let mut snapshot = Snapshot::default();
        let mut loader = Loader::new(&mut snapshot, None);
        loader.source("corpus.yaml");
        loader.load(text.as_bytes()).unwrap();
        assert_eq!(loader.counts(), counts(&objects), "{}", path.display());
        loader.finish();
        assert_eq!(gaps(&snapshot), [""; 0], "{}", path.display());
        let of = |kinds: &[&str]| {
            objects.iter().filter(|o| kinds.contains(&o["kind"].as_str().unwrap())).collect::<Vec<_>>()
        };
        let roles = of(&["Role", "ClusterRole"]);
        let rules = roles.iter().map(|role| role["rules"].as_array().map_or(0, Vec::len)).sum();
        let expected = [
            of(&["Namespace"]).len(),
            of(&["ServiceAccount"]).len(),
            roles.len(),
            of(&["RoleBinding", "ClusterRoleBinding"]).len(),
            of(&["Secret"]).len(),
            rules,
        ];
        assert_eq!(numbers(&snapshot.clusters[0]), expected, "{}", path.display());
    }
}

#[test]
fn a_corpus_gives_the_same_facts_as_json() {
    for path in corpus() {
        let text = fs::read_to_string(&path).unwrap();
        let objects: String = naive(&text).iter().map(|object| format!("{object}\n")).collect();
        assert_eq!(super::lines(&load("f", &text)), super::lines(&load("f", objects)), "{}", path.display());
    }
}

#[test]
fn no_value_of_a_secret_in_a_corpus_is_kept() {
    use base64::Engine as _;
    for path in corpus() {
        let text = fs::read_to_string(&path).unwrap();
        let snapshot = format!("{:?}", load("f", &text));
        for secret in naive(&text).iter().filter(|object| object["kind"] == "Secret") {
            let values = ["data", "stringData"].into_iter().filter_map(|field| secret[field].as_object());
            for value in values.flatten().filter_map(|(_, value)| value.as_str()).filter(|v| v.len() > 12) {
                assert!(!snapshot.contains(value), "{}", path.display());
                let decoded = base64::engine::general_purpose::STANDARD.decode(value).unwrap_or_default();
                let decoded = String::from_utf8_lossy(&decoded);
                assert!(decoded.len() <= 12 || !snapshot.contains(decoded.as_ref()), "{}", path.display());
            }
        }
    }
}
