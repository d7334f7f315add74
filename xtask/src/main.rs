//! What people and CI do with the checkout: `cargo xtask COMMAND`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod command;
mod control_plane;
mod demo;
mod generate;
mod oracle;
mod report;
mod test;
mod tools;
mod what_if_apps;

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the Bailey checkout")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Builds the real programs that tests and the demo run, and gets the apps' sources.
    Tools,
    /// Shows on a real control plane what customers can do without Bailey and with it.
    Demo(demo::Arguments),
    /// Runs a control plane until Ctrl-C.
    ControlPlane(control_plane::Arguments),
    /// Issues a kubeconfig for a running control plane.
    Kubeconfig(control_plane::KubeconfigArguments),
    /// Writes the generated files, or with --check fails when they differ.
    Gen(generate::Arguments),
    /// Measures on a real control plane what Bailey costs.
    Bench(bench::Arguments),
    /// Compares the analyser with a real API server on hundreds of random clusters.
    Oracle(oracle::Arguments),
    /// Opens the HTML reports in Chromium and checks that everybody can read them.
    CheckReport(report::Arguments),
    /// Shows what real apps would reach if a customer installed them, without Bailey and with it.
    WhatIfApps(what_if_apps::Arguments),
    /// Runs everything that CI runs.
    Test,
}

fn run(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Tools => tools::run(),
        Task::Demo(arguments) => demo::run(&arguments),
        Task::ControlPlane(arguments) => control_plane::run(&arguments),
        Task::Kubeconfig(arguments) => control_plane::kubeconfig(&arguments),
        Task::Gen(arguments) => generate::run(&arguments),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Oracle(arguments) => oracle::run(&arguments),
        Task::CheckReport(arguments) => report::run(&arguments),
        Task::WhatIfApps(arguments) => what_if_apps::run(&arguments),
        Task::Test => test::run(),
    }
}
