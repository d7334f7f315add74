//! The analyser against a real API server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy knows test functions, not the functions that they call"
)]

mod case;
mod certificates;
mod changes;
mod direct;
mod generate;
mod oracle;
mod policies;
mod prober;
mod rights;
mod run;
mod scenarios;
mod server;
mod spec;
mod tally;

use run::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn the_analyser_and_a_real_api_server_agree() {
    let outcome = Plan::from_environment().unwrap().run().await.unwrap();
    eprintln!("{}", outcome.tally);
    let wrong = outcome.wrong;
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
}
