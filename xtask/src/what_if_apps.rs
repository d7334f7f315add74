//! `cargo xtask what-if-apps`: what real apps would reach if a customer installed them on a management cluster, as their
//! vendors ship them, and with what Bailey grants of it.
//!
//! Pure: the cluster is a fixture, the apps are rendered manifests, both in the corpora.
//! INVARIANT: with Bailey nobody of the customer is proven to reach a Secret that is not the customer's; a row that says
//! otherwise is an error. What is only assumed is counted beside it.

mod app;
mod scoped;
mod served;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use bailey_access::answer::{Finding, SecretEntry, Step};
use bailey_access::{Access, Certainty, Loader, Preset, Snapshot, Subjects};
use serde_json::Value;

use app::App;

/// The customer that installs, and where.
const CUSTOMER: &str = "acme";
const NAMESPACE: &str = "org-acme";
/// The platform whose labels the fixture has.
const PRESET: &str = "giantswarm";
/// Objects of the fixture that are leaks on purpose, and would be in the way here.
const PLANTED: [[&str; 3]; 4] = [
    ["ClusterRoleBinding", "", "backup-agent"],
    ["RoleBinding", "zot", "report-cronjobs"],
    ["RoleBinding", "org-acme", "onboarding"],
    ["Kustomization", "flux-giantswarm", "acme-extras"],
];

#[derive(clap::Args)]
pub struct Arguments {
    /// The folder of apps and fixtures; if absent $BAILEY_CORPORA, else ../shared/corpora.
    #[arg(long, value_name = "DIR")]
    corpora: Option<PathBuf>,
    /// Only this app; repeatable.
    #[arg(long = "app", value_name = "NAME")]
    apps: Vec<String>,
}

/// Prints a table in Markdown, and fails if an app reaches further than its customer with Bailey.
pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = arguments.corpora.clone().or_else(|| bailey_testkit::corpora("what-if of real apps"));
    let folder = folder.context("name the folder of apps and fixtures with --corpora or BAILEY_CORPORA")?;
    let rows = rows(&folder, &arguments.apps)?;
    print!("{}", table(&rows));
    let assumed = rows.iter().map(|row| row.assumed).max().unwrap_or_default();
    eprintln!("with Bailey, if all that is only assumed is true: up to {assumed} Secrets of others");
    let mut is_wrong = false;
    for (row, finding) in rows.iter().flat_map(|row| row.proven.iter().map(move |finding| (row, finding))) {
        is_wrong = true;
        eprintln!("{}: {}", row.app, finding.message);
        finding
            .path
            .iter()
            .for_each(|step| eprintln!("  {}: {} -> {}, {}", step.edge, step.from, step.to, step.object));
    }
    if is_wrong {
        bail!("with Bailey an app reaches further than its customer");
    }
    Ok(())
}

/// What came of one app.
#[derive(Debug)]
pub struct Row {
    app: String,
    /// What its accounts reach as it is shipped, without Bailey.
    shipped: Outside,
    /// What its accounts reach with Bailey.
    scoped: Outside,
    /// Proven ways of anybody of the customer to Secrets of others, with Bailey.
    proven: Vec<Finding>,
    /// How many Secrets of others anybody of the customer reaches with Bailey if all that is assumed is true.
    assumed: usize,
    asked: scoped::Asked,
}

/// Secrets that are not the customer's.
#[derive(Debug, Default)]
pub struct Outside {
    /// Of the platform, by proven ways.
    platform: usize,
    /// Of other customers, by proven ways.
    others: usize,
    /// By ways that are only assumed.
    assumed: usize,
    /// The way to one of them: its edges.
    way: Vec<String>,
}

/// The rows of all apps of a folder, or of those that are named.
pub fn rows(folder: &Path, only: &[String]) -> Result<Vec<Row>> {
    let cluster = cluster(folder)?;
    let crds = app::documents(&folder.join("mc/mc-crds.yaml"))?;
    let mut rows = Vec::new();
    for app in App::all(&folder.join("apps"), NAMESPACE)? {
        if only.is_empty() || only.contains(&app.name) {
            rows.push(row(&cluster, &crds, &app).with_context(|| format!("app {}", app.name))?);
        }
    }
    Ok(rows)
}

