//! A plan in the forms that people and programs read.

use super::Plan;
use super::changes::{Action, Change};
use super::enforce::{Finding, FindingKind, Readiness};
use crate::CliError;
use crate::output::{Format, Screen, Tone, count, json, markdown_row, yaml};

pub(super) fn render(
    plan: &Plan,
    format: Format,
    summary: bool,
    screen: &Screen,
) -> Result<String, CliError> {
    Ok(match format {
        Format::Json => json(plan)?,
        Format::Yaml => yaml(plan)?,
        Format::Name => {
            plan.changes.iter().map(|c| format!("{}/{}\n", c.kind.to_lowercase(), c.path())).collect()
        }
        Format::Markdown => markdown(plan, summary),
        _ => table(plan, summary, screen),
    })
}

fn table(plan: &Plan, summary: bool, screen: &Screen) -> String {
    let mut text = String::new();
    if !summary {
        let listed = plan.changes.iter().map(|c| (c, tone(c.action)));
        let rows: Vec<_> = listed
            .map(|(c, tone)| {
                vec![
                    (format!("{} {}", sign(c.action), verb(c.action)), Some(tone)),
                    (c.kind.to_owned(), None),
                    (c.path(), None),
                ]
            })
            .collect();
        if !rows.is_empty() {
            text.push_str(&screen.table(&["ACTION", "KIND", "NAME"], rows));
            text.push('\n');
        }
        for change in &plan.changes {
            text.push_str(&details(change, screen));
        }
    }
    text.push_str(&problems(plan, screen));
    if let Some(readiness) = &plan.enforce {
        text.push_str(&readiness_text(readiness, screen));
    }
    if !plan.unknown.is_empty() {
        text.push_str(&screen.paint(Tone::Notice, "Incomplete: this could not be read"));
        text.push('\n');
        for unknown in &plan.unknown {
            text.push_str(&screen.wrap(2, &format!("{}: {}", unknown.what, unknown.why)));
        }
        text.push('\n');
    }
    text.push_str(&closing(plan));
    text
}

fn details(change: &Change, screen: &Screen) -> String {
    let mut text = String::new();
    if change.diff.is_none() && change.note.is_none() {
        return text;
    }
    let heading = format!("{} {} {}", sign(change.action), change.kind, change.path());
    text.push_str(&screen.paint(tone(change.action), &heading));
    text.push('\n');
    if let Some(note) = &change.note {
        text.push_str(&screen.wrap(4, note));
    }
    for line in change.diff.iter().flat_map(|diff| diff.lines()) {
        let tone = match line.get(..1) {
            Some("+") => Some(Tone::Good),
            Some("-") => Some(Tone::Bad),
            Some("@") => Some(Tone::Faint),
            _ => None,
        };
        let line = tone.map_or_else(|| line.to_owned(), |tone| screen.paint(tone, line));
        text.push_str(&format!("    {line}\n"));
    }
    text.push('\n');
    text
}

fn problems(plan: &Plan, screen: &Screen) -> String {
    let mut text = String::new();
    for problem in &plan.problems {
        let heading = format!("error: tenant `{}` is left out: {}", problem.tenant, problem.field);
        text.push_str(&screen.paint(Tone::Bad, &heading));
        text.push('\n');
        text.push_str(&screen.wrap(4, &problem.message));
        text.push('\n');
    }
    text
}

fn readiness_text(readiness: &Readiness, screen: &Screen) -> String {
    let mut text = String::new();
    let heading = match readiness.findings.len() {
        0 => "Before Enforce: nothing to settle".to_owned(),
        number => format!("Before Enforce: {} to settle", count(number, "finding", "findings")),
    };
    text.push_str(&screen.paint(Tone::Strong, &heading));
    text.push_str("\n\n");
    text.push_str(&groups(&readiness.findings, screen));
    if !readiness.notes.is_empty() {
        text.push_str(&screen.paint(Tone::Strong, "Good to know"));
        text.push_str("\n\n");
        text.push_str(&groups(&readiness.notes, screen));
    }
    text
}

