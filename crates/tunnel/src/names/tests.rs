#![allow(clippy::unwrap_used, reason = "a test may stop")]

use super::*;

const UID: &str = "0b4c2e5a-0a3c-4f43-8c9e-0d5b7a1e9f11";

#[test]
fn identities_are_read_as_they_are_written() {
    for id in [
        format!("spiffe://atlas/cluster/{UID}"),
        "spiffe://atlas/gateway".to_owned(),
        "spiffe://atlas/issuer".to_owned(),
    ] {
        assert_eq!(id.parse::<Identity>().unwrap().to_string(), id);
    }
}

#[test]
fn an_identity_has_one_spelling() {
    for id in [
        "",
        "https://atlas/gateway",
        "spiffe://atlas",
        "spiffe://atlas/",
        "spiffe://atlas/gateway/",
        "spiffe://Atlas/gateway",
        "spiffe:///gateway",
        "spiffe://atlas/cluster/",
        "spiffe://atlas/cluster/not a uid",
        &format!("spiffe://atlas/cluster/{}", UID.to_uppercase()),
        &format!("spiffe://atlas/cluster/{UID}/x"),
        "spiffe://atlas/../gateway",
    ] {
        assert!(id.parse::<Identity>().is_err(), "{id}");
    }
}

#[test]
fn names_are_labels_of_dns() {
    for name in ["a", "image-cache", "0", &"a".repeat(63)] {
        assert!(ServiceName::new(name).is_ok(), "{name}");
    }
    for name in ["", "-a", "a-", "A", "a.b", "a_b", "a b", "ä", &"a".repeat(64)] {
        let error = ServiceName::new(name).unwrap_err().to_string();
        assert!(error.contains("label of DNS"), "{error}");
    }
}

#[test]
fn a_label_for_sni_is_shown_in_part_only() {
    let label = SniLabel::from_bits([0xab; 16]);
    assert_eq!(label.as_str().len(), 32);
    assert_eq!(format!("{label:?}"), "ababab…");
    assert_eq!(SniLabel::new(label.as_str()).unwrap(), label);
    assert_eq!(SniLabel::new("AB".repeat(16)), Err(NameError::Sni));
}

#[test]
fn names_are_checked_when_they_are_read() {
    assert!(serde_json::from_str::<ClusterUid>(&format!("{UID:?}")).is_ok());
    assert!(serde_json::from_str::<ClusterUid>("\"x\"").is_err());
    assert!(serde_json::from_str::<InstallationName>("\"a/b\"").is_err());
}
