//! What the objects of a list share: its own kind, `apiVersion` and metadata, the columns of a Table.

use std::borrow::Cow;

use serde_json::Value;

use super::piece::{Head, Piece};
use super::wire::{Column, ListMetadata};

/// A list without its items.
#[derive(Debug, Default, Clone)]
pub(super) struct Envelope {
    /// `apiVersion`, empty if it is not known (yet).
    pub(super) api_version: String,
    /// `kind`, empty if it is not known (yet).
    pub(super) kind: String,
    /// Whether `metadata.continue` says that there is more.
    pub(super) goes_on: bool,
    /// Names of the columns of a Table.
    pub(super) columns: Vec<String>,
}

impl Envelope {
    /// Of a list that is in memory.
    pub(super) fn of(list: &Value) -> Self {
        let text = |field| list.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut envelope = Self { api_version: text("apiVersion"), kind: text("kind"), ..Self::default() };
        if let Some(metadata) = list.get("metadata") {
            envelope.read_metadata(Piece::Value(metadata));
        }
        if let Some(columns) = list.get("columnDefinitions") {
            envelope.read_columns(Piece::Value(columns));
        }
        envelope
    }

    /// Whether a kind can be that of a list.
    pub(super) fn names_list(kind: &str) -> bool {
        kind.ends_with("List") || kind == "Table"
    }

    /// The items of a list that is in memory; none if it is no list.
    pub(super) fn items<'v>(&self, list: &'v Value) -> Option<&'v [Value]> {
        match list.get(if self.is_table() { "rows" } else { "items" })? {
            Value::Array(items) => Some(items),
            Value::Null => Some(&[]),
            _ => None,
        }
    }

    /// Whether it is a Table (`meta.k8s.io`).
    pub(super) fn is_table(&self) -> bool {
        self.kind == "Table" && self.api_version.starts_with("meta.k8s.io/")
    }

    /// Whether its items can be in a field of this name. Before the kind is known, `items` are.
    pub(super) fn holds_items_in(&self, field: &[u8]) -> bool {
        match field {
            b"items" => self.kind.is_empty() || self.kind.ends_with("List"),
            b"rows" => self.is_table(),
            _ => false,
        }
    }

    /// `apiVersion` and kind of each item, if it is a list of one kind.
    pub(super) fn of_kind(&self) -> Option<(&str, &str)> {
        let kind = self.kind.strip_suffix("List")?;
        (!kind.is_empty()).then_some((&self.api_version, kind))
    }

    /// What an item is, from what it says itself and what the list says.
    pub(super) fn complete<'h>(&'h self, head: Head<'h>) -> Head<'h> {
        match self.of_kind() {
            Some((api_version, kind)) if head.kind.is_empty() => {
                Head { api_version: Cow::Borrowed(api_version), kind: Cow::Borrowed(kind) }
            }
            _ => head,
        }
    }

    /// Whether it is the Table of Secrets, which only its columns tell.
    pub(super) fn holds_secrets(&self) -> bool {
        self.columns == ["Name", "Type", "Data", "Age"]
    }

    /// Index of the column that has the type of a Secret.
    pub(super) fn type_column(&self) -> Option<usize> {
        self.columns.iter().position(|column| column == "Type")
    }

    /// Takes its `metadata` in.
    pub(super) fn read_metadata(&mut self, metadata: Piece<'_>) {
        let metadata = metadata.read::<Option<ListMetadata<'_>>>().ok().flatten().unwrap_or_default();
        self.goes_on |= metadata.goes_on.is_some_and(|token| !token.0.is_empty());
    }

    /// Takes its `columnDefinitions` in.
    pub(super) fn read_columns(&mut self, columns: Piece<'_>) {
        let columns = columns.read::<Vec<Column<'_>>>().unwrap_or_default();
        self.columns = columns.into_iter().map(|column| column.name.0.into_owned()).collect();
    }
}
