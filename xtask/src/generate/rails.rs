//! The rails, from the policy files: what each holds, of what, when, and what it says.

use std::collections::BTreeMap;

use anyhow::Result;
use bailey_guardrails::{BindingMode, Lookup, Policy, PolicyKind, Where, policies};
use serde_json::Value;

use super::markdown::{code, codes, fenced, head, row, sentence, table};
use super::messages::Messages;

/// The whole page.
pub(super) fn page() -> Result<String> {
    let policies = policies()?;
    let messages = Messages::read()?;
    let mut rails = BTreeMap::<&str, Vec<&Policy>>::new();
    for policy in &policies {
        rails.entry(&policy.rail).or_default().push(policy);
    }
    let mut text = head("Rails", "`crates/guardrails/policies`");
    text.push_str(&format!(
        "\nA rail is one or more admission policies that the API server itself evaluates: {} rails, {} policies. \
         What a rail does in each mode of the Installation is in its section; what it does on a cluster now is in \
         `status.rails` of the Installation. Messages name the rail, the reason and the way out; the examples come \
         from the rails' own test cases.\n",
        rails.len(),
        policies.len()
    ));
    text.push_str(&table(&["rail", "holds"]));
    for (rail, of_rail) in &rails {
        let holds: Vec<_> = of_rail.iter().map(|policy| sentence(&policy.holds)).collect();
        text.push_str(&row(&[&format!("[{rail}](#{rail})"), &holds.join(" ")]));
    }
    for (rail, of_rail) in rails {
        text.push_str(&format!("\n## {rail}\n"));
        for policy in of_rail {
            section(&mut text, policy, &messages)?;
        }
    }
    Ok(text)
}

fn section(text: &mut String, policy: &Policy, messages: &Messages) -> Result<()> {
    text.push_str(&format!("\n### {}\n\n{}\n\n", policy.name, sentence(&policy.holds)));
    let kind = match policy.kind {
        PolicyKind::Validating => "ValidatingAdmissionPolicy",
        PolicyKind::Mutating => "MutatingAdmissionPolicy",
    };
    text.push_str(&format!("- Kind: {kind}\n"));
    text.push_str(&format!("- Bounds: {}\n", bounds(policy)));
    text.push_str(&format!("- In `Audit`, `Warn`, `Enforce`: {}\n", modes(policy)));
    for rule in rules(&policy.spec) {
        text.push_str(&format!("- Matches: {rule}\n"));
    }
    let examples = messages.of(policy)?;
    if !examples.is_empty() {
        text.push_str("\nIt says, for example:\n");
        text.push_str(&fenced("text", &examples.join("\n\n")));
    }
    Ok(())
}

fn bounds(policy: &Policy) -> String {
    let place = match policy.place {
        Where::Everywhere => "",
        Where::PlatformNamespaces => ", in namespaces of the platform",
        Where::TenantNamespaces => ", in namespaces of tenants",
        Where::OutsideTenants => ", outside the namespaces of tenants",
    };
    let (who, missing) = match policy.lookup {
        Lookup::Nothing => ("everyone", "looks nothing up"),
        Lookup::Platform => {
            ("everyone but the platform", "by its exact names, in the ClusterRole `bailey:platform`")
        }
        Lookup::Boundary { denies: true } => {
            ("everyone but the platform", "by the Boundary, and without one it refuses")
        }
        Lookup::Boundary { denies: false } => {
            ("everyone but the platform", "by the Boundary, and without one it lets through")
        }
    };
    format!("{who}{place}; {missing}")
}

fn modes(policy: &Policy) -> &'static str {
    match (policy.mode, policy.kind) {
        (BindingMode::Always, PolicyKind::Mutating) => "rewrites, rewrites, rewrites",
        (BindingMode::Always, PolicyKind::Validating) => "refuses, refuses, refuses",
        (BindingMode::OnlyEnforce, PolicyKind::Mutating) => "absent, absent, rewrites",
        (BindingMode::OnlyEnforce, PolicyKind::Validating) => "absent, absent, refuses",
        (BindingMode::OnlyWarn, _) => "absent, warns, absent",
        (BindingMode::ByEnforcement, _) => {
            "writes to the audit log, warns and writes to the audit log, refuses"
        }
    }
}

/// `CREATE, UPDATE of secrets`, a line for each rule.
fn rules(spec: &Value) -> Vec<String> {
    let list = |rule: &Value, field: &str| -> Vec<String> {
        let values = rule.get(field).and_then(Value::as_array);
        values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let rules = spec.pointer("/matchConstraints/resourceRules").and_then(Value::as_array);
    let describe = |rule: &Value| {
        let groups = list(rule, "apiGroups");
        let groups = groups.iter().map(|group| if group.is_empty() { "core" } else { group });
        let groups = groups.map(code).collect::<Vec<_>>().join(", ");
        let resources = list(rule, "resources");
        let operations = list(rule, "operations").join(", ");
        format!("{operations} of {} in group {groups}", codes(resources.iter().map(String::as_str)))
    };
    rules.into_iter().flatten().map(describe).collect()
}
