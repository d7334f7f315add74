//! The story, chapter by chapter.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use bailey_attacks::Outcome;
use bailey_testkit::attack::Cast;
use bailey_testkit::{Access, ManagementCluster, Options};
use serde_json::Value;

use super::attacks::{self, Ended};
use super::prepare::Prepared;
use super::report::Report;
use super::screen::{Screen, Tone};
use super::{apps, audit, look_around, releases};

/// The value of every Secret that no customer may see.
pub const MARKER: &str = "a-value-that-no-customer-may-see";

/// What has been told so far.
pub struct Story {
    pub cluster: ManagementCluster,
    pub screen: Screen,
    pub report: Report,
    /// What should not have happened.
    pub failures: Vec<String>,
    /// A person of the platform.
    pub platform: Access,
    /// A person of acme who may install on the management cluster.
    pub installer: Access,
    /// A person of acme who may not.
    pub developer: Access,
}

impl Story {
    /// Tells all of it; what fails only the customer is noted, anything else ends it.
    pub async fn tell(screen: Screen, report: Report, prepared: &Prepared, folder: &Path) -> Result<Self> {
        let mut story = Self::as_found(screen, report, prepared, folder).await?;
        let cast = Cast::new(&story.cluster.plane, &story.cluster.names).await?;
        let stock = story.attacks_as_found(&cast).await?;
        story.audit(prepared).await?;
        story.enforce().await?;
        apps::install(&mut story, prepared).await?;
        story.releases().await?;
        story.attacks_with_bailey(&cast, &stock).await?;
        story.requests(prepared).await?;
        Ok(story)
    }

    async fn as_found(screen: Screen, report: Report, prepared: &Prepared, folder: &Path) -> Result<Self> {
        let started = Instant::now();
        screen.heading("1. A management cluster as found");
        screen.say(&format!("Starting {} on loopback.", prepared.versions));
        let options = Options { dir: Some(folder.to_owned()), ..Options::default() };
        let cluster = ManagementCluster::stock(&prepared.bailey, options, MARKER).await?;
        let (platform, installer, developer) =
            (cluster.platform()?, cluster.installer()?, cluster.developer()?);
        let mut story =
            Self { cluster, screen, report, failures: Vec::new(), platform, installer, developer };
        story.took("start", started);
        for line in [
            "Two customers, acme and beta. Their administrators are cluster-admin, so that apps install.",
            "ServiceAccount `automation` is cluster-admin in the namespace of its customer.",
            "Older grants lie around, each believed to be harmless.",
            "pia is of the platform. ines of acme is one of its administrators, dora one of its developers.",
        ] {
            screen.point(Tone::Plain, line);
        }
        Ok(story)
    }

    async fn attacks_as_found(&mut self, cast: &Cast) -> Result<Vec<Ended>> {
        let started = Instant::now();
        self.screen.say("Every attack of the catalogue, carried out by people and accounts of acme:");
        let ended = attacks::carry_out(cast, &self.cluster.names, "s").await?;
        attacks::show(&self.screen, &ended);
        let succeeded = attacks::count(&ended, Outcome::Succeeded);
        self.screen.say_in(Tone::Bad, &format!("{succeeded} of {} succeeded.", ended.len()));
        self.screen
            .say("Not applicable are those on Bailey's own objects and on Argo CD, which are not there yet.");
        self.took("attacks-stock", started);
        Ok(ended)
    }

    async fn audit(&mut self, prepared: &Prepared) -> Result<()> {
        let started = Instant::now();
        self.screen.heading("2. Bailey comes, in Audit");
        self.screen.command("pia", "bailey install | kubectl apply --server-side -f -");
        self.screen.command("pia", "kubectl apply -f installation-and-tenants.yaml");
        self.cluster.install().await.context("install Bailey")?;
        self.screen.say("Nothing changes for anybody; checked just now:");
        for line in audit::same_as_before(self).await? {
            self.screen.point(Tone::Good, &line);
        }
        self.took("audit", started);
        let started = Instant::now();
        self.screen.say("What the platform has to do before the rails refuse:");
        self.bailey(prepared, "pia", &self.platform, &["plan", "--enforce", "--summary"]).await?;
        self.took("plan", started);
        Ok(())
    }

