use bailey_api::AccessRequest;
use serde_json::json;

use super::*;

fn request() -> AccessRequest {
    let refused = |reason: &str, group: &str, resources: &[&str], verbs: &[&str]| {
        json!({"request": 0, "reason": reason, "message": "m", "remedy": "r",
            "rule": {"apiGroups": [group], "resources": resources, "verbs": verbs}})
    };
    serde_json::from_value(json!({
        "apiVersion": "bailey.dev/v1alpha1",
        "kind": "AccessRequest",
        "metadata": {"name": "clusterrolebinding.loki", "namespace": "acme"},
        "spec": {
            "tenant": "acme",
            "binding": {"kind": "ClusterRoleBinding", "name": "loki"},
            "approved": [{"apiGroups": ["storage.k8s.io"], "resources": ["csinodes"], "verbs": ["get"]}],
        },
        "status": {"refused": [
            refused("ClusterScoped", "", &["nodes", "persistentvolumes"], &["get", "list"]),
            refused("EscalatingVerb", "rbac.authorization.k8s.io", &["clusterroles"], &["bind"]),
            refused("NotServed", "gone.example", &["things"], &["get"]),
            refused("ClusterScoped", "storage.k8s.io", &["csinodes"], &["get"]),
            refused("ProtectedKind", "*", &["*"], &["create"]),
        ]},
    }))
    .unwrap()
}

#[test]
fn all_adds_what_can_be_approved_and_says_why_not_for_the_rest() {
    let choice = approve(&request(), &Selection::All).unwrap();
    assert_eq!(choice.add.len(), 1);
    assert_eq!(choice.add[0].resources, ["nodes", "persistentvolumes"]);
    let skipped: Vec<_> = choice.skipped.iter().map(|s| (s.number.unwrap(), s.harmless)).collect();
    assert_eq!(skipped, [(2, false), (3, true), (4, true), (5, false)]);
    assert_eq!(choice.skipped[2].why, "approved already");
    assert!(choice.skipped[3].why.contains("--resource"), "{}", choice.skipped[3].why);
}

#[test]
fn a_part_is_chosen_by_its_number() {
    let choice = approve(&request(), &Selection::Parts(vec![1])).unwrap();
    assert_eq!((choice.add.len(), choice.skipped.len()), (1, 0));
    let error = approve(&request(), &Selection::Parts(vec![9])).unwrap_err();
    assert_eq!(error, "there is no refused part 9; the request has 5");
}

#[test]
fn a_resource_is_approved_alone_and_with_fewer_verbs() {
    let selection = Selection::Resource { resource: "nodes".to_owned(), verbs: vec!["get".to_owned()] };
    let choice = approve(&request(), &selection).unwrap();
    assert_eq!(choice.add.len(), 1);
    assert_eq!(
        (&choice.add[0].resources, &choice.add[0].verbs),
        (&vec!["nodes".to_owned()], &vec!["get".to_owned()])
    );
    let absent = Selection::Resource { resource: "nodes".to_owned(), verbs: vec!["delete".to_owned()] };
    assert!(approve(&request(), &absent).unwrap_err().starts_with("delete on `nodes` is not refused"));
}

#[test]
fn approvals_are_taken_back_by_number_or_all() {
    let (kept, removed) = revoke(&request(), Some(&[1])).unwrap();
    assert_eq!((kept.len(), removed.len()), (0, 1));
    assert_eq!(revoke(&request(), None).unwrap().1.len(), 1);
    assert_eq!(revoke(&request(), Some(&[2])).unwrap_err(), "there is no approval 2; the request has 1");
}
