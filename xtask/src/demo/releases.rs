//! Where a developer may install: on workload clusters, and what makes them, but not on the management cluster.

use anyhow::Result;
use bailey_testkit::Access;

use super::screen::Tone;
use super::story::Story;

/// One HelmRelease and what should become of it.
struct Release {
    who: &'static str,
    what: &'static str,
    name: &'static str,
    /// What decides, as a line of the spec.
    decisive: &'static str,
    accepted: bool,
}

const RELEASES: [Release; 4] = [
    Release {
        who: "dora",
        what: "an app on workload cluster acme1, through the kubeconfig that Cluster API wrote",
        name: "shop",
        decisive: "kubeConfig: {secretRef: {name: acme1-kubeconfig}}",
        accepted: true,
    },
    Release {
        who: "dora",
        what: "a new workload cluster, with a control account, whose rights reach nothing else",
        name: "acme2",
        decisive: "serviceAccountName: automation",
        accepted: true,
    },
    Release {
        who: "dora",
        what: "an app on the management cluster, with the account for installing",
        name: "tool",
        decisive: "serviceAccountName: installer",
        accepted: false,
    },
    Release {
        who: "ines",
        what: "the same, by somebody who holds the verb `install` on Tenant acme",
        name: "tool",
        decisive: "serviceAccountName: installer",
        accepted: true,
    },
];

/// Applies each release, shows the answer, and notes one that should be otherwise.
pub async fn tell(story: &mut Story) -> Result<()> {
    let screen = story.screen;
    for release in &RELEASES {
        let access: &Access = if release.who == "dora" { &story.developer } else { &story.installer };
        let manifest = manifest(release, &story.cluster.names.tenant_namespace);
        screen.say(&format!("HelmRelease {}: {}", release.name, release.what));
        screen.command(
            release.who,
            &format!("kubectl apply -f {}.yaml    # {}", release.name, release.decisive),
        );
        let output = access.kubectl(&["apply", "--server-side", "-f", "-"], Some(&manifest)).await?;
        let right = output.success() == release.accepted;
        let text = if output.success() { &output.stdout } else { &output.stderr };
        let tone = match (right, release.accepted) {
            (true, true) => Tone::Good,
            (true, false) => Tone::Notice,
            (false, _) => Tone::Bad,
        };
        screen.say_in(tone, text);
        if !right {
            story.failures.push(format!("{}: HelmRelease {}: {}", release.who, release.name, text.trim()));
        }
    }
    Ok(())
}

fn manifest(release: &Release, namespace: &str) -> String {
    let Release { name, decisive, .. } = release;
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\n\
         kind: HelmRelease\n\
         metadata: {{name: {name}, namespace: {namespace}}}\n\
         spec:\n  \
           interval: 10m\n  \
           chart: {{spec: {{chart: {name}, sourceRef: {{kind: HelmRepository, name: charts}}}}}}\n  \
           {decisive}\n"
    )
}
