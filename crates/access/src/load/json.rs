//! Finds the objects in a stream of JSON: one object, several behind each other (also one a line), an array of objects,
//! and the items of lists, whichever of `kind` and `items` comes first.
//!
//! Only one object is in memory at a time. One that cannot be read, or is too large, is passed over and named; where
//! the stream itself is broken, what comes behind is lost, and that is named.

#[cfg(test)]
mod tests;

use std::io::{self, Read};

use super::cursor::{Cursor, Place};
use super::intake::Intake;
use super::list::Envelope;
use super::nesting::Nesting;
use super::pending::Pending;
use super::piece::Piece;
use super::{OBJECT_BYTES_MAX, too_large};

/// Names of fields, and texts of `kind` and `apiVersion`, are never longer than this.
const WORD_BYTES_MAX: usize = 64 << 10;

/// Takes all objects of a stream.
pub(super) fn read<R: Read>(reader: R, intake: &mut Intake<'_>) -> io::Result<()> {
    let cursor = Cursor::new(reader, OBJECT_BYTES_MAX);
    let start = Place { line: 1, byte: 0 };
    let mut walk = Walk { cursor, intake, start };
    match walk.stream() {
        Ok(()) => Ok(()),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Broken(why)) => {
            let place = walk.cursor.place();
            let start = walk.start;
            let what = format!("what follows line {}, byte {}", start.line, start.byte);
            walk.intake.gap(what, place, format!("{why}; dump it again"));
            Ok(())
        }
    }
}

