//! Markdown that fits a comment of a pull request, whatever its length: what does not fit is counted.
//!
//! INVARIANT: a name of a cluster is text: it makes no markup, no link and no mention.

use std::collections::HashSet;

use bailey_access::answer::{
    Change, Finding, GapEntry, Reader, SecretEntry, Step, UNKNOWN, VerdictChange, WhatIf,
};

use super::audit::closing;
use super::text::Page;
use crate::analyse::document::{Diff, Document, Explanation, Report, RuleEntry, Waived};
use crate::analyse::words::{
    VERDICTS, certainty, is_bad, is_foreign, reached_names, secret_name, severity, verdict, verdict_or_absent,
};
use crate::output::{Screen, count, markdown_row};

/// How many characters a comment may have: GitHub takes 65,536.
const LONGEST: usize = 60_000;
/// How many entries of a list beside the findings are shown.
const ENTRIES: usize = 20;

/// The comment.
pub fn markdown(document: &Document) -> String {
    let mut page = Comment::default();
    match document {
        Document::Audit(report) => audit(report, &mut page),
        Document::WhoCanRead(answer) => {
            let secret = &answer.secret;
            page.head(&format!(
                "## Who can read {}\n\n",
                code(&format!("{}/{}", secret.namespace, secret.name))
            ));
            page.head(&format!(
                "Of {}, verdict **{}**.\n\n",
                code(&secret.customer),
                verdict(secret.verdict)
            ));
            page.gaps(&answer.gaps);
            let (foreign, rest): (Vec<_>, Vec<_>) =
                answer.subjects.iter().partition(|r| is_foreign(&r.customer, &secret.customer));
            let (unknown, own): (Vec<_>, Vec<_>) = rest.into_iter().partition(|r| r.customer == UNKNOWN);
            readers("Foreign", &foreign, &mut page);
            readers("Of nobody known", &unknown, &mut page);
            readers("Expected", &own, &mut page);
        }
        Document::Reach(answer) => {
            page.head(&format!("## What {} reaches\n\n", code(&answer.subject)));
            let control = if answer.full_control { " It has **full control** of a cluster." } else { "" };
            page.head(&format!("Of {}.{control}\n\n", code(&answer.customer)));
            page.gaps(&answer.gaps);
            let foreign: Vec<_> =
                answer.secrets.iter().zip(reached_names(answer)).filter(|(s, _)| s.foreign).collect();
            page.head(&format!(
                "{} reached, {} not its own.\n\n",
                count(answer.secrets.len(), "Secret", "Secrets"),
                foreign.len()
            ));
            for (secret, name) in foreign {
                let title =
                    format!("{} of {}, {}", tag(&name), html(&secret.customer), certainty(secret.certainty));
                page.entry(&details(&title, &chain(&secret.path)));
            }
        }
        Document::Why(answer) => {
            let (subject, secret) = (code(&answer.subject), code(&answer.secret));
            page.head(&format!("## From {subject} to {secret}\n\n"));
            page.gaps(&answer.gaps);
            if !answer.reached {
                page.head("No way was found.\n");
            }
            for (number, path) in answer.paths.iter().enumerate() {
                page.entry(&format!(
                    "**Way {}**, {}\n\n{}\n",
                    number + 1,
                    certainty(path.certainty),
                    chain(&path.steps)
                ));
            }
        }
        Document::WhatIf(answer) => what_if(answer, &mut page),
        Document::Diff(diff) => changes(diff, &mut page),
        Document::Explanation(explanation) => explained(explanation, &mut page),
    }
    page.finish()
}

/// A comment that is being written.
#[derive(Default)]
struct Comment {
    text: String,
    length: usize,
    left_out: usize,
}

impl Comment {
    /// Adds what is always short.
    fn head(&mut self, text: &str) {
        self.length += text.chars().count();
        self.text.push_str(text);
    }

