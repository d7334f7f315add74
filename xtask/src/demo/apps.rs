//! Real apps that the customer installs unmodified, and what they may do.

use std::time::Instant;

use anyhow::{Context as _, Result};
use bailey_testkit::{App, Output, apps};
use serde_json::Value;

use super::prepare::Prepared;
use super::reach;
use super::report::AppReport;
use super::requests::{Digest, answered, requests};
use super::screen::Tone;
use super::story::Story;

const LOOK: [&str; 5] = ["get", "clusterrolebindings,rolebindings,accessrequests", "-A", "-o", "json"];

/// An app and how its customer installs it.
struct Plan {
    app: App,
    title: &'static str,
    how: &'static str,
    namespace: String,
    /// The account that does the app's work.
    account: &'static str,
    source: String,
    chart: bool,
}

/// Installs each app as acme; one that does not install is noted, and the story goes on.
pub async fn install(story: &mut Story, prepared: &Prepared) -> Result<()> {
    story.screen.heading("4. acme installs what it likes, unmodified, as itself");
    let plans = [
        Plan {
            app: App::ArgoCd,
            title: "Argo CD",
            how: "the full cluster install",
            namespace: story.cluster.names.tenant_app_namespace.clone(),
            account: "argocd-application-controller",
            source: prepared.argo_cd.to_string_lossy().into_owned(),
            chart: false,
        },
        Plan {
            app: App::SealedSecrets,
            title: "Sealed Secrets",
            how: "from its chart",
            namespace: story.cluster.names.tenant_namespace.clone(),
            account: "sealed-secrets",
            source: prepared.sealed_secrets.to_string_lossy().into_owned(),
            chart: true,
        },
    ];
    for (index, plan) in plans.into_iter().enumerate() {
        if index > 0 {
            story.screen.raw("");
        }
        let started = Instant::now();
        let report = install_one(story, &plan).await.with_context(|| format!("show {}", plan.app.name()))?;
        story.report.apps.push(report);
        story.took(plan.app.name(), started);
    }
    Ok(())
}

async fn install_one(story: &mut Story, plan: &Plan) -> Result<AppReport> {
    let version = apps::version(plan.app)?;
    let screen = story.screen;
    screen.say_in(Tone::Strong, &format!("{} {version}, {}", plan.title, plan.how));
    let mut report = AppReport {
        name: plan.app.name().to_owned(),
        version,
        installed: false,
        requested: 0,
        granted: 0,
        refused: 0,
    };
    let output = apply(story, plan).await?;
    if !output.success() {
        screen.say_in(Tone::Bad, &format!("It does not install: {}", output.stderr));
        story.failures.push(format!("{} does not install: {}", plan.app.name(), output.stderr.trim()));
        return Ok(report);
    }
    report.installed = true;
    let seen = story.cluster.until(&LOOK, |objects| answered(objects, &plan.namespace)).await?;
    let seen = settled(story, plan, seen).await?;
    let digest = Digest::of(&requests(&seen, &plan.namespace));
    let names = &story.cluster.names;
    let namespaces = format!("{} and {}", names.tenant_app_namespace, names.tenant_namespace);
    digest.show(&screen, &namespaces);
    (report.requested, report.granted, report.refused) = (digest.requested, digest.granted, digest.refused);
    reach::secrets(story, &plan.namespace, plan.account).await?;
    diff(story, plan).await?;
    Ok(report)
}

/// Installs with the command that the app's documentation gives.
async fn apply(story: &Story, plan: &Plan) -> Result<Output> {
    let Plan { namespace, source, .. } = plan;
    let screen = story.screen;
    if plan.chart {
        screen.command("ines", &format!("helm install {} CHART -n {namespace}", plan.app.name()));
        let output = story.installer.helm(&["install", plan.app.name(), source, "-n", namespace]).await?;
        if output.success() {
            screen.say_in(Tone::Good, "Accepted.");
        }
        return Ok(output);
    }
    screen.command("ines", &format!("kubectl apply --server-side -n {namespace} -f install.yaml"));
    let output =
        story.installer.kubectl(&["apply", "--server-side", "-n", namespace, "-f", source], None).await?;
    if output.success() {
        screen.say_in(Tone::Good, &format!("All {} objects accepted.", output.stdout.lines().count()));
    }
    Ok(output)
}

/// Looks until the answers stay the same, because kinds that the app brought are granted once they are served.
async fn settled(story: &mut Story, plan: &Plan, mut seen: Value) -> Result<Value> {
    loop {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let next = story.cluster.until(&LOOK, |objects| answered(objects, &plan.namespace)).await?;
        if requests(&next, &plan.namespace) == requests(&seen, &plan.namespace) {
            return Ok(next);
        }
        seen = next;
    }
}

/// Compares what was asked for with what is stored; a difference would have GitOps apply it for ever.
async fn diff(story: &mut Story, plan: &Plan) -> Result<()> {
    let namespace = plan.namespace.as_str();
    let (line, output) = if plan.chart {
        let get = ["get", "manifest", plan.app.name(), "-n", namespace];
        let manifest = story.installer.helm(&get).await?.stdout_of_success()?;
        let line = format!(
            "helm get manifest {} -n {namespace} | kubectl diff -n {namespace} -f -",
            plan.app.name()
        );
        (line, story.installer.kubectl(&["diff", "-n", namespace, "-f", "-"], Some(&manifest)).await?)
    } else {
        let line = format!("kubectl diff --server-side -n {namespace} -f install.yaml");
        let diff = ["diff", "--server-side", "-n", namespace, "-f", &plan.source];
        (line, story.installer.kubectl(&diff, None).await?)
    };
    story.screen.command("ines", &line);
    if output.success() {
        story.screen.say_in(Tone::Good, "No difference.");
    } else {
        story.screen.say_in(Tone::Bad, &format!("{}{}", output.stdout, output.stderr));
        story.failures.push(format!("{}: `{line}` is not clean", plan.app.name()));
    }
    Ok(())
}
