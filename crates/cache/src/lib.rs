//! The pull-through cache of OCI images: it gives nodes what upstream registries have, once it has it and when they
//! are away.
//!
//! `serve` talks to nodes, `cache` decides where things come from, `store` and `index` keep them, `upstream` asks for
//! them. What is a pure decision is in `bailey-oci`. Starting needs a folder and no network.

pub mod cache;
mod clock;
pub mod config;
pub mod control;
pub mod fairness;
pub mod index;
pub mod metrics;
mod page;
pub mod plan;
pub mod prefetch;
mod run;
pub mod serve;
pub mod shim;
pub mod store;
pub mod upstream;

pub use config::Config;
pub use run::{Bound, StartError, start, start_with};
