//! What came of the attacks, in the forms that people and programs read.

use serde_json::{Value, json};

use super::{Tried, Verification};
use crate::CliError;
use crate::output::{Format, Screen, Tone, count, json, markdown_row, yaml};

pub(super) fn render(
    verification: &Verification,
    format: Format,
    screen: &Screen,
) -> Result<String, CliError> {
    Ok(match format {
        Format::Json => json(verification)?,
        Format::Yaml => yaml(verification)?,
        Format::Junit => junit(verification),
        Format::Sarif => json(&sarif(verification))?,
        Format::Markdown => markdown(verification),
        _ => table(verification, screen),
    })
}

fn table(verification: &Verification, screen: &Screen) -> String {
    let mut text = targets(verification, screen);
    let row = |tried: &Tried| {
        vec![
            (shown(tried.outcome).to_owned(), Some(tone(tried.outcome))),
            (tried.id.clone(), None),
            (tried.actor.clone(), None),
            (tried.by.clone().unwrap_or_else(|| "-".to_owned()), None),
        ]
    };
    let rows: Vec<_> = verification.attacks.iter().map(row).collect();
    text.push_str(&screen.table(&["RESULT", "ATTACK", "ACTOR", "BY"], rows));
    text.push('\n');
    for outcome in ["succeeded", "inconclusive", "not-applicable"] {
        for tried in verification.attacks.iter().filter(|tried| tried.outcome == outcome) {
            text.push_str(&details(tried, screen));
        }
    }
    text.push_str(&closing(verification));
    text
}

fn targets(verification: &Verification, screen: &Screen) -> String {
    let t = &verification.targets;
    let platform = format!(
        "{} (secret {}, account {}, pod {})",
        t.platform_namespace, t.platform_secret, t.platform_account, t.platform_pod
    );
    let mut text = screen.paint(Tone::Strong, &format!("As tenant {}", verification.tenant));
    text.push('\n');
    for (label, value) in [
        ("installer", t.installer.clone()),
        ("developer", t.developer.clone()),
        ("automation", t.automation.clone()),
        ("from", format!("{}, {}", t.tenant_namespace, t.app_namespace)),
        ("platform", platform),
        ("deployer", t.deployer_namespace.clone()),
        ("user, role", format!("{}, {}", t.platform_user, t.platform_cluster_role)),
        ("other", format!("{} ({})", t.other_tenant, t.other_namespace)),
    ] {
        text.push_str(&format!("  {label:<12}{}", screen.wrap(14, &value).trim_start()));
    }
    text.push('\n');
    text
}

fn details(tried: &Tried, screen: &Screen) -> String {
    let mut text = screen.paint(tone(tried.outcome), &format!("{} {}", shown(tried.outcome), tried.id));
    text.push('\n');
    if tried.outcome == "succeeded" {
        text.push_str(&screen.wrap(4, &format!("{}. {}", tried.title, tried.why)));
    } else {
        text.push_str(&screen.wrap(4, &tried.detail));
    }
    text.push('\n');
    text
}

fn closing(verification: &Verification) -> String {
    let counts = verification.counts;
    let mut parts = vec![format!("{} blocked", counts.blocked), format!("{} succeeded", counts.succeeded)];
    for (number, what) in [(counts.inconclusive, "inconclusive"), (counts.not_applicable, "not applicable")] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    let all = count(verification.attacks.len(), "attack", "attacks");
    let mut text =
        format!("{all}: {} (enforcement {})\n", parts.join(", "), verification.enforcement.as_str());
    if verification.enforcement != bailey_api::Enforcement::Enforce {
        text.push_str("Rails refuse in Enforce only; see what that would mean with: bailey plan --enforce\n");
    }
    text
}

fn shown(outcome: &str) -> &str {
    if outcome == "not-applicable" { "n/a" } else { outcome }
}

fn tone(outcome: &str) -> Tone {
    match outcome {
        "blocked" => Tone::Good,
        "succeeded" => Tone::Bad,
        "inconclusive" => Tone::Notice,
        _ => Tone::Faint,
    }
}

fn markdown(verification: &Verification) -> String {
    let mut text = format!("## Bailey verify: tenant {}\n\n{}\n", verification.tenant, closing(verification));
    text.push_str(&markdown_row(&["Result", "Attack", "Actor", "By", "What it tries"]));
    text.push_str(&markdown_row(&["---"; 5]));
    for tried in &verification.attacks {
        let by = tried.by.as_deref().unwrap_or("-");
        let id = format!("`{}`", tried.id);
        text.push_str(&markdown_row(&[shown(tried.outcome), &id, &tried.actor, by, &tried.title]));
    }
    text
}

fn junit(verification: &Verification) -> String {
    let counts = verification.counts;
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"bailey verify {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
        xml(&verification.tenant),
        verification.attacks.len(),
        counts.succeeded,
        counts.inconclusive,
        counts.not_applicable
    );
    for tried in &verification.attacks {
        let open = format!("  <testcase classname=\"{}\" name=\"{}\"", xml(&tried.actor), xml(&tried.id));
        let detail = xml(&tried.detail);
        text.push_str(&match tried.outcome {
            "blocked" => format!("{open}/>\n"),
            "succeeded" => {
                let why = xml(&format!("{}. {}", tried.title, tried.why));
                format!("{open}>\n    <failure message=\"succeeded\">{why}</failure>\n  </testcase>\n")
            }
            "inconclusive" => {
                format!("{open}>\n    <error message=\"inconclusive\">{detail}</error>\n  </testcase>\n")
            }
            _ => format!("{open}>\n    <skipped message=\"{detail}\"/>\n  </testcase>\n"),
        });
    }
    text.push_str("</testsuite>\n");
    text
}

fn xml(text: &str) -> String {
    let allowed = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(allowed).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// SARIF 2.1.0: an attack that succeeds is an error, one that is undecided a warning.
fn sarif(verification: &Verification) -> Value {
    let rule = |tried: &Tried| {
        json!({
            "id": tried.id,
            "shortDescription": {"text": tried.title},
            "fullDescription": {"text": tried.why},
            "help": {"text": format!("Known from: {}", tried.source)},
        })
    };
    let result = |tried: &Tried| {
        let (level, message) = match tried.outcome {
            "succeeded" => ("error", format!("{} succeeded: {}", tried.title, tried.why)),
            _ => ("warning", format!("{}: could not be decided: {}", tried.title, tried.detail)),
        };
        json!({
            "ruleId": tried.id,
            "level": level,
            "message": {"text": message},
            "locations": [{"logicalLocations": [
                {"fullyQualifiedName": format!("tenants/{}", verification.tenant), "kind": "resource"},
            ]}],
        })
    };
    let told = verification.attacks.iter().filter(|t| matches!(t.outcome, "succeeded" | "inconclusive"));
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "bailey verify",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": verification.attacks.iter().map(rule).collect::<Vec<_>>(),
            }},
            "results": told.map(result).collect::<Vec<_>>(),
        }],
    })
}

#[cfg(test)]
mod tests;
