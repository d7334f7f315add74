//! `cargo xtask oracle`: the analyser against a real API server, as `crates/access/tests/it` does it, at length.

use std::process::Command;

use anyhow::Result;

use crate::command::{self, cargo};

const TEST: &str = "the_analyser_and_a_real_api_server_agree";

const LONG_ABOUT: &str = "\
Compares the analyser with a real API server, which is always right.

Scenarios, and random clusters of roles, bindings, accounts and Secrets, are made on real control planes. Everybody in
them then tries all that is known to lead to a Secret, with credentials of its own: each verb that reads, bind, escalate,
impersonation, tokens, token Secrets, certificates, policies, and again as whomever that gives. The analyser must claim
exactly the Secrets whose marker was seen, each way that it tells must lead there, and each direct right must be what a
SubjectAccessReview says.

The same seed and number give the same cluster on any machine. A cluster that differs is made as simple as can be and
shown; look at it again, with each request that changes something, by

  cargo xtask oracle --seed 1 --first 19 --clusters 1 --scenario none --trace

At the end there is a table with precision and recall; both must be 1.0.";

#[derive(clap::Args)]
#[command(long_about = LONG_ABOUT)]
pub struct Arguments {
    /// Compares so many random clusters; each takes some seconds.
    #[arg(long, value_name = "N", default_value_t = 300)]
    clusters: usize,
    /// Draws the clusters of this seed.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: usize,
    /// Begins with this cluster of the seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: usize,
    /// Starts so many control planes, which share the work; two keep two cores busy.
    #[arg(long, value_name = "N", default_value_t = 2)]
    lanes: usize,
    /// Compares only scenarios whose names contain this text; texts are separated by `|`.
    #[arg(long, value_name = "TEXT")]
    scenario: Option<String>,
    /// Shows each request that changes something, and how long each search took.
    #[arg(long)]
    trace: bool,
}

/// Runs the test with what is asked for; it prints what it finds.
pub fn run(arguments: &Arguments) -> Result<()> {
    command::run(&mut test(arguments))
}

fn test(arguments: &Arguments) -> Command {
    let mut test = cargo(&["test", "--package", "bailey-access", "--test", "it", "--locked", "--quiet"]);
    test.args(["--", "--exact", TEST, "--nocapture"]);
    for (name, number) in [
        ("CLUSTERS", arguments.clusters),
        ("SEED", arguments.seed),
        ("FIRST", arguments.first),
        ("LANES", arguments.lanes),
    ] {
        test.env(format!("BAILEY_ORACLE_{name}"), number.to_string());
    }
    if let Some(scenario) = &arguments.scenario {
        test.env("BAILEY_ORACLE_SCENARIO", scenario);
    }
    if arguments.trace {
        test.env("BAILEY_ORACLE_TRACE", "1");
    }
    test
}
