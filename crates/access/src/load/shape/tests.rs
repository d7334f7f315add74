use serde_json::{Value, json};

use super::{DEFINITION, DESIRED, EXISTENCE, MANAGED, Shape, WHOLE, WORKLOAD, drop_values};
use crate::load::piece::Piece;

fn kept(shape: &Shape, object: &Value) -> Value {
    let from_json = Piece::Json(object.to_string().as_bytes()).read_seed(shape).unwrap();
    let from_value = Piece::Value(object).read_seed(shape).unwrap();
    let from_yaml = Piece::Yaml(&serde_saphyr::to_string(object).unwrap()).read_seed(shape).unwrap();
    assert_eq!(from_json, from_value);
    assert_eq!(from_json, from_yaml);
    from_json
}

#[test]
fn metadata_loses_what_repeats_the_object() {
    let object = json!({
        "apiVersion": "v1", "kind": "X",
        "metadata": {
            "name": "a",
            "managedFields": [{"manager": "kubectl"}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "other": "1"},
        },
        "spec": {"managedFields": "stays", "n": [1, -2, 3.5, null, true]},
        "status": {"x": 1},
    });
    let metadata = json!({"name": "a", "annotations": {"other": "1"}});
    let mut whole = object.clone();
    whole["metadata"] = metadata.clone();
    assert_eq!(kept(&WHOLE, &object), whole);
    whole.as_object_mut().unwrap().remove("status");
    assert_eq!(kept(&DESIRED, &object), whole);
    assert_eq!(kept(&EXISTENCE, &object), json!({"apiVersion": "v1", "kind": "X", "metadata": metadata}));
}

#[test]
fn a_definition_loses_its_schemas() {
    let object = json!({"spec": {
        "group": "g", "scope": "Cluster", "names": {"plural": "xs"}, "preserveUnknownFields": false,
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {}}}],
        "conversion": {"strategy": "None"},
    }});
    let expected = json!({"spec": {
        "group": "g", "scope": "Cluster", "names": {"plural": "xs"},
        "versions": [{"name": "v1", "served": true, "storage": true}],
        "conversion": {"strategy": "None"},
    }});
    assert_eq!(kept(&DEFINITION, &object), expected);
}

#[test]
fn a_workload_keeps_flags_and_settings_and_no_other_value_of_its_environment() {
    let object = json!({"spec": {"replicas": 2, "template": {"metadata": {}, "spec": {
        "serviceAccountName": "a", "volumes": [],
        "containers": [{
            "name": "c", "image": "kedacore/keda:2", "command": ["c"], "args": ["--a=b"],
            "env": [{"name": "TOKEN", "value": "hidden"}, {"name": "WATCH_NAMESPACE", "value": "a"}], "resources": {},
        }],
    }}}});
    let expected = json!({"spec": {"template": {"spec": {
        "serviceAccountName": "a",
        "containers": [
            {"name": "c", "image": "kedacore/keda:2", "command": ["c"], "args": ["--a=b"],
                "env": [{"name": "TOKEN"}, {"name": "WATCH_NAMESPACE", "value": "a"}]},
        ],
    }}}});
    let mut found = kept(&WORKLOAD, &object);
    drop_values(&mut found);
    assert_eq!(found, expected);
    let mut unknown: Value =
        serde_json::from_str(&object.to_string().replace("kedacore/keda", "app")).unwrap();
    drop_values(&mut unknown);
    let container = &unknown["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(*container, json!({"name": "c", "image": "app:2", "resources": {}}));
}

#[test]
fn a_managed_resource_keeps_whose_credentials_it_is_made_with() {
    let object = json!({"spec": {"providerConfigRef": {"name": "aws"}, "forProvider": {"region": "eu"}}});
    assert_eq!(kept(&MANAGED, &object), json!({"spec": {"providerConfigRef": {"name": "aws"}}}));
}
