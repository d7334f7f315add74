//! How to look around once the story is told.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::prepare::Prepared;
use super::screen::{Cell, Screen, Tone};
use super::story::Story;

/// What a person may do next, by who does it; each line is a command and what it shows.
const NEXT: [(&str, &str, &str); 7] = [
    ("pia", "bailey requests clusterrolebinding.argocd-server -n argocd", "one request, rule by rule"),
    ("pia", "bailey verify --as-tenant acme", "the attacks, as dry runs"),
    ("pia", "kubectl get installations,tenants", "what Bailey says of itself"),
    ("ines", "kubectl get secrets -n argocd", "her own"),
    ("ines", "kubectl get secrets -n platform-monitoring", "forbidden"),
    ("ines", "kubectl get accessrequests -n argocd", "what became of her requests"),
    ("dora", "kubectl auth can-i install tenants.bailey.dev/acme", "no"),
];

/// Shows what to try.
pub fn next(screen: &Screen) {
    screen.say("What to try next:");
    let row = |(who, command, shows): &(&str, &str, &str)| {
        vec![cell(who, Tone::Faint), cell(command, Tone::Strong), cell(shows, Tone::Faint)]
    };
    screen.table(&["AS", "COMMAND", "SHOWS"], &NEXT.iter().map(row).collect::<Vec<_>>());
}

fn cell(text: &str, tone: Tone) -> Cell {
    (text.to_owned(), tone)
}

/// Leaves kubeconfigs and programs in the folder, and says how to use them.
pub async fn invite(story: &Story, prepared: &Prepared, folder: &Path) -> Result<()> {
    let programs = folder.join("bin");
    tokio::fs::create_dir_all(&programs).await.with_context(|| format!("make `{}`", programs.display()))?;
    for (name, program) in [
        ("bailey", &prepared.bailey),
        ("kubectl-bailey", &prepared.bailey),
        ("kubectl", &prepared.kubectl),
        ("helm", &prepared.helm),
    ] {
        tokio::fs::symlink(program, programs.join(name)).await.with_context(|| format!("link `{name}`"))?;
    }
    let screen = &story.screen;
    screen.heading(
        "Everything still runs. Look around from another terminal; Ctrl-C here ends and removes it.",
    );
    screen.command("", &format!("export PATH={}:$PATH", programs.display()));
    for (who, access, what) in [
        ("pia", &story.platform, "the platform"),
        ("ines", &story.installer, "acme, who may install on the management cluster"),
        ("dora", &story.developer, "acme, a developer"),
    ] {
        let kubeconfig = folder.join(format!("{who}.kubeconfig"));
        access.write_kubeconfig(&kubeconfig)?;
        screen.say_in(Tone::Faint, &format!("{who}, of {what}:"));
        screen.command("", &format!("export KUBECONFIG={}", kubeconfig.display()));
    }
    Ok(())
}
