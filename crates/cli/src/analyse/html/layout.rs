//! Where the boxes and arrows of a path go. Knows text and numbers only.

use super::escape::visible;

const BOX_WIDTH: usize = 166;
const COLUMN_GAP: usize = 34;
const ROW_GAP: usize = 26;
const HEAD: usize = 26;
const LINE: usize = 15;
const MARGIN: usize = 2;
/// Where arrows meet a box, from its top: the same for all boxes of a row, so that arrows along a row are straight.
const ANCHOR: usize = 24;
/// Characters of a line at 12 px, in the widest of common monospaced fonts (0.61 em).
const LINE_CHARS: usize = 20;
const LINES_MAX: usize = 4;
/// Characters of a label at 10.5 px.
const LABEL_CHARS: usize = 23;

/// What stands in a column, from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// Who.
    Subject,
    /// RoleBinding, ClusterRoleBinding.
    Binding,
    /// Role, ClusterRole.
    Role,
    /// Rule of a role.
    Rule,
    /// What can be done, or an object that is used on the way.
    Power,
    /// What is reached.
    Secret,
}

impl Column {
    const ALL: [Self; 6] = [Self::Subject, Self::Binding, Self::Role, Self::Rule, Self::Power, Self::Secret];

    fn title(self) -> &'static str {
        match self {
            Self::Subject => "Subject",
            Self::Binding => "Binding",
            Self::Role => "Role",
            Self::Rule => "Rule",
            Self::Power => "Resource or power",
            Self::Secret => "Secret",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Subject => "subject",
            Self::Secret => "target",
            _ => "step",
        }
    }
}

/// A box before it has a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its column.
    pub column: Column,
    /// Small, above the text.
    pub label: String,
    /// The text.
    pub text: String,
    /// Small, below the text; may be empty.
    pub note: String,
    /// Whether the arrow to it is proven.
    pub proven: bool,
}

impl Node {
    /// A box without a note, with a proven arrow.
    pub fn new(column: Column, label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { column, label: label.into(), text: text.into(), note: String::new(), proven: true }
    }
}

/// A drawing, in pixels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drawing {
    /// Prefix of the ids in it.
    pub id: String,
    /// Short text for those who do not see it.
    pub title: String,
    /// The path in words.
    pub description: String,
    /// Width.
    pub width: usize,
    /// Height.
    pub height: usize,
    /// How many columns there are.
    pub columns: usize,
    /// Whether an arrow is assumed.
    pub assumed: bool,
    /// Titles of the columns.
    pub heads: Vec<Words>,
    /// Boxes.
    pub boxes: Vec<Placed>,
    /// Arrows.
    pub arrows: Vec<Arrow>,
}

/// Text at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// Left.
    pub x: usize,
    /// Base line.
    pub y: usize,
    /// The text.
    pub text: String,
}

/// A box at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Left.
    pub x: usize,
    /// Top.
    pub y: usize,
    /// Width.
    pub width: usize,
    /// Height.
    pub height: usize,
    /// Class of the style sheet.
    pub class: &'static str,
    /// Corner.
    pub radius: usize,
    /// The label.
    pub label: Words,
    /// Lines of text.
    pub lines: Vec<Words>,
    /// The note, if any.
    pub note: Option<Words>,
    /// The whole text, where the lines do not hold it.
    pub whole: Option<String>,
}

/// An arrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrow {
    /// Its line, as the `d` of an SVG path.
    pub line: String,
    /// Its head, likewise.
    pub head: String,
    /// Whether it is drawn as assumed.
    pub assumed: bool,
}

