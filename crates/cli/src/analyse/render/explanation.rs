//! What an id means, for people.

use super::text::Page;
use crate::analyse::document::{Explanation, RuleEntry};
use crate::analyse::words::{certainty, severity, severity_tone};

/// A finding with its whole way and the rules behind it; a rule; or the list of all rules.
pub fn explanation(explanation: &Explanation, page: Page<'_>) -> String {
    let Some(finding) = &explanation.finding else {
        return match explanation.rules.as_slice() {
            [rule] => one(rule, page),
            rules => list(rules, page),
        };
    };
    let whole = Page { wide: true, ..page };
    let mut text = whole.finding(finding, "");
    text.push('\n');
    for (number, path) in explanation.alternates.iter().enumerate() {
        let title = format!("Another way ({}), {}", number + 1, certainty(path.certainty));
        text.push_str(&page.heading(&title));
        text.push_str(&(page.chain(2, &path.steps) + "\n"));
    }
    for rule in &explanation.rules {
        text.push_str(&(one(rule, page) + "\n"));
    }
    text.truncate(text.trim_end_matches('\n').len());
    text + "\n"
}

fn one(rule: &RuleEntry, page: Page<'_>) -> String {
    let tone = severity_tone(rule.severity);
    let shown = page.screen.paint(tone, severity(rule.severity));
    let mut text = page.heading(&format!("{}: {}", rule.id, rule.title));
    text.push_str(&format!("  {:<10}{shown} where it leads out of a customer's scope\n", "severity"));
    if rule.soft {
        text.push_str(
            &page.labelled(
                "soft",
                "what is gained depends on what others do, so that verdicts do not count it",
            ),
        );
    }
    for paragraph in rule.explanation.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        text.push_str(&page.screen.wrap(2, paragraph));
    }
    if !rule.remedy.is_empty() {
        text.push_str(&page.screen.arrow(2, &rule.remedy));
    }
    for reference in &rule.references {
        text.push_str(&page.labelled("see", reference));
    }
    text
}

fn list(rules: &[RuleEntry], page: Page<'_>) -> String {
    let row = |rule: &RuleEntry| {
        vec![
            (rule.id.clone(), None),
            (severity(rule.severity).to_owned(), Some(severity_tone(rule.severity))),
            (rule.title.clone(), None),
        ]
    };
    let table = page.screen.table(&["ID", "SEVERITY", "WHAT"], rules.iter().map(row).collect());
    table + "\nMore on one: bailey explain ID\n"
}
