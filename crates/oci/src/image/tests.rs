use super::*;
use crate::digest::{Algorithm, Digest};

#[test]
fn images_are_read_by_their_full_names() {
    let image: Image = "docker.io/debian:13".parse().unwrap();
    assert_eq!((image.registry.as_str(), image.repository.as_str()), ("docker.io", "library/debian"));
    assert_eq!(image.to_string(), "docker.io/library/debian:13");
    let digest = Digest::of(Algorithm::Sha256, b"x");
    let image: Image = format!("registry.example:5000/acme/app:v1@{digest}").parse().unwrap();
    assert_eq!(image.to_string(), format!("registry.example:5000/acme/app@{digest}"));
    assert_eq!((image.registry.as_str(), image.reference), ("registry.example:5000", digest.into()));
    for wrong in ["debian:13", "docker.io/debian", "docker.io/Debian:13", ""] {
        assert!(wrong.parse::<Image>().is_err(), "{wrong}");
    }
}

#[test]
fn short_names_are_completed_as_pods_mean_them() {
    let full = |text: &str| Image::short(text).map(|image| image.to_string());
    assert_eq!(full("debian"), Ok("docker.io/library/debian:latest".to_owned()));
    assert_eq!(full("acme/app:v1"), Ok("docker.io/acme/app:v1".to_owned()));
    assert_eq!(full("registry.example:5000/app"), Ok("registry.example:5000/app:latest".to_owned()));
    assert!(full("Debian").is_err() && full("").is_err());
}

#[test]
fn a_target_wants_its_platform_and_what_names_none() {
    let platform = |os: &str, architecture: &str, variant: Option<&str>| Platform {
        os: os.to_owned(),
        architecture: architecture.to_owned(),
        variant: variant.map(str::to_owned),
    };
    let target: Target = "linux/arm64".parse().unwrap();
    assert!(target.wants(None) && target.wants(Some(&platform("linux", "arm64", Some("v8")))));
    assert!(!target.wants(Some(&platform("linux", "amd64", None))));
    // Attestations stand in an index as of an unknown platform.
    assert!(!target.wants(Some(&platform("unknown", "unknown", None))));
    let target: Target = "linux/arm/v6".parse().unwrap();
    assert!(!target.wants(Some(&platform("linux", "arm", Some("v7")))));
    assert_eq!(target.to_string(), "linux/arm/v6");
    for wrong in ["linux", "linux/", "/amd64", "linux/arm/v6/x", "linux/arm/", ""] {
        assert!(wrong.parse::<Target>().is_err(), "{wrong}");
    }
}