/// Places a chain of boxes, and the boxes at which its last one ends.
pub fn draw(chain: &[Node], targets: &[Node]) -> Drawing {
    let used: Vec<_> = Column::ALL
        .into_iter()
        .filter(|column| chain.iter().chain(targets).any(|node| node.column == *column))
        .collect();
    let cells = cells(chain, targets, &used);
    let rows = cells.iter().map(|cell| cell.row + 1).max().unwrap_or(0);
    let mut tops = vec![HEAD; rows + 1];
    for row in 0..rows {
        let tallest = cells.iter().filter(|cell| cell.row == row).map(|cell| cell.text.height()).max();
        let top = tops.get(row).copied().unwrap_or(HEAD) + tallest.unwrap_or(0) + ROW_GAP;
        if let Some(next) = tops.get_mut(row + 1) {
            *next = top;
        }
    }
    let places: Vec<_> = cells.iter().map(|cell| cell.place(&tops)).collect();
    let mut arrows = Vec::new();
    for (places, nodes) in places.windows(2).zip(chain.windows(2)) {
        if let ([from, to], [_, node]) = (places, nodes) {
            arrows.push(along(from, to, next_top(&tops, from), node.proven));
        }
    }
    if let Some(last) = chain.len().checked_sub(1).and_then(|last| places.get(last)) {
        let ends = places.iter().skip(chain.len()).zip(targets);
        arrows.extend(ends.map(|(place, target)| fan(last, place, target.proven)));
    }
    Drawing {
        width: (used.len() * (BOX_WIDTH + COLUMN_GAP) + 2 * MARGIN).saturating_sub(COLUMN_GAP),
        height: (tops.last().copied().unwrap_or(HEAD) + MARGIN).saturating_sub(ROW_GAP),
        columns: used.len(),
        assumed: arrows.iter().any(|arrow| arrow.assumed),
        heads: used
            .iter()
            .enumerate()
            .map(|(at, column)| Words { x: left(at), y: 14, text: column.title().to_owned() })
            .collect(),
        boxes: places,
        arrows,
        ..Drawing::default()
    }
}

struct Cell {
    column: usize,
    row: usize,
    kind: Column,
    text: Text,
}

/// To the right in the same row, down in the same column, and to the left in the row below.
fn cells(chain: &[Node], targets: &[Node], used: &[Column]) -> Vec<Cell> {
    let at = |node: &Node| used.iter().position(|column| *column == node.column).unwrap_or(0);
    let mut cells = Vec::<Cell>::new();
    for node in chain {
        let column = at(node);
        let row = cells.last().map_or(0, |last| if column > last.column { last.row } else { last.row + 1 });
        cells.push(Cell { column, row, kind: node.column, text: Text::of(node) });
    }
    let last = cells.last().map_or(0, |last| last.row);
    for (below, node) in targets.iter().enumerate() {
        cells.push(Cell { column: at(node), row: last + below, kind: node.column, text: Text::of(node) });
    }
    cells
}

fn left(column: usize) -> usize {
    MARGIN + column * (BOX_WIDTH + COLUMN_GAP)
}

fn next_top(tops: &[usize], from: &Placed) -> usize {
    tops.iter().copied().find(|top| *top > from.y).unwrap_or(from.y + from.height + ROW_GAP)
}

fn along(from: &Placed, to: &Placed, next_top: usize, proven: bool) -> Arrow {
    let (middle, target) = (from.x + BOX_WIDTH / 2, to.x + BOX_WIDTH / 2);
    let bottom = from.y + from.height;
    if to.y == from.y {
        let y = from.y + ANCHOR;
        return Arrow {
            line: format!("M{} {y}H{}", from.x + BOX_WIDTH, to.x),
            head: head_right(to.x, y),
            assumed: !proven,
        };
    }
    let line = if middle == target {
        format!("M{middle} {bottom}V{}", to.y)
    } else {
        format!("M{middle} {bottom}V{}H{target}V{}", next_top - ROW_GAP / 2, to.y)
    };
    let head = format!("M{} {}L{target} {}L{} {}", target - 4, to.y - 6, to.y, target + 4, to.y - 6);
    Arrow { line, head, assumed: !proven }
}

fn fan(from: &Placed, to: &Placed, proven: bool) -> Arrow {
    let (start, gutter) = (from.x + BOX_WIDTH, to.x - COLUMN_GAP / 2);
    let (here, there) = (from.y + ANCHOR, to.y + ANCHOR);
    let line = if here == there {
        format!("M{start} {here}H{}", to.x)
    } else {
        format!("M{start} {here}H{gutter}V{there}H{}", to.x)
    };
    Arrow { line, head: head_right(to.x, there), assumed: !proven }
}

