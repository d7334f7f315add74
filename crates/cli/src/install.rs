//! `bailey install` and `bailey crds`: what is applied to a cluster before anything else.

use bailey_api::OPERATOR_NAMESPACE;

use crate::CliError;
use crate::args::InstallArguments;
use crate::output::yaml;

/// The Helm chart with its default values and without CRDs. Generated: change the chart, not this file.
///
/// Made by `helm template bailey charts/bailey -n bailey-system --set crds.install=false`.
const CHART: &str = include_str!("install.yaml");

/// All CRDs as one YAML stream.
pub fn crds() -> Result<String, CliError> {
    let mut text = String::new();
    for crd in bailey_api::crds() {
        text.push_str("---\n");
        text.push_str(&yaml(&crd)?);
    }
    Ok(text)
}

/// Namespace, CRDs and the chart, in an order in which they can be applied.
pub fn manifests(arguments: &InstallArguments) -> Result<String, CliError> {
    // The labels let its pods be admitted under Pod Security where that is enforced by default.
    let namespace = format!(
        "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {OPERATOR_NAMESPACE}\n  labels:\n    pod-security.kubernetes.io/enforce: restricted\n"
    );
    let mut chart = String::new();
    // Each document begins with its line of dashes.
    let documents = CHART.trim_start_matches("---\n").split("\n---\n");
    for document in documents {
        let is_auditor = document.contains("\n    app.kubernetes.io/component: auditor\n");
        if is_auditor && arguments.without_auditor {
            continue;
        }
        chart.push_str("---\n");
        for line in document.lines() {
            let line = if is_auditor { with_image(line, arguments) } else { substituted(line, arguments) };
            chart.push_str(&line);
            chart.push('\n');
        }
    }
    Ok(format!("{namespace}{}{chart}", crds()?))
}

/// A line of the chart with the image and the replicas that were asked for.
fn substituted(line: &str, arguments: &InstallArguments) -> String {
    match &arguments.replicas {
        Some(replicas) if line.trim_start().starts_with("replicas: ") => {
            format!("{}replicas: {replicas}", indent(line))
        }
        _ => with_image(line, arguments),
    }
}

/// A line of the chart with the image that was asked for.
fn with_image(line: &str, arguments: &InstallArguments) -> String {
    match &arguments.image {
        Some(image) if line.trim_start().starts_with("image: ") => {
            format!("{}image: {}", indent(line), quoted(image))
        }
        _ => line.to_owned(),
    }
}

fn indent(line: &str) -> String {
    line.chars().take_while(|c| *c == ' ').collect()
}

/// A text as a JSON string, which is a YAML string too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn documents(arguments: &InstallArguments) -> Vec<Value> {
        serde_saphyr::from_multiple(&manifests(arguments).unwrap()).unwrap()
    }

    #[test]
    fn the_namespace_is_first_and_all_kinds_are_defined() {
        let documents = documents(&InstallArguments::default());
        let kinds: Vec<_> = documents.iter().map(|d| d["kind"].as_str().unwrap()).collect();
        assert_eq!(
            kinds[..5],
            [
                "Namespace",
                "CustomResourceDefinition",
                "CustomResourceDefinition",
                "CustomResourceDefinition",
                "CustomResourceDefinition"
            ]
        );
        assert!(kinds.contains(&"Deployment"), "{kinds:?}");
        assert!(documents.iter().all(|d| d["metadata"]["name"].is_string()));
    }

    #[test]
    fn image_and_replicas_are_replaced() {
        let arguments = InstallArguments {
            image: Some("r.example/b@sha256:0".to_owned()),
            replicas: Some(3),
            ..InstallArguments::default()
        };
        let all = documents(&arguments);
        let deployments: Vec<_> = all.iter().filter(|d| d["kind"] == "Deployment").collect();
        let replicas = |name: &str| {
            let found = deployments.iter().find(|d| d["metadata"]["name"] == name).unwrap();
            found["spec"]["replicas"].clone()
        };
        assert_eq!((replicas("bailey-operator"), replicas("bailey-auditor")), (3.into(), 1.into()));
        for deployment in deployments {
            let image = deployment.pointer("/spec/template/spec/containers/0/image").unwrap();
            assert_eq!(image, "r.example/b@sha256:0");
        }
    }

    #[test]
    fn without_the_auditor_nothing_of_it_is_installed() {
        let arguments = InstallArguments { without_auditor: true, ..InstallArguments::default() };
        let names = |arguments| -> Vec<String> {
            documents(arguments).iter().map(|d| d["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        let (all, less) = (names(&InstallArguments::default()), names(&arguments));
        let is_auditor = |name: &&String| name.starts_with("bailey-auditor");
        assert_eq!(less.iter().filter(is_auditor).count(), 0);
        assert_eq!(all.len() - less.len(), all.iter().filter(is_auditor).count());
        assert!(all.iter().filter(is_auditor).count() >= 7, "{all:?}");
    }

    #[test]
    fn the_crds_read_back_as_they_are() {
        let read: Vec<Value> = serde_saphyr::from_multiple(&crds().unwrap()).unwrap();
        let meant: Vec<_> = bailey_api::crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
        assert_eq!(read, meant);
    }
}
