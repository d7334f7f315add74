use std::io::{self, Read};

use serde_json::{Value, json};

use crate::Snapshot;
use crate::load::Loader;
use crate::load::tests::{gaps, lines, load};

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

fn bare(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

const BOTH: [&str; 2] = ["node a false", "node b false"];

#[test]
fn objects_are_found_in_every_arrangement() {
    let (a, b) = (node("a"), node("b"));
    for text in [
        format!("{a}{b}"),
        format!("{a}\n{b}\n"),
        format!(" {a}\r\n\r\n{b} "),
        format!("[{a},{b}]"),
        format!("[ ]{a} [{b}]"),
        format!(r#"{{"kind":"List","apiVersion":"v1","items":[{a},{b}]}}"#),
        format!(
            r#"{{"apiVersion":"v1","items":[{a},{b}],"kind":"List","metadata":{{"resourceVersion":""}}}}"#
        ),
        format!(r#"{{"items":[{a} , {b}]}}"#),
        format!(r#"{{"items":[{{"kind":"List","apiVersion":"v1","items":[{a}]}},{b}]}}"#),
    ] {
        let snapshot = load("f.json", &text);
        assert_eq!(lines(&snapshot), BOTH, "{text}");
        assert_eq!(gaps(&snapshot), [""; 0], "{text}");
    }
}

#[test]
fn items_of_a_typed_list_need_no_kind_of_their_own() {
    let (a, b) = (bare("a"), bare("b"));
    for text in [
        format!(
            r#"{{"kind":"NodeList","apiVersion":"v1","metadata":{{"resourceVersion":"1"}},"items":[{a},{b}]}}"#
        ),
        format!(r#"{{"apiVersion":"v1","items":[{a},{b}],"kind":"NodeList","metadata":{{}}}}"#),
        format!(r#"{{"items":[{a},{b}],"apiVersion":"v1","kind":"NodeList"}}"#),
    ] {
        let snapshot = load("f.json", &text);
        assert_eq!(lines(&snapshot), BOTH, "{text}");
        assert_eq!(gaps(&snapshot), [""; 0], "{text}");
        assert_eq!(snapshot.clusters[0].listed, ["nodes"], "{text}");
    }
}

#[test]
fn items_of_no_kind_are_known_by_the_name_of_their_file_or_told() {
    let text = format!("[{},{}]", bare("a"), bare("b"));
    assert_eq!(lines(&load("dump/nodes.json", &text)), BOTH);
    let snapshot = load("dump.json", format!("\n{text}"));
    assert!(lines(&snapshot).is_empty());
    let gaps = gaps(&snapshot);
    assert_eq!(gaps.len(), 2);
    assert!(
        gaps[0].starts_with("an object in `dump.json`, line 2, byte 2: it does not say its `kind`"),
        "{gaps:?}"
    );
    assert!(gaps[0].contains("such as `secrets.json`"), "{gaps:?}");
}

#[test]
fn an_empty_typed_list_is_a_list() {
    for items in ["[]", "null", " [ ] "] {
        let text = format!(r#"{{"kind":"SecretList","apiVersion":"v1","metadata":{{}},"items":{items}}}"#);
        let snapshot = load("f.json", &text);
        assert_eq!(snapshot.clusters[0].listed, ["secrets"], "{items}");
        assert_eq!(gaps(&snapshot), [""; 0]);
    }
    let nothing = load("f.json", r#"{"apiVersion":"v1","kind":"List","items":[]}"#);
    assert!(nothing.clusters[0].listed.is_empty());
    assert_eq!(gaps(&nothing), [""; 0]);
}

#[test]
fn a_kind_whose_name_ends_like_a_lists_is_no_list() {
    let object = json!({"apiVersion": "bailey.dev/v1", "kind": "AllowList", "metadata": {"name": "l"}, "spec": {"items": [1]}});
    let list = format!(r#"{{"apiVersion":"v1","items":[{object}],"kind":"List"}}"#);
    for text in [object.to_string(), list] {
        let snapshot = load("f.json", text);
        assert_eq!(gaps(&snapshot), [""; 0]);
        assert_eq!(snapshot.clusters[0].objects[0].body, object);
    }
}

#[test]
fn a_table_of_secrets_has_their_types() {
    let row = |name: &str, kind: &str| {
        json!({"cells": [name, kind, 3, "1d"], "object": {"kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1", "metadata": {"name": name, "namespace": "a",
            "annotations": {"kubernetes.io/service-account.name": "s",
                "kubectl.kubernetes.io/last-applied-configuration": "MARKER"}}}})
    };
    let columns =
        json!([{"name": "Name", "type": "string"}, {"name": "Type"}, {"name": "Data"}, {"name": "Age"}]);
    let rows = json!([row("x", "Opaque"), row("y", "kubernetes.io/tls")]);
    for text in [
        format!(
            r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{{}},"columnDefinitions":{columns},"rows":{rows}}}"#
        ),
        format!(
            r#"{{"apiVersion":"meta.k8s.io/v1","columnDefinitions":{columns},"kind":"Table","metadata":{{}},"rows":{rows}}}"#
        ),
    ] {
        let snapshot = load("any.json", &text);
        assert_eq!(lines(&snapshot), ["secret a/x Opaque s - -", "secret a/y kubernetes.io/tls s - -"]);
        assert_eq!(gaps(&snapshot), [""; 0]);
        assert_eq!(snapshot.clusters[0].listed, ["secrets"]);
        let yaml = serde_saphyr::to_string(&serde_json::from_str::<Value>(&text).unwrap()).unwrap();
        assert_eq!(lines(&load("any.yaml", yaml)), lines(&snapshot));
    }
    let other = format!(
        r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{{"name":"Name"}}],"rows":[{}]}}"#,
        row("x", "y")
    );
    let snapshot = load("any.json", &other);
    assert!(lines(&snapshot).is_empty());
    assert!(gaps(&snapshot)[0].contains("too little of any kind but Secrets"), "{:?}", gaps(&snapshot));
}

#[test]
fn metadata_alone_is_enough_for_some_kinds() {
    let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": [
        {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"name": "x", "namespace": "a"}}]})
    .to_string();
    let snapshot = load("secrets.json", &list);
    assert_eq!(lines(&snapshot), ["secret a/x  - - -"]);
    assert_eq!(snapshot.clusters[0].listed, ["secrets"]);
    assert_eq!(snapshot.gaps[0].what, "the type of 1 Secrets in `secrets.json`");
    assert_eq!(lines(&load("namespaces.json", &list)), ["namespace x "]);
    assert!(gaps(&load("pods.json", &list))[0].contains("metadata alone says too little"));
    assert!(gaps(&load("x.json", &list))[0].contains("does not say its `kind`"));
}

