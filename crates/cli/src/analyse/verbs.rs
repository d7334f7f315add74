//! The verbs: read, ask the analyser, say what counts. Everything that decides is elsewhere.

use std::path::Path;

use bailey_access::answer::{Audit, Finding, Severity, UNKNOWN, WhyPath};
use bailey_access::{Access, QuestionError, SecretRef, SubjectRef, Subjects};

use super::args::{
    AuditArguments, DiffArguments, ExplainArguments, ReachArguments, WhatIfArguments, WhoCanReadArguments,
    WhoseArguments, WhyArguments,
};
use super::changes;
use super::cover::Cover;
use super::document::{Document, Explanation, Report};
use super::input::{Clock, Loaded};
use super::render::render;
use super::report::{Wishes, report};
use super::what_if::Change;
use super::words::secret_name;
use super::{baseline, diff, explain, gate, input, waivers};
use crate::args::Global;
use crate::output::{Format, Output, Screen};
use crate::{CliError, Exit};

/// How many gaps are told beside a form for programs.
const GAPS: usize = 5;

/// How an answer is given.
struct Answer<'a> {
    verb: &'static str,
    format: Format,
    fail_on: Severity,
    screen: &'a Screen,
    timings: bool,
    clock: Clock,
    notes: Vec<String>,
}

impl<'a> Answer<'a> {
    fn new(
        verb: &'static str,
        format: Format,
        fail_on: Severity,
        screen: &'a Screen,
        whose: &WhoseArguments,
    ) -> Self {
        Self {
            verb,
            format,
            fail_on,
            screen,
            timings: whose.timings,
            clock: Clock::start(),
            notes: Vec::new(),
        }
    }

    /// Reads, and closes what was read.
    async fn access(
        &mut self,
        global: &Global,
        arguments: &super::args::InputArguments,
    ) -> Result<Access, CliError> {
        let loaded = Loaded::read(global, arguments, &mut self.clock).await?;
        self.notes.extend(loaded.hints.clone());
        Ok(loaded.close(&mut self.clock))
    }

    /// The output of a document.
    fn of(mut self, document: &Document, exit: Exit) -> Result<Output, CliError> {
        self.clock.lap("answer");
        let text = render(document, self.format, self.fail_on, self.screen)?;
        self.clock.lap("render");
        let for_people =
            matches!(self.format, Format::Table | Format::Wide | Format::Markdown | Format::Html);
        if !for_people {
            let gaps = document.gaps();
            let told = gaps.iter().take(GAPS).map(|gap| format!("cannot be read: {}: {}", gap.what, gap.why));
            self.notes.extend(told);
            if gaps.len() > GAPS {
                self.notes.push(format!("cannot be read: {} more", gaps.len() - GAPS));
            }
        }
        if self.timings {
            self.notes.push(self.clock.line(self.verb));
        }
        Ok(Output { text, notes: self.notes, exit })
    }
}

fn wrong(error: QuestionError) -> CliError {
    CliError::Usage(error.to_string())
}

/// `bailey audit`.
pub async fn audit(arguments: &AuditArguments, global: &Global, screen: &Screen) -> Result<Output, CliError> {
    let fail_on = arguments.fail.fail_on;
    let mut answer = Answer::new("audit", arguments.output, fail_on, screen, &arguments.input.whose);
    let today = jiff::Zoned::now().date();
    let wishes = Wishes {
        waivers: arguments.waivers.as_deref().map(waivers::read).transpose()?.map(|waivers| (waivers, today)),
        baseline: arguments.baseline.as_deref().map(baseline::read).transpose()?,
        filter: arguments.filter.filter(),
        fail_on,
    };
    let loaded = Loaded::read(global, &arguments.input, &mut answer.clock).await?;
    let (names, hints) = (loaded.names(), loaded.hints.clone());
    let mut access = loaded.close(&mut answer.clock);
    if let Some(count) = arguments.bench_incremental {
        answer.clock.changes = changes::measure(&mut access, count);
        answer.clock.lap("incremental");
    }
    let mut audit = access.audit(arguments.subjects);
    audit.hints.extend(hints);
    let report = report(audit, &wishes, &names)?;
    let exit = report.gate.exit(report.audit.complete);
    answer.of(&Document::Audit(Box::new(report)), exit)
}

