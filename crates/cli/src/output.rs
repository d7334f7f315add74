//! How answers look: formats, colour, tables and wrapped text. Knows nothing of what they say.

use std::io::{IsTerminal as _, Write as _};

use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Table};
use serde::Serialize;

use crate::{CliError, Exit};

/// How wide the last column of a table is at least where it is wrapped.
const LAST_COLUMN: usize = 24;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Table,
    /// For people, with more columns.
    Wide,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// One name per line.
    Name,
    /// For pull requests and tickets.
    Markdown,
    /// For test dashboards.
    Junit,
    /// For code scanning.
    Sarif,
    /// A page for a browser that needs nothing else.
    Html,
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "table" => Self::Table,
            "wide" => Self::Wide,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            "name" => Self::Name,
            "markdown" => Self::Markdown,
            "junit" => Self::Junit,
            "sarif" => Self::Sarif,
            "html" => Self::Html,
            _ => return Err(format!("`{text}` is no output format")),
        })
    }
}

/// An answer: what to print, and how to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// For standard output.
    pub text: String,
    /// Hints for standard error, a line each.
    pub notes: Vec<String>,
    /// How to end.
    pub exit: Exit,
}

impl Output {
    /// An answer without notes.
    pub fn new(text: String, exit: Exit) -> Self {
        Self { text, notes: Vec::new(), exit }
    }

    /// Writes the answer; a reader that stops reading is no error.
    pub fn print(&self) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        match out.write_all(self.text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                return Err(CliError::Print(error));
            }
            _ => {}
        }
        for note in &self.notes {
            say(note);
        }
        Ok(())
    }
}

/// Tells something on standard error, where a failure to do so has nowhere to go.
pub fn say(text: &str) {
    let _written = writeln!(std::io::stderr(), "{text}");
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

/// What text is printed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Whether colours are shown.
    pub color: bool,
    /// How many characters a line holds; nothing where text is not to be wrapped.
    pub width: Option<usize>,
}

/// What a piece of text says, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// All is well, or something is added.
    Good,
    /// Something changes, or needs a look.
    Notice,
    /// Something is wrong, or goes away.
    Bad,
    /// Beside the point.
    Faint,
    /// A heading.
    Strong,
}

impl Screen {
    /// The screen of this process.
    pub fn detect(choice: ColorChoice) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !no_color && !dumb,
        };
        let width = if terminal { Table::new().width().map(usize::from) } else { None };
        Self { color, width }
    }

    /// Colours a text.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Notice => "33",
            Tone::Bad => "31",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        if self.color && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// A text in lines that fit, each behind `indent` spaces.
    pub fn wrap(&self, indent: usize, text: &str) -> String {
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(20));
        let mut lines = vec![String::new()];
        for word in text.split_whitespace() {
            let length = |s: &str| s.chars().count();
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(word),
                Some(line) if length(line) + 1 + length(word) <= room => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.iter().map(|line| format!("{:indent$}{line}\n", "")).collect()
    }

    /// A way out: wrapped text behind an arrow.
    pub fn arrow(&self, indent: usize, text: &str) -> String {
        format!("{:indent$}-> {}", "", self.wrap(indent + 3, text).trim_start())
    }

    /// A table without borders, in which names are never broken: only its last column is wrapped.
    /// Each cell is a text and perhaps a tone.
    pub fn table(&self, header: &[&str], rows: Vec<Vec<(String, Option<Tone>)>>) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING).force_no_tty();
        if self.color {
            table.enforce_styling();
        }
        table.set_header(header.iter().map(Cell::new));
        for row in rows {
            table.add_row(row.into_iter().map(|(text, tone)| cell(text, tone)));
        }
        table.set_content_arrangement(ContentArrangement::Disabled);
        let fixed: usize =
            table.column_max_content_widths().iter().rev().skip(1).map(|w| usize::from(*w) + 2).sum();
        if let Some(width) = self.width.filter(|width| *width >= fixed + LAST_COLUMN)
            && let Ok(width) = u16::try_from(width)
        {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
            let mut columns: Vec<_> = table.column_iter_mut().collect();
            columns.pop();
            for column in columns {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

fn cell(text: String, tone: Option<Tone>) -> Cell {
    let cell = Cell::new(text);
    match tone {
        None => cell,
        Some(Tone::Good) => cell.fg(comfy_table::Color::DarkGreen),
        Some(Tone::Notice) => cell.fg(comfy_table::Color::DarkYellow),
        Some(Tone::Bad) => cell.fg(comfy_table::Color::DarkRed),
        Some(Tone::Faint) => cell.add_attribute(comfy_table::Attribute::Dim),
        Some(Tone::Strong) => cell.add_attribute(comfy_table::Attribute::Bold),
    }
}

/// One JSON document.
pub fn json(value: &impl Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| CliError::internal("cannot write JSON", e))?;
    Ok(text + "\n")
}

/// One YAML document, in which no line is folded.
pub fn yaml(value: &impl Serialize) -> Result<String, CliError> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: 1_000_000 };
    let text = serde_saphyr::to_string_with_options(value, options)
        .map_err(|e| CliError::internal("cannot write YAML", e))?;
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

/// A row of a Markdown table, in which no text breaks the table.
pub fn markdown_row(cells: &[&str]) -> String {
    let escape = |cell: &&str| cell.replace('|', "\\|").replace('\n', " ");
    format!("| {} |\n", cells.iter().map(escape).collect::<Vec<_>>().join(" | "))
}

/// `1 tenant`, `2 tenants`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_behind_its_indent_and_never_cut() {
        let screen = Screen { color: false, width: Some(30) };
        let text = screen.wrap(4, "one two three four five six averyveryverylongwordthatdoesnotfit end");
        assert_eq!(
            text,
            "    one two three four five\n    six\n    averyveryverylongwordthatdoesnotfit\n    end\n"
        );
    }

    #[test]
    fn yaml_that_older_readers_take_for_something_else_is_quoted() {
        let text =
            yaml(&serde_json::json!(["yes", "on", "1e3", "012", "1_0", "12:30", "null", "~", "=", "y"]))
                .unwrap();
        let plain: Vec<_> = text.lines().filter(|line| !line.contains(['"', '\''])).collect();
        assert_eq!(plain, Vec::<&str>::new(), "{text}");
    }

    #[test]
    fn colour_is_only_added_where_it_is_shown() {
        let plain = Screen { color: false, width: None };
        assert_eq!(plain.paint(Tone::Bad, "no"), "no");
        assert_eq!(Screen { color: true, ..plain }.paint(Tone::Bad, "no"), "\u{1b}[31mno\u{1b}[0m");
    }
}
