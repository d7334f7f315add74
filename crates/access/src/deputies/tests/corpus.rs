//! The fixtures of a whole management cluster, which are not part of the repository: without them these tests pass and
//! say so.

use std::fs::File;

use super::support::line;
use crate::{Loader, Preset, Snapshot, deputies::deputies};

/// The fixture, if it is there.
fn fixture(name: &str) -> Option<(Snapshot, Vec<String>)> {
    let file = bailey_testkit::corpora("deputies of a management cluster")?.join("mc").join(name);
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, Some("mclab"));
    loader.source(name);
    loader
        .load(File::open(file).expect("a fixture that can be read"))
        .expect("a fixture that is read to its end");
    loader.finish();
    let cluster = snapshot.clusters[0].clone();
    let mut symbols = snapshot.symbols.clone();
    let templates = deputies(&cluster, &mut symbols, &["mclab".to_owned()]);
    let lines = templates.iter().map(|template| line(template, &symbols)).collect();
    Some((snapshot, lines))
}

#[test]
fn the_planted_source_acts_as_the_kustomize_controller() {
    let Some((snapshot, lines)) = fixture("mc-two-tenants-known.yaml") else { return };
    let source = "git.acme.example/platform/acme-extras";
    let wanted = format!("flux-source: source:{source} -> sa:flux-giantswarm/kustomize-controller");
    assert!(lines.contains(&wanted), "{lines:#?}");
    let customers = Preset::named("giantswarm").expect("a preset").customers(&snapshot);
    assert_eq!(customers.owner_of_source(source), crate::Owner::Customer("acme".to_owned()));
}

#[test]
fn sources_of_customers_otherwise_act_as_their_own_accounts() {
    let Some((_, lines)) = fixture("mc-two-tenants-known.yaml") else { return };
    for customer in ["acme", "beta"] {
        let wanted = format!(
            "flux-source: source:git.{customer}.example/platform/{customer}-gitops -> sa:org-{customer}/automation"
        );
        assert!(lines.contains(&wanted), "{lines:#?}");
    }
}

#[test]
fn kubeconfigs_are_clusters_and_the_own_one_is_everything() {
    let Some((_, lines)) = fixture("mc-two-tenants-known.yaml") else { return };
    for wanted in [
        "capi-kubeconfig: secret:org-acme/acme-one-kubeconfig -> cluster:org-acme/acme-one",
        "capi-kubeconfig: secret:org-giantswarm/mclab-kubeconfig -> everything:*",
        "capi-ca: secret:org-beta/beta-one-ca -> cluster:org-beta/beta-one",
    ] {
        assert!(lines.contains(&wanted.to_owned()), "{wanted}\n{lines:#?}");
    }
}

#[test]
fn cloud_identities_are_for_their_own_namespaces() {
    let Some((_, lines)) = fixture("mc-two-tenants-known.yaml") else { return };
    let acme = lines
        .iter()
        .filter(|line| line.starts_with("capi-cloud-identity: ") && line.contains("111111111111"));
    let acme: Vec<&String> = acme.collect();
    assert!(!acme.is_empty());
    assert!(acme.iter().all(|line| line.ends_with(" in org-acme")), "{acme:#?}");
}

#[test]
fn a_dedicated_management_cluster_is_read_too() {
    let Some((snapshot, lines)) = fixture("mc-acme-only.yaml") else { return };
    assert!(lines.iter().any(|line| line.starts_with("crossplane-composition: ")));
    let customers = Preset::named("giantswarm").expect("a preset").customers(&snapshot);
    assert_eq!(customers.customers.keys().collect::<Vec<_>>(), ["acme"]);
    assert_eq!(customers.customers["acme"].groups, ["customer:acme:Admins"]);
}