/// `bailey who-can-read`.
pub async fn who_can_read(
    arguments: &WhoCanReadArguments,
    global: &Global,
    screen: &Screen,
) -> Result<Output, CliError> {
    let fail_on = arguments.fail.fail_on;
    let mut answer = Answer::new("who-can-read", arguments.output, fail_on, screen, &arguments.input.whose);
    let access = answer.access(global, &arguments.input).await?;
    let document = access.who_holds(&arguments.secret).map_err(wrong)?;
    let exit = gate::who_can_read(&document, fail_on);
    answer.of(&Document::WhoCanRead(Box::new(document)), exit)
}

/// `bailey reach`.
pub async fn reach(arguments: &ReachArguments, global: &Global, screen: &Screen) -> Result<Output, CliError> {
    let fail_on = arguments.fail.fail_on;
    let mut answer = Answer::new("reach", arguments.output, fail_on, screen, &arguments.input.whose);
    let access = answer.access(global, &arguments.input).await?;
    let document = access.reach_with_copies(&arguments.subject).map_err(wrong)?;
    let exit = gate::reach(&document, fail_on);
    answer.of(&Document::Reach(Box::new(document)), exit)
}

/// `bailey why`.
pub async fn why(arguments: &WhyArguments, global: &Global, screen: &Screen) -> Result<Output, CliError> {
    // A way is a way: the exit code does not weigh it.
    let mut answer = Answer::new("why", arguments.output, Severity::Low, screen, &arguments.input.whose);
    let access = answer.access(global, &arguments.input).await?;
    let alternates = usize::from(arguments.alternates);
    let document =
        access.why_with_copies(&arguments.subject, &arguments.secret, alternates).map_err(wrong)?;
    let exit = gate::why(&document);
    answer.of(&Document::Why(Box::new(document)), exit)
}

/// `bailey what-if`.
pub async fn what_if(
    arguments: &WhatIfArguments,
    global: &Global,
    screen: &Screen,
) -> Result<Output, CliError> {
    let fail_on = arguments.fail.fail_on;
    let mut answer = Answer::new("what-if", arguments.output, fail_on, screen, &arguments.input.whose);
    let mut change = Change::read(&arguments.files)?;
    change.namespace.clone_from(&arguments.namespace);
    change.cluster.clone_from(&arguments.cluster);
    let before = Loaded::read(global, &arguments.input, &mut answer.clock).await?;
    answer.notes.extend(before.hints.clone());
    let ledger = before.ledger.clone();
    let before = before.close(&mut answer.clock);
    let after = if arguments.remove {
        change.remove(before.snapshot(), ledger)?
    } else {
        change.add(before.snapshot(), ledger)?
    };
    answer.notes.extend(after.absent.iter().map(|name| format!("not there, so not removed: {name}")));
    let objects = after.objects;
    let after = Loaded::of(after.snapshot, after.ledger, &arguments.input.whose)?;
    let after = after.close_after(&before, &mut answer.clock);
    let document = before.what_if_with_copies(&after, objects);
    let exit = gate::what_if(&document, fail_on);
    answer.of(&Document::WhatIf(Box::new(document)), exit)
}

