//! What both ends of the tunnel do with sockets and streams.

pub mod copy;
pub mod hello;
pub mod keepalive;
pub mod ledger;
pub mod lines;
pub mod meter;
pub mod scheduler;
pub mod settings;
pub mod socket;
