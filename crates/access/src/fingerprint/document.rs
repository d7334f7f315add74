//! JSON and YAML as a bounded tree whose texts are zeroised.
//!
//! Numbers become text, since passwords may be written without quotes; truth values and nulls become nothing.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use zeroize::Zeroizing;

use super::UnreadReason;

/// Levels of one document. Each costs stack, in the parser and in whoever walks the tree.
const DEPTH_MAX: usize = 40;

/// A parsed document or a part of one.
pub(super) enum Node {
    Text(Zeroizing<String>),
    Map(Vec<(Zeroizing<String>, Node)>),
    List(Vec<Node>),
    Nothing,
}

impl Node {
    /// Returns the value of a key, if this is a map that has it.
    pub(super) fn at(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(name, _)| name.as_str() == key).map(|(_, node)| node)
    }

    /// Returns the text at a key.
    pub(super) fn text_at(&self, key: &str) -> Option<&str> {
        self.at(key).and_then(Node::text)
    }

    /// Returns the text, if this is one that is not empty.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Returns the entries of a map, or none.
    pub(super) fn entries(&self) -> &[(Zeroizing<String>, Node)] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    /// Returns the items of a list, or none.
    pub(super) fn items(&self) -> &[Node] {
        if let Self::List(items) = self { items } else { &[] }
    }
}

/// What came of reading a text as a document.
pub(super) enum Parsed {
    /// One or more documents with structure.
    Documents(Vec<Node>),
    /// The text is something else.
    Other,
    /// The text has more levels or nodes than are read.
    Cut(UnreadReason),
}

/// Reads a text as JSON or YAML. Scalars alone are no documents. `nodes` is what may still be read.
pub(super) fn parse(text: &str, nodes: &Cell<usize>) -> Parsed {
    let cut = Cell::new(None);
    let documents: Vec<Node> = if text.starts_with(['{', '[']) {
        json(text, nodes, &cut).or_else(|| yaml(text, nodes, &cut)).into_iter().collect()
    } else if looks_like_yaml(text) {
        split(text).into_iter().filter_map(|part| yaml(part, nodes, &cut)).collect()
    } else {
        Vec::new()
    };
    if let Some(reason) = cut.get() {
        return Parsed::Cut(reason);
    }
    let structured =
        |node: &Node| matches!(node, Node::Map(entries) if !entries.is_empty()) || !node.items().is_empty();
    if documents.iter().any(structured) { Parsed::Documents(documents) } else { Parsed::Other }
}

fn json(text: &str, nodes: &Cell<usize>, cut: &Cell<Option<UnreadReason>>) -> Option<Node> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let node = Seed { nodes, cut, depth: 0 }.deserialize(&mut reader).ok()?;
    reader.end().is_ok().then_some(node)
}

fn yaml(text: &str, nodes: &Cell<usize>, cut: &Cell<Option<UnreadReason>>) -> Option<Node> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        emit_comments: false,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    let seed = Seed { nodes, cut, depth: 0 };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| seed.deserialize(reader))
        .ok()
}

/// A password may be `a: b`, so the first line that says something must begin with a word and a colon, or a dash.
fn looks_like_yaml(text: &str) -> bool {
    let Some(line) =
        text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', '%']))
    else {
        return false;
    };
    if line == "---" || line.starts_with("--- ") || line.starts_with("- ") && text.contains('\n') {
        return true;
    }
    let line = line.trim_start_matches(['"', '\'']);
    let name = line.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c));
    name.len() < line.len() && {
        let rest = name.trim_start_matches(['"', '\'']);
        rest.starts_with(": ") || rest == ":"
    }
}

fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\n---") {
        let (part, tail) = rest.split_at(at);
        parts.push(part);
        rest = tail.strip_prefix("\n---").unwrap_or_default();
    }
    parts.push(rest);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

struct Seed<'a> {
    nodes: &'a Cell<usize>,
    cut: &'a Cell<Option<UnreadReason>>,
    depth: usize,
}

impl Seed<'_> {
    fn below(&self) -> Self {
        Self { depth: self.depth + 1, ..*self }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let left = self.nodes.get();
        if left == 0 || self.depth > DEPTH_MAX {
            self.cut.set(Some(if left == 0 { UnreadReason::TooMany } else { UnreadReason::TooDeep }));
            return Err(serde::de::Error::custom("too large"));
        }
        self.nodes.set(left - 1);
        deserializer.deserialize_any(self)
    }
}

fn text<E>(text: impl ToString) -> Result<Node, E> {
    Ok(Node::Text(Zeroizing::new(text.to_string())))
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document")
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        text(value)
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Text(Zeroizing::new(value)))
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Node, E> {
        Ok(std::str::from_utf8(value)
            .map_or(Node::Nothing, |value| Node::Text(Zeroizing::new(value.to_owned()))))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        text(value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        text(value)
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        text(value)
    }

    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        text(value)
    }

    /// A float's spelling is lost, so a large one is left out rather than taken for what nobody wrote.
    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        if value.abs() < 1e15 { text(value) } else { Ok(Node::Nothing) }
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self.below())? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key_seed(self.below())? {
            let value = access.next_value_seed(self.below())?;
            if let Node::Text(key) = key {
                entries.push((key, value));
            }
        }
        Ok(Node::Map(entries))
    }
}