#[test]
fn one_bad_item_costs_itself() {
    let (a, b) = (node("a"), node("b"));
    for bad in [
        r#"{"kind":"Node","apiVersion":"v1",}"#,
        r#"{"a":[}}"#,
        "7",
        "null",
        "\"x\"",
        "[]",
        r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"x","labels":[]}}"#,
    ] {
        let text = format!("{{\"apiVersion\":\"v1\",\"items\":[\n{a},\n{bad},\n{b}],\"kind\":\"List\"}}");
        let snapshot = load("f.json", &text);
        assert_eq!(lines(&snapshot), BOTH, "{bad}");
        let gaps = gaps(&snapshot);
        assert!(gaps.len() == 1 && gaps[0].contains("`f.json`, line 3, byte "), "{bad}: {gaps:?}");
    }
}

#[test]
fn what_is_cut_off_or_broken_costs_the_rest_only() {
    let (a, b) = (node("a"), node("b"));
    let list = format!("{{\"apiVersion\":\"v1\",\"items\":[{a},\n{b}");
    for (tail, why) in [
        ("", "cut off"),
        (",{\"kind\":", "cut off"),
        ("]", "cut off"),
        ("],\"kind\":\"Li", "cut off"),
        (" x", "an item should end here"),
        ("] x", "a field should end here"),
        ("],7", "the name of a field should be here"),
        ("],\"kind\" 7", "a colon should be here"),
        ("]} trailing", "an object should start here"),
    ] {
        let snapshot = load("f.json", format!("{list}{tail}"));
        assert_eq!(lines(&snapshot), BOTH, "{tail}");
        let gaps = gaps(&snapshot);
        assert!(gaps.len() == 1 && gaps[0].contains(why), "{tail}: {gaps:?}");
        let whole = tail.starts_with("]}");
        assert_eq!(snapshot.clusters[0].listed.is_empty(), !whole, "{tail}");
    }
}

