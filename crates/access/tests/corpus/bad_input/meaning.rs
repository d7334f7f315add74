//! Input that can be read and contradicts itself.

use super::{audit, good, read};
use crate::cluster::{Cluster, binding, load, role, secret};

fn aggregating(name: &str, label: &str, selects: &str, resource: &str) -> String {
    format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {{name: {name}, labels: {{part: {label}}}}}, \
         aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{part: {selects}}}}}]}}, \
         rules: [{{verbs: [get], apiGroups: [''], resources: [{resource}]}}]}}"
    )
}

#[test]
fn roles_that_aggregate_each_other_come_to_an_end() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        aggregating("one", "one", "two", "configmaps"),
        aggregating("two", "two", "one", "pods"),
        aggregating("own", "own", "own", "services"),
        binding("a/one", "ClusterRole one", &["user:ann"]),
        binding("a/own", "ClusterRole own", &["user:bob"]),
    ]);
    assert!(!cluster.reads("user:ann", "a/s") && !cluster.reads("user:bob", "a/s"));

    let cluster = Cluster::new(&[
        secret("a/s"),
        aggregating("one", "one", "two", "configmaps"),
        aggregating("two", "two", "one", "secrets"),
        binding("a/one", "ClusterRole one", &["user:ann"]),
    ]);
    assert!(cluster.reads("user:ann", "a/s"), "a circle gives what is in it");
}

#[test]
fn a_binding_to_a_role_that_is_gone_grants_nothing() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        role("b/r", &["get secrets"]),
        binding("a/r", "Role r", &["user:ann"]),
        binding("all", "ClusterRole nothing", &["user:bob"]),
    ]);
    assert!(!cluster.reads("user:ann", "a/s") && !cluster.reads("user:bob", "a/s"));
}

#[test]
fn of_two_objects_of_one_name_the_later_counts_and_both_places_are_told() {
    let snapshot = load(&[
        secret("a/s"),
        role("a/r", &["get secrets"]),
        role("a/r", &["get configmaps"]),
        binding("a/r", "Role r", &["user:ann"]),
    ]);
    assert_eq!(snapshot.gaps.len(), 1, "{:?}", snapshot.gaps);
    let told = format!("{}: {}", snapshot.gaps[0].what, snapshot.gaps[0].why);
    for place in ["a/r", "objects.yaml", "line 5", "line 7"] {
        assert!(told.contains(place), "{place}: {told}");
    }
    let audit = audit(snapshot);
    assert!(!audit.complete);
    assert!(audit.secrets[0].subjects.iter().all(|entry| entry.subject != "user:ann"));
}

#[test]
fn the_same_object_twice_is_no_contradiction() {
    let snapshot =
        load(&[secret("a/s"), secret("a/s"), role("a/r", &["get pods"]), role("a/r", &["get pods"])]);
    assert_eq!(snapshot.gaps, []);
    assert_eq!(snapshot.clusters[0].secrets.len(), 1);
}

#[test]
fn an_answer_about_damaged_input_is_incomplete_in_every_form() {
    let found = read(format!("{}\n---\n{{kind: Secret", good()).as_bytes());
    let access = bailey_access::Access::new(found.snapshot, bailey_access::Customers::default());
    let (ann, secret) = ("user:ann".parse().unwrap(), "good/s".parse().unwrap());
    let who = access.who_can_read(&secret).unwrap();
    let reach = access.reach(&ann).unwrap();
    let why = access.why(&ann, &secret, 1).unwrap();
    let what_if = access.what_if(&access, Vec::new());
    assert!(!who.complete && !reach.complete && !why.complete && !what_if.complete);
    for gaps in [who.gaps, reach.gaps, why.gaps, what_if.gaps] {
        assert!(gaps.len() == 1 && gaps[0].what.contains("dump.yaml"), "{gaps:?}");
    }
    assert!(why.reached, "what was read is answered");
}

#[test]
fn a_secret_and_a_subject_that_do_not_exist_have_an_answer() {
    let cluster = Cluster::new(&[
        secret("a/s"),
        role("a/r", &["get secrets"]),
        binding("a/r", "Role r", &["user:ann"]),
    ]);
    let who = cluster.access.who_can_read(&"a/later".parse().unwrap()).unwrap();
    assert!(!who.exists && who.subjects.iter().any(|reader| reader.subject == "user:ann"));
    let error = cluster.access.reach(&"user:anne".parse().unwrap()).unwrap_err();
    assert_eq!(error.reason(), "UnknownSubject");
    let error = cluster.access.who_can_read(&"nowhere:a/s".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("`nowhere` was not loaded; loaded: mc"), "{error}");
}
