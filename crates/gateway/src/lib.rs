//! The two ends of the tunnel: `bailey gateway` on the management cluster and `bailey agent` in each workload cluster.

pub mod agent;
pub mod gateway;
pub mod wire;
