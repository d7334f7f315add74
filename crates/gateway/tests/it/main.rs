//! The tunnel on real sockets: what must hold between gateways, agents and whoever else comes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop"
)]

mod complaints;
mod fixture;
mod strangers;
