use proptest::prelude::*;

use super::*;

fn file(subject: &str, offline: bool) -> HostsToml {
    HostsToml {
        subject: if subject == "_default" {
            Subject::Default
        } else {
            Subject::Registry(subject.parse().unwrap())
        },
        cache: "http://127.0.0.1:5000".parse().unwrap(),
        offline,
        ca: None,
        client: None,
        dial_timeout: Duration::from_secs(2),
        containerd: ContainerdVersion::parse("v2.1.4"),
    }
}

#[test]
fn a_registry_is_asked_through_the_cache_and_then_itself() {
    let text = file("index.docker.io", false).text();
    let expected = format!(
        r#"{MARK}
server = "https://registry-1.docker.io"

[host."http://127.0.0.1:5000/v2/docker.io"]
  capabilities = ["pull", "resolve"]
  override_path = true
  dial_timeout = "2000ms"
"#
    );
    assert_eq!(text, expected);
    assert_eq!(file("docker.io", false).subject.path(), "docker.io/hosts.toml");
    assert_eq!(file("registry.example:5000", false).subject.path(), "registry.example:5000/hosts.toml");
}

#[test]
fn offline_nodes_ask_the_cache_alone() {
    let expected = format!(
        r#"{MARK}
server = "http://127.0.0.1:5000/v2/registry.example"
capabilities = ["pull", "resolve"]
override_path = true
dial_timeout = "2000ms"

[host]
"#
    );
    assert_eq!(file("registry.example", true).text(), expected);
}

#[test]
fn the_default_names_no_registry_since_containerd_adds_it() {
    let expected = format!(
        r#"{MARK}

[host."http://127.0.0.1:5000"]
  capabilities = ["pull", "resolve"]
  dial_timeout = "2000ms"
"#
    );
    assert_eq!(file("_default", false).text(), expected);
    assert_eq!(Subject::Default.path(), "_default/hosts.toml");
}

#[test]
fn certificates_are_named_and_old_versions_get_no_key_that_they_do_not_know() {
    let text = HostsToml {
        cache: "https://cache.example:5443/ignored".parse().unwrap(),
        ca: Some("/etc/bailey/ca \"1\".pem".to_owned()),
        client: Some(("/etc/bailey/node.pem".to_owned(), "/etc/bailey/node.key".to_owned())),
        containerd: ContainerdVersion::parse("1.7.27"),
        ..file("registry.example", false)
    }
    .text();
    assert!(text.contains("[host.\"https://cache.example:5443/v2/registry.example\"]"), "{text}");
    assert!(text.contains(r#"ca = "/etc/bailey/ca \"1\".pem""#), "{text}");
    assert!(text.contains(r#"client = [["/etc/bailey/node.pem", "/etc/bailey/node.key"]]"#), "{text}");
    assert!(!text.contains("dial_timeout"));
    assert_eq!(check(&text), []);
    let unknown = HostsToml { containerd: None, ..file("_default", true) };
    assert!(!unknown.text().contains("dial_timeout"));
}

#[test]
fn versions_are_read_as_containerd_prints_them() {
    let of = |text| ContainerdVersion::parse(text).map(|version| (version.major, version.minor));
    assert_eq!(of("v2.1.4"), Some((2, 1)));
    assert_eq!(of("1.7.27~ds1"), Some((1, 7)));
    assert_eq!(of("2.10.0-rc.1"), Some((2, 10)));
    for text in ["", "v", "2", "two.one"] {
        assert_eq!(of(text), None, "{text}");
    }
    let knows = |text| ContainerdVersion::parse(text).unwrap().knows_dial_timeout();
    assert!(knows("2.1.0") && knows("3.0.0") && !knows("2.0.9") && !knows("1.7.30"));
}

#[test]
fn a_file_without_the_mark_is_not_ours() {
    assert!(is_ours(&file("docker.io", false).text()));
    assert!(is_ours(&format!("{MARK}\r\nserver = \"x\"")));
    for text in ["", "server = \"https://registry.example\"\n", &format!("\n{MARK}\n")] {
        assert!(!is_ours(text));
    }
}

#[test]
fn what_containerd_would_ignore_is_found() {
    let cases = [
        ("server = 5", "server"),
        ("server = \"registry.example\"", "server"),
        ("", "file"),
        ("server = \"https://a.example\"\n[host.x", "file"),
        (
            "[host.\"http://a.example\"]\ncapabilities = [\"pull\", \"referrers\"]",
            "host.\"http://a.example\".capabilities",
        ),
        ("[host.\"http://a.example\"]\ncapabilities = \"pull\"", "host.\"http://a.example\".capabilities"),
        ("[host.\"http://a.example\"]\nskip_verify = true", "host.\"http://a.example\""),
        ("[host.\"a.example\"]\ncapabilities = [\"pull\"]", "host.\"a.example\""),
        (
            "[host.\"http://a.example\"]\ncapabilities = [\"pull\"]\ndial_timeout = 2",
            "host.\"http://a.example\".dial_timeout",
        ),
        (
            "[host.\"http://a.example\"]\ncapabilities = [\"pull\"]\ndial_timeout = \"2\"",
            "host.\"http://a.example\".dial_timeout",
        ),
        ("[host.\"http://a.example\"]\ncapabilities = [\"pull\"]\nca = 5", "host.\"http://a.example\".ca"),
        ("server = \"https://a.example\"\noverride_path = \"yes\"", "override_path"),
        ("server = \"https://a.example\"\nmirror = true", "mirror"),
        ("server = \"https://a.example\"\nclient = [[\"one\"]]", "client"),
        ("server = \"https://a.example\"\nclient = 5", "client"),
        ("host = 5", "host"),
        ("server = \"https://a.example\"", "file"),
    ];
    for (text, field) in cases {
        let problems = check(text);
        assert!(problems.iter().any(|problem| problem.field == field), "{text}: {problems:?}");
    }
    assert!(check(&"#".repeat(70_000))[0].what.contains("larger"));
    for text in ["1s", "1m30s", "500ms", "1.5h"] {
        let text = format!("server = \"https://a.example\"\ndial_timeout = \"{text}\"\n[host]");
        assert_eq!(check(&text), []);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_what_containerd_takes(
        registry in "[a-z0-9]{1,8}\\.example(:[1-9][0-9]{0,3})?", offline in any::<bool>(), version in prop::option::of(0u32..5), ca in prop::option::of("\\PC{1,20}|[\"\\\\\t\n]{1,4}"),
    ) {
        let subject = Subject::Registry(registry.parse().unwrap());
        let containerd = version.map(|minor| ContainerdVersion { major: 2, minor });
        let text = HostsToml { subject, containerd, ca: ca.clone(), ..file("_default", offline) }.text();
        prop_assert_eq!(check(&text), []);
        let table: toml::Table = text.parse().unwrap();
        let host = if offline { &table } else { table["host"].as_table().unwrap().iter().next().unwrap().1.as_table().unwrap() };
        prop_assert_eq!(host.get("ca").and_then(|ca| ca.as_str()), ca.as_deref());
    }

    #[test]
    fn no_file_makes_the_check_panic(text in "\\PC{0,80}|(server|host|ca|client)( = |\\.\"|\n)[a-z\"\\[\\]= ]{0,20}") {
        let _any = check(&text);
    }
}
