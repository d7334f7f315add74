//! The page of an audit.

use std::collections::HashSet;

use askama::Template;
use bailey_access::answer::{Audit, ClusterEntry, Finding, Severity, Summary, Verdict};

use super::super::document::{Comparison, Report, Selection, Waived};
use super::budget::{Budget, cost};
use super::finding::{Anchors, Findings, by_severity};
use super::matrix::Matrix;
use super::page::{Head, Section};
use super::secrets::Secrets;
use super::words::{self, Phrase, Tally, Tone, VERDICTS, count};

/// Clusters that are listed; an installation has some hundreds.
const CLUSTERS_MAX: usize = 500;

/// The page.
#[derive(Debug, Template)]
#[template(path = "audit.html")]
pub struct Page<'a> {
    head: Head<'a>,
    report: &'a Report,
    audit: &'a Audit,
    selection: Vec<String>,
    since: Option<String>,
    tiles: [Tally<Verdict>; 5],
    severities: Vec<Tally<Severity>>,
    findings: Findings<'a>,
    matrix: Option<Matrix<'a>>,
    secrets: Secrets<'a>,
    clusters: &'a [ClusterEntry],
    gone: &'a [Finding],
    waived: &'a [Waived],
}

impl<'a> Page<'a> {
    /// Makes the page.
    pub fn new(report: &'a Report) -> Self {
        let audit = &report.audit;
        let baseline = report.baseline.as_ref();
        let gone = baseline.map_or(&[][..], |baseline| baseline.gone.as_slice());
        let mut budget = Budget::of_page();
        let (gone, waived) = budget.lend(10, |budget| {
            let gone = budget.lend(50, |budget| budget.fitting(gone, finding_row));
            let waived_row = |waived: &Waived| {
                finding_row(&waived.finding) + cost(100, [&*waived.owner, &*waived.reason, &*waived.expires])
            };
            (gone, budget.fitting(&report.waived, waived_row))
        });
        let matrix = Matrix::new(&audit.secrets);
        let tags = baseline.map(Tags::new);
        let findings = budget.lend(45, |budget| {
            let tag = |finding: &Finding| Some(tags.as_ref()?.of(finding));
            Findings::new(&audit.findings, &mut Anchors::default(), budget, tag)
        });
        let secrets = Secrets::new(&audit.secrets, &mut budget);
        let mut head =
            Head::new(&audit.schema, Phrase::of("Who reaches which Secret?"), audit.complete, &audit.gaps);
        head.answer(tone(audit), answer(audit));
        let mut page = Self {
            head,
            report,
            audit,
            selection: report.selection.as_ref().map(selection).unwrap_or_default(),
            since: baseline.map(since),
            tiles: VERDICTS.map(|verdict| Tally { of: verdict, count: of(&audit.summary, verdict) }),
            severities: by_severity(&findings),
            findings,
            matrix,
            secrets,
            clusters: audit.clusters.get(..CLUSTERS_MAX).unwrap_or(&audit.clusters),
            gone,
            waived,
        };
        page.head.sections = page.sections();
        page
    }

    fn gone_in_all(&self) -> usize {
        self.report.baseline.as_ref().map_or(0, |baseline| baseline.gone.len())
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = vec![
            Section::new("summary", "Summary"),
            Section::counted("findings", "Findings", self.findings.total),
        ];
        if !self.report.waived.is_empty() {
            sections.push(Section::counted("waived", "Waived", self.report.waived.len()));
        }
        if self.gone_in_all() > 0 {
            sections.push(Section::counted("gone", "Gone", self.gone_in_all()));
        }
        if self.matrix.is_some() {
            sections.push(Section::new("customers", "Customers"));
        }
        sections.push(Section::counted("secrets", "Secrets", self.secrets.total));
        if !self.clusters.is_empty() {
            sections.push(Section::counted("clusters", "Clusters", self.audit.clusters.len()));
        }
        if !self.audit.hints.is_empty() {
            sections.push(Section::new("hints", "Ways on"));
        }
        sections
    }
}

/// What a baseline makes of findings, by their ids.
struct Tags<'a> {
    new: HashSet<&'a str>,
    worse: HashSet<&'a str>,
}

