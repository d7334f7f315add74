//! An audit for people: how it stands in a few lines, then what to look at, worst first.

use std::collections::HashSet;

use bailey_access::answer::{ClusterEntry, SecretEntry, Summary, Verdict};

use super::text::Page;
use crate::analyse::document::{Comparison, Report, Selection};
use crate::analyse::words::{
    VERDICTS, certainty, is_bad, severity, verdict, verdict_or_absent, verdict_tone,
};
use crate::output::{Tone, count};

/// How many subjects of a Secret are named in a line without `-o wide`; more are counted.
const SUBJECTS: usize = 2;

/// The whole page.
pub fn audit(report: &Report, page: Page<'_>) -> String {
    let mut text = String::new();
    for cluster in &report.audit.clusters {
        text.push_str(&page.screen.wrap(0, &cluster_line(cluster)));
    }
    text.push('\n');
    text.push_str(&summary(report, page));
    text.push_str(&page.gaps(&report.audit.gaps));
    text.push_str(&secrets(report, page));
    text.push_str(&findings(report, page));
    if let Some(comparison) = &report.baseline {
        text.push_str(&changes(comparison, page));
    }
    text.push_str(&waived(report, page));
    if !report.audit.hints.is_empty() {
        text.push_str(&page.heading("Hints"));
        for hint in &report.audit.hints {
            text.push_str(&page.screen.arrow(2, hint));
        }
        text.push('\n');
    }
    text.push_str(&page.screen.wrap(0, &closing(report)));
    text
}

fn cluster_line(cluster: &ClusterEntry) -> String {
    let version =
        cluster.version.as_ref().map(|version| format!(", Kubernetes {version}")).unwrap_or_default();
    format!(
        "Cluster {} ({}{version}): {}, {}, {}, {}, {}, {}",
        cluster.name,
        cluster.customer,
        count(cluster.secrets, "Secret", "Secrets"),
        count(cluster.namespaces, "namespace", "namespaces"),
        count(cluster.subjects, "subject", "subjects"),
        count(cluster.roles, "role", "roles"),
        count(cluster.bindings, "binding", "bindings"),
        count(cluster.pods, "pod", "pods"),
    )
}

fn of_verdict(summary: &Summary, verdict: Verdict) -> usize {
    match verdict {
        Verdict::PlatformOnly => summary.platform_only,
        Verdict::ExactlyOne => summary.exactly_one,
        Verdict::Shared => summary.shared,
        Verdict::Exposed => summary.exposed,
        Verdict::Unowned => summary.unowned,
    }
}

fn summary(report: &Report, page: Page<'_>) -> String {
    let numbers = &report.audit.summary;
    let mut text = page.heading("Secrets by verdict");
    for (name, verdict, meaning) in VERDICTS {
        let number = of_verdict(numbers, verdict);
        let tone = if number == 0 { Tone::Faint } else { verdict_tone(verdict) };
        let start = format!("{number:>7}  {name:<13}");
        let meaning = page.screen.wrap(start.len() + 2, meaning);
        text.push_str(&format!("{}  {}", page.screen.paint(tone, &start), meaning.trim_start()));
    }
    text.push_str(&format!("\n{}\n", page.screen.paint(Tone::Strong, "Findings by severity")));
    for (name, number, tone) in [
        ("critical", numbers.critical, Tone::Bad),
        ("high", numbers.high, Tone::Bad),
        ("medium", numbers.medium, Tone::Notice),
        ("low", numbers.low, Tone::Notice),
    ] {
        let tone = if number == 0 { Tone::Faint } else { tone };
        text.push_str(&format!("{}\n", page.screen.paint(tone, &format!("{number:>7}  {name}"))));
    }
    if let Some(selection) = &report.selection {
        let selected = format!(
            "Selected by {}: {} of {}, {} of {}",
            filters(selection),
            report.audit.secrets.len(),
            count(selection.secrets_of, "Secret", "Secrets"),
            report.audit.findings.len() + report.waived.len(),
            count(selection.findings_of, "finding", "findings"),
        );
        text.push_str(&format!("\n{}", page.screen.wrap(0, &selected)));
    }
    text + "\n"
}

