use serde_json::{Value, json};

use crate::load::Loader;
use crate::load::tests::{everything, gaps, lines, load, load_into};
use crate::{Origin, Snapshot};

fn twice(first: &Value, second: &Value) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let (first, second) = (first.to_string(), format!("\n{second}"));
    load_into(&mut snapshot, &[("old.json", first.as_bytes()), ("new.json", second.as_bytes())]);
    snapshot
}

#[test]
fn the_later_of_two_different_objects_counts_and_both_places_are_told() {
    let changed: [(usize, &str, Value); 8] = [
        (0, "/metadata/labels/x", json!("z")),
        (1, "/secrets/0/name", json!("other")),
        (2, "/rules/0/verbs/0", json!("list")),
        (3, "/roleRef/name", json!("other")),
        (4, "/type", json!("other")),
        (5, "/spec/serviceAccountName", json!("other")),
        (6, "/metadata/labels", json!({"node-role.kubernetes.io/control-plane": ""})),
        (8, "/spec/url", json!("https://other")),
    ];
    for (index, pointer, value) in changed {
        let first = everything()[index].clone();
        let mut second = first.clone();
        match second.pointer_mut(pointer) {
            Some(place) => *place = value,
            None => second["metadata"]["labels"] = value,
        }
        let snapshot = twice(&first, &second);
        assert_eq!(lines(&snapshot), lines(&load("f.json", second.to_string())), "{second}");
        let told = gaps(&snapshot);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("in `old.json`, line 1 and in `new.json`, line 2; the second counts"),
            "{told:?}"
        );
        let kind = second["kind"].as_str().unwrap();
        assert!(told[0].starts_with(&format!("{kind} ")), "{told:?}");
        assert_eq!(lines(&twice(&first, &first)), lines(&load("f.json", first.to_string())));
        assert_eq!(gaps(&twice(&first, &first)), [""; 0]);
    }
}

#[test]
fn time_passing_between_two_dumps_is_no_difference() {
    let mut first = everything()[8].clone();
    first["metadata"]["resourceVersion"] = json!("1");
    first["status"] = json!({"observedGeneration": 1});
    let mut second = first.clone();
    second["metadata"]["resourceVersion"] = json!("2");
    second["status"] = json!({"observedGeneration": 2});
    assert_eq!(gaps(&twice(&first, &second)), [""; 0]);
}

#[test]
fn equal_names_of_other_kinds_or_namespaces_are_other_objects() {
    let role = |kind: &str, namespace: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": "r", "namespace": namespace}})
    };
    let text: String = [role("Role", "a"), role("Role", "b"), role("ClusterRole", "")]
        .iter()
        .map(Value::to_string)
        .collect();
    assert_eq!(lines(&load("f.json", text)), ["role a/r ", "role b/r ", "role -/r "]);
    let text: String = ["HelmRelease", "HelmChart"]
        .iter()
        .map(|kind| {
            json!({"apiVersion": "x.fluxcd.io/v1", "kind": kind, "metadata": {"name": "r", "namespace": "a"}})
                .to_string()
        })
        .collect();
    assert_eq!(load("f.json", text).clusters[0].objects.len(), 2);
}

#[test]
fn a_change_replaces_what_the_snapshot_held_without_a_word() {
    let mut snapshot = load("dump.json", everything().iter().map(Value::to_string).collect::<String>());
    let before = lines(&snapshot);
    let mut role = everything()[2].clone();
    role["rules"][0]["verbs"] = json!(["watch"]);
    let mut loader = Loader::new(&mut snapshot, None);
    loader.source("change.yaml");
    loader.object(&role, 3);
    loader.finish();
    assert_eq!(gaps(&snapshot), [""; 0]);
    assert_eq!(snapshot.clusters.len(), 1);
    let after = lines(&snapshot);
    assert_eq!(after.len(), before.len());
    assert!(after.contains(&"role a/r watch||secrets||".to_owned()), "{after:#?}");
    assert_eq!(snapshot.clusters[0].roles[0].origin, Origin { source: 1, line: 3 });
}

#[test]
fn clusters_stay_apart() {
    let mut snapshot = Snapshot::default();
    for name in ["mc", "wc1", "mc"] {
        let mut loader = Loader::new(&mut snapshot, Some(name));
        loader.source(&format!("{name}.json"));
        loader.load(everything()[0].to_string().as_bytes()).unwrap();
        loader.finish();
    }
    let clusters: Vec<_> = snapshot.clusters.iter().map(|c| (c.name.as_str(), c.namespaces.len())).collect();
    assert_eq!(clusters, [("mc", 1), ("wc1", 1)]);
}

#[test]
fn a_cluster_is_called_as_its_installation_says_if_nobody_named_it() {
    let installation = json!({"apiVersion": "bailey.dev/v1alpha1", "kind": "Installation",
        "metadata": {"name": "installation"}, "spec": {"managementCluster": {"name": "mclab"}}});
    assert_eq!(load("f.json", installation.to_string()).clusters[0].name, "mclab");
    assert_eq!(load("f.json", everything()[0].to_string()).clusters[0].name, "cluster");
}

#[test]
fn kinds_that_came_in_a_list_are_listed() {
    let list = |items: Value| json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let listed = |text: &str| load("f.json", text).clusters[0].listed.clone();
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "x"}, "spec": {"group": "example.com", "names": {"kind": "Gateway", "plural": "gateways"}}});
    let gateway = json!({"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "g"}});
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}});
    assert_eq!(
        listed(&list(json!([definition, gateway, event]))),
        ["customresourcedefinitions.apiextensions.k8s.io", "gateways.example.com", "events"]
    );
    assert!(listed(&event.to_string()).is_empty(), "a single object");
    assert!(listed(&format!("[{event}]")).is_empty(), "an array of unknown origin");
    let spoilt = list(json!([event, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 7}}]));
    assert_eq!(listed(&spoilt), ["events"]);
}

#[test]
fn a_list_that_goes_on_is_listed_only_with_its_end() {
    let part = |token: &str, name: &str| {
        json!({"kind": "NodeList", "apiVersion": "v1", "metadata": {"continue": token},
            "items": [{"metadata": {"name": name}}]})
        .to_string()
    };
    let first = load("f.json", part("abc", "a"));
    assert!(first.clusters[0].listed.is_empty());
    assert_eq!(
        gaps(&first),
        ["nodes: their list in `f.json` says that it goes on; ask for all of it, without `limit`"]
    );
    let both = load("f.json", part("abc", "a") + &part("", "b"));
    assert_eq!(both.clusters[0].listed, ["nodes"]);
    assert_eq!(gaps(&both), [""; 0]);
}
