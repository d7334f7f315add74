//! No attack of the catalogue succeeds: with the operator, without it, and after a restart of the API server.
//! And each rail is needed: without it, an attack succeeds.

use std::time::{Duration, Instant};

use bailey_attacks::{Attack, Bindings, Judgement, Outcome, Rail, catalogue};
use bailey_testkit::{
    ManagementCluster,
    attack::{self, Cast},
    fixture::bindings,
};
use futures::{StreamExt, stream};
use serde_json::Value;

use crate::{MARKER, enforced};

/// Attacks that change nothing of each other run at once.
const CONCURRENT: usize = 4;
/// Argo CD brings its own kinds and is not installed in this test.
const ABSENT: [&str; 1] = ["argo-application-in-cluster"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attack_succeeds_and_each_rail_is_needed() {
    let mut cluster = enforced().await;
    nothing_gets_through(&cluster, "with the operator", "a").await;

    cluster.kill_operator();
    cluster.plane.restart_api_server().await.unwrap();
    nothing_gets_through(&cluster, "operator killed, API server restarted", "b").await;
    the_platform_still_works(&cluster).await;

    cluster.rails_active().await.unwrap();
    let attacks = catalogue().unwrap();
    for rail in Rail::ALL {
        // Behind these two stands RBAC itself: nobody holds the right, or the check for escalation refuses.
        if matches!(rail, Rail::Rbac | Rail::ScopedRoles) {
            continue;
        }
        let alone: Vec<_> =
            attacks.iter().filter(|a| a.definition().rails == [rail] && !ABSENT.contains(&a.id())).collect();
        let off = RailOff::new(&cluster, rail).await;
        let through = off.first_success(&cluster, &alone).await;
        println!("without {rail}: {through}");
        off.restore(&cluster).await;
    }
}

async fn nothing_gets_through(cluster: &ManagementCluster, when: &str, nonce: &str) {
    let cast = Cast::new(&cluster.plane, &cluster.names).await.unwrap();
    let attacks = catalogue().unwrap();
    let results: Vec<_> = stream::iter(attacks.iter().enumerate())
        .map(|(n, attack)| {
            let cast = &cast;
            async move { (attack, execute(cast, attack, &format!("{nonce}{n}")).await) }
        })
        .buffer_unordered(CONCURRENT)
        .collect()
        .await;
    let mut wrong = Vec::new();
    for (attack, judgement) in results {
        let wanted = if ABSENT.contains(&attack.id()) { Outcome::NotApplicable } else { Outcome::Blocked };
        let line = format!("{:<40} {:?} {}", attack.id(), judgement.outcome, judgement.detail);
        println!("{when}: {line}");
        if judgement.outcome != wanted {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{when}:\n{}", wrong.join("\n"));
}

async fn execute(cast: &Cast, attack: &Attack, nonce: &str) -> Judgement {
    let names: Bindings = bindings(MARKER, nonce);
    let report = attack::run(cast, &attack.render(&names).unwrap()).await.unwrap();
    assert_eq!(report.unclean, Vec::<String>::new(), "{}", attack.id());
    report.judgement
}

/// The platform's people and controllers are not held by what holds customers.
async fn the_platform_still_works(cluster: &ManagementCluster) {
    let platform = cluster.platform().unwrap();
    for arguments in [
        &["create", "deployment", "tool", "--image=tool", "-n", "platform-monitoring"][..],
        &["create", "clusterrole", "platform-tool", "--verb=get", "--resource=nodes"],
        &["create", "namespace", "platform-new"],
        &["delete", "namespace", "platform-new"],
    ] {
        platform.kubectl(arguments, None).await.unwrap().stdout_of_success().unwrap();
    }
    // The controllers of kube-system act on it: a ReplicaSet and a Pod appear, a namespace goes.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let pods = platform
            .kubectl(&["get", "pods", "-n", "platform-monitoring", "-l", "app=tool", "-o", "name"], None)
            .await
            .unwrap();
        let gone = platform.kubectl(&["get", "namespace", "platform-new"], None).await.unwrap();
        if pods.stdout.contains("pod/tool") && !gone.success() {
            return;
        }
        assert!(Instant::now() < deadline, "pods: {pods:?}, namespace: {gone:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The bindings of a rail, taken away.
struct RailOff {
    rail: Rail,
    saved: Vec<Value>,
}

impl RailOff {
    async fn new(cluster: &ManagementCluster, rail: Rail) -> Self {
        if rail == Rail::PodSecurity {
            label(cluster, "pod-security.kubernetes.io/enforce-").await;
            return Self { rail, saved: Vec::new() };
        }
        let kinds = "validatingadmissionpolicybindings,mutatingadmissionpolicybindings";
        let output = cluster.plane.admin().kubectl(&["get", kinds, "-o", "json"], None).await.unwrap();
        let all: Value = serde_json::from_str(&output.stdout).unwrap();
        let of_rail = |b: &&Value| b["metadata"]["annotations"]["bailey.dev/rail"] == rail.name();
        let saved: Vec<_> = all["items"].as_array().unwrap().iter().filter(of_rail).cloned().collect();
        assert!(!saved.is_empty(), "rail {rail} has no binding");
        for binding in &saved {
            let kind = binding["kind"].as_str().unwrap();
            let name = binding["metadata"]["name"].as_str().unwrap();
            let delete = ["delete", kind, name];
            cluster.plane.admin().kubectl(&delete, None).await.unwrap().stdout_of_success().unwrap();
        }
        Self { rail, saved }
    }

    /// The API server learns of the removal through a watch, so an attack is tried again for a moment.
    async fn first_success(&self, cluster: &ManagementCluster, attacks: &[&Attack]) -> String {
        let cast = Cast::new(&cluster.plane, &cluster.names).await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(15);
        let mut tries = Vec::new();
        for round in 0.. {
            tries.clear();
            for (n, attack) in attacks.iter().enumerate() {
                let nonce = format!("r{}x{round}x{n}", self.rail.name().replace('-', ""));
                let judgement = execute(&cast, attack, &nonce).await;
                if judgement.outcome == Outcome::Succeeded {
                    return format!("{} succeeds", attack.id());
                }
                tries.push(format!("{}: {:?} {}", attack.id(), judgement.outcome, judgement.detail));
            }
            if Instant::now() > deadline {
                break;
            }
        }
        panic!(
            "without rail {} no attack succeeds, so no test shows that it is needed:\n{}",
            self.rail,
            tries.join("\n")
        );
    }

    async fn restore(self, cluster: &ManagementCluster) {
        if self.rail == Rail::PodSecurity {
            label(cluster, "pod-security.kubernetes.io/enforce=baseline").await;
        }
        for mut binding in self.saved {
            let metadata = binding["metadata"].as_object_mut().unwrap();
            metadata.retain(|k, _| ["name", "labels", "annotations"].contains(&k.as_str()));
            cluster.apply(&binding.to_string()).await.unwrap();
        }
    }
}

async fn label(cluster: &ManagementCluster, change: &str) {
    let label = ["label", "namespace", "org-acme", change];
    cluster.plane.admin().kubectl(&label, None).await.unwrap().stdout_of_success().unwrap();
}