/// What was selected by, in words.
pub fn filters(selection: &Selection) -> String {
    let mut parts = Vec::new();
    if let Some(least) = selection.severity {
        parts.push(format!("severity {} and above", severity(least)));
    }
    let verdicts = selection.verdicts.iter().map(|known| verdict(*known).to_owned()).collect();
    for (name, values) in [
        ("namespace", selection.namespaces.clone()),
        ("customer", selection.customers.clone()),
        ("verdict", verdicts),
    ] {
        if !values.is_empty() {
            parts.push(format!("{name} {}", values.join(" or ")));
        }
    }
    parts.join(", ")
}

/// The Secrets that are not as they should be, those that nobody owns by namespace; with `-o wide` all.
fn secrets(report: &Report, page: Page<'_>) -> String {
    let several = report.audit.clusters.len() > 1;
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (_, verdict, _) in VERDICTS {
        let secrets = report.audit.secrets.iter().filter(|secret| secret.verdict == verdict);
        if page.wide || is_bad(verdict) {
            rows.extend(secrets.map(|secret| Row { secret, more: 0 }));
        } else if verdict == Verdict::Unowned {
            for secret in secrets {
                let place = (&secret.cluster, &secret.namespace);
                match rows.last_mut().filter(|row| row.secret.verdict == verdict) {
                    Some(row) if (&row.secret.cluster, &row.secret.namespace) == place => row.more += 1,
                    _ => rows.push(Row { secret, more: 0 }),
                }
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut header = vec!["VERDICT", "NAMESPACE", "NAME", "OF"];
    if several {
        header.insert(1, "CLUSTER");
    }
    header.extend(if page.wide { &["TYPE", "CERTAINTY", "REACHED BY"][..] } else { &["REACHED BY"] });
    let shown = rows.iter().take(page.most()).map(|row| row.cells(several, page)).collect();
    let mut text = page.heading(if page.wide { "Secrets" } else { "Secrets to look at" });
    text.push_str(&page.screen.table(&header, shown));
    text.push_str(&page.more(0, rows.len()));
    text + "\n"
}

/// A row: a Secret, and how many more of its namespace it stands for.
struct Row<'a> {
    secret: &'a SecretEntry,
    more: usize,
}

impl Row<'_> {
    fn cells(&self, several: bool, page: Page<'_>) -> Vec<(String, Option<Tone>)> {
        let secret = self.secret;
        let name = match self.more {
            0 => secret.name.clone(),
            more => format!("{} and {more} more", secret.name),
        };
        let mut cells = vec![
            (verdict(secret.verdict).to_owned(), Some(verdict_tone(secret.verdict))),
            (secret.namespace.clone(), None),
            (name, None),
            (secret.customer.clone(), None),
        ];
        if several {
            cells.insert(1, (secret.cluster.clone(), None));
        }
        if page.wide {
            cells.push((secret.kind.clone(), None));
            cells.push((certainty(secret.certainty).to_owned(), None));
        }
        cells.push((reached_by(secret, page), None));
        cells
    }
}

fn reached_by(secret: &SecretEntry, page: Page<'_>) -> String {
    let audience = page.names(&secret.audience);
    let audience = if audience.is_empty() { "-".to_owned() } else { audience };
    match secret.subjects.len() {
        0 => audience,
        number if number > SUBJECTS && !page.wide => format!("{audience} ({number} subjects)"),
        _ => {
            let subjects: Vec<_> = secret.subjects.iter().map(|entry| entry.subject.as_str()).collect();
            format!("{audience} ({})", subjects.join(", "))
        }
    }
}

fn findings(report: &Report, page: Page<'_>) -> String {
    let findings = &report.audit.findings;
    if findings.is_empty() {
        return String::new();
    }
    let mut text = page.heading("Findings");
    let baseline = report.baseline.as_ref();
    let known: HashSet<&str> = baseline.into_iter().flat_map(|b| &b.known).map(String::as_str).collect();
    let worse: HashSet<&str> = baseline.into_iter().flat_map(|b| &b.worse).map(String::as_str).collect();
    // With a baseline, what is new comes first; the known ones are one line each unless all is asked for.
    let (old, new): (Vec<_>, Vec<_>) = findings.iter().partition(|f| known.contains(f.id.as_str()));
    for finding in new.iter().take(page.most()) {
        let mark = match baseline {
            None => "",
            Some(_) if worse.contains(finding.id.as_str()) => "worse",
            Some(_) => "new",
        };
        text.push_str(&page.finding(finding, mark));
        text.push_str(&page.labelled("explain", &format!("bailey explain {}", finding.id)));
        text.push('\n');
    }
    let rest = page.more(0, new.len());
    if !rest.is_empty() {
        text.push_str(&(rest + "\n"));
    }
    if page.wide {
        for finding in &old {
            text.push_str(&(page.finding(finding, "known") + "\n"));
        }
    } else if !old.is_empty() {
        let number = count(old.len(), "more finding is", "more findings are");
        text.push_str(&format!("{number} known from the baseline, -o wide shows all\n\n"));
    }
    text
}

/// What went and which verdicts changed since the baseline.
fn changes(comparison: &Comparison, page: Page<'_>) -> String {
    let mut text = String::new();
    if !comparison.gone.is_empty() {
        text.push_str(&page.heading("Gone since the baseline"));
        for finding in comparison.gone.iter().take(page.most()) {
            let line = format!("{} {}: {}", severity(finding.severity), finding.id, finding.message);
            text.push_str(&page.screen.paint(Tone::Good, &page.screen.wrap(2, &line)));
        }
        text.push_str(&(page.more(2, comparison.gone.len()) + "\n"));
    }
    if !comparison.verdicts.is_empty() {
        text.push_str(&page.heading("Verdicts that changed since the baseline"));
        text.push_str(&verdicts(&comparison.verdicts, page));
        text.push('\n');
    }
    if !comparison.complete {
        let note = "The baseline was incomplete: what is new may only have been unread then.";
        text.push_str(&page.screen.paint(Tone::Notice, &page.screen.wrap(0, note)));
        text.push('\n');
    }
    text
}

/// Verdicts before and after, as a table.
pub fn verdicts(changes: &[bailey_access::answer::VerdictChange], page: Page<'_>) -> String {
    let tone = |change: Option<Verdict>| change.map(verdict_tone);
    let row = |change: &bailey_access::answer::VerdictChange| {
        vec![
            (change.secret.clone(), None),
            (verdict_or_absent(change.before).to_owned(), tone(change.before)),
            (verdict_or_absent(change.after).to_owned(), tone(change.after)),
        ]
    };
    let rows = changes.iter().take(page.most()).map(row).collect();
    page.screen.table(&["SECRET", "BEFORE", "AFTER"], rows) + &page.more(0, changes.len())
}

fn waived(report: &Report, page: Page<'_>) -> String {
    if report.waived.is_empty() {
        return String::new();
    }
    let mut text = page.heading("Waived");
    for waived in report.waived.iter().take(page.most()) {
        let finding = &waived.finding;
        let line = format!("{} {}: {}", severity(finding.severity), finding.id, finding.message);
        text.push_str(&page.screen.wrap(2, &line));
        let why = format!("{} until {}: {}", waived.owner, waived.expires, waived.reason);
        text.push_str(&page.screen.paint(Tone::Faint, &page.screen.wrap(4, &why)));
    }
    text + &page.more(2, report.waived.len()) + "\n"
}

/// The last line: what the exit code follows from.
pub fn closing(report: &Report) -> String {
    let gate = &report.gate;
    let new = if report.baseline.is_some() { "new " } else { "" };
    let mut text = match gate.findings.len() {
        0 => format!("No {new}finding at or above {}", severity(gate.fail_on)),
        number => {
            let what = count(number, &format!("{new}finding"), &format!("{new}findings"));
            format!("{what} at or above {}", severity(gate.fail_on))
        }
    };
    text.push_str(if report.audit.complete { "." } else { "; the answer is incomplete." });
    text
}
