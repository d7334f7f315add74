//! How the demo looks: 100 columns, colour only where a person sees it, timings beside the story.

use std::io::{self, IsTerminal as _, Write as _};

/// The most characters in a line that the demo composes itself.
pub const COLUMNS: usize = 100;
const INDENT: usize = 2;
const GAP: usize = 2;

/// What a piece of text says, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// As it should be.
    Good,
    /// As it should not be.
    Bad,
    /// Worth a look.
    Notice,
    /// Beside the point.
    Faint,
    /// A heading, or something to type.
    Strong,
}

/// A cell of a table.
pub type Cell = (String, Tone);

/// Where the story is told.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    color: bool,
}

impl Screen {
    /// Returns the screen of this process.
    pub fn detect() -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { color: io::stdout().is_terminal() && !no_color && !dumb }
    }

    /// Begins a part of the story.
    pub fn heading(&self, title: &str) {
        self.raw(&format!("\n{}\n", self.paint(Tone::Strong, title)));
    }

    /// Tells something.
    pub fn say(&self, text: &str) {
        self.say_in(Tone::Plain, text);
    }

    /// Tells something in a tone.
    pub fn say_in(&self, tone: Tone, text: &str) {
        self.block(&" ".repeat(INDENT), &" ".repeat(INDENT), tone, text);
    }

    /// Tells one point of a list.
    pub fn point(&self, tone: Tone, text: &str) {
        self.block("  - ", "    ", tone, text);
    }

    /// Shows a remark below a point.
    pub fn remark(&self, text: &str) {
        self.block("      ", "      ", Tone::Faint, text);
    }

    /// Shows a line that somebody types.
    pub fn command(&self, who: &str, line: &str) {
        let prompt = if who.is_empty() { "  $ ".to_owned() } else { format!("  {who} $ ") };
        self.raw(&format!("{prompt}{}", self.paint(Tone::Strong, line)));
    }

    /// Shows a table; the last column is wrapped.
    pub fn table(&self, header: &[&str], rows: &[Vec<Cell>]) {
        for line in table(self, header, rows) {
            self.raw(&line);
        }
    }

    /// Ends a line of the story.
    pub fn raw(&self, line: &str) {
        // A reader that stops reading is no reason to leave a cluster behind.
        let _written = writeln!(io::stdout(), "{line}");
    }

    /// Says how long something took, beside the story.
    pub fn took(&self, what: &str, seconds: f64) {
        let _written = writeln!(io::stderr(), "{}", self.faint_aside(&format!("  [{what}: {seconds:.1} s]")));
    }

    fn faint_aside(&self, text: &str) -> String {
        if io::stderr().is_terminal() { self.paint(Tone::Faint, text) } else { text.to_owned() }
    }

    fn block(&self, first: &str, next: &str, tone: Tone, text: &str) {
        for (index, line) in wrap(text, COLUMNS - next.len()).iter().enumerate() {
            let indent = if index == 0 { first } else { next };
            self.raw(&format!("{indent}{}", self.paint(tone, line)));
        }
    }

    fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Notice => "33",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        if self.color && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Breaks a text between words; a word longer than a line stays whole.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if length(line) + 1 + length(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn table(screen: &Screen, header: &[&str], rows: &[Vec<Cell>]) -> Vec<String> {
    let header: Vec<Cell> = header.iter().map(|title| ((*title).to_owned(), Tone::Faint)).collect();
    let last = header.len().saturating_sub(1);
    let width = |column: usize| {
        let cells = std::iter::once(&header).chain(rows).filter_map(|row| row.get(column));
        cells.map(|(text, _)| length(text)).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..last).map(width).collect();
    let left = INDENT + widths.iter().map(|width| width + GAP).sum::<usize>();
    let room = COLUMNS.saturating_sub(left).max(20);
    let mut lines = Vec::new();
    for row in std::iter::once(&header).chain(rows) {
        let mut line = " ".repeat(INDENT);
        for ((text, tone), width) in row.iter().zip(&widths) {
            line.push_str(&screen.paint(*tone, text));
            line.push_str(&" ".repeat(width + GAP - length(text)));
        }
        let (text, tone) = row.get(last).cloned().unwrap_or((String::new(), Tone::Plain));
        for part in wrap(&text, room) {
            lines.push(format!("{line}{}", screen.paint(tone, &part)).trim_end().to_owned());
            line = " ".repeat(left);
        }
    }
    lines
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Screen = Screen { color: false };

    fn cell(text: &str) -> Cell {
        (text.to_owned(), Tone::Good)
    }

    #[test]
    fn a_table_aligns_its_columns_and_wraps_the_last_one_below_itself() {
        let long = "word ".repeat(24);
        let rows =
            [vec![cell("secret-read"), cell("blocked"), cell(&long)], vec![cell("x"), cell("y"), cell("z")]];
        let lines = table(&PLAIN, &["ID", "OUTCOME", "TITLE"], &rows);
        assert_eq!(lines[0], "  ID           OUTCOME  TITLE");
        assert!(lines[1].starts_with("  secret-read  blocked  word word"), "{}", lines[1]);
        assert!(lines[2].starts_with("                        word"), "{}", lines[2]);
        assert_eq!(lines[3], "  x            y        z");
        assert!(lines.iter().all(|line| length(line) <= COLUMNS), "{lines:#?}");
    }

    #[test]
    fn colour_changes_no_width() {
        let rows = [vec![cell("a"), cell("b")], vec![cell("longer"), cell("c")]];
        let colored = table(&Screen { color: true }, &["ID", "OUTCOME"], &rows).join("\n");
        let mut plain = colored;
        for code in ["\u{1b}[32m", "\u{1b}[2m", "\u{1b}[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, table(&PLAIN, &["ID", "OUTCOME"], &rows).join("\n"));
    }

    #[test]
    fn a_word_that_does_not_fit_stays_whole() {
        assert_eq!(wrap("a averyverylongword b", 5), ["a", "averyverylongword", "b"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