/// Repeats one byte.
fn many(byte: u8, count: u64) -> impl Read {
    io::repeat(byte).take(count)
}

fn load_reader(reader: impl Read) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None);
    loader.source("f.json");
    loader.load(reader).unwrap();
    loader.finish();
    snapshot
}

#[test]
fn an_object_that_is_too_large_costs_itself() {
    let start = format!(r#"{{"kind":"List","items":[{},{{"kind":"Node","x":""#, node("a"));
    let end = format!(r#""}},{}]}}"#, node("b"));
    let list = start.as_bytes().chain(many(b'x', 4 << 20)).chain(end.as_bytes());
    let snapshot = load_reader(list);
    assert_eq!(lines(&snapshot), BOTH);
    assert!(gaps(&snapshot)[0].contains("it has more than 2 MiB and is left out"), "{:?}", gaps(&snapshot));

    let start = format!(r#"{}{{"kind":"Pod","x":""#, node("a"));
    let end = format!(r#""}}{}"#, node("b"));
    let snapshot = load_reader(start.as_bytes().chain(many(b'{', 4 << 20)).chain(end.as_bytes()));
    assert_eq!(lines(&snapshot), BOTH);
    assert!(gaps(&snapshot)[0].starts_with("Pod in `f.json`, line 1, byte "), "{:?}", gaps(&snapshot));
}

#[test]
fn one_endless_line_is_survived() {
    for start in ["{\"", "{\"kind\":\"", "{\"kind\":", "{", "[", "{\"items\":["] {
        let snapshot = load_reader(start.as_bytes().chain(many(b'x', 4 << 20)));
        assert_eq!(gaps(&snapshot).len(), 1, "{start}");
    }
    assert_eq!(gaps(&load_reader((&b"{\"a\":"[..]).chain(many(b'[', 4 << 20)))).len(), 1);
}

#[test]
fn origins_count_lines_from_one() {
    let text = serde_json::to_string_pretty(&json!({"kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}},
    ]}))
    .unwrap();
    let snapshot = load("f.json", &text);
    let at = |needle: &str| text.lines().position(|line| line.contains(needle)).unwrap() as u32;
    let found: Vec<_> = snapshot.clusters[0].namespaces.iter().map(|fact| fact.origin.line).collect();
    // The brace of an item is three lines above its name: apiVersion, kind, metadata.
    assert_eq!(found, [at("\"a\"") + 1 - 4, at("\"b\"") + 1 - 4]);
    assert_eq!(snapshot.sources, ["f.json"]);
}

#[test]
fn a_list_from_which_an_item_is_lost_is_not_whole() {
    let bad = load("f.json", format!(r#"{{"kind":"NodeList","apiVersion":"v1","items":[{},7]}}"#, bare("a")));
    assert_eq!(lines(&bad), ["node a false"]);
    assert!(bad.clusters[0].listed.is_empty());
}

#[test]
fn a_list_that_broke_off_is_not_made_whole_by_another() {
    let event = json!({"apiVersion": "v1", "kind": "Event"});
    for broken in [format!("[{}", node("a")), format!(r#"{{"kind":"List","items":[{}"#, node("a"))] {
        let mut snapshot = Snapshot::default();
        let mut loader = Loader::new(&mut snapshot, None);
        for text in [broken, format!(r#"{{"kind":"List","items":[{event}]}}"#)] {
            loader.source("f.json");
            loader.load(text.as_bytes()).unwrap();
        }
        loader.finish();
        assert_eq!(snapshot.clusters[0].listed, ["events"]);
    }
}
