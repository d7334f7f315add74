mod corpus;

use std::io::{self, Read};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{LoadError, Loader};
use crate::{Snapshot, SubjectKind, Symbol};

/// Loads one text under a name, as a file would be.
pub(super) fn load(name: &str, text: impl AsRef<[u8]>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    load_into(&mut snapshot, &[(name, text.as_ref())]);
    snapshot
}

pub(super) fn load_into(snapshot: &mut Snapshot, files: &[(&str, &[u8])]) {
    let mut loader = Loader::new(snapshot, None);
    for (name, text) in files {
        loader.source(name);
        loader.load(*text).unwrap();
    }
    loader.finish();
}

/// Loads one object; it must leave no gap.
pub(super) fn load_one(object: &Value) -> Snapshot {
    let snapshot = load("f.json", object.to_string());
    assert_eq!(snapshot.gaps, [], "{object}");
    snapshot
}

/// Gaps as `WHAT: WHY`.
pub(super) fn gaps(snapshot: &Snapshot) -> Vec<String> {
    snapshot.gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.why)).collect()
}

/// All facts of the one cluster, each as a line.
pub(super) fn lines(snapshot: &Snapshot) -> Vec<String> {
    let Some(cluster) = snapshot.clusters.first() else { return Vec::new() };
    let mut lines = Vec::new();
    let name = |symbol: Symbol| snapshot.symbols.name(symbol).to_owned();
    let names = |symbols: &[Symbol]| symbols.iter().map(|s| name(*s)).collect::<Vec<_>>().join(",");
    let optional = |symbol: Option<Symbol>| symbol.map_or_else(|| "-".to_owned(), name);
    for fact in &cluster.namespaces {
        let labels: Vec<_> = fact.labels.iter().map(|(k, v)| format!("{}={}", name(*k), name(*v))).collect();
        lines.push(format!("namespace {} {}", name(fact.name), labels.join(",")));
    }
    for fact in &cluster.service_accounts {
        let cloud = optional(fact.cloud_identity);
        lines.push(format!(
            "account {}/{} [{}] {cloud}",
            name(fact.namespace),
            name(fact.name),
            names(&fact.secrets)
        ));
    }
    for fact in &cluster.roles {
        let rules: Vec<_> = fact
            .rules
            .iter()
            .map(|rule| {
                [
                    &rule.verbs,
                    &rule.api_groups,
                    &rule.resources,
                    &rule.resource_names,
                    &rule.non_resource_urls,
                ]
                .map(|symbols| names(symbols))
                .join("|")
            })
            .collect();
        lines.push(format!("role {}/{} {}", optional(fact.namespace), name(fact.name), rules.join(" ; ")));
    }
    for fact in &cluster.bindings {
        let subjects: Vec<_> = fact
            .subjects
            .iter()
            .map(|subject| match subject.kind {
                SubjectKind::User => format!("u:{}", name(subject.name)),
                SubjectKind::Group => format!("g:{}", name(subject.name)),
                SubjectKind::ServiceAccount => {
                    format!("sa:{}/{}", name(subject.namespace), name(subject.name))
                }
            })
            .collect();
        let kind = if fact.cluster_role { "ClusterRole" } else { "Role" };
        lines.push(format!(
            "binding {}/{} {kind} {} {}",
            optional(fact.namespace),
            name(fact.name),
            name(fact.role),
            subjects.join(",")
        ));
    }
    for fact in &cluster.secrets {
        let more = [fact.service_account, fact.cluster_name, fact.argocd_type].map(optional).join(" ");
        lines.push(format!("secret {}/{} {} {more}", name(fact.namespace), name(fact.name), name(fact.kind)));
    }
    for fact in &cluster.pods {
        lines.push(format!(
            "pod {}/{} {} {} [{}]{}{}",
            name(fact.namespace),
            name(fact.name),
            name(fact.service_account),
            optional(fact.node),
            names(&fact.secrets),
            if fact.privileged { " privileged" } else { "" },
            if fact.token { " token" } else { "" }
        ));
    }
    for fact in &cluster.nodes {
        lines.push(format!("node {} {}", name(fact.name), fact.control_plane));
    }
    for fact in &cluster.objects {
        let (namespace, object) = (name(fact.namespace), name(fact.name));
        lines.push(format!("object {} {} {namespace}/{object} {}", fact.api_version, fact.kind, fact.body));
    }
    lines
}

