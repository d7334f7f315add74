//! The pull-through cache of OCI images.

pub mod cache;
mod clock;
pub mod index;
pub mod metrics;
pub mod store;
pub mod upstream;
