//! The analyser on a real API server: what it asks for, what it makes of refusals, and that a snapshot says the same.
//!
//! INVARIANT: the API server logs whole answers about Secrets, so what was sent to anybody can be looked up.

use std::path::Path;

use bailey_testkit::{Access, ControlPlane, Options};
use serde_json::{Value, json};

use crate::operator::until;
use crate::secrecy::{self, Markers, RIGHTS, TENANTS};

/// Logs answers to whoever is not a part of the control plane.
const AUDIT: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, userGroups: ['system:nodes', 'system:serviceaccounts']}
- {level: None, users: ['system:apiserver', 'system:kube-controller-manager', 'testkit:setup']}
- {level: RequestResponse, resources: [{group: '', resources: [secrets]}]}
- {level: Metadata}
";
/// Who looks: somebody with exactly these rights.
const LOOKERS: &str = "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: looker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: looker}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: looker}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: looker}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: half}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: half}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: half}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: half}
rules:
- {apiGroups: [''], resources: [namespaces, pods, serviceaccounts, nodes, persistentvolumes], verbs: [get, list]}
- {apiGroups: [apps, apiextensions.k8s.io, admissionregistration.k8s.io, apiregistration.k8s.io], resources: ['*'], verbs: [get, list]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, clusterroles, clusterrolebindings], verbs: [get, list]}
";

/// A kind of which a Secret's label names an object.
const CLUSTERS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.cluster.x-k8s.io}
spec:
  group: cluster.x-k8s.io
  names: {kind: Cluster, listKind: ClusterList, plural: clusters, singular: cluster}
  scope: Namespaced
  versions:
  - {name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";
const CLUSTER: &str =
    "{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: one, namespace: org-beta}}";

struct Place {
    plane: ControlPlane,
    folder: tempfile::TempDir,
    markers: Markers,
    /// How much of the log was looked at.
    looked_at: std::cell::Cell<usize>,
}

/// One control plane serves all claims.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_cluster_is_analysed_without_its_values_and_refusals_are_told() {
    let place = Place::start().await;
    let looker = place.user("looker");
    no_value_of_a_secret_is_asked_for(&place, &looker);
    pages_add_up(&place, &looker);
    a_snapshot_says_the_same_as_the_cluster(&place, &looker);
    clusters_are_told_apart(&place);
    the_planted_reader_is_named(&place, &looker);
    what_may_not_be_listed_is_named(&place);
    with_fingerprints_values_are_asked_for_and_not_written(&place, &looker);
}

impl Place {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("audit-policy.yaml");
        std::fs::write(&policy, AUDIT).unwrap();
        let arguments = [
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", folder.path().join("api.log").display()),
        ];
        let options = Options { api_server_arguments: arguments.to_vec(), ..Options::default() };
        let plane = ControlPlane::start(options).await.unwrap();
        let setup = plane.user("testkit:setup", &["system:masters"]).unwrap();
        let apply = ["apply", "-f", "-"];
        setup
            .kubectl(&apply, Some(&format!("{RIGHTS}{LOOKERS}")))
            .await
            .unwrap()
            .stdout_of_success()
            .unwrap();
        setup.kubectl(&apply, Some(CLUSTERS)).await.unwrap().stdout_of_success().unwrap();
        let established =
            ["wait", "--for=condition=Established", "--timeout=30s", "crd/clusters.cluster.x-k8s.io"];
        setup.kubectl(&established, None).await.unwrap().stdout_of_success().unwrap();
        setup.kubectl(&apply, Some(CLUSTER)).await.unwrap().stdout_of_success().unwrap();
        let mut markers = Markers::new();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": secrecy::objects(&mut markers)});
        // Not server-side, so that the annotation of the last configuration holds values, too.
        setup.kubectl(&apply, Some(&list.to_string())).await.unwrap().stdout_of_success().unwrap();
        let tenants = TENANTS.replace("rest: true", "rest: true, users: [looker, half]");
        std::fs::write(folder.path().join("tenants.yaml"), tenants).unwrap();
        Self { plane, folder, markers, looked_at: std::cell::Cell::new(0) }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn user(&self, name: &str) -> String {
        let access: Access = self.plane.user(name, &[]).unwrap();
        access.kubeconfig_path().display().to_string()
    }

