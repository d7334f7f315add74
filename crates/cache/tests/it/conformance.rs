//! The conformance suite of the distribution specification, run against the cache.
//!
//! Two of its ways are known: in read-only mode it ends in a panic after it has printed its results, and it asks for a
//! digest header on manifests in a way that no server passes. So its printed results count, and that switch is off.

use std::collections::BTreeMap;
use std::process::Stdio;

use bailey_testkit::registry::{Flavour, Image, Layer};
use bailey_testkit::{Tool, tools};

use crate::site::{REGISTRY, Site};

/// Runs the suite; what it printed, and each of its tests with what came of it.
async fn run(settings: &[(&str, String)]) -> (String, BTreeMap<String, String>) {
    let program = tokio::task::spawn_blocking(|| tools::path(Tool::Conformance)).await.unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::new(program);
    command.current_dir(folder.path()).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder.path());
    command.env("OCI_RESULTS_DIR", folder.path()).env("OCI_TLS", "disabled");
    command.envs(settings.iter().map(|(name, value)| (*name, value)));
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let result = |line: &str| {
        let (name, outcome) = line.rsplit_once(": ")?;
        matches!(outcome, "Pass" | "FAIL" | "Error" | "Skip" | "Disabled" | "Unknown")
            .then(|| (name.trim().to_owned(), outcome.to_owned()))
    };
    let results = printed.lines().filter_map(|line| result(line.trim_end())).collect();
    (printed, results)
}

fn failed(results: &BTreeMap<String, String>) -> Vec<&String> {
    results
        .iter()
        .filter(|(_, outcome)| matches!(outcome.as_str(), "FAIL" | "Error"))
        .map(|(name, _)| name)
        .collect()
}

fn passed(results: &BTreeMap<String, String>) -> usize {
    results.values().filter(|outcome| *outcome == "Pass").count()
}

#[tokio::test]
async fn reading_conforms_cold_and_warm() {
    let site = Site::with(|config| config.default_upstream = Some(REGISTRY.parse().unwrap())).await;
    let image = Image::new(Flavour::Oci, 1, &[Layer::random(1, 20_000), Layer::random(2, 300)]);
    site.upstream.push("acme/app", "latest", &image);
    let signature = Image::artifact("application/vnd.example.signature", 3, Some(image.root()));
    site.upstream.push("acme/app", None, &signature);
    let blobs: Vec<_> = image.blobs.iter().map(|blob| blob.digest.to_string()).collect();
    let off = || "false".to_owned();
    for round in ["cold", "warm"] {
        let (printed, results) = run(&[
            ("OCI_REGISTRY", site.cache.listen.to_string()),
            ("OCI_REPO1", "acme/app".to_owned()),
            ("OCI_REPO2", "acme/app".to_owned()),
            ("OCI_API_PUSH", off()),
            ("OCI_API_BLOBS_DELETE", off()),
            ("OCI_API_MANIFESTS_DELETE", off()),
            ("OCI_API_TAGS_DELETE", off()),
            ("OCI_API_BLOBS_MOUNT_ANONYMOUS", off()),
            ("OCI_API_BLOBS_DIGEST_HEADER", "true".to_owned()),
            ("OCI_RO_DATA_TAGS", "latest".to_owned()),
            ("OCI_RO_DATA_MANIFESTS", image.digest().to_string()),
            ("OCI_RO_DATA_BLOBS", blobs.join(" ")),
            ("OCI_RO_DATA_REFERRERS", image.digest().to_string()),
        ])
        .await;
        assert_eq!(failed(&results), Vec::<&String>::new(), "{round}: {printed}");
        assert!(passed(&results) >= 18, "{round}: {printed}");
    }
}
