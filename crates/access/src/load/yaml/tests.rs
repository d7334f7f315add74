use std::io::{self, Read};

use crate::Snapshot;
use crate::load::Loader;
use crate::load::tests::{gaps, lines, load};

const BOTH: [&str; 2] = ["node a false", "node b false"];
const A: &str = "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n";
const B: &str = "apiVersion: v1\nkind: Node\nmetadata:\n  name: b\n";

fn item(text: &str, margin: &str) -> String {
    let body: String = text.lines().map(|line| format!("{margin}  {line}\n")).collect();
    format!("{margin}-{}", &body[margin.len() + 1..])
}

#[test]
fn documents_are_told_apart() {
    for text in [
        format!("{A}---\n{B}"),
        format!("---\n{A}...\n---\n{B}...\n"),
        format!("# a\n---\n# b\n---\n{A}--- # c\n{B}---\n"),
        format!("%YAML 1.2\n---\n{A}---\n{B}"),
        format!("\u{feff}{A}---\r\n{}", B.replace('\n', "\r\n")),
        format!("--- {{apiVersion: v1, kind: Node, metadata: {{name: a}}}}\n---\n{}", B.trim_end()),
        format!("{A}---\nnull\n---\n{B}").replace("null\n", ""),
    ] {
        let snapshot = load("f.yaml", &text);
        assert_eq!(lines(&snapshot), BOTH, "{text}");
        assert_eq!(gaps(&snapshot), [""; 0], "{text}");
    }
}

#[test]
fn items_of_a_list_are_told_apart_at_any_margin() {
    for margin in ["", "  ", "    "] {
        let items = item(A, margin) + &item(B, margin);
        for text in [
            format!("apiVersion: v1\nkind: List\nitems:\n{items}"),
            format!("apiVersion: v1\nitems: # all\n{items}kind: List\nmetadata:\n  resourceVersion: \"\"\n"),
            format!("items:\n\n# c\n{items}\n"),
            format!("---\napiVersion: v1\nitems:\n{items}kind: List\n---\n"),
        ] {
            let snapshot = load("f.yaml", &text);
            assert_eq!(lines(&snapshot), BOTH, "{text}");
            assert_eq!(gaps(&snapshot), [""; 0], "{text}");
            assert_eq!(snapshot.clusters[0].listed, ["nodes"], "{text}");
        }
    }
}

#[test]
fn a_list_in_another_style_is_read_as_a_whole() {
    let flow = "{kind: Node, apiVersion: v1, metadata: {name: a}}";
    let other = "{kind: Node, apiVersion: v1, metadata: {name: b}}";
    for text in [
        format!("kind: List\nitems: [{flow}, {other}]\n"),
        format!("{{kind: List, items: [{flow}, {other}]}}\n"),
        format!("kind: List\nitems:\n- {flow}\n- {other}\n"),
        format!(
            "kind: List\nitems:\n-\n  apiVersion: v1\n  kind: Node\n  metadata: {{name: a}}\n- {other}\n"
        ),
        format!(
            "kind: List\nitems:\n-   kind: Node\n    apiVersion: v1\n    metadata: {{name: a}}\n- {other}\n"
        ),
    ] {
        let snapshot = load("f.yaml", &text);
        assert_eq!(lines(&snapshot), BOTH, "{text}");
        assert_eq!(gaps(&snapshot), [""; 0], "{text}");
        assert_eq!(snapshot.clusters[0].listed, ["nodes"], "{text}");
    }
}

#[test]
fn a_typed_list_tells_the_kind_of_its_items_before_or_behind_them() {
    let items = "items:\n- metadata:\n    name: a\n- metadata:\n    name: b\n";
    for text in [
        format!("apiVersion: v1\nkind: NodeList\n{items}"),
        format!("{items}kind: NodeList\napiVersion: v1\n"),
    ] {
        let snapshot = load("f.yaml", &text);
        assert_eq!(lines(&snapshot), BOTH, "{text}");
        assert_eq!(snapshot.clusters[0].listed, ["nodes"], "{text}");
    }
    let empty = load("f.yaml", "apiVersion: v1\nkind: SecretList\nitems: []\n");
    assert_eq!(empty.clusters[0].listed, ["secrets"]);
}

#[test]
fn text_inside_an_item_starts_no_other() {
    let text = "kind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: c\n    namespace: a\n  data:\n    \
                k: |\n     - apiVersion: v1\n     --- \n\n     kind: Node\n# comment\n    l: \"- x\\\n      - y\"\n  list:\n  - apiVersion: \
                v1\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: a\n";
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None);
    loader.source("f.yaml");
    loader.load(text.as_bytes()).unwrap();
    let counts: Vec<_> = loader.counts().into_iter().map(|((_, kind), count)| (kind, count)).collect();
    assert_eq!(counts, [("ConfigMap".to_owned(), 1), ("Node".to_owned(), 1)]);
    loader.finish();
    assert_eq!(gaps(&snapshot), [""; 0]);
}

#[test]
fn an_item_that_leans_on_another_is_read_with_its_document() {
    let text = "kind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: &m\n    name: a\n    labels: &l\n      \
                node-role.kubernetes.io/control-plane: ''\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: b\n    \
                labels: *l\n- apiVersion: v1\n  kind: Node\n  metadata:\n    <<: *m\n    name: c\n";
    let snapshot = load("f.yaml", text);
    assert_eq!(gaps(&snapshot), [""; 0]);
    assert_eq!(lines(&snapshot), ["node a true", "node b true", "node c true"]);
    let missing = load("f.yaml", text.replace("&l", "").replace("&m", ""));
    assert_eq!(lines(&missing), ["node a true"]);
    assert_eq!(gaps(&missing).len(), 2);
    assert!(gaps(&missing)[0].contains("write it without anchors"), "{:?}", gaps(&missing));
}

