//! What a page holds, seen by an HTML parser.

mod hostile;
mod large;
mod paths;
mod sample;
mod structure;

use std::collections::BTreeSet;
use std::path::PathBuf;

use bailey_access::answer::Audit;
use scraper::{ElementRef, Html, Node, Selector};

use super::super::document::Document;
use super::{page, reach, report, what_if, who_can_read, why};

/// A page of each kind, by the name of its file.
fn pages() -> Vec<(&'static str, String)> {
    let documents = [
        ("audit", Document::Audit(Box::new(sample::report(sample::audit())))),
        ("audit-clean", Document::Audit(Box::new(sample::report(sample::clean())))),
        ("audit-compared", Document::Audit(Box::new(sample::compared()))),
        (
            "audit-hostile",
            Document::Audit(Box::new(hostile::every_string(&sample::compared(), hostile::MARKUP))),
        ),
        ("reach", Document::Reach(Box::new(sample::reach()))),
        ("what-if", Document::WhatIf(Box::new(sample::what_if()))),
        ("who-can-read", Document::WhoCanRead(Box::new(sample::who_can_read()))),
        ("why", Document::Why(Box::new(sample::why()))),
    ];
    documents.iter().map(|(name, document)| (*name, page(document).unwrap())).collect()
}

fn audit(document: Audit) -> String {
    report(&sample::report(document))
}

/// `cargo xtask check-report` opens them in a browser.
#[test]
fn pages_are_written_where_asked() {
    let Some(dir) = std::env::var_os("BAILEY_PAGES_DIR").map(PathBuf::from) else { return };
    for (name, text) in pages() {
        std::fs::write(dir.join(format!("{name}.html")), text).unwrap();
    }
}

/// A page, parsed.
struct Page(Html);

impl Page {
    /// Parses a page that must have no error.
    fn parse(text: &str) -> Self {
        let html = Html::parse_document(text);
        assert_eq!(html.errors, Vec::<String>::new());
        Self(html)
    }

    fn audit(document: &Audit) -> Self {
        Self::parse(&audit(document.clone()))
    }

    fn all(&self, selector: &str) -> Vec<ElementRef<'_>> {
        self.0.select(&Selector::parse(selector).unwrap()).collect()
    }

    fn one(&self, selector: &str) -> ElementRef<'_> {
        let all = self.all(selector);
        assert_eq!(all.len(), 1, "{selector}");
        all[0]
    }

    fn texts(&self, selector: &str) -> Vec<String> {
        self.all(selector).into_iter().map(text).collect()
    }

    fn text(&self, selector: &str) -> String {
        text(self.one(selector))
    }
}

fn within<'a>(element: ElementRef<'a>, selector: &str) -> Vec<ElementRef<'a>> {
    element.select(&Selector::parse(selector).unwrap()).collect()
}

/// Text as it is read: white space is one space, and so is the border of what stands on its own.
fn text(element: ElementRef<'_>) -> String {
    let mut text = String::new();
    for node in element.descendants() {
        match node.value() {
            Node::Text(words) => text.push_str(words),
            Node::Element(element) if !["bdi", "span", "svg", "a", "tspan"].contains(&element.name()) => {
                text.push(' ')
            }
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
