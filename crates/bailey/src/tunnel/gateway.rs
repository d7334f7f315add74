//! `bailey gateway`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bailey_cli::{Exit, GatewayArguments, Global};
use bailey_gateway::gateway::{
    Known, Metrics, Options, Shared, follow_directory, follow_kubernetes, serve, write_statuses,
};
use bailey_identity::credentials::{Current, authorities};
use bailey_identity::enrol::Applying;
use bailey_identity::files::{self, Bundle, Files};
use bailey_identity::renew::{Reach, Renewal};
use bailey_identity::tokens::ServiceAccountTokens;
use bailey_process::admin;
use bailey_process::drain::{Drain, Interrupts};
use bailey_process::metrics::registry;
use bailey_process::readiness::Readiness;
use bailey_process::tasks::Tasks;
use bailey_tunnel::claims::{GATEWAY_ACCOUNT, GATEWAY_NAMESPACE};
use bailey_tunnel::control::SNI_SUFFIX;
use bailey_tunnel::names::{InstallationName, Party};
use bailey_tunnel::turns::Limits;
use tokio::net::TcpStream;

use super::{Failed, ended, listen, log, say};

/// Runs a gateway until a signal.
pub async fn run(global: &Global, arguments: &GatewayArguments) -> Exit {
    ended(gateway(global, arguments).await)
}

async fn gateway(global: &Global, arguments: &GatewayArguments) -> Result<(), Failed> {
    log(arguments.log_json)?;
    let interrupts = Interrupts::install().map_err(Failed::internal)?;
    let mut tasks = Tasks::new();
    let mut metered = registry(env!("CARGO_PKG_VERSION"));
    let metrics = Metrics::register(&mut metered);
    let readiness = Readiness::new();
    let client = match (&arguments.directory, &arguments.certificate) {
        (Some(_), Some(_)) => None,
        _ => Some(bailey_cli::client(global).await.map_err(Failed::usage)?),
    };
    let credentials = credentials(arguments, client.clone(), &mut tasks).await?;
    let bound =
        admin::bind(arguments.admin, readiness.clone(), Arc::new(metered)).await.map_err(Failed::usage)?;
    let listener = listen(arguments.listen).await?;
    let listening = listener.local_addr().map_err(Failed::internal)?;
    say(&serde_json::json!({ "listen": listening.to_string(), "admin": bound.address().to_string() }));
    tasks.spawn_last("admin", |last| bound.run(last));

    let waits = readiness.register("directory");
    let Some(known) = known(arguments, client.clone(), &mut tasks).await? else { return Ok(()) };
    waits.ready();
    let options = Options {
        proxies: arguments.proxies.clone(),
        issuer: arguments.issuer.clone(),
        turns: Limits { rate: arguments.rate, ..Limits::default() },
        spread: Duration::from_secs(arguments.drain.min(10) / 2),
        ..Options::default()
    };
    let certified = readiness.register("certificate");
    let mut current = credentials.clone();
    let shared = Shared::new(options, known, credentials, metrics);
    let serving = Arc::clone(&shared);
    tasks.spawn("gateway", |signal| async move {
        serve(listener, serving, signal).await;
        Ok::<_, io::Error>(())
    });
    tasks.spawn("certificate", |signal| async move {
        tokio::select! {
            _ = current.wait_for(Option::is_some) => certified.ready(),
            () = signal.started() => {}
        }
        signal.started().await;
        Ok::<_, io::Error>(())
    });
    if let Some(client) = client.filter(|_| arguments.directory.is_none()) {
        tasks.spawn("status", |signal| async move {
            write_statuses(client, shared, signal).await;
            Ok::<_, io::Error>(())
        });
    }
    tasks.run(interrupts, Duration::from_secs(arguments.drain)).await.map_err(Failed::internal)
}

/// Follows the directory in a file or in the cluster; None if the process was asked to stop before there was one.
async fn known(
    arguments: &GatewayArguments,
    client: Option<kube::Client>,
    tasks: &mut Tasks,
) -> Result<Option<Known>, Failed> {
    if let Some(path) = &arguments.directory {
        let (known, follow) = follow_directory(path).await.map_err(Failed::usage)?;
        tasks.spawn("directory", |signal| async move {
            follow.run(signal).await;
            Ok::<_, io::Error>(())
        });
        return Ok(Some(known));
    }
    let Some(client) = client else { return Ok(None) };
    // A signal ends the wait by ending the process, since nothing is under way yet.
    let waiting = Drain::new();
    let Some((known, follow)) = follow_kubernetes(client, &waiting.signal()).await else { return Ok(None) };
    tasks.spawn("directory", |signal| follow.run(signal));
    Ok(Some(known))
}

async fn credentials(
    arguments: &GatewayArguments,
    client: Option<kube::Client>,
    tasks: &mut Tasks,
) -> Result<Current, Failed> {
    if let (Some(certificate), Some(key)) = (&arguments.certificate, &arguments.key) {
        let bundle = Bundle::File(arguments.bundle.clone());
        let files = Files { certificate: certificate.clone(), key: key.clone(), bundle };
        let (current, follow) = files::follow(files).await.map_err(Failed::usage)?;
        tasks.spawn("files", |signal| async move {
            follow.run(signal).await;
            Ok::<_, io::Error>(())
        });
        return Ok(current);
    }
    let (Some(installation), Some(issuer), Some(client)) =
        (&arguments.installation, &arguments.issuer, client)
    else {
        return Err(Failed::usage("give --certificate and --key, or --installation and --issuer".to_owned()));
    };
    let installation = InstallationName::new(installation.clone()).map_err(Failed::usage)?;
    let pem = tokio::fs::read(&arguments.bundle).await;
    let pem =
        pem.map_err(|error| Failed::usage(format!("cannot read {}: {error}", arguments.bundle.display())))?;
    let (bundle, bundle_hash) = authorities(&pem).map_err(Failed::usage)?;
    let sni = format!("{}{SNI_SUFFIX}", bailey_issuer::desk::GATEWAY_LABEL);
    let applying = Applying { installation, party: Party::Gateway, sni, bundle, bundle_hash };
    let tokens = ServiceAccountTokens {
        client,
        namespace: GATEWAY_NAMESPACE.to_owned(),
        account: GATEWAY_ACCOUNT.to_owned(),
    };
    let (current, _, renewal) = Renewal::new(applying, Issuer(issuer.clone()), tokens);
    tasks.spawn("renewal", |signal| async move {
        renewal.run(signal).await;
        Ok::<_, io::Error>(())
    });
    Ok(current)
}

/// The issuer, inside the management cluster.
struct Issuer(String);

impl Reach for Issuer {
    type Stream = TcpStream;

    async fn reach(&self) -> io::Result<TcpStream> {
        let connect = TcpStream::connect(&self.0);
        tokio::time::timeout(Duration::from_secs(5), connect)
            .await
            .unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    }
}
