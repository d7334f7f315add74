//! Markdown that looks the same in a terminal and in a browser.

/// The first line of each page, which says where its text comes from.
pub(super) fn head(title: &str, source: &str) -> String {
    format!("<!-- Generated from {source} by `cargo xtask gen`; change that, not this page. -->\n# {title}\n")
}

/// A row of a table.
pub(super) fn row(cells: &[&str]) -> String {
    let escape = |cell: &&str| cell.replace('|', "\\|").replace('\n', " ");
    format!("| {} |\n", cells.iter().map(escape).collect::<Vec<_>>().join(" | "))
}

/// The two lines that begin a table.
pub(super) fn table(header: &[&str]) -> String {
    format!("\n{}|{}\n", row(header), "---|".repeat(header.len()))
}

/// A text in a fence, of the given language.
pub(super) fn fenced(language: &str, text: &str) -> String {
    format!("\n```{language}\n{}\n```\n", text.trim_end())
}

/// A text as code, whatever backticks it holds.
pub(super) fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// Texts as code, in one line.
pub(super) fn codes<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(code).collect::<Vec<_>>().join(", ")
}

/// A text that ends with a full stop.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    format!("{text}.")
}
