//! What a run compares, spread over several control planes: one alone leaves half of two cores idle.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result};
use futures::future::try_join_all;

use crate::case;
use crate::oracle::Oracle;
use crate::scenarios::{self, Scenario};
use crate::server::Server;
use crate::tally::Tally;

/// How many random clusters a plain `cargo test` compares.
const CLUSTERS: usize = 12;
/// How many control planes there are.
const LANES: usize = 2;
/// After how many cases that differ there is no point in going on.
const WRONG_MAX: usize = 6;

/// What is compared; each from the environment variable that begins with `BAILEY_ORACLE_`.
#[derive(Clone, Debug)]
pub struct Plan {
    /// `CLUSTERS`: how many random clusters.
    clusters: usize,
    /// `SEED`: which ones.
    seed: usize,
    /// `FIRST`: the first of the seed, to look at one again.
    first: usize,
    /// `LANES`: how many control planes.
    lanes: usize,
    /// `SCENARIO`: parts of the names of scenarios, with `|` between them, if not all are compared.
    scenario: Option<String>,
}

/// What came out.
#[derive(Debug, Default)]
pub struct Outcome {
    pub tally: Tally,
    /// What differs, in words.
    pub wrong: Vec<String>,
}

enum Job {
    Scenario(&'static Scenario),
    Cluster(usize),
}

impl Plan {
    /// Reads the environment; fails on what is no number.
    pub fn from_environment() -> Result<Self> {
        let number = |name: &str, otherwise: usize| match std::env::var(format!("BAILEY_ORACLE_{name}")) {
            Ok(text) => {
                text.parse().with_context(|| format!("read BAILEY_ORACLE_{name}: `{text}` is no number"))
            }
            Err(_) => anyhow::Ok(otherwise),
        };
        Ok(Self {
            clusters: number("CLUSTERS", CLUSTERS)?,
            seed: number("SEED", 1)?,
            first: number("FIRST", 0)?,
            lanes: number("LANES", LANES)?.max(1),
            scenario: std::env::var("BAILEY_ORACLE_SCENARIO").ok(),
        })
    }

    fn jobs(&self) -> Vec<Job> {
        let chosen = |name: &str| {
            self.scenario.as_ref().is_none_or(|parts| parts.split('|').any(|part| name.contains(part)))
        };
        let scenarios = scenarios::all().into_iter().filter(|scenario| chosen(scenario.name));
        let clusters = self.first..self.first + self.clusters;
        scenarios.map(Job::Scenario).chain(clusters.map(Job::Cluster)).collect()
    }

    /// Compares all of it.
    pub async fn run(&self) -> Result<Outcome> {
        let jobs = self.jobs();
        let next = AtomicUsize::new(0);
        let wrong = AtomicUsize::new(0);
        let lanes = try_join_all((0..self.lanes).map(|_| self.lane(&jobs, &next, &wrong))).await?;
        let mut outcome = Outcome::default();
        for lane in lanes {
            outcome.tally += lane.tally;
            outcome.wrong.extend(lane.wrong);
        }
        Ok(outcome)
    }

    /// Compares on one control plane what no other lane has begun.
    async fn lane(&self, jobs: &[Job], next: &AtomicUsize, wrong: &AtomicUsize) -> Result<Outcome> {
        let server = Server::start().await?;
        case::prepare(&server).await?;
        let mut oracle = Oracle::new(&server);
        let mut outcome = Outcome::default();
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let started = Instant::now();
            let (name, found) = match job {
                Job::Scenario(scenario) => {
                    let found = scenario.compare(&mut oracle).await.with_context(|| scenario.name)?;
                    (format!("scenario `{}`", scenario.name), found)
                }
                Job::Cluster(index) => {
                    let name = format!("seed {}, cluster {index}", self.seed);
                    let found = oracle.random(self.seed, *index).await.with_context(|| name.clone())?;
                    (name, found)
                }
            };
            match found {
                None => eprintln!("{name}: agreed in {} ms", started.elapsed().as_millis()),
                Some(found) => {
                    eprintln!("{name}: DIFFERS\n{found}");
                    outcome.wrong.push(format!("{name}:\n{found}"));
                    if wrong.fetch_add(1, Ordering::Relaxed) + 1 >= WRONG_MAX {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                }
            }
        }
        outcome.tally = oracle.tally;
        outcome.tally.requests = server.sent.load(Ordering::Relaxed);
        Ok(outcome)
    }
}
