//! Which parts of an object are kept: a tree of field names, applied while parsing, so that what is left out never
//! becomes a value.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::Deserializer;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::wire::Text;
use crate::deputies;

/// What is kept of a value. Of a list, it is kept of each entry.
#[derive(Debug)]
pub(super) enum Shape {
    /// All.
    All,
    /// Nothing: the field is left out.
    Nothing,
    /// These fields, each in its shape.
    Only(&'static [(&'static str, Shape)]),
    /// All fields, these in their shapes.
    AllBut(&'static [(&'static str, Shape)]),
}

use Shape::{All, AllBut, Nothing, Only};

const API_VERSION: (&str, Shape) = ("apiVersion", All);
const KIND: (&str, Shape) = ("kind", All);
const METADATA_FIELD: (&str, Shape) = ("metadata", METADATA);

/// Metadata without what repeats the object, and for a Secret would repeat its values.
const METADATA: Shape = AllBut(&[
    ("managedFields", Nothing),
    ("annotations", AllBut(&[("kubectl.kubernetes.io/last-applied-configuration", Nothing)])),
]);

/// The whole object.
pub(super) const WHOLE: Shape = AllBut(&[METADATA_FIELD]);

/// The whole object without its `status`, where that repeats thousands of other objects.
pub(super) const DESIRED: Shape = AllBut(&[METADATA_FIELD, ("status", Nothing)]);

/// That it exists.
pub(super) const EXISTENCE: Shape = Only(&[API_VERSION, KIND, METADATA_FIELD]);

/// A CustomResourceDefinition without its schemas.
pub(super) const DEFINITION: Shape = Only(&[
    API_VERSION,
    KIND,
    METADATA_FIELD,
    (
        "spec",
        Only(&[
            ("group", All),
            ("names", All),
            ("scope", All),
            ("conversion", All),
            ("versions", Only(&[("name", All), ("served", All), ("storage", All)])),
        ]),
    ),
]);

/// A CompositeResourceDefinition of Crossplane without its schemas.
pub(super) const COMPOSITE_DEFINITION: Shape =
    AllBut(&[METADATA_FIELD, ("spec", AllBut(&[("versions", AllBut(&[("schema", Nothing)]))]))]);

/// Names of settings of controllers by which deputies are decided, in the environment or in a ConfigMap. No value of
/// another name is kept: it may be a credential. A test compares them with what deputies look for.
pub(super) const SETTINGS: Shape = Only(&[
    ("ARGOCD_APPLICATION_NAMESPACES", All),
    ("DEFAULT_SERVICE_ACCOUNT", All),
    ("KEDA_RESTRICT_SECRET_ACCESS", All),
    ("WATCH_NAMESPACE", All),
    ("application.namespaces", All),
    ("application.sync.impersonation.enabled", All),
]);

/// An entry of `env`. Its value is dropped afterwards, unless it is a setting; see [`drop_values`].
const VARIABLE: Shape = Only(&[
    ("name", All),
    ("value", All),
    ("valueFrom", Only(&[("configMapKeyRef", All), ("fieldRef", All), ("secretKeyRef", All)])),
]);

const CONTAINERS: Shape = Only(&[
    ("name", All),
    ("image", All),
    ("command", All),
    ("args", All),
    ("env", VARIABLE),
    ("envFrom", All),
]);

/// A Deployment, DaemonSet or StatefulSet: who runs what with which flags.
pub(super) const WORKLOAD: Shape = Only(&[
    API_VERSION,
    KIND,
    METADATA_FIELD,
    (
        "spec",
        Only(&[(
            "template",
            Only(&[(
                "spec",
                Only(&[("serviceAccountName", All), ("serviceAccount", All), ("containers", CONTAINERS)]),
            )]),
        )]),
    ),
]);

/// A ConfigMap: that it exists, and settings in it.
pub(super) const CONFIG_MAP: Shape = Only(&[API_VERSION, KIND, METADATA_FIELD, ("data", SETTINGS)]);

/// An object of Flux without values that it hands to what it installs.
pub(super) const FLUX: Shape = AllBut(&[
    METADATA_FIELD,
    ("spec", AllBut(&[("values", Nothing), ("postBuild", AllBut(&[("substitute", Nothing)]))])),
]);

/// A managed resource of Crossplane: with whose credentials it is made, and where its own are put.
pub(super) const MANAGED: Shape = Only(&[
    API_VERSION,
    KIND,
    METADATA_FIELD,
    (
        "spec",
        Only(&[
            ("providerConfigRef", All),
            ("writeConnectionSecretToRef", All),
            ("publishConnectionDetailsTo", All),
        ]),
    ),
]);

/// A PersistentVolume: which folder of a node it is, and who has it.
pub(super) const VOLUME: Shape =
    Only(&[API_VERSION, KIND, METADATA_FIELD, ("spec", Only(&[("hostPath", All), ("claimRef", All)]))]);

/// Whether a variable, or a key of a ConfigMap, is a setting by which deputies are decided, and so is kept.
pub fn is_setting(name: &str) -> bool {
    matches!(SETTINGS.of(name), All)
}

/// The names of all settings.
pub fn setting_names() -> impl Iterator<Item = &'static str> {
    let Only(fields) = SETTINGS else { return [].iter().map(name_of) };
    fields.iter().map(name_of)
}

fn name_of(field: &'static (&'static str, Shape)) -> &'static str {
    field.0
}

/// Drops of a Deployment, DaemonSet or StatefulSet what its containers are told: everything, unless one runs a controller
/// that deputies are decided by, of which flags and settings stay.
pub fn drop_values(workload: &mut Value) {
    const CONTAINERS: &str = "/spec/template/spec/containers";
    let images = workload.pointer(CONTAINERS).and_then(Value::as_array).into_iter().flatten();
    let image =
        |container: &Value| container.get("image").and_then(Value::as_str).unwrap_or_default().to_owned();
    let known: Vec<bool> = images.map(|container| deputies::runs_in(workload, &image(container))).collect();
    let containers = workload.pointer_mut(CONTAINERS).and_then(Value::as_array_mut);
    for (container, is_known) in containers.into_iter().flatten().zip(known) {
        let Some(fields) = container.as_object_mut() else { continue };
        if !is_known {
            fields.retain(|field, _| !["args", "command", "env", "envFrom"].contains(&field.as_str()));
            continue;
        }
        let variables = fields.get_mut("env").and_then(Value::as_array_mut);
        for variable in variables.into_iter().flatten().filter_map(Value::as_object_mut) {
            if !variable.get("name").and_then(Value::as_str).is_some_and(is_setting) {
                variable.shift_remove("value");
            }
        }
    }
}

impl Shape {
    fn of(&self, field: &str) -> &Self {
        let (fields, other) = match self {
            Only(fields) => (*fields, &Nothing),
            AllBut(fields) => (*fields, &All),
            shape => return shape,
        };
        fields.iter().find(|(name, _)| *name == field).map_or(other, |(_, shape)| shape)
    }
}

impl<'de> DeserializeSeed<'de> for &Shape {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Shape {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match self.of(&key.0) {
                Nothing => {
                    map.next_value::<IgnoredAny>()?;
                }
                shape => {
                    let value = map.next_value_seed(shape)?;
                    object.insert(key.0.into_owned(), value);
                }
            }
        }
        Ok(Value::Object(object))
    }

    fn visit_bytes<E: de::Error>(self, _: &[u8]) -> Result<Value, E> {
        Err(E::custom("bytes are no value of an API"))
    }
}