/// Gives a few bytes at a time.
pub(super) struct Drip<'a>(pub(super) &'a [u8], pub(super) usize);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (now, later) = self.0.split_at(self.1.min(self.0.len()).min(buffer.len()));
        self.0 = later;
        buffer[..now.len()].copy_from_slice(now);
        Ok(now.len())
    }
}

/// Something of every kind that has a fact of its own, and some that have not.
pub(super) fn everything() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"x": "y"}}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s", "namespace": "a"},
            "secrets": [{"name": "t"}], "automountServiceAccountToken": false}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "r", "namespace": "a"},
            "rules": [{"verbs": ["get", "\"\\*"], "apiGroups": [""], "resources": ["secrets"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "b", "namespace": "a"}, "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "s"}, {"kind": "Group", "name": "*"}]}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t", "namespace": "a"},
            "type": "Opaque", "data": {"k": "TUFSS0VS"}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "spec": {
            "serviceAccountName": "s", "volumes": [{"name": "v", "secret": {"secretName": "t"}}],
            "containers": [{"name": "c", "command": ["sh", "-c", "- a\n  kind: Secret\n{[\"}"]}]}}),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "a"}}),
        json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "g", "namespace": "a"}, "spec": {"url": "https://git.example.com/ü"}}),
    ]
}

#[test]
fn each_form_gives_the_same_facts() {
    let objects = everything();
    let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects});
    let expected = lines(&load("f", list.to_string()));
    assert_eq!(expected.len(), 8, "{expected:#?}");
    let indented = serde_json::to_string_pretty(&list).unwrap();
    let rows: String = objects.iter().map(|object| format!("{object}\n")).collect();
    let documents: String =
        objects.iter().map(|object| format!("---\n{}", serde_saphyr::to_string(object).unwrap())).collect();
    let yaml_list = serde_saphyr::to_string(&list).unwrap();
    for text in [indented, rows.clone(), rows.replace('\n', ""), documents, yaml_list] {
        let snapshot = load("f", &text);
        assert_eq!(gaps(&snapshot), [""; 0], "{text}");
        assert_eq!(lines(&snapshot), expected, "{text}");
    }
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None);
    loader.source("value");
    loader.object(&list, 0);
    loader.finish();
    assert_eq!(lines(&snapshot), expected);
}

#[test]
fn facts_do_not_depend_on_how_a_reader_gives_its_bytes() {
    let list = json!({"apiVersion": "v1", "items": everything(), "kind": "List"});
    for text in [list.to_string(), serde_saphyr::to_string(&list).unwrap()] {
        let expected = lines(&load("f", &text));
        for size in [1, 7, 64, 100] {
            let mut snapshot = Snapshot::default();
            let mut loader = Loader::new(&mut snapshot, None);
            loader.source("f");
            loader.load(Drip(text.as_bytes(), size)).unwrap();
            loader.finish();
            assert_eq!(lines(&snapshot), expected, "{size}");
        }
    }
}

#[test]
fn a_reader_that_fails_is_an_error_and_what_came_before_stays() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let text = everything().iter().map(|object| format!("{object}\n")).collect::<String>();
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None);
    loader.source("dump.json");
    let error: LoadError = loader.load(text.as_bytes().chain(Failing)).unwrap_err();
    loader.finish();
    assert_eq!(error.to_string(), "cannot read `dump.json` to its end");
    assert_eq!(lines(&snapshot).len(), 8);
}

#[test]
fn gaps_carry_the_name_of_the_cluster_and_are_bounded() {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, Some("mc1"));
    loader.source("f.json");
    loader.load("{\"kind\":\"Pod\",\"spec\":7}\n".repeat(1000).as_bytes()).unwrap();
    loader.finish();
    assert_eq!(snapshot.gaps.len(), 101);
    assert!(snapshot.gaps.iter().all(|gap| gap.cluster.as_deref() == Some("mc1")));
    assert_eq!(snapshot.gaps.last().unwrap().what, "900 more objects in `f.json`");
    assert_eq!(snapshot.clusters.iter().map(|cluster| &cluster.name).collect::<Vec<_>>(), ["mc1"]);
}

#[test]
fn what_is_read_twice_is_counted_twice_and_kept_once() {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None);
    for name in ["a.json", "b.json"] {
        loader.source(name);
        loader.load(everything()[0].to_string().as_bytes()).unwrap();
    }
    assert_eq!(loader.counts().into_values().collect::<Vec<_>>(), [2]);
    loader.finish();
    assert_eq!(lines(&snapshot), ["namespace a x=y"]);
    assert_eq!(snapshot.gaps, []);
}

