//! The analyser on data alone, through what the crate makes public: faults that tools of this kind are known to have,
//! and damaged input. No API server is needed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy knows test functions, not the functions that they call"
)]

mod answers;
mod bad_input;
mod bugs;
mod cluster;
mod would_be;
