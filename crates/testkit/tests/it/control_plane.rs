//! One control plane shows what others can rely on; starting one takes seconds, so one test holds many claims.

use std::path::Path;

use bailey_testkit::{ControlPlane, Options, control_plane};

const JSON: Option<&str> = Some("application/json");

#[tokio::test]
async fn a_control_plane_serves_each_identity_and_leaves_nothing_behind() {
    let mut plane = ControlPlane::start(Options { audit: true, ..Options::default() }).await.unwrap();
    let processes = plane.process_ids();
    assert_eq!(processes.len(), 3);
    let dir = plane.dir().to_owned();

    version_and_default_apis(&plane).await;
    admin_creates_a_namespace(&plane).await;
    a_user_has_its_groups_and_no_rights(&plane).await;
    a_service_account_token_works(&plane).await;
    warnings_are_returned(&plane).await;
    helm_runs(&plane).await;

    plane.restart_api_server().await.unwrap();
    let (status, _) = plane.admin().send("GET", "/api/v1/namespaces/acme", None, None).await.unwrap();
    assert_eq!(status, 200, "the namespace outlives a restart of the API server");
    assert_ne!(plane.process_ids(), processes);
    let audit = std::fs::read_to_string(dir.join("audit.log")).unwrap();
    assert!(audit.lines().any(|line| line.contains(r#""username":"jane""#)));

    let processes = [processes, plane.process_ids()].concat();
    drop(plane);
    for id in processes {
        assert!(!Path::new(&format!("/proc/{id}")).exists(), "process {id} is gone");
    }
    assert!(!dir.exists(), "the temporary folder is gone");
}

async fn version_and_default_apis(plane: &ControlPlane) {
    let client = plane.admin().client().await.unwrap();
    assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.36.3");
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    let (status, body) = plane.admin().send("GET", path, None, None).await.unwrap();
    assert_eq!(status, 200, "{body}");
}

async fn admin_creates_a_namespace(plane: &ControlPlane) {
    let manifest = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: acme\n";
    let output = plane.admin().kubectl(&["create", "-f", "-"], Some(manifest)).await.unwrap();
    assert_eq!(output.stdout, "namespace/acme created\n", "{}", output.stderr);
}

async fn a_user_has_its_groups_and_no_rights(plane: &ControlPlane) {
    for jane in [
        plane.user("jane", &["acme-installers", "acme-developers"]).unwrap(),
        control_plane::issue(plane.dir(), "jane", &["acme-installers", "acme-developers"]).unwrap(),
    ] {
        let (status, body) = jane.send("GET", "/api/v1/namespaces/acme/secrets", None, None).await.unwrap();
        assert_eq!(status, 403, "{body}");
        assert!(body.contains(r#"User \"jane\" cannot list resource \"secrets\""#), "{body}");
        let review = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let (status, body) = jane.send("POST", path, JSON, Some(review)).await.unwrap();
        assert_eq!(status, 201, "{body}");
        let groups = r#""groups":["acme-installers","acme-developers","system:authenticated"]"#;
        assert!(body.contains(groups), "{body}");
        let output = jane.kubectl(&["get", "secrets", "--namespace=acme"], None).await.unwrap();
        assert!(!output.success());
        assert!(output.stderr.contains("Forbidden"), "{}", output.stderr);
    }
}

async fn a_service_account_token_works(plane: &ControlPlane) {
    let create = ["create", "serviceaccount", "app", "--namespace=acme"];
    plane.admin().kubectl(&create, None).await.unwrap().stdout_of_success().unwrap();
    let app = plane.service_account("acme", "app").await.unwrap();
    let output =
        app.kubectl(&["auth", "whoami", "--output=jsonpath={.status.userInfo.username}"], None).await;
    assert_eq!(output.unwrap().stdout, "system:serviceaccount:acme:app");
    let missing = plane.service_account("acme", "absent").await.unwrap_err();
    assert!(missing.to_string().contains("acme/absent"), "{missing}");
}

/// The API server warns of an environment variable set twice.
async fn warnings_are_returned(plane: &ControlPlane) {
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"twice"},"spec":{"containers":[{"name":"c",
        "image":"example.invalid/c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}}"#;
    let path = "/api/v1/namespaces/acme/pods?dryRun=All";
    let reply = plane.admin().send_with_warnings("POST", path, JSON, Some(pod)).await.unwrap();
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(reply.warnings.len(), 1, "{:?}", reply.warnings);
    assert!(reply.warnings[0].contains("hides previous definition"), "{:?}", reply.warnings);
}

async fn helm_runs(plane: &ControlPlane) {
    let output = plane.admin().helm(&["list", "--all-namespaces", "--short"]).await.unwrap();
    assert!(output.success(), "{}", output.stderr);
    assert_eq!(output.stdout, "");
}
