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
    for line in CHART.lines() {
        chart.push_str(&substituted(line, arguments));
        chart.push('\n');
    }
    Ok(format!("{namespace}{}{chart}", crds()?))
}

/// A line of the chart with the image and the replicas that were asked for.
fn substituted(line: &str, arguments: &InstallArguments) -> String {
    let indent: String = line.chars().take_while(|c| *c == ' ').collect();
    let key = line.trim_start();
    match (&arguments.image, &arguments.replicas) {
        (Some(image), _) if key.starts_with("image: ") => format!("{indent}image: {}", quoted(image)),
        (_, Some(replicas)) if key.starts_with("replicas: ") => format!("{indent}replicas: {replicas}"),
        _ => line.to_owned(),
    }
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
        let documents = documents(&InstallArguments { image: None, replicas: None });
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
        let arguments =
            InstallArguments { image: Some("r.example/b@sha256:0".to_owned()), replicas: Some(1) };
        let all = documents(&arguments);
        let deployment = all.iter().find(|d| d["kind"] == "Deployment").unwrap();
        assert_eq!(deployment["spec"]["replicas"], 1);
        assert_eq!(
            deployment.pointer("/spec/template/spec/containers/0/image").unwrap(),
            "r.example/b@sha256:0"
        );
    }

    #[test]
    fn the_crds_read_back_as_they_are() {
        let read: Vec<Value> = serde_saphyr::from_multiple(&crds().unwrap()).unwrap();
        let meant: Vec<_> = bailey_api::crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
        assert_eq!(read, meant);
    }
}
