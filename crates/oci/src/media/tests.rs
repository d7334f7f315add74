use super::*;

fn kind_of(text: &str) -> Kind {
    MediaType::new(text).unwrap().kind()
}

#[test]
fn indexes_and_manifests_are_told_apart_with_and_without_parameters() {
    for text in [
        OCI_INDEX,
        DOCKER_INDEX,
        "application/vnd.oci.image.index.v1+json; charset=utf-8",
        "Application/vnd.OCI.image.index.v1+JSON",
    ] {
        assert_eq!(kind_of(text), Kind::Index, "{text}");
    }
    for text in [OCI_MANIFEST, DOCKER_MANIFEST, OCI_ARTIFACT] {
        assert_eq!(kind_of(text), Kind::Manifest, "{text}");
    }
    assert_eq!(kind_of("application/vnd.docker.distribution.manifest.v1+prettyjws"), Kind::Schema1);
    for text in [
        "text/plain",
        "text/plain; charset=utf-8",
        "application/json",
        "application/vnd.oci.image.config.v1+json",
    ] {
        assert_eq!(kind_of(text), Kind::Other, "{text}");
    }
}

#[test]
fn a_type_is_kept_as_it_came() {
    let text = "application/vnd.oci.image.index.v1+json; charset=utf-8";
    let media = MediaType::new(text).unwrap();
    assert_eq!(media.as_str(), text);
    assert_eq!(media.essence(), OCI_INDEX);
}

#[test]
fn what_could_break_a_header_is_no_type() {
    for text in
        ["", "json", "a/", "/b", "a b/c", "a/b\r\nX: y", "a/b; é=1", &format!("a/{}", "b".repeat(300))]
    {
        assert!(MediaType::new(text).is_err(), "{text}");
    }
}

#[test]
fn every_kind_of_manifest_is_asked_for() {
    for text in [OCI_INDEX, OCI_MANIFEST, OCI_ARTIFACT, DOCKER_INDEX, DOCKER_MANIFEST] {
        assert!(ACCEPT.contains(text), "{text}");
    }
    assert!(!ACCEPT.contains("  "));
}