/// Why a walk ended early.
enum Stop {
    /// The stream cannot be read.
    Failed(io::Error),
    /// What it holds is not JSON.
    Broken(&'static str),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

struct Walk<'w, 'a, R> {
    cursor: Cursor<R>,
    intake: &'w mut Intake<'a>,
    /// Where the object starts that is being read.
    start: Place,
}

/// A field of a list or an object that is looked at.
enum Field {
    ApiVersion,
    Kind,
    Metadata,
    Columns,
    /// `items` of a list, `rows` of a Table.
    Items,
    Other,
}

impl<R: Read> Walk<'_, '_, R> {
    fn stream(&mut self) -> Result<(), Stop> {
        self.cursor.skip_byte_order_mark()?;
        while let Some(byte) = self.next()? {
            self.start = self.cursor.place();
            match byte {
                b'{' => self.object()?,
                b'[' => self.array()?,
                _ => return Err(Stop::Broken("an object should start here")),
            }
        }
        Ok(())
    }

    /// An array of objects, as `jq .items` leaves it.
    fn array(&mut self) -> Result<(), Stop> {
        let envelope = Envelope::default();
        let mut pending = Pending::default();
        let ended = self.items(&envelope, &mut pending);
        pending.hand_on(self.intake, &envelope, |bytes| Some(Piece::Json(bytes)));
        self.intake.end_list(&envelope, false);
        ended
    }

    /// One object: kept whole, unless a field turns out to hold the items of a list.
    fn object(&mut self) -> Result<(), Stop> {
        let mut envelope = Envelope::default();
        let mut pending = None;
        self.cursor.mark();
        self.cursor.advance(1);
        let ended = self.fields(&mut envelope, &mut pending);
        let Some(pending) = pending else {
            ended?;
            match self.cursor.kept() {
                Some(bytes) => self.intake.single(Piece::Json(bytes), self.start),
                None => self.too_large(&envelope),
            }
            self.cursor.release();
            return Ok(());
        };
        self.cursor.release();
        let is_whole = pending.is_whole();
        pending.hand_on(self.intake, &envelope, |bytes| Some(Piece::Json(bytes)));
        self.intake.end_list(&envelope, ended.is_ok() && is_whole);
        ended
    }

    fn fields(&mut self, envelope: &mut Envelope, list: &mut Option<Pending>) -> Result<(), Stop> {
        if self.next()? == Some(b'}') {
            self.cursor.advance(1);
            return Ok(());
        }
        loop {
            self.field(envelope, list)?;
            match self.next()? {
                Some(b',') => self.cursor.advance(1),
                Some(b'}') => {
                    self.cursor.advance(1);
                    return Ok(());
                }
                Some(_) => return Err(Stop::Broken("a field should end here")),
                None => return Err(Stop::Broken(UNCLOSED)),
            }
        }
    }

    fn field(&mut self, envelope: &mut Envelope, list: &mut Option<Pending>) -> Result<(), Stop> {
        if self.next()? != Some(b'"') {
            return Err(Stop::Broken("the name of a field should be here"));
        }
        let end = self.word()?;
        let name = self.cursor.rest().get(1..end - 1).unwrap_or_default();
        let field = match name {
            b"apiVersion" => Field::ApiVersion,
            b"kind" => Field::Kind,
            b"metadata" => Field::Metadata,
            b"columnDefinitions" => Field::Columns,
            name if list.is_none() && envelope.holds_items_in(name) => Field::Items,
            _ => Field::Other,
        };
        self.cursor.advance(end);
        if self.next()? != Some(b':') {
            return Err(Stop::Broken("a colon should be here"));
        }
        self.cursor.advance(1);
        match (field, self.next()?) {
            (Field::ApiVersion, Some(b'"')) => envelope.api_version = self.text()?,
            (Field::Kind, Some(b'"')) => envelope.kind = self.text()?,
            (Field::Items, Some(b'[')) => {
                self.cursor.release();
                self.items(envelope, list.insert(Pending::default()))?;
            }
            (Field::Items, Some(b'n')) => {
                self.skip()?;
                // `null`, as an empty list can be written: only that of a kind that is a list's makes it one.
                if !envelope.kind.is_empty() {
                    *list = Some(Pending::default());
                }
            }
            (Field::Metadata, Some(b'{')) if list.is_some() || Envelope::names_list(&envelope.kind) => {
                self.part(|piece| envelope.read_metadata(piece))?;
            }
            (Field::Columns, Some(b'[')) => self.part(|piece| envelope.read_columns(piece))?,
            _ => self.skip()?,
        }
        Ok(())
    }

    /// Passes over a value and looks at it, whether more is being kept or not.
    fn part(&mut self, look: impl FnOnce(Piece<'_>)) -> Result<(), Stop> {
        let is_inner = self.cursor.is_keeping();
        if !is_inner {
            self.cursor.mark();
        }
        let before = self.cursor.kept().map_or(0, <[u8]>::len);
        self.skip()?;
        if let Some(bytes) = self.cursor.kept().and_then(|kept| kept.get(before..)) {
            look(Piece::Json(bytes));
        }
        if !is_inner {
            self.cursor.release();
        }
        Ok(())
    }

    fn items(&mut self, envelope: &Envelope, pending: &mut Pending) -> Result<(), Stop> {
        self.cursor.advance(1);
        if self.next()? == Some(b']') {
            self.cursor.advance(1);
            return Ok(());
        }
        loop {
            let Some(first) = self.next()? else { return Err(Stop::Broken(UNCLOSED)) };
            self.start = self.cursor.place();
            self.cursor.mark();
            self.skip()?;
            match self.cursor.kept() {
                Some(_) if first != b'{' => {
                    let why = "it is no object and is left out; dump it again";
                    self.intake.gap("an item", self.start, why);
                    pending.lose();
                }
                Some(bytes) => pending.item(self.intake, Piece::Json(bytes), self.start, envelope),
                None => {
                    self.too_large(envelope);
                    pending.lose();
                }
            }
            self.cursor.release();
            match self.next()? {
                Some(b',') => self.cursor.advance(1),
                Some(b']') => {
                    self.cursor.advance(1);
                    return Ok(());
                }
                Some(_) => return Err(Stop::Broken("an item should end here")),
                None => return Err(Stop::Broken(UNCLOSED)),
            }
        }
    }

    fn too_large(&mut self, envelope: &Envelope) {
        let kind = match envelope.of_kind() {
            Some((_, kind)) => kind,
            None if !envelope.kind.is_empty() && envelope.kind != "List" => &envelope.kind,
            None => "an object",
        };
        self.intake.gap(kind, self.start, too_large());
    }

    /// The next byte that is not blank.
    fn next(&mut self) -> Result<Option<u8>, Stop> {
        loop {
            let rest = self.cursor.rest();
            match rest.iter().position(|byte| !byte.is_ascii_whitespace()) {
                Some(at) => {
                    self.cursor.advance(at);
                    return Ok(self.cursor.peek()?);
                }
                None => {
                    self.cursor.advance(rest.len());
                    if !self.cursor.more()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Has a string, which starts here, in memory. Returns where it ends.
    fn word(&mut self) -> Result<usize, Stop> {
        loop {
            let rest = self.cursor.rest();
            let mut at = 1;
            while let Some(found) = rest.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
                at += found;
                match rest.get(at) {
                    Some(b'"') => return Ok(at + 1),
                    _ => at += 2,
                }
            }
            if rest.len() > WORD_BYTES_MAX {
                return Err(Stop::Broken("the name of a field, or a kind, is too long"));
            }
            if !self.cursor.more()? {
                return Err(Stop::Broken(UNCLOSED));
            }
        }
    }

    fn text(&mut self) -> Result<String, Stop> {
        let end = self.word()?;
        let bytes = self.cursor.rest().get(..end).unwrap_or_default();
        let text = serde_json::from_slice(bytes).map_err(|_| Stop::Broken("a kind is no text"))?;
        self.cursor.advance(end);
        Ok(text)
    }

    /// Passes over a value of any size.
    fn skip(&mut self) -> Result<(), Stop> {
        match self.cursor.peek()? {
            Some(b'{' | b'[') => {
                let mut nesting = Nesting::default();
                self.skip_by(|bytes| nesting.advance(bytes))
            }
            Some(b'"') => self.skip_string(),
            Some(_) => {
                let end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                self.skip_by(|bytes| bytes.iter().position(end))
            }
            None => Err(Stop::Broken(UNCLOSED)),
        }
    }

    fn skip_string(&mut self) -> Result<(), Stop> {
        self.cursor.advance(1);
        let mut escaped = false;
        self.skip_by(|bytes| {
            let end = bytes.iter().position(|byte| {
                let ends = *byte == b'"' && !escaped;
                escaped = *byte == b'\\' && !escaped;
                ends
            });
            end.map(|at| at + 1)
        })
    }

    /// Goes forward until the function knows the end, and to there.
    fn skip_by(&mut self, mut end: impl FnMut(&[u8]) -> Option<usize>) -> Result<(), Stop> {
        loop {
            let rest = self.cursor.rest();
            let (count, is_end) = end(rest).map_or((rest.len(), false), |count| (count, true));
            self.cursor.advance(count);
            if is_end {
                return Ok(());
            }
            if !self.cursor.more()? {
                return Err(Stop::Broken(UNCLOSED));
            }
        }
    }
}

const UNCLOSED: &str = "it ends before what was begun is closed, as if it was cut off";