/// `bailey explain`.
pub async fn explain(
    arguments: &ExplainArguments,
    global: &Global,
    screen: &Screen,
) -> Result<Output, CliError> {
    let mut answer = Answer::new("explain", arguments.output, Severity::Low, screen, &arguments.input.whose);
    let rules = match &arguments.id {
        None => explain::rules(),
        Some(id) => explain::rule(id).into_iter().collect(),
    };
    let explanation = match &arguments.id {
        Some(id) if rules.is_empty() => {
            if !explain::may_be_finding(id) {
                return Err(CliError::Usage(format!(
                    "there is no edge or rule `{id}`; bailey explain lists them, and bailey audit -o name lists findings"
                )));
            }
            match &arguments.audit {
                Some(path) => of_audit(path, id)?,
                None => {
                    let access = answer.access(global, &arguments.input).await?;
                    of_access(&access, id, usize::from(arguments.alternates))?
                }
            }
        }
        _ => explain::of_rules(rules),
    };
    answer.of(&Document::Explanation(Box::new(explanation)), Exit::Clean)
}

fn of_audit(path: &Path, id: &str) -> Result<Explanation, CliError> {
    let text = input::read(path)?;
    let waived = serde_json::from_str::<Report>(&text).map(|report| report.waived).unwrap_or_default();
    let audit = baseline::read(path)?;
    let mut findings = audit.findings.into_iter().chain(waived.into_iter().map(|waived| waived.finding));
    let finding = findings
        .find(|finding| finding.id == id)
        .ok_or_else(|| CliError::Usage(format!("there is no finding `{id}` in `{}`", path.display())))?;
    Ok(explain::of_finding(finding, Vec::new()))
}

fn of_access(access: &Access, id: &str, alternates: usize) -> Result<Explanation, CliError> {
    let mut audit = access.audit(Subjects::None);
    super::unexplained::add(&mut audit);
    let Some(finding) = audit.findings.iter().find(|finding| finding.id == id) else {
        let error = QuestionError::UnknownFinding { id: id.to_owned() };
        return Err(if audit.complete {
            wrong(error)
        } else {
            CliError::NotAllowed(format!("{error}; not everything could be read"))
        });
    };
    let others = others(access, &audit, finding, alternates);
    Ok(explain::of_finding(finding.clone(), others))
}

/// Other ways of a finding's subject to the first Secret that the finding is about.
fn others(access: &Access, audit: &Audit, finding: &Finding, alternates: usize) -> Vec<WhyPath> {
    let cover = Cover::new(audit, [finding]);
    let secret = audit.secrets.iter().find(|secret| {
        !cover.of(secret).is_empty()
            && (finding.reaches.contains(&secret.customer) || secret.customer == UNKNOWN)
    });
    let secret = secret.and_then(|secret| secret_name(secret, audit).parse::<SecretRef>().ok());
    let subject = finding.subject.parse::<SubjectRef>().ok();
    let Some((subject, secret)) = subject.zip(secret) else { return Vec::new() };
    let first = finding.path.first().map(|step| &step.object);
    let ways = access.why(&subject, &secret, alternates).map(|why| why.paths).unwrap_or_default();
    let others = ways.into_iter().filter(|way| way.steps.first().map(|step| &step.object) != first);
    others.take(alternates).collect()
}

/// `bailey diff`.
pub fn diff(arguments: &DiffArguments, screen: &Screen) -> Result<Output, CliError> {
    let fail_on = arguments.fail.fail_on;
    let mut answer = Answer::new("diff", arguments.output, fail_on, screen, &arguments.whose);
    let mut side = |path: &Path| -> Result<Audit, CliError> {
        if path.is_file() && baseline::is_audit_file(path) {
            return baseline::read(path);
        }
        let loaded = Loaded::dump(path, &arguments.whose, &arguments.fingerprint)?;
        answer.clock.lap("load");
        answer.notes.extend(loaded.hints.iter().map(|hint| format!("{}: {hint}", path.display())));
        Ok(loaded.close(&mut answer.clock).audit(Subjects::None))
    };
    let (old, new) = (side(&arguments.old)?, side(&arguments.new)?);
    let document = diff::diff(old, new);
    let exit = diff::exit(&document, fail_on);
    answer.of(&Document::Diff(Box::new(document)), exit)
}

#[cfg(test)]
mod tests;