impl<'a> Tags<'a> {
    fn new(baseline: &'a Comparison) -> Self {
        let ids = |ids: &'a [String]| ids.iter().map(String::as_str).collect();
        Self { new: ids(&baseline.new), worse: ids(&baseline.worse) }
    }

    fn of(&self, finding: &Finding) -> &'static str {
        let id = finding.id.as_str();
        match () {
            () if self.new.contains(id) => "new",
            () if self.worse.contains(id) => "worse than before",
            () => "known",
        }
    }
}

fn since(baseline: &Comparison) -> String {
    let mut text = format!(
        "Since the baseline: {} new, {} worse, {} known, {} gone.",
        words::grouped(baseline.new.len()),
        words::grouped(baseline.worse.len()),
        words::grouped(baseline.known.len()),
        words::grouped(baseline.gone.len())
    );
    if !baseline.complete {
        text += " The baseline had not read everything, so what is new may only be newly seen.";
    }
    text
}

fn selection(selection: &Selection) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(severity) = selection.severity {
        lines.push(format!("findings of severity {} and above", words::severity(severity)));
    }
    let verdicts: Vec<_> =
        selection.verdicts.iter().map(|verdict| words::verdict(*verdict).to_owned()).collect();
    let lists = [
        ("namespace", "namespaces", &selection.namespaces),
        ("customer", "customers", &selection.customers),
        ("verdict", "verdicts", &verdicts),
    ];
    for (one, many, names) in lists {
        if !names.is_empty() {
            lines.push(format!("{} {}", if names.len() == 1 { one } else { many }, words::joined(names)));
        }
    }
    let secrets = count(selection.secrets_of, "Secret", "Secrets");
    lines.push(format!("out of {secrets} and {}", count(selection.findings_of, "finding", "findings")));
    lines
}

fn finding_row(finding: &Finding) -> usize {
    cost(300, [&*finding.id, &*finding.subject, &*finding.message])
}

fn of(summary: &Summary, verdict: Verdict) -> usize {
    match verdict {
        Verdict::PlatformOnly => summary.platform_only,
        Verdict::ExactlyOne => summary.exactly_one,
        Verdict::Shared => summary.shared,
        Verdict::Exposed => summary.exposed,
        Verdict::Unowned => summary.unowned,
    }
}

fn tone(audit: &Audit) -> Tone {
    let summary = &audit.summary;
    match () {
        () if summary.shared + summary.exposed + summary.critical + summary.high > 0 => Tone::Bad,
        () if summary.unowned + summary.medium > 0 => Tone::Unsure,
        () => Tone::Good,
    }
}

fn answer(audit: &Audit) -> Phrase {
    let summary = &audit.summary;
    let total: usize = VERDICTS.into_iter().map(|verdict| of(summary, verdict)).sum();
    if total == 0 {
        return Phrase::of("There is no Secret in what was loaded.");
    }
    let wrong = summary.shared + summary.exposed;
    let mut text = if wrong == 0 {
        let known = total - summary.unowned;
        match known {
            0 => String::new(),
            known if known == total => format!(
                "No customer reaches what is not its own: that holds for all of {}.",
                count(total, "Secret", "Secrets")
            ),
            known => format!(
                "No customer reaches what is known not to be its own: that holds for {} of {}.",
                words::grouped(known),
                count(total, "Secret", "Secrets")
            ),
        }
    } else {
        let mut kinds = Vec::new();
        if summary.shared > 0 {
            kinds.push(format!(
                "{} by another customer than the one whose they are",
                words::grouped(summary.shared)
            ));
        }
        if summary.exposed > 0 {
            kinds.push(format!("{} of the platform by a customer", words::grouped(summary.exposed)));
        }
        let are = if wrong == 1 { "is" } else { "are" };
        format!(
            "{} of {} {are} reached by somebody who should not: {}.",
            words::grouped(wrong),
            count(total, "Secret", "Secrets"),
            words::joined(&kinds)
        )
    };
    if summary.unowned > 0 {
        text += &format!(" Of {} nobody knows whose they are.", words::grouped(summary.unowned));
    }
    if !audit.complete {
        text += " Not everything could be read, so there may be more.";
    }
    Phrase::of(text.trim_start())
}
