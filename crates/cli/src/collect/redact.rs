//! Drops from objects what may hold a credential and decides nothing.

use serde_json::Value;

/// Fields of `spec` that hold what somebody configured, credentials among it.
const VALUES: [&str; 3] = ["values", "valuesInline", "postBuild/substitute"];

/// Takes from an object: copies of itself, values of environment variables, arguments that look like credentials, values
/// of releases.
pub fn redact(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    for path in ["/spec", "/spec/template/spec", "/spec/jobTemplate/spec/template/spec"] {
        if let Some(pod) = object.pointer_mut(path) {
            for field in ["containers", "initContainers", "ephemeralContainers"] {
                let containers = pod.get_mut(field).and_then(Value::as_array_mut);
                containers.into_iter().flatten().for_each(redact_container);
            }
        }
    }
    for field in VALUES {
        let (parent, name) = match field.rsplit_once('/') {
            Some((parent, name)) => (format!("/spec/{parent}"), name),
            None => ("/spec".to_owned(), field),
        };
        if let Some(parent) = object.pointer_mut(&parent).and_then(Value::as_object_mut) {
            parent.remove(name);
        }
    }
}

fn redact_container(container: &mut Value) {
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(variable) = variable.as_object_mut() {
            variable.remove("value");
        }
    }
    for field in ["args", "command"] {
        for argument in container.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            if argument.as_str().is_some_and(is_credential) {
                *argument = Value::from("--redacted");
            }
        }
    }
}

/// Whether an argument names a credential and gives its value.
fn is_credential(argument: &str) -> bool {
    let Some((name, value)) = argument.split_once('=') else { return false };
    let name = name.to_ascii_lowercase();
    // A path to a credential is none.
    !value.is_empty()
        && !value.starts_with('/')
        && !value.starts_with("$(")
        && ["password", "passwd", "secret-key", "token", "apikey", "api-key"]
            .iter()
            .any(|word| name.ends_with(word))
}
