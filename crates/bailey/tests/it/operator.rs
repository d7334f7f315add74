//! The operator as a process: replicas, the admin port, a clean end, and Events.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bailey_testkit::Process;
use serde_json::Value;

use crate::enforced;

/// The address that a replica says it serves its admin port on.
pub fn admin(replica: &Process) -> String {
    until("an admin port", || {
        let log = replica.log();
        let (_, rest) = log.split_once(" starts admin=")?;
        Some(rest.split_whitespace().next()?.to_owned())
    })
}

pub fn until<T>(what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = seen() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_replicas_works_and_the_other_takes_over() {
    let mut cluster = enforced().await;
    cluster.kill_operator();
    let elect = |name| ["--leader-elect", "--identity", name];
    let mut first = cluster.start_replica("replica-a", &elect("a")).await.unwrap();
    until("leader", || first.log().contains("caches are complete").then_some(()));
    let mut second = cluster.start_replica("replica-b", &elect("b")).await.unwrap();
    for replica in [&first, &second] {
        let address = admin(replica);
        assert!(get(&address, "/readyz").starts_with("HTTP/1.1 200"), "a standby is ready too");
        assert!(get(&address, "/livez").starts_with("HTTP/1.1 200"));
    }
    assert!(!second.log().contains("caches are complete"), "two work at once");
    let first_admin = admin(&first);
    let metrics = until("reconciliation", || {
        let metrics = get(&first_admin, "/metrics");
        metrics.contains("bailey_operator_tenants 2").then_some(metrics)
    });
    for name in
        ["bailey_build_info", "bailey_operator_reconciliations_total", "bailey_operator_boundary_bytes"]
    {
        assert!(metrics.contains(name), "{name} is not in\n{metrics}");
    }

    // A clean end gives the lease back, so the other need not wait for it to run out.
    let started = Instant::now();
    assert!(first.terminate().unwrap().success(), "{}", first.log());
    until("new leader", || second.log().contains("caches are complete").then_some(()));
    println!("took over after {} ms", started.elapsed().as_millis());
    let delete = ["delete", "rolebinding", "bailey:installers", "-n", "org-acme"];
    cluster.plane.admin().kubectl(&delete, None).await.unwrap().stdout_of_success().unwrap();
    let there = |_: &Value| true;
    cluster
        .until(&["get", "rolebinding", "bailey:installers", "-n", "org-acme", "-o", "json"], there)
        .await
        .unwrap();
    second.check().unwrap();

    let role = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"acme-told"},
        "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
        "subjects":[{"kind":"ServiceAccount","name":"default","namespace":"org-acme"}]}"#;
    let installer = cluster.installer().unwrap();
    installer.kubectl(&["create", "-f", "-"], Some(role)).await.unwrap().stdout_of_success().unwrap();
    let told = |events: &Value| {
        let about = |e: &&Value| e["involvedObject"]["name"] == "clusterrolebinding.acme-told";
        events["items"]
            .as_array()
            .is_some_and(|all| all.iter().any(|e| about(&e) && e["reason"] == "PartlyRefused"))
    };
    cluster.until(&["get", "events", "-n", "org-acme", "-o", "json"], told).await.unwrap();
}
