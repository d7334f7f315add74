//! Which parts of an object are kept: a tree of field names, applied while parsing, so that what is left out never
//! becomes a value.

#[cfg(test)]
mod tests;

use std::fmt;

use serde::Deserializer;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::wire::Text;

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

const CONTAINERS: Shape =
    Only(&[("name", All), ("image", All), ("command", All), ("args", All), ("env", Only(&[("name", All)]))]);

/// A Deployment, DaemonSet or StatefulSet: who runs what with which flags.
pub(super) const WORKLOAD: Shape = Only(&[
    API_VERSION,
    KIND,
    METADATA_FIELD,
    (
        "spec",
        Only(&[(
            "template",
            Only(&[("spec", Only(&[("serviceAccountName", All), ("containers", CONTAINERS)]))]),
        )]),
    ),
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
