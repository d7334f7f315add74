#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop")]

use bailey_api::{InternalServiceBackend, InternalServiceSpec, InternalServiceStatus};

use super::*;

fn cluster(name: &str, uid: u32, labels: &[(&str, &str)]) -> ClusterFact {
    ClusterFact {
        namespace: "org".to_owned(),
        name: name.to_owned(),
        uid: ClusterUid::new(format!("{uid:08x}-0a3c-4f43-8c9e-0d5b7a1e9f11")).unwrap(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        declared: None,
        deleting: false,
    }
}

fn service(name: &str, clusters: ClusterSelection) -> InternalService {
    let backend =
        InternalServiceBackend { namespace: "cache".to_owned(), name: "images".to_owned(), port: 5000 };
    InternalService::new(name, InternalServiceSpec { backend, port: None, clusters })
}

fn selector(labels: &str) -> ClusterSelection {
    let selector: LabelSelector = serde_json::from_str(labels).unwrap();
    ClusterSelection { names: Vec::new(), selector: Some(selector) }
}

fn run(clusters: &[ClusterFact], existing: &[WorkloadCluster], services: &[InternalService]) -> Plan {
    let installation = InstallationName::new("atlas").unwrap();
    let mut next = 0;
    let label = || {
        next += 1;
        SniLabel::from_bits([next; 16])
    };
    plan(&installation, Policy::Off, clusters, existing, services, label)
}

/// What was planned is there, as the next round finds it.
fn applied(plan: &Plan) -> Vec<WorkloadCluster> {
    plan.write.iter().map(|(name, spec)| WorkloadCluster::new(name, spec.clone())).collect()
}

#[test]
fn a_cluster_gets_an_entry_that_stays_as_it_is() {
    let clusters = [cluster("one", 1, &[("env", "dev")])];
    let first = run(&clusters, &[], &[]);
    assert_eq!(first.write.keys().collect::<Vec<_>>(), ["org.one"]);
    assert_eq!(first.directory.clusters[0].name, "org/one");
    let second = run(&clusters, &applied(&first), &[]);
    assert!(second.write.is_empty() && second.remove.is_empty());
    assert_eq!(second.directory, first.directory);
}

#[test]
fn a_cluster_that_goes_or_is_made_again_loses_everything_first() {
    let clusters = [cluster("one", 1, &[])];
    let existing = applied(&run(&clusters, &[], &[]));
    let mut going = clusters.clone();
    going[0].deleting = true;
    for gone in [&[][..], &going[..], &[cluster("one", 2, &[])][..]] {
        let plan = run(gone, &existing, &[service("images", selector("{}"))]);
        assert_eq!(plan.remove.iter().collect::<Vec<_>>(), ["org.one"]);
        assert!(plan.directory.clusters.is_empty());
        assert!(plan.directory.services[0].clusters.is_empty());
    }
    let again = run(&[cluster("one", 2, &[])], &[], &[]);
    assert_ne!(again.directory.clusters[0].uid, run(&clusters, &existing, &[]).directory.clusters[0].uid);
}

#[test]
fn nobody_is_meant_unless_chosen() {
    let clusters = [cluster("dev", 1, &[("env", "dev")]), cluster("prod", 2, &[("env", "prod")])];
    let named =
        ClusterSelection { names: vec!["org/prod".to_owned(), "org/none".to_owned()], selector: None };
    for (selection, expected) in [
        (ClusterSelection::default(), &[][..]),
        (named, &["prod"]),
        (selector("{}"), &["dev", "prod"]),
        (selector(r#"{"matchLabels":{"env":"dev"}}"#), &["dev"]),
        (selector(r#"{"matchExpressions":[{"key":"env","operator":"NotIn","values":["dev"]}]}"#), &["prod"]),
        (selector(r#"{"matchExpressions":[{"key":"env","operator":"Exists"}]}"#), &["dev", "prod"]),
        (selector(r#"{"matchExpressions":[{"key":"env","operator":"Near","values":["dev"]}]}"#), &[]),
    ] {
        let plan = run(&clusters, &[], &[service("images", selection.clone())]);
        let chosen: Vec<_> = plan
            .directory
            .clusters
            .iter()
            .filter(|one| plan.directory.services[0].clusters.contains(&one.uid))
            .map(|one| one.name.trim_start_matches("org/"))
            .collect();
        assert_eq!(chosen, expected, "{selection:?}");
    }
}

#[test]
fn ports_are_chosen_once_and_never_twice() {
    let mut services: Vec<_> =
        (0..500).map(|number| service(&format!("s{number}"), selector("{}"))).collect();
    let first = run(&[], &[], &services);
    assert_eq!(first.ports.len(), 500);
    let distinct: BTreeSet<_> = first.directory.services.iter().map(|one| one.agent_port).collect();
    assert_eq!(distinct.len(), 500);
    for service in &mut services {
        let port = first.ports[&service.name_any()];
        service.status = Some(InternalServiceStatus { agent_port: Some(port.into()), ..Default::default() });
    }
    let second = run(&[], &[], &services);
    assert!(second.ports.is_empty());
    assert_eq!(second.directory, first.directory);
    // Two that claim one port: one of them moves.
    services.truncate(2);
    services[1].status = services[0].status.clone();
    assert_eq!(run(&[], &[], &services).ports.len(), 1);
}

#[test]
fn addresses_that_are_none_are_told_by_cluster_and_text() {
    let mut clusters = [cluster("one", 1, &[])];
    clusters[0].declared = Some("192.0.2.0/24, 10.0.0.1,2001:db8::/32".to_owned());
    let plan = run(&clusters, &[], &[]);
    assert_eq!(plan.directory.clusters[0].sources.len(), 2);
    assert_eq!(plan.problems.len(), 1);
    assert!(
        plan.problems[0].contains("org/one") && plan.problems[0].contains("`10.0.0.1`"),
        "{:?}",
        plan.problems
    );
}
