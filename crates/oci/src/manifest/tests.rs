use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::digest::Algorithm;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const DOCKER: &str = "application/vnd.docker.distribution.manifest.v2+json";

fn digest(text: &str) -> Digest {
    Digest::of(Algorithm::Sha256, text.as_bytes())
}

fn parse(value: &Value, media_type: &str) -> Manifest {
    Manifest::parse(value.to_string().as_bytes(), &MediaType::new(media_type).unwrap()).unwrap()
}

fn descriptor(of: &str, size: u64, media_type: &str) -> Value {
    json!({ "digest": digest(of).to_string(), "size": size, "mediaType": media_type })
}

#[test]
fn a_manifest_refers_to_its_config_layers_and_subject() {
    let value = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": descriptor("config", 3, "a/config"),
        "layers": [descriptor("one", 5, "a/layer"), descriptor("two", 7, "a/layer")],
        "subject": descriptor("subject", 9, MANIFEST),
        "annotations": { "any": "thing" },
    });
    let manifest = parse(&value, MANIFEST);
    let blobs: Vec<_> = manifest.blobs().map(|blob| (blob.digest, blob.size)).collect();
    assert_eq!(blobs, [(digest("config"), 3), (digest("one"), 5), (digest("two"), 7)]);
    assert_eq!(manifest.children[0].role, Role::Config);
    assert_eq!(manifest.subject.map(|subject| subject.digest), Some(digest("subject")));
    assert_eq!(manifest.claimed_type.as_deref(), Some(MANIFEST));
    assert_eq!(manifest.artifact_type.as_deref(), Some("a/config"));
}

#[test]
fn an_index_refers_to_manifests_with_their_platforms() {
    let mut arm = descriptor("arm", 4, MANIFEST);
    arm["platform"] = json!({ "os": "linux", "architecture": "arm64", "variant": "v8" });
    let value = json!({ "manifests": [descriptor("any", 3, INDEX), arm] });
    let manifest = parse(&value, INDEX);
    let children: Vec<_> = manifest.manifests().collect();
    assert_eq!(children[0].platform, None);
    let platform = children[1].platform.as_ref().unwrap();
    assert_eq!(
        (platform.os.as_str(), platform.architecture.as_str(), platform.variant.as_deref()),
        ("linux", "arm64", Some("v8"))
    );
    assert_eq!(manifest.blobs().count(), 0);
}

#[test]
fn artifacts_of_both_kinds_are_read() {
    let old = json!({ "artifactType": "a/sbom", "blobs": [descriptor("sbom", 3, "a/sbom")] });
    let old = parse(&old, "application/vnd.oci.artifact.manifest.v1+json");
    assert_eq!((old.artifact_type.as_deref(), old.blobs().count()), (Some("a/sbom"), 1));
    let new = json!({ "artifactType": "a/sig", "config": descriptor("{}", 2, "application/vnd.oci.empty.v1+json"), "layers": [] });
    assert_eq!(parse(&new, MANIFEST).artifact_type.as_deref(), Some("a/sig"));
}

#[test]
fn what_is_odd_is_passed_over_and_the_rest_still_read() {
    let value = json!({
        "config": 5, "mediaType": ["x"], "subject": "none",
        "layers": [
            descriptor("good", 5, "a/layer"),
            { "digest": "blake3:00", "size": 1 }, { "digest": digest("x").to_string() }, { "digest": digest("x").to_string(), "size": -1 },
            null, "text", { "digest": digest("untyped").to_string(), "size": 6, "platform": 7, "urls": ["https://x.example"] },
        ],
        "manifests": null,
    });
    let manifest = parse(&value, DOCKER);
    let blobs: Vec<_> = manifest.blobs().map(|blob| blob.size).collect();
    assert_eq!(blobs, [5, 6]);
    assert_eq!(manifest.subject, None);
    assert_eq!(manifest.claimed_type, None);
}

#[test]
fn what_is_no_manifest_refers_to_nothing_or_says_why() {
    let parse = |bytes: &[u8], media_type: &str| Manifest::parse(bytes, &MediaType::new(media_type).unwrap());
    assert_eq!(parse(b"hello", "text/plain").unwrap(), Manifest::default());
    assert_eq!(
        parse(b"{}", "application/vnd.docker.distribution.manifest.v1+prettyjws").unwrap(),
        Manifest::default()
    );
    assert!(matches!(parse(b"hello", MANIFEST), Err(ManifestError::Json(_))));
    assert!(matches!(parse(b"[]", MANIFEST), Err(ManifestError::Json(_))));
    let large = vec![b' '; BYTES_MAX + 1];
    assert!(matches!(parse(&large, MANIFEST), Err(ManifestError::TooLarge(_))));
    let deep = "[".repeat(100_000);
    assert!(parse(deep.as_bytes(), MANIFEST).is_err());
}

#[test]
fn a_manifest_that_was_called_text_is_served_as_what_it_claims() {
    let claims = Manifest { claimed_type: Some(INDEX.to_owned()), ..Manifest::default() };
    let said = |text: &str| MediaType::new(text).unwrap();
    let served =
        |said: Option<&MediaType>, manifest| served_type(said, manifest).map(|media| media.to_string());
    assert_eq!(served(Some(&said("text/plain; charset=utf-8")), &claims).as_deref(), Some(INDEX));
    assert_eq!(served(None, &claims).as_deref(), Some(INDEX));
    assert_eq!(served(Some(&said(DOCKER)), &claims).as_deref(), Some(DOCKER));
    let silent = Manifest::default();
    assert_eq!(served(Some(&said("text/plain")), &silent).as_deref(), Some("text/plain"));
    let lies = Manifest { claimed_type: Some("text/html".to_owned()), ..Manifest::default() };
    assert_eq!(served(Some(&said("application/json")), &lies).as_deref(), Some("application/json"));
    assert_eq!(served(None, &silent), None);
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _either = Manifest::parse(&bytes, &MediaType::new(MANIFEST).unwrap());
    }

    /// Damage at one place: a good manifest with a byte changed.
    #[test]
    fn no_damage_makes_the_parser_panic(at in 0usize..600, byte in any::<u8>()) {
        let value = json!({ "mediaType": MANIFEST, "config": descriptor("c", 1, "a/b"), "layers": [descriptor("l", 2, "a/b"), descriptor("m", 2, "a/b")], "subject": descriptor("s", 3, "a/b") });
        let mut bytes = value.to_string().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _either = Manifest::parse(&bytes, &MediaType::new(MANIFEST).unwrap());
    }
}
