//! `bailey clusters`: how each workload cluster is connected, and whether its services answer.

use bailey_api::{OPERATOR_NAMESPACE, READY, WorkloadCluster};
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize as _, Serialize};

use crate::args::ClustersArguments;
use crate::live::{Live, path, text};
use crate::output::{Format, Output, Screen, Tone, json};
use crate::{CliError, Exit};

/// The clusters, as the JSON document shows them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Clusters {
    schema: &'static str,
    complete: bool,
    clusters: Vec<Row>,
}

/// One cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    cluster: String,
    ready: bool,
    message: String,
    path: Option<String>,
    /// In seconds; negative if it is over.
    certificate_left_seconds: Option<i64>,
    skew_seconds: Option<i64>,
    services_ready: usize,
    services: usize,
}

/// Lists clusters; exit code 1 if one is not ready.
pub async fn run(arguments: &ClustersArguments, live: &Live, screen: &Screen) -> Result<Output, CliError> {
    let target =
        path(bailey_api::GROUP, bailey_api::VERSION, "workloadclusters", Some(OPERATOR_NAMESPACE), None);
    let (mut clusters, mut unreadable) = (Vec::new(), Vec::new());
    let now = Timestamp::now().as_second();
    for item in live.list(&target).await? {
        match WorkloadCluster::deserialize(&item) {
            Ok(cluster) => clusters.push(row(&cluster, now)),
            Err(error) => {
                unreadable.push(format!("WorkloadCluster {}: {error}", text(&item, "/metadata/name")))
            }
        }
    }
    clusters.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    let document = Clusters { schema: "bailey.clusters/v1", complete: unreadable.is_empty(), clusters };
    let waiting = document.clusters.iter().any(|row| !row.ready);
    let shown = match arguments.output {
        Format::Json => json(&document)?,
        _ => table(&document.clusters, screen),
    };
    let mut output = Output::new(shown, Exit::of(waiting, document.complete));
    output.notes = unreadable.iter().map(|what| format!("cannot be read: {what}")).collect();
    if document.clusters.is_empty() && document.complete {
        output
            .notes
            .push("No workload clusters: the issuer makes one for each Cluster of Cluster API.".to_owned());
    }
    Ok(output)
}

fn row(cluster: &WorkloadCluster, now: i64) -> Row {
    let status = cluster.status.clone().unwrap_or_default();
    let ready = status.conditions.iter().find(|condition| condition.type_ == READY);
    Row {
        cluster: format!("{}/{}", cluster.spec.cluster.namespace, cluster.spec.cluster.name),
        ready: ready.is_some_and(|condition| condition.status == "True"),
        message: ready
            .map_or_else(|| "no agent has come yet".to_owned(), |condition| condition.message.clone()),
        path: status.path,
        certificate_left_seconds: status.certificate_not_after.map(|time| time.0.as_second() - now),
        skew_seconds: status.skew_seconds,
        services_ready: status.services.iter().filter(|service| service.ready).count(),
        services: status.services.len(),
    }
}

fn table(rows: &[Row], screen: &Screen) -> String {
    let header = ["CLUSTER", "READY", "PATH", "CERTIFICATE", "SKEW", "SERVICES", "STATUS"];
    let rows = rows
        .iter()
        .map(|row| {
            let tone = if row.ready { Tone::Good } else { Tone::Bad };
            let ready = if row.ready { "yes" } else { "no" };
            vec![
                (row.cluster.clone(), None),
                (ready.to_owned(), Some(tone)),
                (row.path.clone().unwrap_or_else(|| "-".to_owned()), None),
                (row.certificate_left_seconds.map_or_else(|| "-".to_owned(), left), None),
                (row.skew_seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds}s")), None),
                (format!("{}/{}", row.services_ready, row.services), None),
                (row.message.clone(), None),
            ]
        })
        .collect();
    screen.table(&header, rows)
}

/// How long a certificate lives still.
fn left(seconds: i64) -> String {
    match seconds {
        ..=0 => "over".to_owned(),
        1..=119 => format!("{seconds}s"),
        _ => format!("{}m", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(status: serde_json::Value) -> WorkloadCluster {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "bailey.dev/v1alpha1", "kind": "WorkloadCluster", "metadata": { "name": "org.one" },
            "spec": {
                "cluster": { "namespace": "org", "name": "one", "uid": "0b4c2e5a-0a3c-4f43-8c9e-0d5b7a1e9f11" },
                "sniLabel": "5f1e0c9a7b3d4e2f8a6c1b0d9e7f3a25",
            },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_cluster_is_shown_with_what_stands_in_its_way() {
        let time = "2026-01-01T00:00:00Z";
        let connected = cluster(serde_json::json!({
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "ServiceNotReady", "lastTransitionTime": time,
                "message": "service `images` does not answer: BackendRefused",
            }],
            "path": "Proxy", "certificateNotAfter": "2026-01-01T00:59:00Z", "skewSeconds": -3,
            "services": [{ "name": "images", "ready": false, "reason": "BackendRefused" }, { "name": "git", "ready": true }],
        }));
        let now = time.parse::<Timestamp>().unwrap().as_second();
        let rows = [row(&connected, now), row(&cluster(serde_json::json!({})), now)];
        insta::assert_snapshot!(table(&rows, &Screen { color: false, width: None }), @r"
        CLUSTER  READY  PATH   CERTIFICATE  SKEW  SERVICES  STATUS
        org/one  no     Proxy  59m          -3s   1/2       service `images` does not answer: BackendRefused
        org/one  no     -      -            -     0/0       no agent has come yet
        ");
    }

    #[test]
    fn a_certificate_that_is_over_says_so() {
        assert_eq!([left(-5), left(0), left(90), left(3600)], ["over", "over", "90s", "60m"]);
    }
}