fn row(cluster: &[Value], crds: &[Value], app: &App) -> Result<Row> {
    let shipped = access(cluster, &app.objects)?;
    let installed = scoped::install(cluster, crds, app)?;
    let with_bailey = access(&scoped::settled(cluster), &installed.objects)?;
    let mut audit = with_bailey.audit(Subjects::None);
    audit.findings.retain(|finding| {
        finding.customer == CUSTOMER && finding.secret_count > 0 && finding.certainty == Certainty::Proven
    });
    let is_foreign = |secret: &&SecretEntry| {
        secret.customer != CUSTOMER && secret.audience.iter().any(|customer| customer == CUSTOMER)
    };
    Ok(Row {
        app: app.name.clone(),
        shipped: outside(&shipped, app),
        scoped: outside(&with_bailey, app),
        proven: audit.findings,
        assumed: audit.secrets.iter().filter(is_foreign).count(),
        asked: installed.asked,
    })
}

/// The fixture without its leaks, with a version of Kubernetes.
fn cluster(folder: &Path) -> Result<Vec<Value>> {
    let mut objects = app::documents(&folder.join("mc/mc-two-tenants-known.yaml"))?;
    objects.retain(|object| !PLANTED.iter().any(|planted| app::is(object, *planted)));
    objects.push(serde_json::json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "control-plane", "labels": {"node-role.kubernetes.io/control-plane": ""}},
        "status": {"nodeInfo": {"kubeletVersion": "v1.36.3"}},
    }));
    Ok(objects)
}

/// The analysis of a cluster with objects added, each in the place of one of the same name.
fn access(cluster: &[Value], added: &[Value]) -> Result<Access> {
    let mut snapshot = Snapshot::default();
    for objects in [cluster, added] {
        let mut loader = Loader::new(&mut snapshot, Some("mclab")).default_namespace(NAMESPACE);
        loader.source("manifests");
        objects.iter().for_each(|object| loader.object(object, 0));
        loader.finish();
    }
    if let Some(gap) = snapshot.gaps.first() {
        bail!("{}: {}", gap.what, gap.why);
    }
    let preset = Preset::named(PRESET).with_context(|| format!("there is no preset {PRESET}"))?;
    let customers = preset.customers(&snapshot);
    Ok(Access::new(snapshot, customers))
}

/// What the accounts of an app reach that is not their customer's.
fn outside(access: &Access, app: &App) -> Outside {
    let mut outside = Outside::default();
    let mut seen = BTreeSet::new();
    let reached = app.accounts().into_iter().filter_map(|account| {
        let subject = format!("sa:{NAMESPACE}/{account}").parse().ok()?;
        access.reach(&subject).ok()
    });
    let mut secrets: Vec<_> =
        reached.flat_map(|reach| reach.secrets).filter(|secret| secret.foreign).collect();
    secrets.sort_by_key(|secret| (secret.certainty, secret.path.len()));
    for secret in secrets {
        if !seen.insert((secret.namespace.clone(), secret.name.clone())) {
            continue;
        }
        match (secret.certainty, secret.customer.as_str()) {
            (Certainty::Assumed, _) => outside.assumed += 1,
            (_, "platform") => outside.platform += 1,
            _ => outside.others += 1,
        }
        if outside.way.is_empty() {
            outside.way = edges(&secret.path);
        }
    }
    outside
}

fn edges(path: &[Step]) -> Vec<String> {
    let mut edges: Vec<_> =
        path.iter().map(|step| step.edge.clone()).filter(|edge| edge != "bound").collect();
    edges.dedup();
    edges
}

impl Outside {
    fn proven(&self) -> usize {
        self.platform + self.others
    }
}

/// The rows as a table in Markdown.
fn table(rows: &[Row]) -> String {
    let mut text = "| app | rules asked for | Secrets of the platform | of other customers | by | parts granted | refused | with Bailey |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let way = if row.shipped.proven() == 0 { String::new() } else { row.shipped.way.join(", ") };
        let scoped::Asked { rules, granted, refused } = row.asked;
        let with_bailey = row.proven.iter().map(|finding| finding.secret_count).max().unwrap_or_default();
        text.push_str(&format!(
            "| {} | {rules} | {} | {} | {way} | {granted} | {refused} | {} |\n",
            row.app,
            row.shipped.platform,
            row.shipped.others,
            with_bailey.max(row.scoped.proven())
        ));
    }
    text
}
