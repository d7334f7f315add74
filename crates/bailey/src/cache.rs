//! The role `cache`: from flags and a file to a cache that runs until a signal.

mod hosts_toml;
mod pins;
mod plan;

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use bailey_cache::config::{self, Config, ConfigError, File, FileTls, FileUpstream};
use bailey_cache::prefetch::{Image, Prefetch};
use bailey_cache::store::{Scrubbed, Store};
use bailey_cli::{
    CacheAction, CacheArguments, CacheManifestsArguments, Exit, PrefetchArguments, ShimArguments,
};
use bailey_process::drain::Interrupts;
use bailey_process::telemetry::{self, LogFormat, report};

/// How long connections of a node may go on after the shim is asked to stop.
const SHIM_GRACE: Duration = Duration::from_secs(20);

/// Runs the cache, or does what else is asked about one.
pub async fn run(arguments: &CacheArguments) -> Exit {
    match &arguments.action {
        None => serve(arguments).await,
        Some(CacheAction::HostsToml(arguments)) => hosts_toml::run(arguments),
        Some(CacheAction::Prefetch(arguments)) => prefetch(arguments).await,
        Some(CacheAction::Manifests(arguments)) => manifests(arguments),
        Some(CacheAction::Bootstrap(arguments)) => bailey_cli::cache_bootstrap(arguments),
        Some(CacheAction::Pin(arguments)) => pins::pin(arguments).await,
        Some(CacheAction::Pins(arguments)) => pins::list(arguments).await,
        Some(CacheAction::Unpin(arguments)) => pins::unpin(arguments).await,
        Some(CacheAction::Plan(arguments)) => plan::run(arguments).await,
        Some(CacheAction::Scrub { store }) => scrub(store),
        Some(CacheAction::Shim(arguments)) => shim(arguments).await,
    }
}

async fn serve(arguments: &CacheArguments) -> Exit {
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
    say(&ready.to_string());
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

async fn prefetch(arguments: &PrefetchArguments) -> Exit {
    let prefetch = Prefetch::new(&arguments.cache, arguments.ca.as_deref(), &arguments.platform);
    let prefetch = match prefetch {
        Ok(prefetch) => prefetch,
        Err(error) => return fail(&error, Exit::Usage),
    };
    let mut exit = Exit::Clean;
    for text in &arguments.images {
        let image = match text.parse::<Image>() {
            Ok(image) => image,
            Err(error) => return fail(&error, Exit::Usage),
        };
        match prefetch.pull(&image).await {
            Ok(pulled) => say(&format!("{text} {} {} bytes", pulled.digest, pulled.bytes)),
            Err(problem) => {
                eprintln!("error: {text}: {problem}");
                exit = Exit::Incomplete;
            }
        }
    }
    exit
}

fn manifests(arguments: &CacheManifestsArguments) -> Exit {
    let built = match bailey_cli::cache_manifests(arguments) {
        Ok(built) => built,
        Err(error) => return bailey_cli::fail(&error),
    };
    // What the cache would refuse at its start is said here already.
    for text in &built.configs {
        let path = Path::new("cache.yaml").to_owned();
        let parsed = File::parse(text).map_err(|message| ConfigError::Syntax { path, message });
        if let Err(error) = parsed.and_then(File::config) {
            return fail(&error, Exit::Usage);
        }
    }
    say(built.text.trim_end());
    Exit::Clean
}

async fn shim(arguments: &ShimArguments) -> Exit {
    if let Err(error) = telemetry::init(LogFormat::Text, None) {
        return fail(&error, Exit::Usage);
    }
    let interrupts = match Interrupts::install() {
        Ok(interrupts) => interrupts,
        Err(error) => return fail(&error, Exit::Internal),
    };
    let shim = match bailey_cache::shim::bind(arguments.listen, arguments.caches.clone()).await {
        Ok(shim) => shim,
        Err(error) => return fail(&error, Exit::Usage),
    };
    say(&serde_json::json!({ "listen": shim.address.to_string() }).to_string());
    match shim.run(interrupts, SHIM_GRACE).await {
        Ok(()) => Exit::Clean,
        Err(error) => fail(&error, Exit::Internal),
    }
}

fn scrub(folder: &Path) -> Exit {
    if !folder.join("blobs").is_dir() {
        eprintln!("error: `{}` is no folder of a cache: it has no `blobs`", folder.display());
        return Exit::Usage;
    }
    // Nothing is fetched here, so nothing has to make room.
    let (store, opened) = match Store::open(folder.to_owned(), u64::MAX) {
        Ok(opened) => opened,
        Err(error) => return fail(&error, Exit::Usage),
    };
    let mut damaged = opened.damaged;
    for digest in store.digests() {
        if store.scrub(&digest) == Scrubbed::Damaged {
            say(&format!("{digest} damaged, removed"));
            damaged += 1;
        }
    }
    say(&format!("{} blobs sound, {damaged} damaged and removed", store.usage().blobs));
    store.index().flush();
    if damaged == 0 { Exit::Clean } else { Exit::Findings }
}

/// Writes a line of the answer.
fn say(line: &str) {
    // Nobody may be reading any more; what was done is done.
    let _said = writeln!(std::io::stdout(), "{line}");
}

fn fail(error: &dyn std::error::Error, exit: Exit) -> Exit {
    eprintln!("error: {}", report(error));
    exit
}
