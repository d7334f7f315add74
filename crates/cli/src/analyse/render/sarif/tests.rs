use super::*;
use crate::analyse::samples::{self, step};

#[test]
fn a_place_is_a_uri_reference_and_a_line() {
    for (at, uri, line) in [
        ("dump/roles.json:40", "dump/roles.json", 40),
        ("./rbac/a b#1.yaml:7", "rbac/a%20b%231.yaml", 7),
        ("/tmp/dump/roles.json:1", "file:///tmp/dump/roles.json", 1),
        ("mc.tar.gz:dump/roles.json:3", "mc.tar.gz%3Adump/roles.json", 3),
    ] {
        let place = physical(at).unwrap();
        assert_eq!(
            (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
            (&json!(uri), &json!(line))
        );
    }
    assert_eq!((physical("dump/roles.json"), physical("dump:0"), physical("dump:x")), (None, None, None));
}

#[test]
fn a_result_is_where_its_way_first_has_a_place_and_always_has_a_location() {
    let path = vec![
        step("exec", "user:jane", "a pod", "Role a/b", "", None),
        step("inside-pod", "a pod", "a Secret", "Pod a/b", "", Some("pods.json:3")),
    ];
    let finding = samples::finding("x", Severity::High, "user:jane", path, &[]);
    assert_eq!(location(&finding)["physicalLocation"]["artifactLocation"]["uri"], "pods.json");
    let nowhere = location(&samples::finding("x", Severity::High, "user:jane", Vec::new(), &[]));
    assert_eq!(nowhere["logicalLocations"][0]["fullyQualifiedName"], "user:jane");
}

#[test]
fn rules_have_what_code_scanning_shows() {
    let rule = rule("read-secret");
    assert_eq!(
        (&rule["defaultConfiguration"]["level"], &rule["properties"]["security-severity"]),
        (&json!("error"), &json!("8.0"))
    );
    assert!(rule["helpUri"].as_str().unwrap().starts_with("https://"), "{rule}");
    assert_eq!(super::rule("not-in-the-catalogue")["shortDescription"]["text"], "not-in-the-catalogue");
}
