//! `bailey agent`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bailey_cli::{AgentArguments, Exit, Global};
use bailey_gateway::agent::{HttpProxy, Metrics, Options, Shared, dial, serve};
use bailey_gateway::wire::settings::Settings;
use bailey_identity::credentials::{Current, authorities};
use bailey_identity::enrol::Applying;
use bailey_identity::files::{self, Bundle, Files};
use bailey_identity::renew::{Reach, Renewal};
use bailey_identity::tokens::ServiceAccountTokens;
use bailey_process::admin;
use bailey_process::drain::Interrupts;
use bailey_process::metrics::registry;
use bailey_process::readiness::Readiness;
use bailey_process::tasks::Tasks;
use bailey_tunnel::claims::{AGENT_ACCOUNT, AGENT_NAMESPACE};
use bailey_tunnel::control::SNI_SUFFIX;
use bailey_tunnel::memory::Memory;
use bailey_tunnel::names::{ClusterUid, InstallationName, Party, SniLabel};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::{Failed, ended, log, say};

/// What the issuer gave the cluster.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Config {
    installation: InstallationName,
    cluster: ClusterUid,
    sni_label: SniLabel,
    gateways: Vec<String>,
    /// The authorities of the installation, in PEM.
    bundle: String,
}

/// Runs an agent until a signal.
pub async fn run(global: &Global, arguments: &AgentArguments) -> Exit {
    ended(agent(global, arguments).await)
}

async fn agent(global: &Global, arguments: &AgentArguments) -> Result<(), Failed> {
    log(arguments.log_json)?;
    let interrupts = Interrupts::install().map_err(Failed::internal)?;
    let config = read(&arguments.config).await?;
    let proxy = arguments.proxy.as_deref().filter(|url| !url.is_empty());
    let proxy = proxy.map(HttpProxy::new).transpose().map_err(Failed::usage)?;
    let mut tasks = Tasks::new();
    let mut metered = registry(env!("CARGO_PKG_VERSION"));
    let metrics = Metrics::register(&mut metered);
    let readiness = Readiness::new();
    let guard = readiness.register("gateway");
    let refused = Arc::new(Notify::new());
    let credentials =
        credentials(global, arguments, &config, proxy.clone(), Arc::clone(&refused), &mut tasks).await?;
    let bound = admin::bind(arguments.admin, readiness, Arc::new(metered)).await.map_err(Failed::usage)?;
    say(&serde_json::json!({ "admin": bound.address().to_string() }));
    tasks.spawn_last("admin", |last| bound.run(last));
    let options = Options {
        cluster: config.cluster,
        sni_label: config.sni_label,
        gateways: config.gateways,
        proxy,
        listen: arguments.listen,
        connections: arguments.connections.into(),
        memory: Memory::AGENT,
        settings: Settings::DATA,
    };
    let shared = Shared::new(options, credentials, metrics, refused);
    tasks.spawn("agent", |signal| async move {
        serve(shared, guard, signal).await;
        Ok::<_, io::Error>(())
    });
    tasks.run(interrupts, Duration::from_secs(arguments.drain)).await.map_err(Failed::internal)
}

async fn read(path: &Path) -> Result<Config, Failed> {
    let failed = |error: &dyn std::error::Error| Failed::usage(format!("{}: {error}", path.display()));
    let text = tokio::fs::read_to_string(path).await.map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error))
}

async fn credentials(
    global: &Global,
    arguments: &AgentArguments,
    config: &Config,
    proxy: Option<HttpProxy>,
    refused: Arc<Notify>,
    tasks: &mut Tasks,
) -> Result<Current, Failed> {
    let (bundle, bundle_hash) = authorities(config.bundle.as_bytes()).map_err(Failed::usage)?;
    if let (Some(certificate), Some(key)) = (&arguments.certificate, &arguments.key) {
        // The configuration is JSON with the authorities in it; the files are the certificate's alone.
        let files = Files {
            certificate: certificate.clone(),
            key: key.clone(),
            bundle: Bundle::Pem(config.bundle.clone()),
        };
        let (current, follow) = files::follow(files).await.map_err(Failed::usage)?;
        tasks.spawn("files", |signal| async move {
            follow.run(signal).await;
            Ok::<_, io::Error>(())
        });
        return Ok(current);
    }
    let applying = Applying {
        installation: config.installation.clone(),
        party: Party::Cluster(config.cluster.clone()),
        sni: format!("{}{SNI_SUFFIX}", config.sni_label.as_str()),
        bundle,
        bundle_hash,
    };
    let client = bailey_cli::client(global).await.map_err(Failed::usage)?;
    let tokens = ServiceAccountTokens {
        client,
        namespace: AGENT_NAMESPACE.to_owned(),
        account: AGENT_ACCOUNT.to_owned(),
    };
    let reach = Gateway { gateways: config.gateways.clone(), proxy };
    let (current, _, renewal) = Renewal::new(applying, reach, tokens);
    tasks.spawn("renewal", |signal| async move {
        renewal.when_refused(refused).run(signal).await;
        Ok::<_, io::Error>(())
    });
    Ok(current)
}

/// The issuer, which gateways pass connections on to.
struct Gateway {
    gateways: Vec<String>,
    proxy: Option<HttpProxy>,
}

impl Reach for Gateway {
    type Stream = TcpStream;

    async fn reach(&self) -> io::Result<TcpStream> {
        let dialled = dial(&self.gateways, 0, self.proxy.as_ref()).await;
        dialled.map(|(stream, _)| stream).map_err(io::Error::other)
    }
}
