//! The roles `gateway`, `agent` and `issuer`: from flags to processes that run until a signal.

mod agent;
mod gateway;
mod issuer;

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;

use bailey_cli::Exit;
use bailey_process::telemetry::{self, LogFormat, report};
use tokio::net::TcpListener;

pub use agent::run as agent;
pub use gateway::run as gateway;
pub use issuer::run as issuer;

/// What ends a role before it runs: flags and files, or what it needs at its start.
pub(crate) enum Failed {
    Usage(Box<dyn Error>),
    Internal(Box<dyn Error>),
}

impl Failed {
    fn usage(error: impl Into<Box<dyn Error>>) -> Self {
        Self::Usage(error.into())
    }

    fn internal(error: impl Into<Box<dyn Error>>) -> Self {
        Self::Internal(error.into())
    }
}

/// Says how a role ended.
fn ended(result: Result<(), Failed>) -> Exit {
    let (error, exit) = match result {
        Ok(()) => return Exit::Clean,
        Err(Failed::Usage(error)) => (error, Exit::Usage),
        Err(Failed::Internal(error)) => (error, Exit::Internal),
    };
    eprintln!("error: {}", report(&*error));
    exit
}

fn log(json: bool) -> Result<(), Failed> {
    telemetry::init(if json { LogFormat::Json } else { LogFormat::Text }, None).map_err(Failed::usage)
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Failed> {
    TcpListener::bind(address).await.map_err(|error| {
        Failed::usage(format!("cannot listen on {address}; choose a free address with `--listen`: {error}"))
    })
}

/// Tells where the role is reached, as one line of JSON.
fn say(addresses: &serde_json::Value) {
    // Nobody may be reading; the role runs all the same.
    let _said = writeln!(std::io::stdout(), "{addresses}");
}
