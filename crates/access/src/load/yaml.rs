//! Finds the objects in a stream of YAML: its documents, and the items of a List one by one.
//!
//! Splitting is by lines, so that a list of any length is never parsed as one tree. In block style that is exact: what
//! is inside an item is indented deeper than its dash. An item that refers to an anchor outside of it does not stand
//! alone; such items are read with their whole document, as long as that is not larger than one object may be.

mod line;
#[cfg(test)]
mod tests;

use std::io::{self, Read};

use serde::de::IgnoredAny;
use serde_json::Value;
use zeroize::{Zeroize as _, Zeroizing};

use super::cursor::{Cursor, Place};
use super::intake::Intake;
use super::list::Envelope;
use super::pending::Pending;
use super::piece::Piece;
use super::{OBJECT_BYTES_MAX, too_large};

/// Takes all objects of a stream.
pub(super) fn read<R: Read>(reader: R, intake: &mut Intake<'_>) -> io::Result<()> {
    let mut cursor = Cursor::new(reader, 0);
    let mut document = Document::new(Place { line: 1, byte: 0 });
    let mut starts_line = true;
    cursor.skip_byte_order_mark()?;
    while cursor.peek()?.is_some() {
        let place = cursor.place();
        let count = line_end(&mut cursor)?;
        let text = cursor.rest().get(..count).unwrap_or_default();
        if !starts_line {
            document.go_on(text);
        } else if line::ends_document(text) {
            document.end(intake);
            document = Document::new(place);
        } else if line::starts_document(text) {
            document.end(intake);
            document = Document::new(place);
            document.line(text, place, intake);
        } else {
            document.line(text, place, intake);
        }
        starts_line = text.ends_with(b"\n");
        cursor.advance(count);
    }
    document.end(intake);
    Ok(())
}

/// The length of the next line; of its first part if it is very long.
fn line_end<R: Read>(cursor: &mut Cursor<R>) -> io::Result<usize> {
    const PART: usize = 1 << 20;
    let mut searched = 0;
    loop {
        let rest = cursor.rest();
        if let Some(at) = rest.get(searched..).and_then(|rest| memchr::memchr(b'\n', rest)) {
            return Ok(searched + at + 1);
        }
        searched = rest.len();
        if searched >= PART || !cursor.more()? {
            return Ok(searched);
        }
    }
}

/// A document, as far as it was read.
struct Document {
    place: Place,
    /// All of it.
    text: Text,
    /// Whether there is more than comments.
    has_content: bool,
    /// `items:` was the last line with content.
    awaits_items: bool,
    list: Option<List>,
}

/// A document that is a list.
struct List {
    /// Blanks before the dash of an item.
    margin: usize,
    /// Whether more items may come.
    is_open: bool,
    place: Place,
    /// The document without its items.
    outside: Text,
    envelope: Envelope,
    item: Text,
    item_place: Place,
    item_index: usize,
    pending: Pending,
    /// Items that refer to something outside of them, by their index.
    bound: Vec<(usize, Place)>,
}

impl Document {
    fn new(place: Place) -> Self {
        Self { place, text: Text::default(), has_content: false, awaits_items: false, list: None }
    }

    fn line(&mut self, text: &[u8], place: Place, intake: &mut Intake<'_>) {
        if let Some(list) = &mut self.list {
            list.line(text, place, intake);
        } else if line::has_content(text) {
            if !self.has_content {
                // What was before is comments, a directive, a marker.
                self.text = Text::default();
                self.place = place;
            }
            self.has_content = true;
            if self.awaits_items
                && let Some(margin) = line::item_margin(text)
                && let Some(mut list) = List::new(margin, &self.text, self.place)
            {
                list.line(text, place, intake);
                self.list = Some(list);
            }
            self.awaits_items = line::is_items(text);
        }
        self.text.push(text);
    }

    /// Takes more of the line before.
    fn go_on(&mut self, text: &[u8]) {
        if let Some(list) = &mut self.list {
            list.part().push(text);
        }
        self.text.push(text);
    }

    fn end(&mut self, intake: &mut Intake<'_>) {
        if let Some(list) = self.list.take() {
            list.end(&self.text, intake);
        } else if self.has_content {
            match self.text.as_str() {
                Ok(text) => intake.single(Piece::Yaml(text), self.place),
                Err(why) => intake.gap("a document", self.place, why),
            }
        }
    }
}

