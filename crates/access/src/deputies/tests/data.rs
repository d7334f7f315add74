//! The data files, and that they agree with the catalogue and with each other.

use std::collections::BTreeSet;

use super::super::{argocd, capi, cloud, crossplane, data, eso, flux, giantswarm, others, prometheus};
use crate::catalogue;

const CODE: [&[&str]; 9] = [
    argocd::EDGES,
    capi::EDGES,
    cloud::EDGES,
    crossplane::EDGES,
    eso::EDGES,
    flux::EDGES,
    giantswarm::EDGES,
    others::EDGES,
    prometheus::EDGES,
];

#[test]
fn every_file_can_be_read_and_says_where_its_rules_are_known_from() {
    for (name, text) in data::FILES {
        let file =
            serde_saphyr::from_str::<data::File>(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!file.sources.is_empty(), "{name} names no source");
    }
    assert_eq!(data::files().len(), data::FILES.len());
}

#[test]
fn every_file_of_the_folder_is_built_in() {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/deputies")).expect("the folder");
    let found: BTreeSet<String> =
        folder.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    assert_eq!(found, data::FILES.iter().map(|(name, _)| (*name).to_owned()).collect());
}

#[test]
fn rules_and_identities_name_known_kinds_and_programs() {
    let programs: Vec<&str> =
        data::files().iter().flat_map(|file| &file.processes).map(|program| program.id.as_str()).collect();
    let unique: BTreeSet<&str> = programs.iter().copied().collect();
    assert_eq!(unique.len(), programs.len(), "an id of a program is there twice");
    for file in data::files() {
        for rule in &file.rules {
            assert!(unique.contains(rule.process.as_str()), "{}: {}", rule.edge, rule.process);
            for id in rule.each.iter().chain(&rule.with) {
                assert!(data::kind(id).is_some(), "{}: {id}", rule.edge);
            }
            assert!(rule.sample.is_some() || rule.essential.is_empty(), "{}: no sample", rule.edge);
            assert!(rule.sample.is_none() || !rule.essential.is_empty(), "{}: nothing essential", rule.edge);
        }
        for identity in &file.identities {
            assert!(unique.contains(identity.process.as_str()));
            for id in identity.used_by.iter().chain([&identity.kind]) {
                assert!(data::kind(id).is_some(), "{id}");
            }
        }
    }
}

#[test]
fn ids_of_kinds_are_unique() {
    let ids: Vec<&str> =
        data::files().iter().flat_map(|file| &file.kinds).map(|kind| kind.id.as_str()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn the_catalogue_has_exactly_the_edges_that_deputies_make() {
    let text = include_str!("../../../catalogue/deputies.yaml");
    let rows: Vec<serde_json::Value> = serde_saphyr::from_str(text).expect("the catalogue");
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().expect("an id")).collect();
    let catalogued: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(catalogued.len(), ids.len(), "an id is there twice");
    let rules = data::files().iter().flat_map(|file| &file.rules).map(|rule| rule.edge.as_str());
    let made: BTreeSet<&str> = rules.chain(CODE.into_iter().flatten().copied()).collect();
    assert_eq!(catalogued, made);
    for row in &rows {
        let edge = catalogue::edge(row["id"].as_str().expect("an id")).expect("a row");
        assert!(
            !edge.title.is_empty() && !edge.explanation.is_empty() && !edge.references.is_empty(),
            "{}",
            edge.id
        );
        assert!(edge.remedy.ends_with('.'), "{}: {}", edge.id, edge.remedy);
    }
}

#[test]
fn a_loader_is_told_all_kinds_that_are_looked_at() {
    let kinds = crate::deputy_kinds();
    for (group, kind) in
        [("apps", "Deployment"), ("helm.toolkit.fluxcd.io", "HelmRelease"), ("", "ConfigMap")]
    {
        assert!(kinds.iter().any(|known| known.group == group && known.kind == kind), "{kind}");
    }
}

#[test]
fn the_loader_keeps_every_setting_and_every_kind_that_deputies_look_for() {
    let variables = |watch: &[data::Watch], tests: &[data::Test]| {
        let watched = watch.iter().filter_map(|watch| watch.env.clone());
        watched.chain(tests.iter().filter_map(|test| test.env.clone())).collect::<Vec<_>>()
    };
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for file in data::files() {
        wanted.extend(file.processes.iter().flat_map(|program| variables(&program.watch, &[])));
        wanted.extend(file.rules.iter().flat_map(|rule| variables(&rule.watch, &rule.unless)));
        wanted.extend(file.rules.iter().flat_map(|rule| variables(&[], &rule.only_if)));
    }
    // What code looks for, beside data.
    wanted.extend(
        ["ARGOCD_APPLICATION_NAMESPACES", "application.sync.impersonation.enabled"].map(str::to_owned),
    );
    // What variables of Argo CD are taken from.
    wanted.insert("application.namespaces".to_owned());
    let kept: BTreeSet<String> = crate::load::setting_names().map(str::to_owned).collect();
    assert_eq!(kept, wanted);
    for kind in crate::deputy_kinds() {
        assert!(crate::keeps(kind.group, kind.kind), "{kind:?}");
    }
}
