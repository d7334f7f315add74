//! Files that are cut off, broken, packed or no text.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use serde_json::json;

use super::{audit, good, read};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn json_that_is_cut_off_anywhere_is_told_with_file_line_and_byte() {
    let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"namespace": "a", "name": name}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [secret("s"), secret("t")]});
    let text = serde_json::to_string_pretty(&list).unwrap();
    for end in 1..text.len() {
        let found = read(&text.as_bytes()[..end]);
        assert!(!found.told.is_empty(), "{}", &text[..end]);
        let told = &found.told[0];
        assert!(told.contains("in `dump.yaml`"), "{told}");
        let audit = audit(found.snapshot);
        assert!(!audit.complete && !audit.gaps.is_empty());
    }
    assert_eq!(read(text.as_bytes()).told, [""; 0]);
}

#[test]
fn what_is_broken_says_where_and_costs_only_itself() {
    let broken = [
        ("an unclosed bracket", "{apiVersion: v1, kind: Secret, metadata: {"),
        ("a tab", "apiVersion: v1\nkind: Secret\nmetadata:\n\tname: x"),
        (
            "an unknown alias",
            "{apiVersion: v1, kind: Role, metadata: {namespace: a, name: r}, rules: *nothing}",
        ),
        ("a scalar", "just words"),
        ("a list of numbers", "[1, 2, 3]"),
        ("no kind", "{apiVersion: v1, metadata: {name: x}}"),
        ("no name", "{apiVersion: v1, kind: Namespace, metadata: {}}"),
        ("metadata that is a list", "{apiVersion: v1, kind: Secret, metadata: [a, b]}"),
        (
            "subjects that are a map",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: a, name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: {kind: User}}",
        ),
        (
            "a roleRef of a kind that is none",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: a, name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Roll, name: r}, subjects: []}",
        ),
        ("items that are words", "{apiVersion: v1, kind: List, items: [a, b]}"),
    ];
    for (what, document) in broken {
        let text = format!("{}\n---\n{document}\n---\n{}", good(), good().replace("good", "better"));
        let found = read(text.as_bytes());
        assert!(!found.told.is_empty(), "{what} is passed over");
        assert!(found.told.iter().all(|told| told.contains("`dump.yaml`")), "{what}: {:?}", found.told);
        let secrets = found.snapshot.clusters[0].secrets.len();
        assert!(secrets >= 2, "{what}: what is before or behind it is lost: {:?}", found.told);
        assert!(!audit(found.snapshot).complete, "{what}");
    }
}

#[test]
fn a_place_is_the_line_of_the_fault() {
    let text = format!("{}\n---\n{{apiVersion: v1, kind: Secret, metadata: [a]}}\n", good());
    let line = text.lines().position(|line| line.contains("[a]")).unwrap() + 1;
    let told = read(text.as_bytes()).told;
    assert!(told.len() == 1 && told[0].contains(&format!("line {line}")), "{told:?}, not line {line}");
}

#[test]
fn bytes_that_are_no_utf8_are_told() {
    for bytes in [
        b"apiVersion: v1\nkind: Secret\nmetadata: {namespace: a, name: \xff\xfe}\n".to_vec(),
        b"{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"namespace\": \"a\", \"name\": \"\xc3\x28\"}}".to_vec(),
        b"\xff\xfea\0p\0i\0".to_vec(),
        b"\x7fELF\x02\x01\x01\0\0\0".to_vec(),
        b"\0\0\0\0\0\0".to_vec(),
    ] {
        let found = read(&bytes[..]);
        assert_eq!(found.told.len(), 1, "{:?}", found.told);
        assert!(found.told[0].contains("dump.yaml"), "{:?}", found.told);
        assert!(!audit(found.snapshot).complete);
    }
}

#[test]
fn a_file_without_an_object_is_told() {
    for text in ["", " ", "\n\n", "\u{feff}"] {
        let found = read(text.as_bytes());
        assert_eq!(found.told.len(), 1, "{text:?}: {:?}", found.told);
        assert!(found.told[0].contains("it is empty"), "{:?}", found.told);
        assert!(!audit(found.snapshot).complete);
    }
}

#[test]
fn gzip_is_read_once_and_a_second_time_is_told() {
    let once = gzip(good().as_bytes());
    assert_eq!(read(&once[..]).told, [""; 0]);
    let twice = gzip(&once);
    for packed in [&twice, &gzip(&twice)] {
        let found = read(&packed[..]);
        assert_eq!(found.told.len(), 1);
        assert!(found.told[0].contains("packed twice"), "{:?}", found.told);
        assert!(!audit(found.snapshot).complete);
    }
    let cut = read(&once[..once.len() / 2]);
    assert!(cut.told.iter().any(|told| told.contains("it cannot be inflated")), "{:?}", cut.told);
}
