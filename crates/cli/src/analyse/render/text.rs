//! What all answers for people are built of: paths drawn as chains, findings, lists that are capped, gaps.

use bailey_access::Certainty;
use bailey_access::answer::{Finding, GapEntry, Step};

use crate::analyse::words::{severity, severity_tone, some};
use crate::output::{Screen, Tone};

/// How an answer for people is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// Where it is printed.
    pub screen: &'a Screen,
    /// Whether everything is shown, `-o wide`.
    pub wide: bool,
}

/// How many findings, Secrets or paths are shown of a list without `-o wide`.
const MOST: usize = 20;
/// How many names are shown in a line without `-o wide`.
const NAMES: usize = 6;
/// How far a path is indented at most, so that there is room beside it.
const DEEPEST: usize = 24;

impl Page<'_> {
    /// How many entries of a list are shown.
    pub fn most(&self) -> usize {
        if self.wide { usize::MAX } else { MOST }
    }

    /// A list of names in a line.
    pub fn names(&self, names: &[String]) -> String {
        some(names, if self.wide { usize::MAX } else { NAMES })
    }

    /// A heading.
    pub fn heading(&self, text: &str) -> String {
        self.screen.paint(Tone::Strong, text) + "\n"
    }

    /// Says how many entries of a list of this length are not shown.
    pub fn more(&self, indent: usize, length: usize) -> String {
        match length.saturating_sub(self.most()) {
            0 => String::new(),
            more => {
                let note = format!("… and {more} more, -o wide shows all");
                format!("{:indent$}{}\n", "", self.screen.paint(Tone::Faint, &note))
            }
        }
    }

    /// A text behind a label; its further lines are indented like the first.
    pub fn labelled(&self, label: &str, text: &str) -> String {
        if text.is_empty() {
            String::new()
        } else {
            self.hanging(&format!("  {label:<10}"), None, text, None)
        }
    }

    /// A text behind a prefix, wrapped; further lines stand behind `rest`, or spaces of the same width.
    fn hanging(&self, first: &str, rest: Option<&str>, text: &str, tone: Option<Tone>) -> String {
        let indent = first.chars().count();
        let spaces = " ".repeat(indent);
        let rest = rest.unwrap_or(&spaces);
        let mut lines = String::new();
        for (number, line) in self.screen.wrap(indent, text).lines().enumerate() {
            let line = line.trim_start();
            let line = tone.map_or_else(|| line.to_owned(), |tone| self.screen.paint(tone, line));
            lines.push_str(&format!("{}{line}\n", if number == 0 { first } else { rest }));
        }
        lines
    }

    /// A path: each step below the one that it follows from, with the object that gives it.
    pub fn chain(&self, indent: usize, path: &[Step]) -> String {
        let Some(first) = path.first() else { return String::new() };
        let mut text = String::new();
        if !first.from.is_empty() {
            text.push_str(&self.hanging(&" ".repeat(indent), None, &first.from, None));
        }
        let depths = depths(path);
        for (number, (step, depth)) in path.iter().zip(&depths).enumerate() {
            let pad = " ".repeat(indent + (depth * 3).min(DEEPEST));
            // A line leads to the next step only if that follows from this one.
            let leads = depths.get(number + 1).is_some_and(|next| *next == depth + 1);
            let below = format!("{pad}   {}", if leads { "│  " } else { "   " });
            let assumed = if step.certainty == Certainty::Assumed { " (assumed)" } else { "" };
            let what = format!("{}: {}{assumed}", step.edge, step.to);
            let tone = (step.certainty == Certainty::Assumed).then_some(Tone::Notice);
            text.push_str(&self.hanging(&format!("{pad}└─ "), Some(&below), &what, tone));
            let evidence = evidence(step);
            if !evidence.is_empty() {
                text.push_str(&self.hanging(&below, Some(&below), &evidence, Some(Tone::Faint)));
            }
            if let Some(guard) = &step.guard {
                let guard = format!("guard: {guard}");
                text.push_str(&self.hanging(&below, Some(&below), &guard, Some(Tone::Notice)));
            }
        }
        text
    }

    /// A finding in full. `mark` says what a baseline or a waiver makes of it.
    pub fn finding(&self, finding: &Finding, mark: &str) -> String {
        let tone = severity_tone(finding.severity);
        let assumed = if finding.certainty == Certainty::Assumed { "  assumed" } else { "" };
        let mut text = format!(
            "{}  {}{}{}\n",
            self.screen.paint(tone, &severity(finding.severity).to_uppercase()),
            self.screen.paint(Tone::Strong, &finding.id),
            self.screen.paint(Tone::Notice, assumed),
            if mark.is_empty() { String::new() } else { format!("  {mark}") },
        );
        text.push_str(&self.screen.wrap(2, &finding.message));
        let whose = |names: &[String]| if names.is_empty() { String::new() } else { self.names(names) };
        // A way starts with the subject itself.
        if finding.path.iter().all(|step| step.from.is_empty()) {
            text.push_str(&self.labelled("subject", &format!("{} ({})", finding.subject, finding.customer)));
        }
        text.push_str(&self.labelled("also", &whose(&finding.also)));
        text.push_str(&self.labelled("reaches", &reached(self, finding)));
        text.push_str(&self.chain(4, &finding.path));
        text.push_str(&self.screen.arrow(2, &finding.remedy));
        text
    }

    /// What could not be read.
    pub fn gaps(&self, gaps: &[GapEntry]) -> String {
        if gaps.is_empty() {
            return String::new();
        }
        let mut text =
            self.screen.paint(Tone::Notice, "Incomplete: this could not be read, so ways may be missing");
        text.push('\n');
        for gap in gaps.iter().take(self.most()) {
            let cluster = gap.cluster.as_ref().map(|cluster| format!("{cluster}: ")).unwrap_or_default();
            text.push_str(&self.screen.wrap(2, &format!("{cluster}{}: {}", gap.what, gap.why)));
        }
        text.push_str(&self.more(2, gaps.len()));
        text.push('\n');
        text
    }
}

/// The object that gives a step, its rule, and where it was read.
pub fn evidence(step: &Step) -> String {
    let rule = if step.rule.is_empty() { String::new() } else { format!(", {}", step.rule) };
    let at = step.at.as_ref().map(|at| format!(" ({at})")).unwrap_or_default();
    format!("{}{rule}{at}", step.object)
}

/// How deep each step of a path is: one deeper than the last step before it that gives what it needs. What a step needs
/// may have been reached by another way than the step just before it.
fn depths(path: &[Step]) -> Vec<usize> {
    let start = path.first().map_or("", |step| step.from.as_str());
    let mut depths: Vec<usize> = Vec::with_capacity(path.len());
    for (number, step) in path.iter().enumerate() {
        let before = path.iter().zip(&depths).rev();
        let given =
            before.into_iter().find(|(earlier, _)| earlier.to == step.from).map(|(_, depth)| depth + 1);
        let next = depths.last().map_or(0, |depth| depth + 1);
        let depth = given.unwrap_or(if step.from == start { 0 } else { next });
        depths.push(if number == 0 { 0 } else { depth });
    }
    depths
}

/// Whose Secrets a finding reaches, and which.
fn reached(page: &Page<'_>, finding: &Finding) -> String {
    if finding.secrets.is_empty() {
        return finding.reaches.join(", ");
    }
    let count = if finding.secret_count == 1 {
        String::new()
    } else {
        format!("{} Secrets of ", finding.secret_count)
    };
    format!("{count}{}: {}", finding.reaches.join(", "), page.names(&finding.secrets))
}

#[cfg(test)]
mod tests;
