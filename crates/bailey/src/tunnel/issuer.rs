//! `bailey issuer`.

use std::sync::Arc;
use std::time::Duration;

use bailey_cli::{Exit, Global, IssuerArguments, Sources};
use bailey_issuer::Metrics;
use bailey_issuer::desk::Desk;
use bailey_issuer::enroller::{self, Kubeconfigs, Options};
use bailey_issuer::kept;
use bailey_issuer::keys::Keys;
use bailey_issuer::serve::serve;
use bailey_process::admin;
use bailey_process::drain::Interrupts;
use bailey_process::metrics::registry;
use bailey_process::readiness::Readiness;
use bailey_process::tasks::Tasks;
use bailey_tunnel::directory::{Directory, Index};
use bailey_tunnel::gate::Policy;
use bailey_tunnel::lifetime::LIFETIME;
use bailey_tunnel::names::InstallationName;
use tokio::sync::watch;

use super::{Failed, ended, listen, log, say};

const GRACE: Duration = Duration::from_secs(20);

/// Runs an issuer until a signal.
pub async fn run(global: &Global, arguments: &IssuerArguments) -> Exit {
    ended(issuer(global, arguments).await)
}

async fn issuer(global: &Global, arguments: &IssuerArguments) -> Result<(), Failed> {
    log(arguments.log_json)?;
    let interrupts = Interrupts::install().map_err(Failed::internal)?;
    let installation = InstallationName::new(arguments.installation.clone()).map_err(Failed::usage)?;
    let client = bailey_cli::client(global).await.map_err(Failed::usage)?;
    let mut metered = registry(env!("CARGO_PKG_VERSION"));
    let metrics = Metrics::register(&mut metered);
    let readiness = Readiness::new();
    let bound =
        admin::bind(arguments.admin, readiness.clone(), Arc::new(metered)).await.map_err(Failed::usage)?;
    let listener = listen(arguments.listen).await?;
    let listening = listener.local_addr().map_err(Failed::internal)?;
    let (authority, follow) =
        kept::open(client.clone(), installation.clone()).await.map_err(Failed::internal)?;
    say(&serde_json::json!({ "listen": listening.to_string(), "admin": bound.address().to_string() }));

    let sources = match arguments.sources {
        Sources::Off => Policy::Off,
        Sources::Prefer => Policy::Prefer,
        Sources::Strict => Policy::Strict,
    };
    // Nobody is known before the first look at the cluster, so nobody gets anything.
    let empty =
        Directory { installation: installation.clone(), sources, clusters: Vec::new(), services: Vec::new() };
    let index = watch::Sender::new(Arc::new(Index::new(empty).map_err(Failed::internal)?));
    let known = index.subscribe();
    let keys = Keys::new(Kubeconfigs::new(client.clone(), known.clone()));
    let desk = Arc::new(Desk::new(authority.clone(), known.clone(), keys, LIFETIME, metrics));
    let options = Options {
        installation,
        sources,
        gateways: arguments.gateways.clone(),
        image: arguments.agent_image.clone(),
    };
    let mut tasks = Tasks::new();
    tasks.spawn_last("admin", |last| bound.run(last));
    let serving = authority.clone();
    tasks.spawn("issuer", |signal| serve(listener, desk, serving, signal));
    tasks.spawn("authority", |signal| follow.run(signal));
    tasks.spawn("enroller", |signal| enroller::run(client, options, index, authority, signal));
    tasks.run(interrupts, GRACE).await.map_err(Failed::internal)
}