    /// Runs the program; nothing that it writes may hold a marker.
    fn run(&self, line: &str) -> (Option<i32>, String, String) {
        let output = secrecy::run(self.path(), line);
        for bytes in [&output.stdout, &output.stderr] {
            assert_eq!(self.markers.found(bytes), [""; 0], "{line}");
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn json(&self, line: &str) -> (Option<i32>, Value) {
        let (code, stdout, stderr) = self.run(&format!("{line} -o json"));
        let value = serde_json::from_str(&stdout);
        (code, value.unwrap_or_else(|error| panic!("{line}: {error}\n{stdout}\n{stderr}")))
    }

    /// What the API server sent since it was last asked, as its log has it. An answer is logged a moment after it was
    /// sent, so the log is whole when it tells of a request that was made after all others.
    fn sent(&self) -> Vec<Value> {
        let from = self.looked_at.get();
        let last = format!("last-after-{from}");
        let access = self.plane.user("last", &[]).unwrap();
        let request = ["get", "namespace", &last];
        let ask = access.kubectl(&request, None);
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(ask)).unwrap();
        let log = until("request of our own in the API server's log", || {
            let log = std::fs::read_to_string(self.path().join("api.log")).ok()?;
            let end = log.rfind('\n')? + 1;
            log[from..end].contains(&last).then(|| log[..end].to_owned())
        });
        self.looked_at.set(log.len());
        let events = log[from..].lines().filter(|line| !line.contains(&last));
        events.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Which markers are in what was sent about Secrets.
    fn values_sent(&self) -> Vec<String> {
        let about_secrets =
            self.sent().into_iter().filter(|event| event["objectRef"]["resource"] == "secrets");
        let events: Vec<Value> = about_secrets.collect();
        assert!(!events.is_empty(), "nothing about Secrets was asked");
        self.markers.found(json!(events).to_string().as_bytes())
    }
}

fn no_value_of_a_secret_is_asked_for(place: &Place, looker: &str) {
    place.sent();
    for line in ["audit --tenants tenants.yaml", "snapshot -o snapshot.json --name here"] {
        let (code, _, stderr) = place.run(&format!("{line} --kubeconfig {looker}"));
        assert!(matches!(code, Some(0 | 1)), "{line}: {code:?} {stderr}");
        assert_eq!(place.values_sent(), [""; 0], "{line}");
    }
    let snapshot = std::fs::read(place.path().join("snapshot.json")).unwrap();
    let text = String::from_utf8_lossy(&snapshot);
    assert!(
        text.contains(r#""cluster.x-k8s.io/cluster-name":"one""#),
        "what the label says is known: {text}"
    );
    assert_eq!(place.markers.found(&snapshot), [""; 0]);
}

/// An audit without what says where it is from.
fn answer(mut audit: Value) -> Value {
    let fields = audit.as_object_mut().unwrap();
    for field in ["hints", "gate"] {
        fields.remove(field);
    }
    fn without_places(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("at");
                fields.values_mut().for_each(without_places);
            }
            Value::Array(items) => items.iter_mut().for_each(without_places),
            _ => {}
        }
    }
    without_places(&mut audit);
    audit
}

fn pages_add_up(place: &Place, looker: &str) {
    let line = format!("audit --subjects all --tenants tenants.yaml --kubeconfig {looker}");
    let (_, whole) = place.json(&line);
    assert_eq!(whole["complete"], true, "{}", whole["gaps"]);
    place.sent();
    let (_, paged) = place.json(&format!("{line} --chunk-size 3"));
    let continued = |event: &Value| {
        event["requestURI"]
            .as_str()
            .is_some_and(|uri| uri.contains("limit=3&continue=") && !uri.ends_with("continue="))
    };
    assert!(place.sent().iter().filter(|event| continued(event)).count() > 10, "there were pages");
    assert_eq!(answer(whole), answer(paged));
}

fn a_snapshot_says_the_same_as_the_cluster(place: &Place, looker: &str) {
    let (code, _, stderr) =
        place.run(&format!("snapshot -o same.json.gz --name cluster --kubeconfig {looker}"));
    assert_eq!(code, Some(0), "{stderr}");
    let (_, live) = place.json(&format!("audit --subjects all --tenants tenants.yaml --kubeconfig {looker}"));
    let (_, dump) = place.json("audit --subjects all --tenants tenants.yaml --dump same.json.gz");
    assert_eq!(answer(live), answer(dump));
}

fn clusters_are_told_apart(place: &Place) {
    let (_, both) =
        place.json("audit --tenants tenants.yaml --dump one=same.json.gz --dump two=same.json.gz");
    let names: Vec<_> = both["clusters"].as_array().unwrap().iter().map(|cluster| &cluster["name"]).collect();
    assert_eq!(names, ["one", "two"]);
    let (code, other) = place.json("who-can-read two:org-beta/copy --tenants tenants.yaml --dump one=same.json.gz --dump two=same.json.gz");
    assert_eq!((code, &other["secret"]["cluster"]), (Some(1), &json!("two")), "{other}");
}

fn the_planted_reader_is_named(place: &Place, looker: &str) {
    let line = format!("who-can-read org-beta/copy --tenants tenants.yaml --kubeconfig {looker}");
    let (code, answer) = place.json(&line);
    assert_eq!((code, answer["secret"]["verdict"].as_str()), (Some(1), Some("shared")), "{answer}");
    let readers: Vec<_> =
        answer["subjects"].as_array().unwrap().iter().map(|r| r["subject"].as_str().unwrap()).collect();
    assert!(readers.contains(&"sa:org-acme/backup") && readers.contains(&"user:looker"), "{readers:?}");
    let path =
        answer["subjects"].as_array().unwrap().iter().find(|r| r["subject"] == "sa:org-acme/backup").unwrap();
    assert!(path["path"].to_string().contains("RoleBinding org-beta/backup"), "{path}");
}

fn what_may_not_be_listed_is_named(place: &Place) {
    let half = place.user("half");
    let (code, audit) = place.json(&format!("audit --tenants tenants.yaml --kubeconfig {half}"));
    assert_eq!((code, &audit["complete"]), (Some(3), &json!(false)), "{audit}");
    let gaps: Vec<_> =
        audit["gaps"].as_array().unwrap().iter().map(|gap| gap["what"].as_str().unwrap()).collect();
    for kind in ["secrets", "configmaps", "rolebindings.rbac.authorization.k8s.io"] {
        assert!(gaps.contains(&kind), "{kind} in {gaps:?}");
    }
    assert!(!gaps.contains(&"pods"), "{gaps:?}");
    let (code, _, stderr) = place.run(&format!("snapshot -o half.json --kubeconfig {half}"));
    assert_eq!(code, Some(3));
    assert!(stderr.contains("not read: secrets"), "{stderr}");
    let (code, dump) = place.json("audit --tenants tenants.yaml --dump half.json");
    assert_eq!(
        (code, &dump["complete"]),
        (Some(3), &json!(false)),
        "a snapshot keeps what is missing: {dump}"
    );
    let (code, opened) =
        place.json(&format!("audit --fingerprint --tenants tenants.yaml --kubeconfig {half}"));
    assert_eq!((code, &opened["complete"]), (Some(3), &json!(false)), "{opened}");
}

fn with_fingerprints_values_are_asked_for_and_not_written(place: &Place, looker: &str) {
    place.sent();
    let line = format!("audit --fingerprint --chunk-size 2 --tenants tenants.yaml --kubeconfig {looker}");
    let (code, told) = place.json(&line);
    assert_eq!((code, &told["complete"]), (Some(1), &json!(true)), "{}", told["gaps"]);
    assert!(!place.values_sent().is_empty(), "the log would show values that are asked for");
    let shared = told["findings"].as_array().unwrap().iter().find(|f| f["rule"] == "shared-credential");
    let shared = shared.unwrap_or_else(|| panic!("{}", told["findings"]));
    assert_eq!(shared["secrets"], json!(["org-acme/db", "org-beta/copy"]));
    assert!(shared["path"].to_string().contains("ConfigMap org-beta/conf#db_password"), "{shared}");
    let (_, silent) = place.json(&format!("audit --tenants tenants.yaml --kubeconfig {looker}"));
    assert_eq!(told["clusters"], silent["clusters"], "the same facts are read");
    let (code, _, stderr) = place.run("audit --fingerprint --tenants tenants.yaml --dump same.json.gz");
    assert_eq!(code, Some(3));
    assert!(stderr.contains("values of") || code == Some(3), "{stderr}");
}
