//! `Audit` and `Warn` change nothing that works, and report what `Enforce` refuses.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bailey_attacks::{Attack, Outcome, Rail, catalogue};
use bailey_testkit::{
    ManagementCluster, Options,
    attack::{self, Cast},
    fixture::bindings,
};
use serde_json::Value;

use crate::{MARKER, program};

/// How long the API server may take to act as its policies say.
const EFFECT_SECONDS: u64 = 15;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audit_and_warn_report_what_enforce_refuses_and_change_nothing() {
    let options = Options { audit: true, ..Options::default() };
    let mut cluster = ManagementCluster::stock(&program(), options, MARKER).await.unwrap();
    cluster.install().await.unwrap();
    audit_is_in_effect(&cluster).await;
    // A cluster-admin may get every Secret, so for it no read is hidden.
    each_is_reported(&cluster, |attack| stopped_by_a_rail(attack) && !hides_a_read(attack)).await;

    cluster.set_enforcement("Warn").await.unwrap();
    the_author_learns_what_will_be_scoped(&cluster).await;
    let delete = ["delete", "clusterrolebinding", "write-all-customer-group"];
    cluster.plane.admin().kubectl(&delete, None).await.unwrap().stdout_of_success().unwrap();
    each_is_reported(&cluster, |attack| attack.definition().rails == [Rail::HiddenRead]).await;
    warning_and_refusal_say_the_same(&mut cluster).await;
    the_marker_is_in_no_finding(&cluster);
}

/// Each attack works as before, and its rail is named in the audit log.
async fn each_is_reported(cluster: &ManagementCluster, concerns: impl Fn(&Attack) -> bool) {
    let cast = Cast::new(&cluster.plane, &cluster.names).await.unwrap();
    let mut missing = Vec::new();
    for (n, attack) in catalogue().unwrap().iter().enumerate().filter(|(_, a)| concerns(a)) {
        let wanted: BTreeSet<_> = attack
            .definition()
            .rails
            .iter()
            .filter(|r| !matches!(r, Rail::Rbac | Rail::ScopedRoles))
            .map(|r| r.name().to_owned())
            .collect();
        // The API server takes up each policy at its own time, so an attack may be there first: then again, with
        // other names.
        let deadline = Instant::now() + Duration::from_secs(EFFECT_SECONDS);
        for again in 0.. {
            let found = reported(cluster, &cast, attack, &format!("w{n}x{again}"), &wanted).await;
            if wanted.is_subset(&found) {
                break;
            }
            if Instant::now() > deadline {
                missing.push(format!("{}: {wanted:?} not in {found:?}", attack.id()));
                break;
            }
        }
    }
    assert!(missing.is_empty(), "not in the audit log:\n{}", missing.join("\n"));
}

