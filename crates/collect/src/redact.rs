//! Drops from objects what may hold a credential and decides nothing.

#[cfg(test)]
mod tests;

use bailey_access::{drop_values, is_setting};
use serde_json::{Map, Value};

/// Fields that hold what somebody configured, credentials among it.
const VALUES: [&str; 8] = [
    "/spec/values",
    "/spec/valuesInline",
    "/spec/postBuild/substitute",
    "/spec/source/helm",
    "/spec/source/kustomize",
    "/spec/source/plugin",
    "/operation",
    "/status/history",
];
/// The same within each source of an Application of Argo CD.
const OF_SOURCES: [&str; 3] = ["helm", "kustomize", "plugin"];
/// Annotations that something here reads. All others go: any may hold a value.
const ANNOTATIONS: [&str; 5] = [
    "azure.workload.identity/client-id",
    "eks.amazonaws.com/role-arn",
    "iam.gke.io/gcp-service-account",
    "kubernetes.io/service-account.name",
    "pod-policies.kyverno.io/autogen-controllers",
];
/// What names of credentials end with.
const CREDENTIALS: [&str; 6] = ["password", "passwd", "secret-key", "token", "apikey", "api-key"];

/// Takes from an object: copies of itself and annotations, what its containers are told but for flags and settings of
/// known controllers, data of ConfigMaps but for such settings, values of releases, logins in URLs.
pub fn redact(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations
                .retain(|key, _| ANNOTATIONS.contains(&key.as_str()) || key.starts_with("bailey.dev/"));
        }
    }
    match object.get("kind").and_then(Value::as_str) {
        Some("ConfigMap") => redact_config_map(object),
        Some("Deployment" | "DaemonSet" | "StatefulSet") => redact_workload(object),
        _ => {
            if let Some(pod) = object.pointer_mut("/spec").and_then(Value::as_object_mut) {
                drop_told(pod, &["containers", "initContainers", "ephemeralContainers"]);
            }
        }
    }
    for field in VALUES {
        let (parent, name) = field.rsplit_once('/').unwrap_or_default();
        if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(name);
        }
    }
    let sources = object.pointer_mut("/spec/sources").and_then(Value::as_array_mut);
    for source in sources.into_iter().flatten().filter_map(Value::as_object_mut) {
        source.retain(|field, _| !OF_SOURCES.contains(&field.as_str()));
    }
    drop_logins(object);
}

/// Leaves what controllers are set by.
fn redact_config_map(map: &mut Value) {
    let Some(fields) = map.as_object_mut() else { return };
    fields.remove("binaryData");
    if let Some(data) = fields.get_mut("data").and_then(Value::as_object_mut) {
        data.retain(|key, _| is_setting(key));
    }
}

fn redact_workload(workload: &mut Value) {
    drop_values(workload);
    if let Some(metadata) = workload.pointer_mut("/spec/template/metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
    }
    let Some(pod) = workload.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut) else {
        return;
    };
    drop_told(pod, &["initContainers", "ephemeralContainers"]);
    let containers = pod.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        for field in ["args", "command"] {
            if let Some(words) = container.get_mut(field).and_then(Value::as_array_mut) {
                redact_words(words);
            }
        }
    }
}

/// Drops what containers are told: arguments, and values of variables.
fn drop_told(pod: &mut Map<String, Value>, fields: &[&str]) {
    for field in fields {
        let containers = pod.get_mut(*field).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.remove("args");
            container.remove("command");
            let variables = container.get_mut("env").and_then(Value::as_array_mut);
            for variable in variables.into_iter().flatten().filter_map(Value::as_object_mut) {
                variable.remove("value");
            }
        }
    }
}

/// Drops from a command line what is said to be a credential: `--token=VALUE`, `--token VALUE`.
fn redact_words(words: &mut [Value]) {
    let mut follows = false;
    for word in words {
        let text = word.as_str().unwrap_or_default();
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let name = name.to_ascii_lowercase();
        let is_credential = CREDENTIALS.iter().any(|credential| name.ends_with(credential));
        // A path to a credential, and a variable, are none.
        let harmless = |value: &str| value.is_empty() || value.starts_with('/') || value.starts_with("$(");
        let is_flag = text.starts_with('-');
        let hides = if follows && !is_flag { !harmless(text) } else { is_credential && !harmless(value) };
        follows = is_flag && is_credential && value.is_empty();
        if hides {
            *word = Value::from("--redacted");
        }
    }
}

/// Drops `USER:PASSWORD@` from every URL.
fn drop_logins(value: &mut Value) {
    match value {
        Value::String(text) => {
            let authority =
                text.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
            let login = authority.and_then(|authority| authority.rsplit_once('@')).map(|(login, _)| login);
            if let Some(login) = login.filter(|login| login.contains(':')) {
                *text = text.replacen(&format!("{login}@"), "", 1);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(drop_logins),
        Value::Object(fields) => fields.values_mut().for_each(drop_logins),
        _ => {}
    }
}