fn head_right(x: usize, y: usize) -> String {
    format!("M{} {}L{x} {y}L{} {}", x - 6, y - 4, x - 6, y + 4)
}

impl Cell {
    fn place(&self, tops: &[usize]) -> Placed {
        let (x, y) = (left(self.column), tops.get(self.row).copied().unwrap_or(HEAD));
        let words = |down: usize, text: &str| Words { x: x + 10, y: y + down, text: text.to_owned() };
        let lines = self.text.lines.iter().enumerate();
        Placed {
            x,
            y,
            width: BOX_WIDTH,
            height: self.text.height(),
            class: self.kind.class(),
            radius: if self.kind == Column::Subject { 16 } else { 5 },
            label: words(17, &self.text.label),
            lines: lines.map(|(at, line)| words(33 + at * LINE, line)).collect(),
            note: self.text.note.as_deref().map(|note| words(32 + self.text.lines.len() * LINE, note)),
            whole: self.text.whole.clone(),
        }
    }
}

/// Text of a box, cut to its size.
struct Text {
    label: String,
    lines: Vec<String>,
    note: Option<String>,
    whole: Option<String>,
}

impl Text {
    fn of(node: &Node) -> Self {
        let text = visible(&node.text);
        let short = shorten(&text, LINE_CHARS * LINES_MAX - 8);
        let mut lines = break_lines(&short, LINE_CHARS);
        if lines.len() > LINES_MAX {
            lines = break_lines_anywhere(&short, LINE_CHARS);
        }
        let note = visible(&node.note);
        let short_note = shorten(&note, LABEL_CHARS);
        let whole = match (short == text, short_note == note) {
            (true, true) => None,
            (_, true) => Some(node.text.clone()),
            (_, false) => Some(format!("{} {}", node.text, node.note)),
        };
        Self {
            label: shorten(&visible(&node.label), LABEL_CHARS),
            lines,
            note: (!note.is_empty()).then_some(short_note),
            whole,
        }
    }

    fn height(&self) -> usize {
        27 + self.lines.len().max(1) * LINE + if self.note.is_some() { LINE } else { 0 }
    }
}

/// Characters beyond ASCII may be drawn twice as wide.
fn width(char: char) -> usize {
    if char.is_ascii() { 1 } else { 2 }
}

fn text_width(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// Leaves out the middle of what is wider than `max`, since names differ most at their ends.
pub fn shorten(text: &str, max: usize) -> String {
    if text_width(text) <= max {
        return text.to_owned();
    }
    let half = max.saturating_sub(1) / 2;
    let head = within(text.chars(), half);
    let tail: String = within(text.chars().rev(), max.saturating_sub(1) - half).chars().rev().collect();
    format!("{head}…{tail}")
}

fn within(chars: impl Iterator<Item = char>, max: usize) -> String {
    let mut room = max;
    chars
        .take_while(|char| {
            let fits = width(*char) <= room;
            room = room.saturating_sub(width(*char));
            fits
        })
        .collect()
}

/// Breaks after separators where one is in the second half of a line, else anywhere.
fn break_lines(text: &str, max: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for char in text.chars() {
        // A comma may hang, so that no line starts with one.
        if char != ',' && text_width(&line) + width(char) > max {
            let at = line.rfind([' ', '/', '-', '.', ':', ',', '_']).map(|at| at + 1);
            let rest = at.filter(|at| *at * 2 > line.len()).map(|at| line.split_off(at)).unwrap_or_default();
            lines.push(std::mem::replace(&mut line, rest));
        }
        line.push(char);
    }
    lines.push(line);
    lines.iter().map(|line| line.trim().to_owned()).collect()
}

fn break_lines_anywhere(text: &str, max: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for char in text.chars() {
        if lines.last().is_none_or(|line| text_width(line) + width(char) > max) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push(char);
        }
    }
    lines
}
