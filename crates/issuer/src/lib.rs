//! The issuer: gives clusters of the installation their certificates. It alone has the key that signs.
//!
//! Who gets which follows from one thing: with whose keys a ServiceAccount's token verifies. Keys come from each
//! workload cluster itself, through the kubeconfig that Cluster API made; nothing secret is ever pushed to one.

pub mod authority;
pub mod desk;
pub mod enroller;
pub mod kept;
pub mod keys;
mod metrics;
pub mod serve;

pub use metrics::Metrics;
