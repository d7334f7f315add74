//! The cache as nodes meet it: a real one on a port of its own, between a scripted upstream and clients that pull as
//! containerd does. Most tests come from complaints about other caches; each names what was wrong there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy knows test functions, not the functions that they call"
)]

mod site;

mod broken_upstream;
mod chaos;
mod clients;
mod conformance;
mod containerd;
mod content;
mod credentials;
mod cri;
mod disk;
mod first_pull;
mod freshness;
mod limits;
mod names;
mod outage;
mod pins;
mod plan;
mod ranges;
mod registry;
mod restart;
mod tiers;
