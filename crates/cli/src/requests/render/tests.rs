use serde_json::json;

use super::*;

fn requests() -> Vec<AccessRequest> {
    let request = json!({
        "apiVersion": "bailey.dev/v1alpha1",
        "kind": "AccessRequest",
        "metadata": {"name": "clusterrolebinding.loki", "namespace": "org-acme"},
        "spec": {
            "tenant": "acme",
            "binding": {"kind": "ClusterRoleBinding", "name": "loki"},
            "approved": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
        },
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "PartlyRefused",
                "message": "1 of 2 rules granted", "lastTransitionTime": "2030-01-01T00:00:00Z"}],
            "role": "ClusterRole/loki",
            "subjects": ["sa:org-acme/loki"],
            "requested": [
                {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list"]},
                {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
            ],
            "granted": [
                {"request": 0, "scope": "Namespaces", "rule": {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}},
                {"request": 0, "scope": "Cluster", "approved": true, "rule": {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}},
            ],
            "refused": [
                {"request": 0, "reason": "ClusterScoped", "message": "nodes belong to the whole cluster",
                    "remedy": "do without, or ask the platform to approve it",
                    "rule": {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}},
                {"reason": "ForeignSubject", "message": "Group x is not one of tenant acme's subjects",
                    "remedy": "bind an account of the tenant"},
            ],
            "requestedCount": 2, "grantedCount": 1, "refusedCount": 2,
        },
    });
    let fresh = json!({
        "apiVersion": "bailey.dev/v1alpha1",
        "kind": "AccessRequest",
        "metadata": {"name": "rolebinding.new", "namespace": "org-beta"},
        "spec": {"tenant": "beta", "binding": {"kind": "RoleBinding", "name": "new"}},
    });
    [request, fresh].into_iter().map(|r| serde_json::from_value(r).unwrap()).collect()
}

fn rendered(format: Format, explain: bool, width: Option<usize>) -> String {
    let requests = requests();
    let shown = if explain { &requests[..1] } else { &requests[..] };
    let document =
        Requests { schema: "bailey.requests/v1", complete: true, requests: shown, unreadable: &[] };
    render(&document, format, explain, &Screen { color: false, width }).unwrap()
}

#[test]
fn requests_are_listed() {
    insta::assert_snapshot!(rendered(Format::Table, false, None));
    insta::assert_snapshot!(rendered(Format::Wide, false, Some(160)));
    insta::assert_snapshot!(rendered(Format::Name, false, None));
}

#[test]
fn a_request_is_explained_rule_by_rule() {
    insta::assert_snapshot!(rendered(Format::Table, true, Some(80)));
    insta::assert_snapshot!(rendered(Format::Markdown, true, None));
}
