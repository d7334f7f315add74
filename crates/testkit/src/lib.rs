//! The real things that tests and the demo run against: what they are built from, how they are started,
//! and how to talk to them as one identity.
//!
//! It knows nothing of Bailey's rules. Invariants: every address is on loopback with a port that the
//! kernel chose; no process outlives the process that started it; nothing is written in the checkout.

pub mod access;
pub mod apps;
pub mod attack;
pub mod control_plane;
mod corpora;
pub mod fixture;
pub mod management_cluster;
pub mod node;
mod pki;
mod process;
pub mod registry;
pub mod tools;

pub use access::{Access, Output, Reply};
pub use apps::App;
pub use control_plane::{Addresses, ControlPlane, Options};
pub use corpora::corpora;
pub use management_cluster::ManagementCluster;
pub use node::Node;
pub use process::Process;
pub use tools::Tool;

/// Makes aws-lc-rs the process's TLS provider; later calls do nothing.
pub fn install_tls_provider() {
    // An error says that a provider is installed already, which is what is asked for.
    let _already_installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
