use super::*;
use crate::bench::access::lists::{Layout, List};

fn cluster() -> Cluster {
    let folder = tempfile::tempdir().unwrap();
    for (plural, kind, version, namespaced) in KINDS {
        let mut list = List::create(folder.path(), plural, Layout::Compact).unwrap();
        for namespace in ["a", "b"] {
            let metadata = if namespaced {
                json!({"namespace": namespace, "name": "x"})
            } else {
                json!({"name": namespace})
            };
            list.add(&json!({"apiVersion": version, "kind": kind, "metadata": metadata})).unwrap();
        }
        list.finish().unwrap();
    }
    Cluster {
        shelves: KINDS.iter().map(|(plural, ..)| Shelf::read(folder.path(), plural).unwrap()).collect(),
    }
}

fn got(path: &str) -> Value {
    serde_json::from_str(&cluster().get(path).unwrap_or_else(|| panic!("nothing at {path}"))).unwrap()
}

#[test]
fn lists_are_of_their_kind_and_namespace() {
    let all = got("/apis/rbac.authorization.k8s.io/v1/roles");
    assert_eq!(all["kind"], "RoleList");
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    let of_b = got("/apis/rbac.authorization.k8s.io/v1/namespaces/b/rolebindings");
    assert_eq!(of_b["items"][0]["metadata"]["namespace"], "b");
    assert_eq!(of_b["items"].as_array().unwrap().len(), 1);
    assert_eq!(got("/api/v1/namespaces/a")["metadata"]["name"], "a");
    assert_eq!(got("/api/v1/namespaces/b/serviceaccounts/x")["metadata"]["namespace"], "b");
}

#[test]
fn discovery_names_secrets_and_serves_none() {
    let core = got("/api/v1");
    assert!(core["resources"].as_array().unwrap().iter().any(|resource| resource["name"] == "secrets"));
    for path in [
        "/api/v1/secrets",
        "/api/v1/namespaces/a/secrets",
        "/api/v1/roles",
        "/apis/apps/v1",
        "/api/v1/namespaces/c",
    ] {
        assert_eq!(cluster().get(path), None, "{path}");
    }
}

#[test]
fn only_reviews_are_answered_besides_reads() {
    let review = review("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").unwrap();
    assert_eq!(serde_json::from_str::<Value>(&review).unwrap()["status"]["allowed"], true);
    let refused = cluster().answer(&Method::POST, "/api/v1/namespaces");
    assert_eq!(refused.status(), StatusCode::NOT_FOUND);
}
