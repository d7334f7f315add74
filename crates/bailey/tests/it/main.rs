//! What must hold, on a real control plane with the real binary.
//!
//! Each test starts its own control plane (about 5 s), so that tests run in parallel and in any order.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod analyser;
mod apps;
mod attacks;
mod auditor;
mod cache;
mod chart;
mod image_caches;
mod internal_services;
mod lifecycle;
mod offline_pod;
mod operator;
mod readme;
mod roles;
mod rollout;
mod secrecy;
mod tunnel;

use std::path::{Path, PathBuf};

use bailey_testkit::{ManagementCluster, Options};

/// The value of every Secret of the platform; it must never be seen.
const MARKER: &str = "a-value-that-no-customer-may-see";

fn program() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_bailey")).to_owned()
}

/// A management cluster as found, without Bailey.
async fn stock() -> ManagementCluster {
    ManagementCluster::stock(&program(), Options::default(), MARKER).await.unwrap()
}

/// A management cluster with Bailey in `Enforce`.
async fn enforced() -> ManagementCluster {
    let mut cluster = stock().await;
    cluster.install().await.unwrap();
    cluster.enforce().await.unwrap();
    cluster
}
