//! The auditor as a process: what it says of Tenants follows the cluster, and no value of a Secret comes near it.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Seek as _, SeekFrom},
};

use bailey_testkit::{ManagementCluster, Process};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    MARKER, enforced,
    operator::{admin, get, until},
};

/// Lets a person of the other customer read one Secret of the first.
const LEAK: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leak, namespace: org-acme}
rules: [{apiGroups: [''], resources: [secrets], resourceNames: [acme1-kubeconfig], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leak, namespace: org-acme}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leak}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: GROUP}]
";

/// A kind that nobody served when the auditor started, and a Secret of a type that says what it is.
const LATER: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: Certificate, listKind: CertificateList, plural: certificates, singular: certificate}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: v1
kind: Secret
metadata: {name: later, namespace: org-acme}
type: example.com/later
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_auditor_says_of_each_tenant_whether_it_is_isolated() {
    let mut cluster = enforced().await;
    let mut auditor = cluster.start_role("auditor", "auditor", &["--leader-elect"]).await.unwrap();
    let address = admin(&auditor);
    let first = told(&mut cluster, "acme", |_| true).await;
    println!("at first: {}", first["message"]);
    assert!(get(&address, "/readyz").starts_with("HTTP/1.1 200"));
    let metrics = get(&address, "/metrics");
    assert!(metrics.contains("bailey_auditor_complete 1"), "{metrics}\n{}", auditor.log());
    let shared = "bailey_auditor_tenant_secrets{tenant=\"acme\",which=\"shared\"}";
    assert!(metrics.contains(&format!("{shared} 0")), "{metrics}");

    // A leak, in words that name the Secret and who, on both sides; then its end.
    let leak = LEAK.replace("GROUP", &cluster.names.other_group);
    cluster.apply(&leak).await.unwrap();
    let acme = told(&mut cluster, "acme", |c| c["reason"] == "SharedSecrets").await;
    assert_eq!(acme["status"], "False");
    let message = acme["message"].as_str().unwrap();
    assert!(message.contains("org-acme/acme1-kubeconfig by beta"), "{message}");
    let beta = told(&mut cluster, "beta", |c| c["reason"] == "ReachesOthers").await;
    assert_eq!(beta["status"], "False");
    until("the leak in the metrics", || {
        get(&address, "/metrics").contains(&format!("{shared} 1")).then_some(())
    });
    the_operator_leaves_it(&mut cluster).await;
    let delete = ["delete", "rolebinding", "leak", "-n", "org-acme"];
    cluster.plane.admin().kubectl(&delete, None).await.unwrap().stdout_of_success().unwrap();
    let after = told(&mut cluster, "acme", |c| c["reason"] != "SharedSecrets").await;
    assert_eq!((&after["status"], &after["message"]), (&first["status"], &first["message"]));

    // What is served changes, and a new Secret has a type.
    let count = |tenant: &Value| tenant["status"]["secrets"]["total"].as_i64();
    let before = count(&tenant(&mut cluster, "acme").await);
    cluster.apply(LATER).await.unwrap();
    cluster
        .until(&["get", "tenant", "acme", "-o", "json"], |t| count(t) == before.map(|n| n + 1))
        .await
        .unwrap();

    no_value_is_anywhere(&cluster, &auditor, &get(&address, "/metrics")).await;
    assert!(auditor.terminate().unwrap().success(), "{}", auditor.log());
}

/// The condition of a Tenant, once it is as wanted.
async fn told(cluster: &mut ManagementCluster, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let isolated = |tenant: &Value| {
        let conditions = tenant["status"]["conditions"].as_array()?;
        conditions.iter().find(|c| c["type"] == "Isolated").cloned()
    };
    let tenant = cluster
        .until(&["get", "tenant", name, "-o", "json"], |tenant| isolated(tenant).is_some_and(|c| wanted(&c)))
        .await
        .unwrap();
    isolated(&tenant).unwrap()
}

async fn tenant(cluster: &mut ManagementCluster, name: &str) -> Value {
    cluster.until(&["get", "tenant", name, "-o", "json"], |_| true).await.unwrap()
}

/// Two processes write one status, and neither takes the other's part away nor writes for ever.
async fn the_operator_leaves_it(cluster: &mut ManagementCluster) {
    let label = ["label", "tenant", "acme", "seen=yes", "--overwrite"];
    cluster.plane.admin().kubectl(&label, None).await.unwrap().stdout_of_success().unwrap();
    let mut versions = BTreeSet::new();
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let tenant = tenant(cluster, "acme").await;
        versions.insert(tenant["metadata"]["resourceVersion"].to_string());
        let conditions = tenant["status"]["conditions"].as_array().unwrap();
        let types: BTreeSet<_> = conditions.iter().map(|c| c["type"].as_str().unwrap()).collect();
        assert!(types.is_superset(&["Ready", "Bounded", "Isolated"].into()), "{types:?}");
    }
    assert!(versions.len() <= 3, "somebody writes again and again: {versions:?}");
}

/// Neither in what it says nor in its memory. Runs as root, as the control plane does.
async fn no_value_is_anywhere(cluster: &ManagementCluster, auditor: &Process, metrics: &str) {
    let get = ["get", "tenants", "-o", "json"];
    let tenants = cluster.plane.admin().kubectl(&get, None).await.unwrap().stdout_of_success().unwrap();
    for text in [auditor.log().as_str(), metrics, &tenants] {
        assert!(!text.contains(MARKER), "{text}");
    }
    let forms: Vec<Vec<u8>> = std::iter::once(MARKER.as_bytes().to_vec())
        .chain((0..3).map(|shift| {
            let text = STANDARD.encode(format!("{}{MARKER}", &"   "[..shift]));
            text.as_bytes()[4..text.len() - 4].to_vec()
        }))
        .collect();
    let memory = memory(auditor.id());
    assert!(memory.len() > 1 << 20, "nothing of its memory was read");
    // What it keeps is there, so a value would be found as well.
    assert!(memory.windows(16).any(|w| w == b"acme1-kubeconfig"));
    for form in &forms {
        assert!(!memory.windows(form.len()).any(|w| w == form), "a value is in its memory");
    }
}

/// All that a process may write to.
fn memory(process: u32) -> Vec<u8> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let mut file = fs::File::open(format!("/proc/{process}/mem")).unwrap();
    let mut memory = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw-p ")) {
        let range = line.split_whitespace().next().unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|n| u64::from_str_radix(n, 16).unwrap());
        file.seek(SeekFrom::Start(start)).unwrap();
        // Some pages cannot be read.
        let _ = file.by_ref().take(end - start).read_to_end(&mut memory);
    }
    memory
}
