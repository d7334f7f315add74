//! The one binary: reads the command line, runs a verb or a role, ends with its exit code.

use std::process::ExitCode;

use bailey_cli::{Command, Exit, Global, OperatorArguments};

fn main() -> ExitCode {
    let cli = match bailey_cli::parse() {
        Ok(cli) => cli,
        Err(exit) => return ExitCode::from(exit.code()),
    };
    bailey_process::crypto::install();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::from(Exit::Internal.code());
        }
    };
    let exit = match &cli.command {
        Command::Verb(verb) => runtime.block_on(bailey_cli::run(&cli.global, verb)),
        Command::Operator(arguments) => runtime.block_on(operator(&cli.global, arguments)),
    };
    ExitCode::from(exit.code())
}

/// TODO(the operator crate builds): set up telemetry and call `bailey_operator::run`.
async fn operator(global: &Global, _arguments: &OperatorArguments) -> Exit {
    match bailey_cli::client(global).await {
        Ok(_client) => Exit::Internal,
        Err(error) => bailey_cli::fail(&error),
    }
}
