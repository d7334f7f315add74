use proptest::prelude::*;

use super::*;

fn registry(text: &str) -> Registry {
    text.parse().unwrap()
}

#[test]
fn the_names_of_docker_hub_are_one_registry() {
    for alias in ["docker.io", "index.docker.io", "registry-1.docker.io", "Docker.IO"] {
        assert_eq!(registry(alias).as_str(), "docker.io");
        assert_eq!(registry(alias).api_host(), "registry-1.docker.io");
    }
    assert_eq!(registry("mirror.docker.io").as_str(), "mirror.docker.io");
}

#[test]
fn hosts_ports_and_addresses_are_registries() {
    for name in
        ["registry.example", "registry.example:5000", "localhost", "10.0.0.1:1", "[::1]:5000", "[fd00::1]"]
    {
        assert_eq!(registry(name).as_str(), name);
        assert_eq!(registry(name).api_host(), name);
    }
    let long = "a".repeat(64);
    for name in [
        "",
        ":5000",
        "a:",
        "a:0",
        "a:65536",
        "a:+1",
        "a b",
        "a/b",
        "http://a",
        "[::1",
        "[::1]x",
        "[x]",
        "a..b",
        "é.example",
        "-a",
        "a@b",
        &long,
    ] {
        assert!(name.parse::<Registry>().is_err(), "{name}");
    }
}

#[test]
fn library_is_added_on_docker_hub_alone() {
    let complete = |registry: &str, repository: &str| {
        registry.parse::<Registry>().unwrap().complete(repository.parse().unwrap()).to_string()
    };
    assert_eq!(complete("docker.io", "debian"), "library/debian");
    assert_eq!(complete("docker.io", "acme/debian"), "acme/debian");
    assert_eq!(complete("docker.io", "library/debian"), "library/debian");
    assert_eq!(complete("registry.example", "debian"), "debian");
    let long = "x".repeat(255);
    assert_eq!(complete("docker.io", &long), long);
}

#[test]
fn a_list_of_upstreams_has_no_doubles_and_holds_its_default() {
    let hub = registry("docker.io");
    let other = registry("registry.example");
    assert_eq!(
        Upstreams::new([hub.clone(), registry("index.docker.io")], None).unwrap_err(),
        UpstreamsError::Twice(hub.clone())
    );
    assert_eq!(
        Upstreams::new([hub.clone()], Some(other.clone())).unwrap_err(),
        UpstreamsError::UnknownDefault(other.clone())
    );
    let upstreams = Upstreams::new([hub.clone(), other.clone()], Some(hub.clone())).unwrap();
    assert!(upstreams.contains(&other));
    assert_eq!(upstreams.find("REGISTRY-1.docker.io"), Some(&hub));
    assert_eq!(upstreams.find("registry.example:443"), None);
    assert_eq!(upstreams.default_upstream(), Some(&hub));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic_and_a_name_is_a_fixed_point(text in "\\PC{0,40}|[a-zA-Z0-9.:\\[\\]-]{0,40}") {
        if let Ok(registry) = text.parse::<Registry>() {
            prop_assert_eq!(registry.as_str().parse::<Registry>().unwrap(), registry);
        }
    }
}