#[test]
fn a_star_that_is_no_alias_needs_no_document() {
    let text = "kind: List\nitems:\n- apiVersion: rbac.authorization.k8s.io/v1\n  kind: ClusterRole\n  metadata:\n    name: r\n  \
                rules:\n  - verbs: ['*']\n    apiGroups: [\"*\"]\n    resources:\n    - '*'\n    - \"*/scale\"\n";
    let snapshot = load("f.yaml", text);
    assert_eq!(gaps(&snapshot), [""; 0]);
    assert_eq!(lines(&snapshot), ["role -/r *|*|*,*/scale||"]);
}

#[test]
fn one_bad_document_or_item_costs_itself_and_is_placed() {
    let bad = "apiVersion: v1\nkind: Node\nmetadata: [hunter2\n";
    let snapshot = load("f.yaml", format!("{A}---\n{bad}---\n{B}"));
    assert_eq!(lines(&snapshot), BOTH);
    let told = gaps(&snapshot);
    assert!(told.len() == 1 && told[0].starts_with("Node in `f.yaml`, line "), "{told:?}");
    assert!(told[0].contains("it is not valid YAML") && !told[0].contains("hunter2"), "{told:?}");
    let items = item(A, "") + &item(bad, "") + &item(B, "");
    let snapshot = load("f.yaml", format!("kind: List\nitems:\n{items}"));
    assert_eq!(lines(&snapshot), BOTH);
    assert_eq!(gaps(&snapshot).len(), 1, "{:?}", gaps(&snapshot));
    let wrong = A.replace("metadata:\n  name: a\n", "metadata:\n  name: x\n  labels: 7\n");
    let snapshot = load("f.yaml", format!("{A}---\n{wrong}---\n{B}"));
    assert_eq!(lines(&snapshot), BOTH);
    assert!(gaps(&snapshot)[0].starts_with("Node in `f.yaml`, line 10, byte "), "{:?}", gaps(&snapshot));
}

#[test]
fn bytes_that_are_no_text_cost_their_document() {
    let mut bytes = format!("{A}---\n").into_bytes();
    bytes.extend(b"kind: Node\nmetadata: {name: \xff}\n---\n");
    bytes.extend(B.as_bytes());
    let snapshot = load("f.yaml", bytes);
    assert_eq!(lines(&snapshot), BOTH);
    assert!(gaps(&snapshot)[0].contains("not in UTF-8"), "{:?}", gaps(&snapshot));
}

#[test]
fn a_document_that_is_no_object_is_a_gap() {
    for text in ["just text\n", "- a\n- b\n", "a: 1\n"] {
        let told = gaps(&load("f.yaml", text));
        assert!(told.len() == 1 && told[0].contains("does not say its `kind`"), "{text}: {told:?}");
    }
    assert_eq!(gaps(&load("f.yaml", "# nothing\n---\n")), [""; 0]);
}

#[test]
fn origins_are_where_items_and_documents_start() {
    let namespace = |name: &str| format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n");
    let items = item(&namespace("a"), "") + &item(&namespace("b"), "");
    let text = format!("# c\napiVersion: v1\nkind: List\nitems:\n{items}---\n\n{}", namespace("c"));
    let snapshot = load("f.yaml", &text);
    let found: Vec<_> = snapshot.clusters[0].namespaces.iter().map(|fact| fact.origin.line).collect();
    assert_eq!(found, [5, 9, 15]);
}

#[test]
fn what_is_too_large_costs_itself() {
    let many = |count: u64| io::repeat(b'x').take(count);
    let start = format!("{A}---\nkind: Node\nx: ");
    let end = format!("\n---\n{B}");
    let large = start.as_bytes().chain(many(4 << 20)).chain(end.as_bytes());
    let item_start = format!("kind: List\nitems:\n{}- kind: Node\n  x: ", item(A, ""));
    let item_end = format!("\n{}", item(B, ""));
    let item = item_start.as_bytes().chain(many(4 << 20)).chain(item_end.as_bytes());
    let readers: [Box<dyn Read + '_>; 2] = [Box::new(large), Box::new(item)];
    for reader in readers {
        let mut snapshot = Snapshot::default();
        let mut loader = Loader::new(&mut snapshot, None);
        loader.source("f.yaml");
        loader.load(reader).unwrap();
        loader.finish();
        assert_eq!(lines(&snapshot), BOTH);
        assert!(gaps(&snapshot)[0].contains("more than 2 MiB"), "{:?}", gaps(&snapshot));
    }
}

#[test]
fn what_is_wrong_around_the_items_is_told_and_the_items_stay() {
    let text = format!("kind: List\nitems:\n{}metadata: [\n", item(A, "") + &item(B, ""));
    let snapshot = load("f.yaml", text);
    assert_eq!(lines(&snapshot), BOTH);
    assert!(gaps(&snapshot)[0].starts_with("a list in `f.yaml`, line 1, byte 0: "), "{:?}", gaps(&snapshot));
    assert!(snapshot.clusters[0].listed.is_empty());
}
