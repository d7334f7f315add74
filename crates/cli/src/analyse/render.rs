//! The analyser's answers in the forms that people and programs read.
//!
//! INVARIANT: names of a cluster are data of whoever may write there. What goes to a terminal or a file of text has no
//! control character and no sign that changes the direction of text; JSON, YAML and SARIF escape them.

mod answers;
mod audit;
mod changes;
mod explanation;
mod junit;
mod markdown;
mod name;
mod sarif;
mod text;
mod told;

use bailey_access::answer::Severity;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::document::{Document, Explanation};
use super::html;
use crate::CliError;
use crate::output::{Format, Screen, json, yaml};

/// An answer in a form. Findings of at least a severity count, where a form tells that.
pub fn render(
    document: &Document,
    format: Format,
    fail_on: Severity,
    screen: &Screen,
) -> Result<String, CliError> {
    match format {
        Format::Json => return json(document),
        Format::Yaml => return yaml(document),
        Format::Sarif => return json(&sarif::sarif(document, fail_on)),
        Format::Html => {
            let absent = || CliError::Usage("this answer has no page; take another form with -o".to_owned());
            return html::page(document).ok_or_else(absent);
        }
        _ => {}
    }
    let document = printable(document)?;
    let page = text::Page { screen, wide: format == Format::Wide };
    Ok(match format {
        Format::Name => name::name(&document),
        Format::Junit => junit::junit(&document, fail_on),
        Format::Markdown => markdown::markdown(&document),
        _ => match &document {
            Document::Audit(report) => audit::audit(report, page),
            Document::WhoCanRead(answer) => answers::who_can_read(answer, page),
            Document::Reach(answer) => answers::reach(answer, page),
            Document::Why(answer) => answers::why(answer, page),
            Document::WhatIf(answer) => changes::what_if(answer, page),
            Document::Diff(diff) => changes::diff(diff, page),
            Document::Explanation(explanation) => explanation::explanation(explanation, page),
        },
    })
}

/// A document whose texts do nothing to a terminal.
fn printable(document: &Document) -> Result<Document, CliError> {
    Ok(match document {
        Document::Audit(report) => Document::Audit(Box::new(clean(report.as_ref())?)),
        Document::WhoCanRead(answer) => Document::WhoCanRead(Box::new(clean(answer.as_ref())?)),
        Document::Reach(answer) => Document::Reach(Box::new(clean(answer.as_ref())?)),
        Document::Why(answer) => Document::Why(Box::new(clean(answer.as_ref())?)),
        Document::WhatIf(answer) => Document::WhatIf(Box::new(clean(answer.as_ref())?)),
        Document::Diff(diff) => Document::Diff(Box::new(clean(diff.as_ref())?)),
        // The catalogue's own words have paragraphs.
        Document::Explanation(explanation) => Document::Explanation(Box::new(Explanation {
            finding: clean(&explanation.finding)?,
            alternates: clean(&explanation.alternates)?,
            ..explanation.as_ref().clone()
        })),
    })
}

fn clean<T: Serialize + DeserializeOwned + Clone>(document: &T) -> Result<T, CliError> {
    let failed = |error| CliError::internal("cannot prepare the answer for printing", error);
    let text = serde_json::to_string(document).map_err(failed)?;
    // JSON writes control characters behind a backslash; nearly every document has none.
    if !text.contains('\\') && !text.chars().any(is_hidden) {
        return Ok(document.clone());
    }
    let mut value: Value = serde_json::from_str(&text).map_err(failed)?;
    clean_value(&mut value);
    serde_json::from_value(value).map_err(failed)
}

fn clean_value(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().any(is_hidden) => {
            let shown = |c: char| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() };
            *text = text.chars().map(shown).collect();
        }
        Value::Array(items) => items.iter_mut().for_each(clean_value),
        Value::Object(fields) => fields.values_mut().for_each(clean_value),
        _ => {}
    }
}

/// Whether a character moves a cursor, changes a colour, or changes the direction of text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests;
