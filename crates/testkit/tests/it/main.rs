//! The testkit against the real programs.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy knows test functions, not the functions that they call"
)]

mod apps;
mod attacks;
mod control_plane;
mod registry;
