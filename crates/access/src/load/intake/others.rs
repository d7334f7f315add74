//! Objects that are kept as they are, in the shape that their kind is kept in.

use serde_json::{Map, Value};

use super::Intake;
use crate::load::kinds::{TRUSTED_CONFIG_MAPS, group_of, is_namespaced};
use crate::load::piece::{Fault, Head, Piece};
use crate::load::shape::{EXISTENCE, MANAGED, Shape, VOLUME};
use crate::load::wire;
use crate::{ObjectFact, Origin, Symbol};

impl Intake<'_> {
    pub(super) fn take_object(
        &mut self,
        head: &Head<'_>,
        piece: Piece<'_>,
        origin: Origin,
        shape: &Shape,
    ) -> Result<(), Fault> {
        let body = piece.read_seed(shape)?;
        self.keep(head, body, origin)
    }

    pub(super) fn take_config_map(
        &mut self,
        head: &Head<'_>,
        piece: Piece<'_>,
        origin: Origin,
    ) -> Result<(), Fault> {
        if !TRUSTED_CONFIG_MAPS.iter().any(|name| piece.may_mention(name)) {
            return Ok(());
        }
        let object = piece.read::<wire::Object<'_>>()?;
        if !TRUSTED_CONFIG_MAPS.contains(&object.metadata.name.0.as_ref()) {
            return Ok(());
        }
        self.take_object(head, piece, origin, &EXISTENCE)
    }

    pub(super) fn take_volume(
        &mut self,
        head: &Head<'_>,
        piece: Piece<'_>,
        origin: Origin,
    ) -> Result<(), Fault> {
        self.take_if(head, piece, origin, &VOLUME, "/spec/hostPath")
    }

    /// Keeps an object of an unknown kind if it is a managed resource of Crossplane.
    pub(super) fn take_unknown(
        &mut self,
        head: &Head<'_>,
        piece: Piece<'_>,
        origin: Origin,
    ) -> Result<(), Fault> {
        self.take_if(head, piece, origin, &MANAGED, "/spec/providerConfigRef")
    }

    fn take_if(
        &mut self,
        head: &Head<'_>,
        piece: Piece<'_>,
        origin: Origin,
        shape: &Shape,
        pointer: &str,
    ) -> Result<(), Fault> {
        let field = pointer.rsplit('/').next().unwrap_or_default();
        if !piece.may_mention(field) {
            return Ok(());
        }
        let body = piece.read_seed(shape)?;
        if body.pointer(pointer).is_none_or(Value::is_null) {
            return Ok(());
        }
        self.keep(head, body, origin)
    }

    fn keep(&mut self, head: &Head<'_>, body: Value, origin: Origin) -> Result<(), Fault> {
        let Value::Object(mut body) = body else {
            return Err(Fault::new("is no object"));
        };
        let text = |field| {
            let metadata = body.get("metadata").and_then(|metadata| metadata.get(field));
            metadata.and_then(Value::as_str).unwrap_or_default()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        if name.is_empty() {
            return Err(Fault::new("has no `metadata.name`"));
        }
        let name = self.snapshot.symbols.intern(name);
        let namespace = match is_namespaced(group_of(&head.api_version), &head.kind) {
            Some(true) => self.home(namespace),
            Some(false) => Symbol::EMPTY,
            None => self.snapshot.symbols.intern(namespace),
        };
        // An item of a list of one kind leaves these to its list.
        restate(&mut body, "kind", &head.kind);
        restate(&mut body, "apiVersion", &head.api_version);
        self.facts.objects.push(ObjectFact {
            api_version: head.api_version.clone().into_owned(),
            kind: head.kind.clone().into_owned(),
            namespace,
            name,
            body: Value::Object(body),
            origin,
        });
        Ok(())
    }
}

fn restate(body: &mut Map<String, Value>, field: &str, text: &str) {
    if !body.contains_key(field) {
        body.shift_insert(0, field.to_owned(), Value::String(text.to_owned()));
    }
}