impl List {
    /// A list, unless what stands before its items says that it is something else.
    fn new(margin: usize, before: &Text, place: Place) -> Option<Self> {
        let piece = Piece::Yaml(before.as_str().ok()?);
        let head = piece.head();
        if !head.kind.is_empty() && !Envelope::names_list(&head.kind) {
            return None;
        }
        let envelope = Envelope {
            api_version: head.api_version.into_owned(),
            kind: head.kind.into_owned(),
            ..Envelope::default()
        };
        let mut outside = Text::default();
        outside.push(piece.text());
        Some(Self {
            margin,
            is_open: true,
            place,
            outside,
            envelope,
            item: Text::default(),
            item_place: Place { line: 0, byte: 0 },
            item_index: 0,
            pending: Pending::default(),
            bound: Vec::new(),
        })
    }

    /// Where the next line belongs.
    fn part(&mut self) -> &mut Text {
        if self.is_open { &mut self.item } else { &mut self.outside }
    }

    fn line(&mut self, text: &[u8], place: Place, intake: &mut Intake<'_>) {
        if self.is_open && line::has_content(text) {
            if line::item_margin(text) == Some(self.margin) {
                self.end_item(intake);
                self.item_place = place;
            } else if line::margin(text) == 0 {
                self.end_item(intake);
                self.is_open = false;
            }
        }
        self.part().push(text);
    }

    fn end_item(&mut self, intake: &mut Intake<'_>) {
        let mut item = std::mem::take(&mut self.item);
        if item.is_empty() {
            return;
        }
        let (index, place) = (self.item_index, self.item_place);
        self.item_index += 1;
        // The dash becomes a blank, so that the item is a document of its own with a margin.
        item.blank(self.margin);
        match item.as_str() {
            Ok(text) if line::may_refer(text) && Piece::Yaml(text).read::<IgnoredAny>().is_err() => {
                self.bound.push((index, place));
            }
            Ok(text) => self.pending.item(intake, Piece::Yaml(text), place, &self.envelope),
            Err(why) => {
                intake.gap("an item", place, why);
                self.pending.lose();
            }
        }
    }

    fn end(mut self, document: &Text, intake: &mut Intake<'_>) {
        self.end_item(intake);
        let mut envelope = self.envelope;
        let outside = self.outside.as_str().ok().and_then(|text| Piece::Yaml(text).read::<Value>().ok());
        match &outside {
            Some(outside) => envelope = Envelope::of(outside),
            None => {
                intake.gap("a list", self.place, "what is around its items is not valid YAML; dump it again")
            }
        }
        let mut is_whole = outside.is_some() && self.pending.is_whole();
        self.pending.hand_on(intake, &envelope, |text| std::str::from_utf8(text).ok().map(Piece::Yaml));
        if !self.bound.is_empty() {
            let whole = document.as_str().ok().and_then(|text| Piece::Yaml(text).read::<Value>().ok());
            let items = whole.as_ref().and_then(|whole| whole.get("items")).and_then(Value::as_array);
            for (index, place) in self.bound {
                match items.and_then(|items| items.get(index)) {
                    Some(item) => intake.item(item, &envelope, place),
                    None => {
                        intake.gap("an item", place, UNBOUND);
                        is_whole = false;
                    }
                }
            }
        }
        intake.end_list(&envelope, is_whole);
    }
}

const UNBOUND: &str = "it is not valid YAML by itself, and its document cannot be read as a whole; write it without \
                       anchors, or as JSON";

/// Text of a bounded size, overwritten with zeros when it is done with.
#[derive(Default)]
struct Text {
    bytes: Zeroizing<Vec<u8>>,
    is_too_large: bool,
}

impl Text {
    fn push(&mut self, more: &[u8]) {
        let needed = self.bytes.len() + more.len();
        if self.is_too_large || needed > OBJECT_BYTES_MAX {
            self.is_too_large = true;
            self.bytes = Zeroizing::default();
            return;
        }
        if needed > self.bytes.capacity() {
            // By hand: a vector that grows leaves what it held behind.
            let mut larger = Vec::with_capacity((2 * self.bytes.capacity()).max(needed));
            larger.extend_from_slice(&self.bytes);
            std::mem::swap(&mut *self.bytes, &mut larger);
            larger.zeroize();
        }
        self.bytes.extend_from_slice(more);
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.is_too_large
    }

    fn blank(&mut self, at: usize) {
        if let Some(byte) = self.bytes.get_mut(at) {
            *byte = b' ';
        }
    }

    /// The text, or why there is none.
    fn as_str(&self) -> Result<&str, String> {
        if self.is_too_large {
            return Err(too_large());
        }
        let not_text = |_| "it is not in UTF-8 and is left out; save it as UTF-8".to_owned();
        std::str::from_utf8(&self.bytes).map_err(not_text)
    }
}
