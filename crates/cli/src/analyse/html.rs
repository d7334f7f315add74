//! The HTML report: one file that needs nothing else, made from the documents of the analyser.
//!
//! INVARIANT: a name of a cluster is text here and never markup. Templates escape whatever they are given with
//! [`Visible`], and nothing in this module is marked as safe. A page has no script at all, and its policy forbids them.
//! INVARIANT: a page stays at about [`PAGE_BYTES_MAX`] or below, however large the document; what it leaves out, it counts.

use askama::Template;
use bailey_access::answer::{Reach, WhatIf, WhoCanRead, Why};

use super::document::{Document, Report};

mod audit;
mod budget;
mod diagram;
mod escape;
mod finding;
mod layout;
mod matrix;
mod page;
mod reach;
mod secrets;
mod way;
mod what_if;
mod who_can_read;
mod why;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use escape::Visible;

/// What a page may come to, in bytes.
const PAGE_BYTES_MAX: usize = 5_000_000;

/// The page of a document; none for documents that have no page.
pub fn page(document: &Document) -> Option<String> {
    Some(match document {
        Document::Audit(document) => report(document),
        Document::WhoCanRead(document) => who_can_read(document),
        Document::Reach(document) => reach(document),
        Document::Why(document) => why(document),
        Document::WhatIf(document) => what_if(document),
        Document::Diff(_) | Document::Explanation(_) => return None,
    })
}

fn report(document: &Report) -> String {
    written(&audit::Page::new(document))
}

fn who_can_read(document: &WhoCanRead) -> String {
    written(&who_can_read::Page::new(document))
}

fn reach(document: &Reach) -> String {
    written(&reach::Page::new(document))
}

fn why(document: &Why) -> String {
    written(&why::Page::new(document))
}

fn what_if(document: &WhatIf) -> String {
    written(&what_if::Page::new(document))
}

/// Half a page could be taken for a whole one, so there is none if writing fails. Writing to memory does not.
fn written(page: &impl Template) -> String {
    page.render().unwrap_or_else(|error| {
        let error = error.to_string().replace(['<', '&'], " ");
        format!("<!doctype html><html lang=\"en\"><title>No report</title><p>No report could be written: {error}</p></html>\n")
    })
}
