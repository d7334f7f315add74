//! What an object becomes when the operator writes it, and the difference to what it is.

use bailey_guardrails::ObjectKind;
use serde_json::Value;

/// What an object becomes, worked out without the API server.
///
/// The Boundary is replaced as a whole. Of others, what is wanted goes over what is there, as an apply does
/// that takes no field away.
pub fn overlay(kind: ObjectKind, live: &Value, wanted: &Value) -> Value {
    let mut result = live.clone();
    merge(&mut result, wanted);
    if let (ObjectKind::Boundary, Some(result), Some(spec)) =
        (kind, result.as_object_mut(), wanted.get("spec"))
    {
        result.insert("spec".to_owned(), spec.clone());
    }
    result
}

fn merge(live: &mut Value, wanted: &Value) {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            for (key, wanted) in wanted {
                merge(live.entry(key.clone()).or_insert(Value::Null), wanted);
            }
        }
        (Value::Array(live), Value::Array(wanted)) if live.len() == wanted.len() => {
            live.iter_mut().zip(wanted).for_each(|(live, wanted)| merge(live, wanted));
        }
        (live, wanted) => *live = wanted.clone(),
    }
}

/// An object without what the API server keeps for itself.
pub fn clean(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in
            ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"]
        {
            metadata.remove(field);
        }
        let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(last_applied);
        }
        metadata.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty()));
    }
    object
}

/// The difference of two objects as a unified diff of YAML; nothing if there is none.
pub fn difference(live: &Value, planned: &Value) -> Option<String> {
    let (live, planned) = (sorted(&clean(live)), sorted(&clean(planned)));
    if live == planned {
        return None;
    }
    let text = |value: &Value| crate::output::yaml(value).unwrap_or_else(|_| value.to_string());
    let (live, planned) = (text(&live), text(&planned));
    let diff = similar::TextDiff::from_lines(&live, &planned);
    Some(diff.unified_diff().context_radius(2).header("live", "planned").to_string())
}

/// The same value with its keys in order, so that only content makes a difference.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_overlay_keeps_defaults_and_replaces_the_index() {
        let live = json!({"spec": {"groups": {"old": "acme"}, "scope": "*"}});
        let wanted = json!({"spec": {"groups": {"new": "acme"}}});
        let merged = json!({"spec": {"groups": {"old": "acme", "new": "acme"}, "scope": "*"}});
        assert_eq!(overlay(ObjectKind::ClusterRole, &live, &wanted), merged);
        assert_eq!(overlay(ObjectKind::Boundary, &live, &wanted), wanted);
    }

    #[test]
    fn a_difference_shows_content_only() {
        let live = json!({"kind": "Role", "metadata": {"name": "a", "resourceVersion": "1"}, "rules": [{"verbs": ["get"]}]});
        let same = json!({"metadata": {"resourceVersion": "2", "name": "a"}, "kind": "Role", "rules": [{"verbs": ["get"]}]});
        assert_eq!(difference(&live, &same), None);
        let wider = json!({"kind": "Role", "metadata": {"name": "a"}, "rules": [{"verbs": ["get", "list"]}]});
        let diff = difference(&live, &wider).unwrap();
        assert_eq!(diff, "--- live\n+++ planned\n@@ -5,2 +5,3 @@\n - verbs:\n   - get\n+  - list\n");
    }
}