fn survives(bytes: &[u8]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None);
    loader.source("any");
    loader.load(bytes).unwrap();
    loader.source("f.json");
    loader.load_json(bytes).unwrap();
    loader.source("secrets.yaml");
    loader.load_yaml(bytes).unwrap();
    loader.finish();
    snapshot
}

/// A dump in one of the forms, to be damaged.
fn dump() -> impl Strategy<Value = Vec<u8>> {
    let list = json!({"apiVersion": "v1", "items": everything(), "kind": "List"});
    let table = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "columnDefinitions": [{"name": "Name"}, {"name": "Type"}, {"name": "Data"}, {"name": "Age"}],
        "rows": [{"cells": ["t", "Opaque", 1, "1d"], "object": {"metadata": {"name": "t", "namespace": "a"}}}]});
    prop::sample::select(vec![
        list.to_string().into_bytes(),
        serde_json::to_string_pretty(&list).unwrap().into_bytes(),
        serde_saphyr::to_string(&list).unwrap().into_bytes(),
        table.to_string().into_bytes(),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        survives(&bytes);
    }

    #[test]
    fn no_text_of_the_two_languages_makes_it_panic(
        parts in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", "\"", "\\", ":", ",", "\n", "- ", "---\n", "items:\n", "  ", "kind: ", "List", "Pod",
            "\"kind\"", "\"items\"", "\"Pod\"", "\"metadata\"", "\"rows\"", "Table", "null", "&a ", "*a ", "|\n", "#",
            "\"apiVersion\"", "\"v1\"", "Secret", "data: ", "{\"a\":", "\u{feff}", "...\n", "%",
        ]), 0..200),
    ) {
        survives(parts.concat().as_bytes());
    }

    #[test]
    fn no_damage_makes_it_panic(
        mut bytes in dump(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..4),
    ) {
        for (at, byte, how) in damage {
            let at = at.index(bytes.len().max(1));
            match how {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] = byte,
                _ => bytes.insert(at.min(bytes.len()), byte),
            }
        }
        survives(&bytes);
    }

    #[test]
    fn a_dump_that_is_cut_off_has_a_gap(cut in any::<prop::sample::Index>()) {
        let list = json!({"apiVersion": "v1", "items": everything(), "kind": "List"}).to_string();
        let text = &list[..cut.index(list.len())];
        let snapshot = load("f.json", text);
        prop_assert!(!snapshot.gaps.is_empty(), "{}", text);
        prop_assert_eq!(snapshot.clusters.iter().map(|c| c.listed.len()).sum::<usize>(), 0);
    }
}

#[test]
fn nesting_of_any_depth_is_survived() {
    for depth in [60, 64, 65, 100, 127, 128, 129, 1000] {
        for bracket in ["[", "{\"a\":", "{a: ", "- ", "? ", "a:\n "] {
            let open = bracket.repeat(depth);
            survives(open.as_bytes());
            survives(format!("{{\"kind\":\"Pod\",\"spec\":{open}").as_bytes());
        }
        let closed = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for object in
            [r#""apiVersion":"bailey.dev/v1","kind":"X""#, r#""apiVersion":"v1","kind":"Pod""#, r#""a":1"#]
        {
            survives(format!("{{{object},\"metadata\":{{\"name\":\"x\"}},\"spec\":{closed}}}").as_bytes());
        }
    }
}

#[test]
fn no_value_of_a_secret_gets_anywhere() {
    const MARKER: &str = "MARKER-hunter2";
    let secrets = [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "a", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": MARKER}}, "type": "Opaque",
            "data": {"k": MARKER}, "stringData": {"k": MARKER}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "a"}, "data": MARKER}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": MARKER.len()}, "data": {"k": MARKER}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": [MARKER]}),
        json!({"kind": "Secret", "metadata": MARKER, "data": {"k": MARKER}}),
    ];
    for secret in secrets {
        let yaml = serde_saphyr::to_string(&secret).unwrap();
        for text in
            [secret.to_string(), secret.to_string().replace('}', ""), format!("{yaml}\n: {MARKER}"), yaml]
        {
            let snapshot = load("f", &text);
            let told = format!("{snapshot:?}");
            assert!(!told.contains(MARKER), "{told}");
        }
    }
}

#[test]
fn an_unfinished_loader_changes_no_cluster() {
    let mut snapshot = Snapshot::default();
    let mut loader = Loader::new(&mut snapshot, None);
    loader.source("f.json");
    loader.load(everything()[0].to_string().as_bytes()).unwrap();
    drop(loader);
    assert!(snapshot.clusters.is_empty() && snapshot.gaps.is_empty());
}
