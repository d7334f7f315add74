//! Which crate may know what: the arrows of ARCHITECTURE.md, read from the resolved graph of cargo.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Crates that decide and never talk: they run in a test, in a browser and in a plan alike.
const PURE: [&str; 6] =
    ["bailey-access", "bailey-api", "bailey-attacks", "bailey-guardrails", "bailey-oci", "bailey-tunnel"];
/// What a crate that talks is made with. kube's derive and core types are data; its client is not.
const TALKS: [&str; 10] = [
    "tokio",
    "hyper",
    "hyper-util",
    "axum",
    "kube-client",
    "kube-runtime",
    "reqwest",
    "rustls",
    "tower",
    "mio",
];
/// Our crates from bottom to top; each may know those above it in this list only.
const LAYERS: [&[&str]; 7] = [
    &["bailey-access", "bailey-api", "bailey-attacks", "bailey-oci", "bailey-tunnel"],
    &["bailey-guardrails", "bailey-process"],
    &["bailey-collect", "bailey-identity"],
    &["bailey-auditor", "bailey-cache", "bailey-cli", "bailey-gateway", "bailey-issuer", "bailey-operator"],
    &["bailey"],
    &["bailey-testkit"],
    &["xtask"],
];

#[test]
fn pure_crates_name_nothing_that_talks() {
    let metadata = metadata();
    for name in PURE {
        let package = package(&metadata, name);
        for dependency in normal(package) {
            assert!(!TALKS.contains(&dependency.as_str()), "{name} names {dependency}");
        }
    }
}

/// In the workspace, features of all crates add up; alone, a crate has only those that it asks for itself.
#[test]
fn pure_crates_reach_nothing_that_talks() {
    for name in PURE {
        let tree = cargo(&["tree", "--package", name, "--edges", "normal", "--prefix", "none", "--locked"]);
        let reached: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(reached.contains(name), "{tree}");
        let talking: Vec<_> = TALKS.iter().filter(|crate_name| reached.contains(*crate_name)).collect();
        assert!(
            talking.is_empty(),
            "{name} reaches {talking:?}; see: cargo tree --package {name} --edges normal"
        );
    }
}

#[test]
fn arrows_between_our_crates_point_downwards() {
    let metadata = metadata();
    let layer_of: BTreeMap<_, _> =
        LAYERS.iter().enumerate().flat_map(|(n, names)| names.iter().map(move |name| (*name, n))).collect();
    for package in metadata.workspace_packages() {
        let own = layer_of.get(package.name.as_str());
        let own = own.unwrap_or_else(|| panic!("{} has no layer yet: give it one here", package.name));
        for dependency in normal(package) {
            let Some(other) = layer_of.get(dependency.as_str()) else { continue };
            assert!(other < own, "{} points to {dependency}, which is not below it", package.name);
        }
    }
}

/// What is for tests only stays out of the binary.
#[test]
fn the_testkit_is_for_tests_and_tasks_only() {
    let metadata = metadata();
    for package in metadata.workspace_packages().into_iter().filter(|package| package.name != "xtask") {
        assert!(!normal(package).contains("bailey-testkit"), "{} ships the testkit", package.name);
    }
}

fn metadata() -> Metadata {
    MetadataCommand::new().no_deps().other_options(["--locked".to_owned()]).exec().unwrap()
}

fn package<'a>(metadata: &'a Metadata, name: &str) -> &'a Package {
    metadata.packages.iter().find(|package| package.name == name).unwrap()
}

fn normal(package: &Package) -> BTreeSet<String> {
    let normal = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
    normal.map(|dependency| dependency.name.clone()).collect()
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {}: {said}", arguments.join(" "));
    String::from_utf8(output.stdout).unwrap()
}
