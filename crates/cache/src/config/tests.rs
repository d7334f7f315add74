use bailey_oci::freshness::{Freshness, Gone, StaleIfError};
use bailey_oci::visibility::Client;

use super::*;

const FULL: &str = "
listen: 0.0.0.0:5000
admin: 127.0.0.1:8081
store: /var/lib/bailey/cache
budget: 10GiB
upstreams:
  - name: index.docker.io
  - name: registry.example:5000
    url: http://registry.example:5000
    username: ann
    passwordFile: /etc/password
    realms: [Auth.example]
defaultUpstream: docker.io
freshness:
  tags: 5m
  staleIfError: 12h
  gone: follow
  rules:
    - tags: versions
      fresh: immutable
    - images: registry.example:5000/acme/*
      tags: edge
      fresh: 0s
visibility:
  grants:
    - images: registry.example:5000/acme/*
      clusters: [one]
pins: ['sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855']
scrubEvery: 7d
";

#[test]
fn pins_are_digests_or_images_of_an_upstream() {
    let with = |pins: &str| {
        config(&format!("{{store: /s, budget: 1GiB, upstreams: [{{name: docker.io}}], {pins}}}"))
    };
    let config = with("pins: ['docker.io/debian:13'], pinPlatforms: [linux/arm64]").unwrap();
    assert_eq!(config.pinned_images[0].to_string(), "docker.io/library/debian:13");
    assert_eq!(config.pin_platforms[0].architecture, "arm64");
    for wrong in ["pins: ['other.example/a/b:1']", "pins: ['debian']", "pinPlatforms: [amd64]"] {
        assert!(with(wrong).is_err(), "{wrong}");
    }
}

fn config(text: &str) -> Result<Config, ConfigError> {
    File::parse(text).unwrap().config()
}

#[test]
fn a_whole_file_is_understood() {
    let config = config(FULL).unwrap();
    assert_eq!(config.bytes_max, 10 << 30);
    let hub = &config.upstreams[0];
    assert_eq!((hub.name.as_str(), hub.url.as_str()), ("docker.io", "https://registry-1.docker.io/"));
    let other = &config.upstreams[1];
    assert_eq!(other.trust.realm_hosts, ["auth.example"]);
    assert!(matches!(&other.credentials, Source::Password { username, .. } if username == "ann"));
    assert_eq!(config.freshness.stale_if_error, StaleIfError::For(Duration::from_secs(43_200)));
    assert_eq!(config.freshness.gone, Gone::Follow);
    let fresh = |tag: &str| {
        config.freshness.freshness(&hub.name, &"library/app".parse().unwrap(), &tag.parse().unwrap())
    };
    assert_eq!(
        (fresh("1.2.3"), fresh("edge")),
        (Freshness::Immutable, Freshness::For(Duration::from_secs(300)))
    );
    let place = |text: &str| bailey_oci::visibility::Place {
        upstream: other.name.clone(),
        repository: text.parse().unwrap(),
    };
    let nobody = Client::default();
    assert!(!config.visibility.may_read(&nobody, &place("acme/app")));
    assert!(config.visibility.may_read(&nobody, &place("other")));
    assert_eq!((config.pins.len(), config.scrub), (1, Some(Duration::from_secs(604_800))));
}

#[test]
fn flags_go_before_the_file_and_add_upstreams() {
    let flags = File {
        budget: Some("1GiB".to_owned()),
        upstreams: vec![file::FileUpstream::flag("quay.example=http://10.0.0.1:5000/mirror").unwrap()],
        ..File::default()
    };
    let config = File::parse(FULL).unwrap().overlaid(flags).config().unwrap();
    assert_eq!((config.bytes_max, config.upstreams.len()), (1 << 30, 3));
    assert_eq!(config.upstreams[2].url.path(), "/mirror");
}

#[test]
fn what_is_wrong_is_named_with_the_way_out() {
    let says = |text: &str, wanted: &str| {
        let error = match File::parse(text) {
            Ok(file) => file.config().unwrap_err().to_string(),
            Err(message) => message,
        };
        assert!(error.contains(wanted), "{error}");
    };
    says("store: /s\nbudget: 1GiB\n", "no upstream is given; say one with `--upstream");
    says("upstreams: [{name: a.example}]\nbudget: 1GiB\n", "no `store` is given; say it with `--store DIR`");
    says(
        "upstreams: [{name: a.example}]\nstore: /s\nbudget: lots\n",
        "`budget` is `lots`; write a number of bytes",
    );
    says("upstreams: [{name: a.example, url: 'ftp://a'}]\n", "`upstreams.a.example.url` is `ftp://a`");
    says("upstreams: [{name: a.example, username: ann}]\n", "give either `username` with `passwordFile`");
    says("upstream: []\n", "upstream");
    says(
        "upstreams: [{name: a.example}, {name: a.example}]\nstore: /s\nbudget: 1GiB\n",
        "registry `a.example` is listed twice",
    );
}

#[test]
fn an_upstream_flag_needs_a_name_and_may_do_without_its_usual_address() {
    assert_eq!(UpstreamConfig::parse("docker.io").unwrap().url.as_str(), "https://registry-1.docker.io/");
    for wrong in ["", "=https://a", "a b=https://a"] {
        assert!(matches!(UpstreamConfig::parse(wrong), Err(ConfigError::Upstream { .. })), "{wrong}");
    }
    assert!(matches!(UpstreamConfig::parse("a.example=https://u:p@a"), Err(ConfigError::Url { .. })));
}

#[test]
fn the_example_in_the_documentation_is_understood() {
    let config = config(include_str!("../../../../docs/examples/cache/cache.yaml")).unwrap();
    assert_eq!(
        (config.upstreams.len(), config.freshness.rules.len(), config.visibility.grants.len()),
        (2, 2, 1)
    );
    assert!(config.tls.unwrap().client_ca.is_some());
    assert!(
        matches!(&config.upstreams[0].credentials, Source::DockerConfig { registry, .. } if registry == "docker.io")
    );
}
