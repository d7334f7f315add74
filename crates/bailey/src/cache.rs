//! The role `cache`: from flags and a file to a cache that runs until a signal.

use std::io::Write as _;

use bailey_cache::config::{self, Config, ConfigError, File, FileTls, FileUpstream};
use bailey_cli::{CacheArguments, Exit};
use bailey_process::drain::Interrupts;
use bailey_process::telemetry::{self, LogFormat, report};

/// Runs the cache.
pub async fn run(arguments: &CacheArguments) -> Exit {
    let format = if arguments.log_json { LogFormat::Json } else { LogFormat::Text };
    if let Err(error) = telemetry::init(format, None) {
        return fail(&error, Exit::Usage);
    }
    let config = match configuration(arguments) {
        Ok(config) => config,
        Err(error) => return fail(&error, Exit::Usage),
    };
    // Before the start, so that a signal in the middle of it is not lost.
    let interrupts = match Interrupts::install() {
        Ok(interrupts) => interrupts,
        Err(error) => return fail(&error, Exit::Internal),
    };
    let bound = match bailey_cache::start_with(config, interrupts).await {
        Ok(bound) => bound,
        Err(error) => return fail(&error, Exit::Usage),
    };
    let ready = serde_json::json!({ "listen": bound.listen.to_string(), "admin": bound.admin.to_string() });
    // Nobody may be reading; the cache serves all the same.
    let _said = writeln!(std::io::stdout(), "{ready}");
    match bound.join().await {
        Ok(()) => Exit::Clean,
        Err(error) => fail(&error, Exit::Internal),
    }
}

fn configuration(arguments: &CacheArguments) -> Result<Config, ConfigError> {
    let file = arguments.config.as_deref().map(config::read).transpose()?.unwrap_or_default();
    let tls = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Some(FileTls {
            certificate: certificate.clone(),
            key: key.clone(),
            client_ca: arguments.client_ca.clone(),
        }),
        _ => None,
    };
    let upstreams = arguments.upstreams.iter().map(|text| FileUpstream::flag(text));
    let flags = File {
        listen: arguments.listen,
        admin: arguments.admin,
        store: arguments.store.clone(),
        budget: arguments.budget.clone(),
        upstreams: upstreams.collect::<Result<_, _>>()?,
        default_upstream: arguments.default_upstream.clone(),
        parent: arguments.parent.clone(),
        tls,
        ..File::default()
    };
    file.overlaid(flags).config()
}

fn fail(error: &dyn std::error::Error, exit: Exit) -> Exit {
    eprintln!("error: {}", report(error));
    exit
}
