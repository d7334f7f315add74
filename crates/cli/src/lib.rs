//! The verbs of `bailey`: what people and scripts ask, and how answers look.
//!
//! Deciding is done in pure modules; [`bailey_collect`] talks to the API server; [`output`] knows forms only. A verb
//! gives an [`output::Output`], and nothing else prints to standard output.

mod actors;
mod analyse;
mod args;
mod client;
mod clusters;
mod documents;
pub mod dump;
mod error;
mod examples;
mod exit;
mod image_cache;
mod install;
mod manifests;
pub mod output;
mod plan;
mod requests;
mod snapshot;
mod tunnel;
mod verify;

pub use analyse::schemas;
pub use args::{
    CacheAction, CacheArguments, CacheBootstrapArguments, CacheManifestsArguments, CachePlanArguments,
    CacheSite, Cli, Command, Global, HostsTomlArguments, PinArguments, PinsArguments, PrefetchArguments,
    RoleArguments, ShimArguments, UnpinArguments, Verb,
};
pub use bailey_collect::live;
pub(crate) use bailey_process::telemetry::report;
pub use client::client;
pub use documents::{command, parse};
pub use error::CliError;
pub use exit::Exit;
pub use image_cache::{CacheManifests, cache_bootstrap, cache_manifests};
pub use tunnel::{AgentArguments, GatewayArguments, IssuerArguments, Sources};

use output::{Output, Screen, say};

/// Runs a verb to its end: prints its answer, or why there is none.
pub async fn run(global: &Global, verb: &Verb) -> Exit {
    let outcome = async {
        let output = answer(global, verb).await?;
        output.print()?;
        Ok::<_, CliError>(output.exit)
    };
    outcome.await.unwrap_or_else(|error| fail(&error))
}

/// Says what went wrong, and how the process ends with it.
pub fn fail(error: &CliError) -> Exit {
    say(&format!("error: {}", report(error)));
    error.exit()
}

/// The answer of a verb, unprinted.
pub async fn answer(global: &Global, verb: &Verb) -> Result<Output, CliError> {
    let screen = Screen::detect(global.color);
    match verb {
        Verb::Plan(arguments) => plan::run(arguments, &client::connect(global).await?, &screen).await,
        Verb::Requests(arguments) => requests::run(arguments, &client::connect(global).await?, &screen).await,
        Verb::Verify(arguments) => {
            if global.as_user.is_some() {
                return Err(CliError::Usage(
                    "verify impersonates the tenant's subjects itself, so it takes no --as".to_owned(),
                ));
            }
            verify::run(arguments, &client::connect(global).await?, &screen).await
        }
        Verb::Audit(arguments) => analyse::verbs::audit(arguments, global, &screen).await,
        Verb::WhoCanRead(arguments) => analyse::verbs::who_can_read(arguments, global, &screen).await,
        Verb::Reach(arguments) => analyse::verbs::reach(arguments, global, &screen).await,
        Verb::Why(arguments) => analyse::verbs::why(arguments, global, &screen).await,
        Verb::WhatIf(arguments) => analyse::verbs::what_if(arguments, global, &screen).await,
        Verb::Explain(arguments) => analyse::verbs::explain(arguments, global, &screen).await,
        Verb::Snapshot(arguments) => snapshot::run(arguments, &client::connect(global).await?).await,
        Verb::Diff(arguments) => analyse::verbs::diff(arguments, &screen),
        Verb::Clusters(arguments) => clusters::run(arguments, &client::connect(global).await?, &screen).await,
        Verb::Install(arguments) => Ok(Output::new(install::manifests(arguments)?, Exit::Clean)),
        Verb::Crds => Ok(Output::new(install::crds()?, Exit::Clean)),
        Verb::Completion { shell } => Ok(Output::new(documents::completion(*shell), Exit::Clean)),
        Verb::Man { dir } => documents::man(dir).map(|text| Output::new(text, Exit::Clean)),
        Verb::Version => Ok(Output::new(format!("bailey {}\n", env!("CARGO_PKG_VERSION")), Exit::Clean)),
    }
}
