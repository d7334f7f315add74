//! Objects that are kept as they are, in the shape that their kind is kept in.

use serde_json::{Map, Value};

use super::Intake;
use crate::load::kinds::{SETTING_CONFIG_MAPS, TRUSTED_CONFIG_MAPS, group_of, is_namespaced};
use crate::load::piece::{Fault, Head, Piece};
use crate::load::shape::{CONFIG_MAP, MANAGED, Shape, VOLUME, WORKLOAD, drop_values, setting_names};
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
        whole: bool,
    ) -> Result<(), Fault> {
        let has_settings_in = |name: &str| SETTING_CONFIG_MAPS.contains(&name);
        let named = |name: &str| TRUSTED_CONFIG_MAPS.contains(&name) || has_settings_in(name);
        let mut words =
            TRUSTED_CONFIG_MAPS.iter().chain(&SETTING_CONFIG_MAPS).copied().chain(setting_names());
        if !words.any(|word| piece.may_mention(word)) {
            return Ok(());
        }
        let mut body = piece.read_seed(&CONFIG_MAP)?;
        let has_settings = body.get("data").and_then(Value::as_object).is_some_and(|data| !data.is_empty());
        if !has_settings && !text_at(&body, "/metadata/name").is_some_and(named) {
            return Ok(());
        }
        // So that no setting is told from settings that were not read, as in metadata alone.
        let is_read = whole && text_at(&body, "/metadata/name").is_some_and(has_settings_in);
        if let (true, Some(fields)) = (is_read, body.as_object_mut()) {
            let data = fields.entry("data").or_insert(Value::Null);
            if data.is_null() {
                *data = Value::Object(Map::new());
            }
        }
        self.keep(head, body, origin)
    }

    pub(super) fn take_workload(
        &mut self,
        head: &Head<'_>,
        piece: Piece<'_>,
        origin: Origin,
    ) -> Result<(), Fault> {
        let mut body = piece.read_seed(&WORKLOAD)?;
        drop_values(&mut body);
        self.keep(head, body, origin)
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

fn text_at<'v>(body: &'v Value, pointer: &str) -> Option<&'v str> {
    body.pointer(pointer).and_then(Value::as_str)
}

fn restate(body: &mut Map<String, Value>, field: &str, text: &str) {
    if !body.contains_key(field) {
        body.shift_insert(0, field.to_owned(), Value::String(text.to_owned()));
    }
}
