//! What the tunnel between an installation's clusters decides, and nothing that talks.
//!
//! The agent of a workload cluster dials the gateway of the management cluster. Who is who, what a
//! cluster may reach, whose turn it is and how long to wait are answered here from data alone: time
//! is a parameter, sockets and keys are elsewhere.

pub mod backoff;
pub mod claims;
pub mod control;
pub mod directory;
pub mod gate;
pub mod lifetime;
pub mod memory;
pub mod names;
pub mod turns;
