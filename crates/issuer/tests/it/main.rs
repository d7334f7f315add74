//! The issuer over real TLS: who gets a certificate, and who does not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop"
)]

mod fixture;
mod identity;
mod whole_path;