    async fn enforce(&mut self) -> Result<()> {
        let started = Instant::now();
        self.screen.heading("3. The platform follows it, and switches to Enforce");
        self.screen.command("pia", "kubectl delete clusterrolebinding write-all-customer-group");
        let patch =
            r#"kubectl patch installation installation --type=merge -p '{"spec":{"enforcement":"Enforce"}}'"#;
        self.screen.command("pia", patch);
        self.cluster.enforce().await.context("switch to Enforce")?;
        self.screen.say("No customer is cluster-admin any more. The older grants stay on purpose: the rails hold in spite of them.");
        self.took("enforce", started);
        Ok(())
    }

    async fn releases(&mut self) -> Result<()> {
        let started = Instant::now();
        self.screen.heading("5. A developer, who may not install on the management cluster");
        releases::tell(self).await?;
        self.took("releases", started);
        Ok(())
    }

    async fn attacks_with_bailey(&mut self, cast: &Cast, stock: &[Ended]) -> Result<()> {
        let started = Instant::now();
        self.screen.heading("6. Every attack again, with Bailey");
        let ended = attacks::carry_out(cast, &self.cluster.names, "b").await?;
        attacks::compare(&self.screen, stock, &ended);
        let before = attacks::count(stock, Outcome::Succeeded);
        let after = attacks::count(&ended, Outcome::Succeeded);
        let tone = if after == 0 { Tone::Good } else { Tone::Bad };
        let all = ended.len();
        self.screen
            .say_in(tone, &format!("{before} of {all} succeeded without Bailey, {after} of {all} with it."));
        let succeeded = ended.iter().filter(|attack| attack.judgement.outcome == Outcome::Succeeded);
        self.failures.extend(succeeded.map(|attack| format!("attack `{}` succeeded with Bailey", attack.id)));
        self.report.attacks = attacks::report(stock, &ended)?;
        self.took("attacks-bailey", started);
        Ok(())
    }

    async fn requests(&mut self, prepared: &Prepared) -> Result<()> {
        let started = Instant::now();
        self.screen.heading("7. What the apps asked for");
        // The operator takes back what the attacks made it note, a moment after they are gone.
        self.cluster
            .until(&["get", "accessrequests", "-A", "-o", "json"], |seen| {
                let names = seen.get("items").and_then(Value::as_array).into_iter().flatten();
                let mut names = names.filter_map(|item| item.pointer("/spec/binding/name")?.as_str());
                !names.any(|name| name.contains("attack-"))
            })
            .await
            .context("wait until nothing of the attacks is left")?;
        self.bailey(prepared, "pia", &self.platform, &["requests"]).await?;
        look_around::next(&self.screen);
        self.took("requests", started);
        Ok(())
    }

    /// Runs Bailey in front of the reader; differences and findings are answers, too.
    async fn bailey(
        &self,
        prepared: &Prepared,
        who: &str,
        access: &Access,
        arguments: &[&str],
    ) -> Result<()> {
        let line = format!("bailey {}", arguments.join(" "));
        self.screen.command(who, &line);
        let mut command = tokio::process::Command::new(&prepared.bailey);
        command.args(arguments).env("KUBECONFIG", access.kubeconfig_path()).kill_on_drop(true);
        let status = command.status().await.with_context(|| format!("start `{line}`"))?;
        if !matches!(status.code(), Some(0 | 1)) {
            bail!("`{line}` failed: {status}");
        }
        Ok(())
    }

    /// Notes how long a phase took.
    pub fn took(&mut self, phase: &str, started: Instant) {
        let seconds = started.elapsed().as_secs_f64();
        self.screen.took(phase, seconds);
        self.report.took(phase, seconds);
    }
}
