//! Findings: the worst first and in full, as far as the page has room; the rest in a row each.

use std::collections::HashSet;

use bailey_access::answer::{Finding, Severity};

use super::budget::{Budget, cost};
use super::way::{self, Way};
use super::words::{SEVERITIES, Tally, severity, severity_meaning, severity_title};

/// Others that get there through the same subject, and Secrets, that a finding lists.
const LISTED_MAX: usize = 100;

/// Findings, ready to be shown.
#[derive(Debug, Default)]
pub struct Findings<'a> {
    /// By severity, the worst first; without those of which there are none.
    pub groups: Vec<Group<'a>>,
    /// How many there are.
    pub total: usize,
    /// How many are not even in a row.
    pub left_out: usize,
}

/// Findings of one severity.
#[derive(Debug)]
pub struct Group<'a> {
    /// The severity.
    pub severity: Severity,
    /// How many there are.
    pub total: usize,
    /// In full.
    pub entries: Vec<Entry<'a>>,
    /// In a row each.
    pub rows: Vec<&'a Finding>,
}

/// A finding in full.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The finding.
    pub finding: &'a Finding,
    /// Its id in the page.
    pub anchor: String,
    /// What a baseline makes of it.
    pub tag: Option<&'static str>,
    /// Others of the same customer that get there.
    pub also: Listed<'a>,
    /// Secrets that are reached.
    pub secrets: Listed<'a>,
    /// The path.
    pub way: Way<'a>,
}

/// A list, cut.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    /// What is listed.
    pub shown: &'a [String],
    /// How many more there are.
    pub more: usize,
}

impl<'a> Listed<'a> {
    /// A list of things of which there are `total`.
    pub fn new(all: &'a [String], total: usize) -> Self {
        let shown = all.get(..LISTED_MAX).unwrap_or(all);
        // A list of whole scopes is complete although it is shorter than what it stands for.
        let scopes = all.iter().any(|item| item.ends_with("/*"));
        let total = if scopes { all.len() } else { total.max(all.len()) };
        Self { shown, more: total - shown.len() }
    }

    /// Bytes on the page.
    pub fn bytes(&self) -> usize {
        self.shown.iter().map(|text| cost(60, [text.as_str()])).sum()
    }
}

impl<'a> Findings<'a> {
    /// Shows findings as far as there is room, the worst first; `tag` says what a baseline makes of one.
    pub fn new(
        findings: impl IntoIterator<Item = &'a Finding>,
        anchors: &mut Anchors,
        budget: &mut Budget,
        tag: impl Fn(&Finding) -> Option<&'static str>,
    ) -> Self {
        let mut sorted: Vec<_> = findings.into_iter().collect();
        sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        // Rows are small, so they have some room of their own.
        let mut rows = budget.split(25);
        let mut shown = Findings { total: sorted.len(), ..Findings::default() };
        for alike in sorted.chunk_by(|one, other| one.severity == other.severity) {
            let Some(first) = alike.first() else { continue };
            let mut group =
                Group { severity: first.severity, total: alike.len(), entries: Vec::new(), rows: Vec::new() };
            for finding in alike.iter().copied() {
                if budget.take(bytes(finding)) {
                    let anchor = anchors.claim("finding", &finding.id);
                    group.entries.push(Entry::new(finding, anchor, tag(finding)));
                } else if rows.take(cost(300, [&*finding.id, &*finding.subject, &*finding.message])) {
                    group.rows.push(finding);
                } else {
                    shown.left_out += 1;
                }
            }
            shown.groups.push(group);
        }
        budget.join(&rows);
        shown
    }
}

impl Group<'_> {
    /// Id of the heading.
    pub fn id(&self) -> &'static str {
        severity(self.severity)
    }

    /// The severity, as a word.
    pub fn title(&self) -> &'static str {
        severity_title(self.severity)
    }

    /// What it means.
    pub fn meaning(&self) -> &'static str {
        severity_meaning(self.severity)
    }
}

impl<'a> Entry<'a> {
    fn new(finding: &'a Finding, anchor: String, tag: Option<&'static str>) -> Self {
        Self {
            finding,
            tag,
            also: Listed::new(&finding.also, finding.also.len()),
            secrets: Listed::new(&finding.secrets, finding.secret_count),
            way: Way::new(&anchor, &finding.path, finding.also.len(), &finding.secrets, finding.secret_count),
            anchor,
        }
    }
}

impl Entry<'_> {
    /// In how many namespaces the Secrets are that the finding names.
    pub fn namespaces(&self) -> usize {
        let of = |secret: &'_ String| {
            secret.rsplit_once('/').map_or(String::new(), |(namespace, _)| namespace.to_owned())
        };
        self.finding.secrets.iter().map(of).collect::<HashSet<_>>().len()
    }
}

/// Bytes that a finding takes on the page in full, about.
fn bytes(finding: &Finding) -> usize {
    let lists = Listed::new(&finding.also, finding.also.len()).bytes()
        + Listed::new(&finding.secrets, finding.secret_count).bytes();
    let texts =
        [&finding.id, &finding.rule, &finding.message, &finding.subject, &finding.customer, &finding.remedy];
    let texts = texts.into_iter().chain(&finding.reaches).map(String::as_str);
    cost(1700, texts) + finding.id.len() * 8 + lists + way::bytes(&finding.path, finding.secrets.len())
}

/// Ids of a page, each of which is given once.
#[derive(Debug, Default)]
pub struct Anchors {
    taken: HashSet<String>,
}

impl Anchors {
    /// An id that is like the name; HTML allows no space in one, and a link is readable with plain characters only.
    pub fn claim(&mut self, prefix: &str, name: &str) -> String {
        let plain =
            |char: char| if char.is_ascii_alphanumeric() || "-_.".contains(char) { char } else { '-' };
        let wanted: String = format!("{prefix}-").chars().chain(name.chars().take(120).map(plain)).collect();
        let mut id = wanted.clone();
        let mut number = 1;
        while !self.taken.insert(id.clone()) {
            number += 1;
            id = format!("{wanted}.{number}");
        }
        id
    }
}

/// Number of findings of each severity, the worst first.
pub fn by_severity(findings: &Findings<'_>) -> Vec<Tally<Severity>> {
    let count = |severity| {
        findings.groups.iter().find(|group| group.severity == severity).map_or(0, |group| group.total)
    };
    SEVERITIES.into_iter().map(|severity| Tally { of: severity, count: count(severity) }).collect()
}
