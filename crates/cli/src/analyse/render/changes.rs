//! Two states against each other, for people: what a change would do, and what has changed.

use bailey_access::answer::{Change, Finding, WhatIf};

use super::audit::verdicts;
use super::text::Page;
use crate::analyse::document::Diff;
use crate::analyse::words::severity;
use crate::output::{Tone, count};

/// What would change.
pub fn what_if(answer: &WhatIf, page: Page<'_>) -> String {
    let mut text = page.heading(&format!("If {} changed", count(answer.objects.len(), "object", "objects")));
    for object in answer.objects.iter().take(page.most()) {
        text.push_str(&page.screen.wrap(2, object));
    }
    text.push_str(&(page.more(2, answer.objects.len()) + "\n"));
    text.push_str(&page.gaps(&answer.gaps));
    text.push_str(&new_findings("New findings", &answer.findings, page));
    if !answer.verdicts.is_empty() {
        text.push_str(&page.heading("Verdicts"));
        text.push_str(&(verdicts(&answer.verdicts, page) + "\n"));
    }
    text.push_str(&subjects("Would reach more", Tone::Notice, &answer.gained, page));
    text.push_str(&subjects("Would reach less", Tone::Good, &answer.lost, page));
    if !answer.resolved.is_empty() {
        text.push_str(&page.heading("Findings that would be gone"));
        for id in answer.resolved.iter().take(page.most()) {
            text.push_str(&page.screen.paint(Tone::Good, &page.screen.wrap(2, id)));
        }
        text.push_str(&(page.more(2, answer.resolved.len()) + "\n"));
    }
    let foreign = answer.gained.iter().filter(|change| change.foreign_count > 0).count();
    let closing = format!(
        "{}, {} gone; {} would reach more, {foreign} of them what is not their own.",
        count(answer.findings.len(), "new finding", "new findings"),
        answer.resolved.len(),
        count(answer.gained.len(), "subject", "subjects"),
    );
    text + &page.screen.wrap(0, &closing)
}

fn subjects(title: &str, tone: Tone, changes: &[Change], page: Page<'_>) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut text = page.heading(title);
    for change in changes.iter().take(page.most()) {
        let foreign = match change.foreign_count {
            0 => String::new(),
            number => page.screen.paint(Tone::Bad, &format!(", {number} foreign")),
        };
        let subject = page.screen.paint(tone, &change.subject);
        let number = count(change.secret_count, "Secret", "Secrets");
        text.push_str(&format!("  {subject} ({}): {number}{foreign}\n", change.customer));
        text.push_str(&page.screen.wrap(4, &page.names(&change.secrets)));
        if page.wide || change.foreign_count > 0 {
            text.push_str(&page.chain(4, &change.path));
        }
    }
    text + &page.more(2, changes.len()) + "\n"
}

/// How two states differ.
pub fn diff(diff: &Diff, page: Page<'_>) -> String {
    let mut text = page.gaps(&diff.gaps);
    text.push_str(&new_findings("New findings", &diff.findings, page));
    text.push_str(&new_findings("Findings that got worse", &diff.worse, page));
    if !diff.gone.is_empty() {
        text.push_str(&page.heading("Findings that are gone"));
        for finding in diff.gone.iter().take(page.most()) {
            let line = format!("{} {}: {}", severity(finding.severity), finding.id, finding.message);
            text.push_str(&page.screen.paint(Tone::Good, &page.screen.wrap(2, &line)));
        }
        text.push_str(&(page.more(2, diff.gone.len()) + "\n"));
    }
    if !diff.verdicts.is_empty() {
        text.push_str(&page.heading("Verdicts"));
        text.push_str(&(verdicts(&diff.verdicts, page) + "\n"));
    }
    let closing = format!(
        "{}, {} worse, {} gone, {} unchanged; {} then, {} now.",
        count(diff.findings.len(), "new finding", "new findings"),
        diff.worse.len(),
        diff.gone.len(),
        diff.unchanged,
        count(diff.old.secrets, "Secret", "Secrets"),
        diff.new.secrets,
    );
    text + &page.screen.wrap(0, &closing)
}

fn new_findings(title: &str, findings: &[Finding], page: Page<'_>) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut text = page.heading(title);
    for finding in findings.iter().take(page.most()) {
        text.push_str(&(page.finding(finding, "") + "\n"));
    }
    match page.more(0, findings.len()) {
        rest if rest.is_empty() => text,
        rest => text + &rest + "\n",
    }
}