fn groups(findings: &[Finding], screen: &Screen) -> String {
    let mut text = String::new();
    let mut last = None;
    for finding in findings {
        let group = (finding.tenant.as_deref(), finding.kind);
        if last != Some(group) {
            if last.is_some() {
                text.push('\n');
            }
            text.push_str(&format!("{}: {}\n", owner(finding), title(finding.kind)));
            last = Some(group);
        }
        text.push_str(&format!("  {}\n", screen.paint(Tone::Notice, &finding.object)));
        text.push_str(&screen.wrap(4, &finding.message));
        if let Some(remedy) = &finding.remedy {
            text.push_str(&screen.arrow(4, remedy));
        }
    }
    if !findings.is_empty() {
        text.push('\n');
    }
    text
}

fn owner(finding: &Finding) -> String {
    finding.tenant.as_ref().map_or_else(|| "No tenant".to_owned(), |tenant| format!("Tenant {tenant}"))
}

fn title(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Refused => "a rail would refuse",
        FindingKind::ForeignGrant => "reaches beyond the boundary",
        FindingKind::NamespaceLabel => "namespace labels",
        FindingKind::UnlistedPrincipal => "neither the platform's nor a tenant's",
    }
}

fn closing(plan: &Plan) -> String {
    let of = |action| plan.changes.iter().filter(|c| c.action == action).count();
    let mut parts = Vec::new();
    for (action, what) in [
        (Action::Create, "to create"),
        (Action::Update, "to update"),
        (Action::Remove, "to remove"),
        (Action::Release, "to release"),
    ] {
        if of(action) > 0 {
            parts.push(format!("{} {what}", of(action)));
        }
    }
    if parts.is_empty() {
        parts.push("No difference".to_owned());
    }
    parts.push(format!("{} unchanged", plan.unchanged));
    format!(
        "{} ({}, enforcement {})\n",
        parts.join(", "),
        count(plan.tenants, "tenant", "tenants"),
        plan.enforcement.as_str()
    )
}

fn markdown(plan: &Plan, summary: bool) -> String {
    let mut text = format!("## Bailey plan\n\n{}\n", closing(plan));
    if !summary && !plan.changes.is_empty() {
        text.push_str(&markdown_row(&["Action", "Kind", "Name"]));
        text.push_str(&markdown_row(&["---", "---", "---"]));
        for change in &plan.changes {
            text.push_str(&markdown_row(&[
                verb(change.action),
                change.kind,
                &format!("`{}`", change.path()),
            ]));
        }
        text.push('\n');
        for change in &plan.changes {
            if let Some(diff) = &change.diff {
                text.push_str(&format!("<details><summary>{} {}</summary>\n\n", change.kind, change.path()));
                text.push_str(&format!("```diff\n{diff}```\n\n</details>\n\n"));
            }
        }
    }
    for problem in &plan.problems {
        text.push_str(&format!(
            "- **error**: tenant `{}`, `{}`: {}\n",
            problem.tenant, problem.field, problem.message
        ));
    }
    if let Some(readiness) = &plan.enforce {
        text.push_str("\n### Before Enforce\n\n");
        if readiness.findings.is_empty() {
            text.push_str("Nothing to settle.\n");
        }
        for finding in &readiness.findings {
            let remedy = finding.remedy.as_ref().map(|remedy| format!(" → {remedy}")).unwrap_or_default();
            let owner = owner(finding);
            text.push_str(&format!("- [ ] {owner}: `{}`: {}{remedy}\n", finding.object, finding.message));
        }
    }
    if !plan.unknown.is_empty() {
        text.push_str("\n### Incomplete\n\n");
        for unknown in &plan.unknown {
            text.push_str(&format!("- {}: {}\n", unknown.what, unknown.why));
        }
    }
    text
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Remove => "remove",
        Action::Release => "release",
        Action::Unchanged => "keep",
    }
}

fn sign(action: Action) -> &'static str {
    match action {
        Action::Create => "+",
        Action::Update | Action::Release => "~",
        Action::Remove => "-",
        Action::Unchanged => " ",
    }
}

fn tone(action: Action) -> Tone {
    match action {
        Action::Create => Tone::Good,
        Action::Update | Action::Release => Tone::Notice,
        Action::Remove => Tone::Bad,
        Action::Unchanged => Tone::Faint,
    }
}

#[cfg(test)]
mod tests;