    /// Adds an entry of a list if it fits.
    fn entry(&mut self, text: &str) {
        if self.left_out == 0 && self.length + text.chars().count() <= LONGEST {
            self.head(text);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds a list under a heading, of which a few entries are shown.
    fn list(&mut self, heading: &str, entries: impl ExactSizeIterator<Item = String>) {
        let length = entries.len();
        if length == 0 {
            return;
        }
        self.head(&format!("### {heading}\n\n"));
        for entry in entries.take(ENTRIES) {
            self.entry(&format!("- {entry}\n"));
        }
        if length > ENTRIES {
            self.head(&format!("- … and {} more\n", length - ENTRIES));
        }
        self.head("\n");
    }

    fn gaps(&mut self, gaps: &[GapEntry]) {
        let entry = |gap: &GapEntry| {
            let cluster = gap.cluster.as_ref().map(|name| format!("{}: ", code(name))).unwrap_or_default();
            format!("{cluster}{}: {}", html(&gap.what), html(&gap.why))
        };
        self.list("Incomplete: this could not be read", gaps.iter().map(entry));
    }

    fn findings(&mut self, heading: &str, findings: &[&Finding]) {
        if findings.is_empty() {
            return;
        }
        self.head(&format!("### {heading}\n\n"));
        for finding in findings {
            self.entry(&finding_block(finding));
        }
    }

    fn verdicts(&mut self, changes: &[VerdictChange]) {
        let entry = |change: &VerdictChange| {
            let (before, after) = (verdict_or_absent(change.before), verdict_or_absent(change.after));
            format!("{}: {before} → **{after}**", code(&change.secret))
        };
        self.list("Verdicts that changed", changes.iter().map(entry));
    }

    fn finish(mut self) -> String {
        if self.left_out > 0 {
            let number = count(self.left_out, "entry is", "entries are");
            self.head(&format!(
                "\n_{number} left out, so that this fits a comment; `-o wide` or `-o html` shows all._\n"
            ));
        }
        self.text
    }
}

fn audit(report: &Report, page: &mut Comment) {
    page.head(&format!("## Bailey audit\n\n**{}**\n\n", closing(report)));
    let numbers = &report.audit.summary;
    page.head(&markdown_row(&["Exposed", "Shared", "Unowned", "Exactly one", "Platform only"]));
    page.head(&markdown_row(&["---:"; 5]));
    let cells =
        [numbers.exposed, numbers.shared, numbers.unowned, numbers.exactly_one, numbers.platform_only];
    page.head(&markdown_row(&cells.map(|n| n.to_string()).each_ref().map(String::as_str)));
    page.head("\n");
    page.gaps(&report.audit.gaps);
    let baseline = report.baseline.as_ref();
    let known: HashSet<&str> = baseline.into_iter().flat_map(|b| &b.known).map(String::as_str).collect();
    let new: Vec<_> = report.audit.findings.iter().filter(|f| !known.contains(f.id.as_str())).collect();
    if let Some(comparison) = baseline {
        let number = count(known.len(), "finding is", "findings are");
        page.head(&format!("{number} in the baseline already.\n\n"));
        let line = |f: &Finding| format!("{} {}", html(&f.message), code(&f.id));
        page.list("Gone since the baseline", comparison.gone.iter().map(line));
        page.verdicts(&comparison.verdicts);
    }
    let mut bad: Vec<_> = report.audit.secrets.iter().filter(|secret| is_bad(secret.verdict)).collect();
    let rank = |verdict| VERDICTS.iter().position(|(_, known, _)| *known == verdict);
    bad.sort_by_key(|secret| rank(secret.verdict));
    let line = |secret: &&SecretEntry| {
        let audience: Vec<_> = secret.audience.iter().map(|customer| code(customer)).collect();
        let name = code(&secret_name(secret, &report.audit));
        let reached = if audience.is_empty() { "nobody".to_owned() } else { audience.join(", ") };
        format!("**{}** {name} of {}, reached by {reached}", verdict(secret.verdict), code(&secret.customer))
    };
    page.list("Secrets to look at", bad.iter().map(line));
    page.findings(if baseline.is_some() { "New findings" } else { "Findings" }, &new);
    let line = |w: &Waived| {
        let until = format!("{} until {}", html(&w.owner), html(&w.expires));
        format!("{} ({until}: {})", html(&w.finding.message), html(&w.reason))
    };
    page.list("Waived", report.waived.iter().map(line));
}

fn readers(heading: &str, readers: &[&Reader], page: &mut Comment) {
    if readers.is_empty() {
        return;
    }
    page.head(&format!("### {heading} ({})\n\n", readers.len()));
    for reader in readers {
        let title = format!(
            "{} of {}, {}",
            tag(&reader.subject),
            html(&reader.customer),
            certainty(reader.certainty)
        );
        page.entry(&details(&title, &chain(&reader.path)));
    }
}

fn what_if(answer: &WhatIf, page: &mut Comment) {
    let objects = count(answer.objects.len(), "object", "objects");
    let findings = count(answer.findings.len(), "new finding", "new findings");
    page.head(&format!("## If {objects} changed\n\n**{findings}**, {} gone.\n\n", answer.resolved.len()));
    page.gaps(&answer.gaps);
    page.list("Objects", answer.objects.iter().map(|object| code(object)));
    page.verdicts(&answer.verdicts);
    let line = |change: &Change| {
        let number = count(change.secret_count, "Secret", "Secrets");
        let foreign = if change.foreign_count > 0 {
            format!(", **{} foreign**", change.foreign_count)
        } else {
            String::new()
        };
        format!("{} ({}): {number}{foreign}", code(&change.subject), code(&change.customer))
    };
    page.list("Would reach more", answer.gained.iter().map(line));
    page.list("Would reach less", answer.lost.iter().map(line));
    page.findings("New findings", &answer.findings.iter().collect::<Vec<_>>());
}

fn changes(diff: &Diff, page: &mut Comment) {
    let findings = count(diff.findings.len(), "new finding", "new findings");
    let (worse, gone, same) = (diff.worse.len(), diff.gone.len(), diff.unchanged);
    page.head(&format!(
        "## Bailey diff\n\n**{findings}**, {worse} worse, {gone} gone, {same} unchanged.\n\n"
    ));
    page.gaps(&diff.gaps);
    page.verdicts(&diff.verdicts);
    page.list("Gone", diff.gone.iter().map(|f| format!("{} {}", html(&f.message), code(&f.id))));
    page.findings("New findings", &diff.findings.iter().collect::<Vec<_>>());
    page.findings("Findings that got worse", &diff.worse.iter().collect::<Vec<_>>());
}

fn explained(explanation: &Explanation, page: &mut Comment) {
    if let Some(finding) = &explanation.finding {
        page.head(&format!("## {}\n\n", code(&finding.id)));
        page.entry(&finding_block(finding));
        for path in &explanation.alternates {
            page.entry(&format!("Another way, {}:\n\n{}\n", certainty(path.certainty), chain(&path.steps)));
        }
    }
    for rule in &explanation.rules {
        page.entry(&rule_block(rule));
    }
}

fn rule_block(rule: &RuleEntry) -> String {
    let paragraphs: Vec<_> = rule.explanation.split("\n\n").map(html).collect();
    let references: String = rule.references.iter().map(|reference| format!("- {}\n", reference)).collect();
    format!(
        "### {}\n\n**{}** ({})\n\n{}\n\n→ {}\n\n{references}\n",
        code(&rule.id),
        html(&rule.title),
        severity(rule.severity),
        paragraphs.join("\n\n"),
        html(&rule.remedy)
    )
}

fn finding_block(finding: &Finding) -> String {
    let title = format!("<b>{}</b> {}", severity(finding.severity), html(&finding.message));
    let secrets: Vec<_> = finding.secrets.iter().take(ENTRIES).map(|secret| code(secret)).collect();
    let more = if finding.secrets.len() > ENTRIES { ", …" } else { "" };
    let mut body = format!("- subject: {} ({})\n", code(&finding.subject), code(&finding.customer));
    if !secrets.is_empty() {
        let number = count(finding.secret_count, "Secret", "Secrets");
        body.push_str(&format!("- reaches {number}: {}{more}\n", secrets.join(", ")));
    }
    body.push_str(&format!("- {}, id {}\n\n", certainty(finding.certainty), code(&finding.id)));
    body.push_str(&chain(&finding.path));
    if !finding.remedy.is_empty() {
        body.push_str(&format!("\n→ {}\n", html(&finding.remedy)));
    }
    details(&title, &body)
}

fn details(title: &str, body: &str) -> String {
    format!("<details><summary>{title}</summary>\n\n{body}\n</details>\n\n")
}

/// A path as a block that nothing in it can end.
fn chain(path: &[Step]) -> String {
    let screen = Screen { color: false, width: None };
    let text = Page { screen: &screen, wide: true }.chain(0, path);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}text\n{text}{fence}\n")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

/// A name as code.
fn code(name: &str) -> String {
    let fence = "`".repeat(longest_run(name) + 1);
    let name = name.replace(['\n', '\r'], " ");
    let pad = if name.starts_with('`') || name.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{name}{pad}{fence}")
}

/// A name as code inside of HTML.
fn tag(name: &str) -> String {
    format!("<code>{}</code>", html(name))
}

/// Text inside of HTML, where Markdown counts too: nothing in it is markup, a link or a mention.
fn html(text: &str) -> String {
    let escape = |c: char| match c {
        '\n' | '\r' => " ".to_owned(),
        '&' | '<' | '>' | '"' | '@' | '`' | '*' | '_' | '[' | ']' | '\\' | '|' | '~' | '#' => {
            format!("&#{};", u32::from(c))
        }
        other => other.to_string(),
    };
    let text: String = text.chars().map(escape).collect();
    // What GitHub makes a link of without any markup.
    text.replace("://", ":&#47;&#47;").replace("www.", "www&#46;")
}
