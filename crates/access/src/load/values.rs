//! The one place where values are read that may be credentials, and only if somebody asked for it.

mod plain;

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use zeroize::{Zeroize as _, Zeroizing};

use super::piece::{Fault, Piece};
use super::wire::{Named, Text, nullable};

/// Takes values of Secrets, and of what else may hold credentials, while a dump is read, for example to fingerprint
/// them. Nothing keeps them afterwards: the loader overwrites its own copies with zeros. Copies inside the parsers of
/// compressed or YAML text are out of its hands.
pub trait SecretValues {
    /// Takes one Secret. It is called once for each that is read, even if a later one of the same name replaces it.
    fn secret(&mut self, secret: &OpenSecret<'_>);

    /// Takes what a ConfigMap, or a container of a workload, holds in plain text; as often as it is read.
    fn plain(&mut self, _part: &OpenPlain<'_>) {}

    /// Hears how the cluster is called of which the name was not given, when all of it is read.
    fn named(&mut self, _cluster: &str) {}
}

/// Values of an object that is no Secret. It has no `Debug`, on purpose.
pub struct OpenPlain<'s> {
    /// Name of the cluster, if the loader was given one.
    pub cluster: Option<&'s str>,
    /// Kind of the object.
    pub kind: &'s str,
    /// Its namespace.
    pub namespace: &'s str,
    /// Its name.
    pub name: &'s str,
    /// The name of the container that has the values in its environment or its arguments; empty for a ConfigMap.
    pub container: &'s str,
    /// The values.
    pub data: &'s BTreeMap<String, Zeroizing<Vec<u8>>>,
}

/// A Secret with its values. It has no `Debug`, on purpose.
pub struct OpenSecret<'s> {
    /// Name of the cluster, if the loader was given one.
    pub cluster: Option<&'s str>,
    /// Its namespace.
    pub namespace: &'s str,
    /// Its name.
    pub name: &'s str,
    /// Its `type`.
    pub kind: &'s str,
    /// Its values, decoded.
    pub data: &'s BTreeMap<String, Zeroizing<Vec<u8>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    metadata: Named<'a>,
    #[serde(borrow, default, rename = "type", deserialize_with = "nullable")]
    kind: Text<'a>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    data: BTreeMap<String, Option<Text<'a>>>,
    #[serde(borrow, default, deserialize_with = "nullable")]
    string_data: BTreeMap<String, Option<Text<'a>>>,
}

pub use plain::is_looked_into as holds_values;
pub(super) use plain::{Home, hand_on as hand_on_plain};

/// Hands the values of a Secret to the sink. Returns what of it could not be decoded, as `key K of Secret NS/NAME`.
pub(super) fn hand_on(
    piece: Piece<'_>,
    cluster: Option<&str>,
    namespace: Option<&str>,
    sink: &mut dyn SecretValues,
) -> Result<Vec<String>, Fault> {
    let wire = piece.read::<Wire<'_>>()?;
    let name = wire.metadata.name.0;
    let namespace = match wire.metadata.namespace.0.as_ref() {
        "" => namespace.unwrap_or("default"),
        namespace => namespace,
    };
    let mut data = BTreeMap::new();
    let mut unread = Vec::new();
    for (key, text) in wire.data {
        match decode(text.unwrap_or_default()) {
            Some(value) => {
                data.insert(key, value);
            }
            None => unread.push(format!("key `{key}` of Secret {namespace}/{name}")),
        }
    }
    // As the API server does: what is written as text replaces what is written in base64.
    for (key, text) in wire.string_data {
        data.insert(key, owned(text.unwrap_or_default()));
    }
    sink.secret(&OpenSecret { cluster, namespace, name: &name, kind: &wire.kind.0, data: &data });
    Ok(unread)
}

fn owned(text: Text<'_>) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(text.0.into_owned().into_bytes())
}

/// Like the decoder of Go, passes over line breaks.
fn decode(text: Text<'_>) -> Option<Zeroizing<Vec<u8>>> {
    let mut encoded = Zeroizing::new(Vec::with_capacity(text.0.len()));
    encoded.extend(text.0.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')));
    if let Cow::Owned(mut text) = text.0 {
        text.zeroize();
    }
    STANDARD.decode(&*encoded).ok().map(Zeroizing::new)
}
