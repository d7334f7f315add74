//! The attack catalogue, one section an attack.

use anyhow::Result;
use bailey_attacks::{Attack, Rail, Requirement, catalogue};
use bailey_guardrails::policies;

use super::markdown::{codes, head, row, sentence, table};

/// The whole page.
pub(super) fn page() -> Result<String> {
    let attacks = catalogue()?;
    let rails: Vec<_> = policies()?.into_iter().map(|policy| policy.rail).collect();
    let mut text = head("Attacks", "`crates/attacks/catalogue`");
    text.push_str(&format!(
        "\nWhat a tenant may try on a management cluster: {} attacks. The tests carry each out for real on a \
         control plane, where it must fail with Bailey; `bailey verify` sends them to a live cluster as dry runs and \
         reviews, which change nothing.\n",
        attacks.len()
    ));
    text.push_str("\n## By rail\n");
    text.push_str(&table(&["stopped by", "attacks"]));
    for rail in Rail::ALL {
        let stopped = attacks.iter().filter(|attack| attack.definition().rails.contains(&rail));
        let links: Vec<_> = stopped.map(|attack| format!("[{0}](#{0})", attack.id())).collect();
        let name = match rail {
            Rail::Rbac => "RBAC: nobody grants the right".to_owned(),
            _ if rails.iter().any(|known| known == rail.name()) => {
                format!("[{0}](rails.md#{0})", rail.name())
            }
            _ => format!("Kubernetes itself: {}", rail.name()),
        };
        text.push_str(&row(&[&name, &links.join(", ")]));
    }
    text.push_str("\n## All\n");
    attacks.iter().for_each(|attack| section(&mut text, attack));
    Ok(text)
}

fn section(text: &mut String, attack: &Attack) {
    let definition = attack.definition();
    text.push_str(&format!("\n### {}\n\n", attack.id()));
    text.push_str(&format!("**{}** {}\n\n", sentence(&definition.title), sentence(&definition.why)));
    text.push_str(&format!("- Known from: {}\n", sentence(&definition.source)));
    let needs = match definition.requires {
        Some(Requirement::Bailey) => ", on Bailey itself",
        None => "",
    };
    text.push_str(&format!("- Tried by: {}{needs}\n", definition.actor));
    text.push_str(&format!("- Stopped by: {}\n", codes(definition.rails.iter().map(|rail| rail.name()))));
}
