//! The one binary: reads the command line, runs a verb or a role, ends with its exit code.

mod cache;
mod tunnel;

use std::process::ExitCode;

use bailey_cli::{CacheAction, CacheArguments, Command, Exit, Global, RoleArguments};
use bailey_process::{
    role::{Options, RoleError},
    telemetry::{self, LogFormat},
};

fn main() -> ExitCode {
    let cli = match bailey_cli::parse() {
        Ok(cli) => cli,
        Err(exit) => return ExitCode::from(exit.code()),
    };
    bailey_process::crypto::install();
    let mut builder = match &cli.command {
        // A shim only waits for sockets, and has to be small.
        Command::Cache(CacheArguments { action: Some(CacheAction::Shim(_)), .. }) => {
            tokio::runtime::Builder::new_current_thread()
        }
        Command::Verb(_) | Command::Cache(_) | Command::Gateway(_) | Command::Agent(_) => {
            tokio::runtime::Builder::new_multi_thread()
        }
        // These wait for the API server most of the time; one thread keeps their memory in one heap.
        Command::Operator(_) | Command::Auditor(_) | Command::Issuer(_) => {
            tokio::runtime::Builder::new_current_thread()
        }
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::from(Exit::Internal.code());
        }
    };
    let exit = match &cli.command {
        Command::Verb(verb) => runtime.block_on(bailey_cli::run(&cli.global, verb)),
        Command::Operator(arguments) => runtime.block_on(role(&cli.global, arguments, bailey_operator::run)),
        Command::Auditor(arguments) => runtime.block_on(role(&cli.global, arguments, bailey_auditor::run)),
        Command::Cache(arguments) => runtime.block_on(cache::run(arguments)),
        Command::Gateway(arguments) => runtime.block_on(tunnel::gateway(&cli.global, arguments)),
        Command::Agent(arguments) => runtime.block_on(tunnel::agent(&cli.global, arguments)),
        Command::Issuer(arguments) => runtime.block_on(tunnel::issuer(&cli.global, arguments)),
    };
    ExitCode::from(exit.code())
}

/// Runs a role until it ends.
async fn role(
    global: &Global,
    arguments: &RoleArguments,
    run: impl AsyncFnOnce(Options, kube::Client) -> Result<(), RoleError>,
) -> Exit {
    let format = if arguments.log_json { LogFormat::Json } else { LogFormat::Text };
    if let Err(error) = telemetry::init(format, None) {
        eprintln!("error: {}", telemetry::report(&error));
        return Exit::Usage;
    }
    let client = match bailey_cli::client(global).await {
        Ok(client) => client,
        Err(error) => return bailey_cli::fail(&error),
    };
    let options = Options {
        admin: arguments.admin,
        leader_elect: arguments.leader_elect,
        identity: arguments.identity.clone(),
    };
    match run(options, client).await {
        Ok(()) => Exit::Clean,
        Err(error) => {
            eprintln!("error: {}", telemetry::report(&error));
            Exit::Internal
        }
    }
}