/// The rails that the audit log names after an attack. An event is written once its answer is, which a client may read
/// before.
async fn reported(
    cluster: &ManagementCluster,
    cast: &Cast,
    attack: &Attack,
    tag: &str,
    wanted: &BTreeSet<String>,
) -> BTreeSet<String> {
    let seen = findings(cluster).len();
    let report = attack::run(cast, &attack.render(&bindings(MARKER, tag)).unwrap()).await.unwrap();
    let judgement = &report.judgement;
    assert_eq!(judgement.outcome, Outcome::Succeeded, "Audit stopped {}: {}", attack.id(), judgement.detail);
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        let found = findings(cluster).into_iter().skip(seen).map(|f| f.rail).collect();
        if wanted.is_subset(&found) || Instant::now() > deadline {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn hides_a_read(attack: &Attack) -> bool {
    attack.definition().rails.contains(&Rail::HiddenRead)
}

/// The API server learns of a policy through a watch; in `Audit` only its log shows that it has.
async fn audit_is_in_effect(cluster: &ManagementCluster) {
    let installer = cluster.installer().unwrap();
    let body = r#"{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{"name":"x"},"spec":{}}"#;
    let path = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/org-acme/helmreleases?dryRun=All";
    let deadline = Instant::now() + Duration::from_secs(EFFECT_SECONDS);
    while findings(cluster).is_empty() {
        assert!(Instant::now() < deadline, "no rail wrote to the audit log");
        let (status, body) =
            installer.send("POST", path, Some("application/json"), Some(body)).await.unwrap();
        assert_eq!(status, 201, "{body}");
    }
}

/// What a rail with a message stops; what only an absent right stops is reported by `plan --enforce`.
fn stopped_by_a_rail(attack: &Attack) -> bool {
    let definition = attack.definition();
    definition.requires.is_none()
        && definition.rails.iter().any(|r| *r != Rail::Rbac)
        && attack.id() != "argo-application-in-cluster"
}

struct Finding {
    rail: String,
    text: String,
}

/// The failed validations that the API server wrote to its audit log.
fn findings(cluster: &ManagementCluster) -> Vec<Finding> {
    let log = std::fs::read_to_string(cluster.plane.dir().join("audit.log")).unwrap();
    let mut findings = Vec::new();
    for event in log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let annotation = |name: &str| event["annotations"][name].as_str();
        if let Some(text) = annotation("pod-security.kubernetes.io/audit-violations") {
            findings.push(Finding { rail: Rail::PodSecurity.name().to_owned(), text: text.to_owned() });
        }
        let failures = annotation("validation.policy.admission.k8s.io/validation_failure").unwrap_or("[]");
        for failure in serde_json::from_str::<Vec<Value>>(failures).unwrap() {
            let message = failure["message"].as_str().unwrap();
            let rail = message.strip_prefix("rail ").and_then(|m| m.split_once(':')).map_or("", |(r, _)| r);
            findings.push(Finding { rail: rail.to_owned(), text: failure.to_string() });
        }
    }
    findings
}

/// Narrowing is no refusal, so it is announced to its author beforehand.
async fn the_author_learns_what_will_be_scoped(cluster: &ManagementCluster) {
    let installer = cluster.installer().unwrap();
    let body = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"x"},
        "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[]}"#;
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?dryRun=All";
    let deadline = Instant::now() + Duration::from_secs(EFFECT_SECONDS);
    loop {
        let reply =
            installer.send_with_warnings("POST", path, Some("application/json"), Some(body)).await.unwrap();
        assert_eq!(reply.status, 201, "{}", reply.body);
        if reply.warnings.iter().any(|w| w.contains("will be scoped to the namespaces of tenant acme")) {
            return;
        }
        assert!(Instant::now() < deadline, "{:?}", reply.warnings);
    }
}

/// The same request, first warned of and then refused, in the same words.
async fn warning_and_refusal_say_the_same(cluster: &mut ManagementCluster) {
    let developer = cluster.installer().unwrap();
    let body = r#"{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{"name":"x"},"spec":{}}"#;
    let path = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/org-acme/helmreleases?dryRun=All";
    let send = || developer.send_with_warnings("POST", path, Some("application/json"), Some(body));
    // The API server learns of the new action of a binding through a watch.
    let effect = || Instant::now() + Duration::from_secs(EFFECT_SECONDS);
    let deadline = effect();
    let warned = loop {
        let reply = send().await.unwrap();
        assert_eq!(reply.status, 201, "{}", reply.body);
        if !reply.warnings.is_empty() {
            break reply;
        }
        assert!(Instant::now() < deadline, "no warning");
    };
    cluster.enforce().await.unwrap();
    let deadline = effect();
    let refused = loop {
        let reply = send().await.unwrap();
        if reply.status == 403 {
            break reply;
        }
        assert!(Instant::now() < deadline, "got {}: {}", reply.status, reply.body);
    };
    let message =
        serde_json::from_str::<Value>(&refused.body).unwrap()["message"].as_str().unwrap().to_owned();
    let said = message.split_once("denied request: ").unwrap().1;
    assert!(warned.warnings.iter().any(|w| w.contains(said)), "{:?}\n{said}", warned.warnings);
}

fn the_marker_is_in_no_finding(cluster: &ManagementCluster) {
    assert!(findings(cluster).iter().all(|f| !f.text.contains(MARKER)));
}
