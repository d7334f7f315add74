//! `bailey cache plan`: what it would mean to have image caches here or there.

use std::path::Path;

use bailey_cache::plan::{PlanError, PlanFile};
use bailey_cache::prefetch::{Prefetch, PrefetchError};
use bailey_cli::output::{ColorChoice, Format, Screen};
use bailey_cli::{CachePlanArguments, Exit};
use bailey_oci::plan::{Outcome, Scene, plan};

use super::{fail, say};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Cache(#[from] PrefetchError),
}

/// Plans and prints.
pub async fn run(arguments: &CachePlanArguments) -> Exit {
    let scene = match scene(arguments).await {
        Ok(scene) => scene,
        Err(error) => return fail(&error, Exit::Usage),
    };
    let outcomes = plan(&scene);
    if arguments.output == Format::Json {
        match serde_json::to_string_pretty(&outcomes) {
            Ok(text) => say(&text),
            Err(error) => return fail(&error, Exit::Internal),
        }
    } else {
        say(&table(&scene, &outcomes));
    }
    Exit::Clean
}

async fn scene(arguments: &CachePlanArguments) -> Result<Scene, Error> {
    // Also for asking a cache over TLS.
    bailey_process::crypto::install();
    let file = PlanFile::read(&arguments.filename)?;
    let beside = arguments.filename.parent().unwrap_or(Path::new("."));
    let cache = match &arguments.cache {
        Some(address) => Some(Prefetch::new(address, arguments.ca.as_deref(), &arguments.platform)?),
        None => None,
    };
    Ok(file.scene(beside, cache.as_ref()).await?)
}

fn table(scene: &Scene, outcomes: &[Outcome]) -> String {
    let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let seconds = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1}"));
    let row = |outcome: &Outcome| {
        let cells = [
            outcome.choice.title().to_owned(),
            mb(outcome.registry_bytes),
            mb(outcome.uplink_bytes),
            mb(outcome.storage_bytes),
            format!("{:.2}", outcome.cost_month),
            outcome.nodes_lost_with_cache.to_string(),
            outcome.nodes_lost_with_uplink.to_string(),
            seconds(outcome.ready_seconds),
            seconds(outcome.next_node_seconds),
        ];
        cells.into_iter().map(|cell| (cell, None)).collect()
    };
    let header = [
        "CACHES",
        "REGISTRY MB",
        "UPLINK MB",
        "STORAGE MB",
        "COST/MONTH",
        "LOST: CACHE",
        "LOST: UPLINK",
        "READY S",
        "NEXT NODE S",
    ];
    let nodes: usize = scene.clusters.iter().map(|cluster| cluster.nodes.len()).sum();
    let screen = Screen::detect(ColorChoice::Auto);
    format!(
        "{} clusters, {nodes} nodes, {} images\n{}\n\
         LOST: nodes that cannot pull what their cluster pulled before, while the most important cache, or uplinks, are \
         away; of {nodes}.",
        scene.clusters.len(),
        scene.images.len(),
        screen.table(&header, outcomes.iter().map(row).collect()).trim_end(),
    )
}
