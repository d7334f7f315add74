//! Prometheus Operator: monitors that a Prometheus selects, and what it sends to their targets.
//!
//! A missing namespace selector means the Prometheus' own namespace, an empty one all; a missing object selector means
//! none (API reference, `serviceMonitorSelector`). Labels of a monitor are its author's choice.

use serde_json::Value;

use super::{
    data::{self, Kind},
    process::Process,
    survey::{Draft, Selected, Survey},
};
use crate::{Gift, ObjectFact, Power};

#[cfg(test)]
pub(super) const EDGES: &[&str] =
    &["prometheus-monitor-secret", "prometheus-bearer-token-file", "prometheus-alertmanager-config"];
const PROGRAM: &str = "prometheus-operator";
/// Kinds of monitors and what the fields that select them begin with.
const MONITORS: [(&str, &str); 4] = [
    ("service-monitor", "serviceMonitor"),
    ("pod-monitor", "podMonitor"),
    ("probe", "probe"),
    ("scrape-config", "scrapeConfig"),
];

pub(super) fn add(survey: &mut Survey<'_>) {
    let servers: Vec<&ObjectFact> = ["prometheus", "prometheus-agent"]
        .iter()
        .filter_map(|id| data::kind(id))
        .flat_map(|kind| survey.objects(kind).collect::<Vec<_>>())
        .collect();
    for (id, field) in MONITORS {
        let Some(kind) = data::kind(id).filter(|kind| survey.matters(kind, PROGRAM)) else { continue };
        for server in &servers {
            monitors(survey, kind, field, server);
        }
        if servers.is_empty() && !survey.cluster.has_listed("prometheuses.monitoring.coreos.com") {
            let evidence =
                format!("a Prometheus sends the Secrets that a {} names to its targets", kind.kind);
            let draft = Draft::new("prometheus-monitor-secret", Gift::Power(Power::Secrets), evidence)
                .assume("no Prometheus was loaded, so it is not known which namespaces one looks at");
            survey.write(kind, &draft.request(spec(kind), None, &["/spec"]));
        }
    }
    alertmanager_configs(survey);
}

fn monitors(survey: &mut Survey<'_>, kind: &'static Kind, field: &str, server: &ObjectFact) {
    let Some(selected) = selects(survey, server, field) else { return };
    let (namespace, name) = survey.names(server);
    let who = format!("{} {namespace}/{name}", server.kind);
    for process in by(survey, &namespace) {
        let evidence = format!("{who} sends the Secrets that a {} names to its targets", kind.kind);
        let draft = within(
            Draft::new("prometheus-monitor-secret", Gift::Power(Power::Secrets), evidence),
            process.as_ref(),
            &selected,
        );
        survey.write(kind, &draft.request(spec(kind), None, &["/spec"]));
        if kind.id != "service-monitor" {
            continue;
        }
        let denied = server.body.pointer("/spec/arbitraryFSAccessThroughSMs/deny").and_then(Value::as_bool);
        if denied == Some(true) {
            continue;
        }
        let account = server.text("/spec/serviceAccountName").unwrap_or("default").to_owned();
        let gives = survey.account(&namespace, &account).into();
        let evidence =
            format!("{who} sends the files that a ServiceMonitor names, its own token too, to its targets");
        let draft =
            within(Draft::new("prometheus-bearer-token-file", gives, evidence), process.as_ref(), &selected)
                .despite("arbitraryFSAccessThroughSMs.deny is not true");
        let spec = serde_json::json!({"selector": {}, "endpoints": [{"port": "sample",
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}]});
        survey.write(kind, &draft.request(spec, None, &["/spec/endpoints"]));
    }
}

fn alertmanager_configs(survey: &mut Survey<'_>) {
    let (Some(kind), Some(server_kind)) = (data::kind("alertmanager-config"), data::kind("alertmanager"))
    else {
        return;
    };
    if !survey.matters(kind, PROGRAM) {
        return;
    }
    for server in survey.objects(server_kind).collect::<Vec<_>>() {
        let Some(selected) = selects(survey, server, "alertmanagerConfig") else { continue };
        let (namespace, name) = survey.names(server);
        for process in by(survey, &namespace) {
            let evidence = format!(
                "Alertmanager {namespace}/{name} sends the Secrets that an AlertmanagerConfig names to its receivers"
            );
            let gives = Gift::Power(Power::Secrets);
            let draft = within(
                Draft::new("prometheus-alertmanager-config", gives, evidence),
                process.as_ref(),
                &selected,
            );
            survey.write(kind, &draft);
        }
    }
}

fn within(draft: Draft, process: Option<&Process>, selected: &Selected) -> Draft {
    let draft = draft.by(PROGRAM, process).unless_known(selected.unknown.clone()).only(selected.only.clone());
    match process {
        Some(process) => draft.within(process.watched(&[])),
        None => draft,
    }
}

/// The processes that serve a Prometheus or Alertmanager of a namespace.
fn by(survey: &Survey<'_>, namespace: &str) -> Vec<Option<Process>> {
    let processes = survey.processes(PROGRAM);
    if processes.is_empty() {
        return vec![None];
    }
    processes.into_iter().filter(|process| process.watched(&[]).sees(namespace)).map(Some).collect()
}

/// The namespaces whose objects a server takes; none if it takes none at all.
fn selects(survey: &Survey<'_>, server: &ObjectFact, field: &str) -> Option<Selected> {
    let selector = |name: String| server.body.pointer(&name).filter(|selector| !selector.is_null());
    selector(format!("/spec/{field}Selector"))?;
    Some(match selector(format!("/spec/{field}NamespaceSelector")) {
        Some(namespaces) => survey.selected(namespaces),
        None => Selected { only: Some(vec![survey.names(server).0]), unknown: Vec::new() },
    })
}

fn spec(kind: &Kind) -> Value {
    let login = serde_json::json!({"credentials": {"name": "sample", "key": "sample"}});
    match kind.id.as_str() {
        "service-monitor" => {
            serde_json::json!({"selector": {}, "endpoints": [{"port": "sample", "authorization": login}]})
        }
        "pod-monitor" => {
            serde_json::json!({"selector": {}, "podMetricsEndpoints": [{"port": "sample", "authorization": login}]})
        }
        "probe" => serde_json::json!({"prober": {"url": "sample.example"}, "authorization": login}),
        _ => serde_json::json!({"staticConfigs": [{"targets": ["sample.example"]}], "authorization": login}),
    }
}
