#![allow(clippy::unwrap_used, reason = "a test may stop")]

use super::*;

const ONE: &str = "0b4c2e5a-0a3c-4f43-8c9e-0d5b7a1e9f11";
const TWO: &str = "1b4c2e5a-0a3c-4f43-8c9e-0d5b7a1e9f22";

fn uid(uid: &str) -> ClusterUid {
    ClusterUid::new(uid).unwrap()
}

fn directory() -> Directory {
    let cluster = |id: &str, bits| Cluster {
        uid: uid(id),
        name: format!("org/{}", &id[..1]),
        sni_label: SniLabel::from_bits([bits; 16]),
        sources: Vec::new(),
        revoked_before: None,
    };
    let service = |name: &str, port, clusters: &[&str]| Service {
        name: ServiceName::new(name).unwrap(),
        backend: "cache.bailey-system:5000".to_owned(),
        agent_port: port,
        clusters: clusters.iter().map(|id| uid(id)).collect(),
    };
    Directory {
        installation: InstallationName::new("atlas").unwrap(),
        sources: Policy::Off,
        clusters: vec![cluster(ONE, 1), cluster(TWO, 2)],
        services: vec![service("images", 20_001, &[ONE, TWO]), service("metrics", 20_002, &[TWO])],
    }
}

fn certificate(id: &str) -> Certificate {
    Certificate { identity: id.parse().unwrap(), issued: 1000, not_after: 4600 }
}

#[test]
fn a_cluster_is_who_its_certificate_says_and_only_while_it_exists() {
    let index = Index::new(directory()).unwrap();
    let own = certificate(&format!("spiffe://atlas/cluster/{ONE}"));
    assert_eq!(index.admit(&uid(ONE), &own, 2000).unwrap().uid, uid(ONE));
    let refused = |greeted: &str, certificate: &Certificate, now| {
        index.admit(&uid(greeted), certificate, now).unwrap_err()
    };
    assert_eq!(refused(TWO, &own, 2000), Refusal::OtherCluster);
    assert_eq!(refused(ONE, &own, 4600), Refusal::Expired);
    assert_eq!(
        refused(ONE, &certificate(&format!("spiffe://other/cluster/{ONE}")), 2000),
        Refusal::OtherInstallation
    );
    assert_eq!(refused(ONE, &certificate("spiffe://atlas/gateway"), 2000), Refusal::NotACluster);
    let gone = "2b4c2e5a-0a3c-4f43-8c9e-0d5b7a1e9f33";
    assert_eq!(
        refused(gone, &certificate(&format!("spiffe://atlas/cluster/{gone}")), 2000),
        Refusal::UnknownCluster
    );
}

#[test]
fn what_was_issued_before_a_revocation_is_refused_and_what_came_after_is_not() {
    let mut changed = directory();
    changed.clusters[0].revoked_before = Some(1500);
    let index = Index::new(changed).unwrap();
    let mut own = certificate(&format!("spiffe://atlas/cluster/{ONE}"));
    assert_eq!(index.admit(&uid(ONE), &own, 2000).unwrap_err(), Refusal::Revoked);
    own.issued = 1500;
    assert!(index.admit(&uid(ONE), &own, 2000).is_ok());
}

#[test]
fn a_service_that_is_not_granted_is_as_one_that_does_not_exist() {
    let index = Index::new(directory()).unwrap();
    assert_eq!(index.grant(&uid(ONE), "images").unwrap().agent_port, 20_001);
    for service in ["metrics", "nothing", "", "Images", "images:443", "../images"] {
        assert_eq!(index.grant(&uid(ONE), service).unwrap_err(), Refusal::NotGranted, "{service}");
    }
    let names = |id| index.granted(&uid(id)).map(|service| service.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(ONE), ["images"]);
    assert_eq!(names(TWO), ["images", "metrics"]);
}

#[test]
fn strict_sources_hold_for_clusters_whose_addresses_are_known() {
    let mut changed = directory();
    changed.sources = Policy::Strict;
    changed.clusters[0].sources =
        vec![Source { cidr: "192.0.2.0/24".parse().unwrap(), from: crate::gate::Provenance::Declared }];
    let index = Index::new(changed).unwrap();
    let [one, two] = &index.directory().clusters[..] else { panic!() };
    let (home, away) = ("192.0.2.9".parse().unwrap(), "198.51.100.9".parse().unwrap());
    assert!(index.may_come(one, home).is_ok());
    assert!(index.may_come(one, "::ffff:192.0.2.9".parse().unwrap()).is_ok());
    assert_eq!(index.may_come(one, away), Err(Refusal::Source));
    assert!(index.may_come(two, away).is_ok());
    assert!(index.knows(home) && !index.knows(away));
}

#[test]
fn greetings_find_their_cluster_only_by_the_whole_label() {
    let index = Index::new(directory()).unwrap();
    assert_eq!(index.greeted(&"01".repeat(16)).unwrap().uid, uid(ONE));
    for label in ["", "01", &"01".repeat(15), &"0A".repeat(16), &"03".repeat(16)] {
        assert_eq!(index.greeted(label).unwrap_err(), Refusal::Stranger);
    }
}

#[test]
fn a_directory_that_contradicts_itself_is_refused_by_name() {
    let mut changed = directory();
    changed.clusters[1].uid = uid(ONE);
    assert!(Index::new(changed).unwrap_err().to_string().contains(ONE));
    let mut changed = directory();
    changed.services[1].agent_port = 20_001;
    assert!(Index::new(changed).unwrap_err().to_string().contains("metrics"));
}

#[test]
fn a_field_that_nobody_knows_is_refused() {
    let text = serde_json::to_string(&directory()).unwrap();
    assert_eq!(serde_json::from_str::<Directory>(&text).unwrap(), directory());
    let error = serde_json::from_str::<Directory>(&text.replacen("services", "sevrices", 1)).unwrap_err();
    assert!(error.to_string().contains("sevrices"), "{error}");
}
