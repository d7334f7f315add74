//! The rails on a real API server: every case as a real request, and what only a real server can show.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy knows test functions, not the functions that they call"
)]

mod case;
mod cases;
mod cluster;
mod scoped;

use bailey_guardrails::{Policy, Situation, policies};
use cluster::{Cluster, Request, is_backstop, until, validating};

#[tokio::test(flavor = "multi_thread")]
async fn the_rails_hold_on_a_real_api_server() {
    let mut cluster = Cluster::start().await.unwrap();
    assert_eq!(cluster.desired.boundary.content["spec"], case::boundary()["spec"]);
    let enforced: Vec<_> = cluster.bound().cloned().collect();
    cases::all_are_active(&cluster, &enforced).await.unwrap();
    let mut wrong = cases::run(&cluster, &enforced).await.unwrap();
    wrong.extend(types_check(&cluster).await.unwrap());
    wrong.extend(scoped::run(&cluster).await.unwrap());

    cluster.install("Enforce", is_backstop).await.unwrap();
    let backstops: Vec<_> = cluster.bound().cloned().collect();
    cases::all_are_active(&cluster, &backstops).await.unwrap();
    wrong.extend(cases::run(&cluster, &backstops).await.unwrap());
    wrong.extend(types_check(&cluster).await.unwrap());

    cluster.install("Warn", |_| true).await.unwrap();
    let all: Vec<_> = cluster.bound().cloned().collect();
    cases::all_are_active(&cluster, &all).await.unwrap();
    let added: Vec<_> =
        all.into_iter().filter(|policy| !enforced.contains(policy) && !is_backstop(policy)).collect();
    wrong.extend(cases::run(&cluster, &added).await.unwrap());
    wrong.extend(types_check(&cluster).await.unwrap());
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// What the server's own type check says of each policy.
async fn types_check(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let mut warnings = Vec::new();
    for policy in validating(&cluster.desired) {
        let path =
            format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{}", policy.name);
        let status = until("a type check", async || {
            let answer =
                cluster.send(Request { method: "GET", path: path.clone(), ..Request::default() }).await?;
            let status = answer.body["status"].clone();
            Ok(status.get("observedGeneration").is_some().then_some(status))
        })
        .await?;
        for warning in status["typeChecking"]["expressionWarnings"].as_array().into_iter().flatten() {
            warnings.push(format!("{}: type check: {warning}", policy.name));
        }
    }
    Ok(warnings)
}
