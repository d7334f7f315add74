//! The page of what would change if objects were added or removed.

use askama::Template;
use bailey_access::answer::{Change, Verdict, VerdictChange, WhatIf};

use super::budget::{Budget, cost};
use super::finding::{Anchors, Findings, Listed};
use super::page::{Head, Section};
use super::way::{self, Way};
use super::words::{self, Phrase, Tone, VERDICTS, count, verdict_tone};

/// Subjects whose path is unfolded from the start.
const OPEN_MAX: usize = 5;

/// The page.
#[derive(Debug, Template)]
#[template(path = "what_if.html")]
pub struct Page<'a> {
    head: Head<'a>,
    answer: &'a WhatIf,
    objects: &'a [String],
    findings: Findings<'a>,
    verdicts: Vec<Turn<'a>>,
    gained: Vec<Gain<'a>>,
    gained_rows: Vec<Gain<'a>>,
    lost: Vec<Gain<'a>>,
    resolved: &'a [String],
}

/// A verdict that changes.
#[derive(Debug)]
struct Turn<'a> {
    change: &'a VerdictChange,
    tone: Tone,
    word: &'static str,
}

/// A subject that gains or loses Secrets.
#[derive(Debug)]
struct Gain<'a> {
    change: &'a Change,
    open: bool,
    secrets: Listed<'a>,
    way: Option<Way<'a>>,
}

impl<'a> Page<'a> {
    /// Makes the page.
    pub fn new(answer: &'a WhatIf) -> Self {
        let mut budget = Budget::of_page();
        let findings = budget
            .lend(35, |budget| Findings::new(&answer.findings, &mut Anchors::default(), budget, |_| None));
        let verdicts = budget.lend(25, |budget| turns(&answer.verdicts, budget));
        let lost = budget.lend(25, |budget| changes(&answer.lost, budget));
        let lists = budget.lend(20, |budget| {
            let names = |budget: &mut Budget, all: &'a [String]| {
                budget.fitting(all, |name| cost(45, [name.as_str()]))
            };
            (budget.lend(50, |budget| names(budget, &answer.objects)), names(budget, &answer.resolved))
        });
        let mut for_rows = budget.split(25);
        let (mut gained, mut gained_rows) = (Vec::new(), Vec::new());
        for (at, change) in answer.gained.iter().enumerate() {
            let secrets = Listed::new(&change.secrets, change.secret_count);
            let bytes = cost(700, [&*change.subject, &*change.customer]) + secrets.bytes();
            if budget.take(bytes + way::bytes(&change.path, change.secrets.len())) {
                let way = Way::new(
                    &format!("gain-{}", at + 1),
                    &change.path,
                    0,
                    &change.secrets,
                    change.secret_count,
                );
                gained.push(Gain { change, open: at < OPEN_MAX, secrets, way: Some(way) });
            } else if for_rows.take(bytes) {
                gained_rows.push(Gain { change, open: false, secrets, way: None });
            }
        }
        let mut head =
            Head::new(&answer.schema, Phrase::of("What would change?"), answer.complete, &answer.gaps);
        head.answer(tone(answer), sentence(answer));
        head.sections = sections(answer);
        Self {
            head,
            answer,
            objects: lists.0,
            findings,
            verdicts,
            gained,
            gained_rows,
            lost,
            resolved: lists.1,
        }
    }
}

fn sections(answer: &WhatIf) -> Vec<Section> {
    let all = [
        ("objects", "Objects", answer.objects.len()),
        ("findings", "New findings", answer.findings.len()),
        ("verdicts", "Verdicts", answer.verdicts.len()),
        ("gained", "Newly reached", answer.gained.len()),
        ("lost", "No longer reached", answer.lost.len()),
        ("resolved", "Findings gone", answer.resolved.len()),
    ];
    let some = all.into_iter().filter(|(_, _, count)| *count > 0);
    some.map(|(id, title, count)| Section::counted(id, title, count)).collect()
}

fn turns<'a>(changes: &'a [VerdictChange], budget: &mut Budget) -> Vec<Turn<'a>> {
    let mut turns: Vec<_> = changes.iter().map(Turn::new).collect();
    turns.sort_by_key(|turn| match turn.tone {
        Tone::Bad => 0,
        Tone::Unsure => 1,
        Tone::Good => 2,
    });
    let fit = turns.iter().take_while(|turn| budget.take(cost(400, [turn.change.secret.as_str()]))).count();
    turns.truncate(fit);
    turns
}

fn changes<'a>(changes: &'a [Change], budget: &mut Budget) -> Vec<Gain<'a>> {
    let all = changes.iter().map(|change| {
        let secrets = Listed::new(&change.secrets, change.secret_count);
        Gain { change, open: false, secrets, way: None }
    });
    all.take_while(|gain| {
        budget.take(cost(400, [&*gain.change.subject, &*gain.change.customer]) + gain.secrets.bytes())
    })
    .collect()
}

impl<'a> Turn<'a> {
    fn new(change: &'a VerdictChange) -> Self {
        let rank = |verdict: Verdict| VERDICTS.iter().position(|other| *other == verdict);
        let (tone, word) = match (change.before, change.after) {
            (None, None) => (Tone::Unsure, "unchanged"),
            (None, Some(after)) => (verdict_tone(after), "new"),
            (Some(_), None) => (Tone::Good, "gone"),
            (Some(before), Some(after)) if verdict_tone(before) == verdict_tone(after) => {
                (verdict_tone(after), "other")
            }
            (Some(before), Some(after)) if rank(after) < rank(before) => (Tone::Bad, "worse"),
            (Some(_), Some(_)) => (Tone::Good, "better"),
        };
        Self { change, tone, word }
    }

    fn before(&self) -> &'static str {
        self.change.before.map_or("not there", words::verdict)
    }

    fn after(&self) -> &'static str {
        self.change.after.map_or("not there", words::verdict)
    }
}

fn tone(answer: &WhatIf) -> Tone {
    let worse = answer.verdicts.iter().map(Turn::new).any(|turn| turn.tone == Tone::Bad);
    let foreign = answer.gained.iter().any(|change| change.foreign_count > 0);
    if worse || foreign || !answer.findings.is_empty() { Tone::Bad } else { Tone::Good }
}

fn sentence(answer: &WhatIf) -> Phrase {
    let foreign = answer.gained.iter().filter(|change| change.foreign_count > 0).count();
    let mut text = match (answer.gained.len(), foreign) {
        (0, _) => "Nobody would reach a Secret that they do not reach today.".to_owned(),
        (all, 0) => format!(
            "{} more Secrets, all of them its customer's own.",
            count(all, "subject would reach", "subjects would reach")
        ),
        (all, some) => format!(
            "{} more Secrets, {} of them Secrets that are not its customer's own.",
            count(all, "subject would reach", "subjects would reach"),
            words::grouped(some)
        ),
    };
    if !answer.lost.is_empty() {
        text +=
            &format!(" {} fewer.", count(answer.lost.len(), "subject would reach", "subjects would reach"));
    }
    text += &format!(
        " {}, {}.",
        count(answer.findings.len(), "finding would be new", "findings would be new"),
        count(answer.resolved.len(), "would be gone", "would be gone")
    );
    Phrase::of(text)
}
