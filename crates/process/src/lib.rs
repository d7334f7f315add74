//! What every server role shares: how it starts, says that it is ready, is measured, drains and ends.
//!
//! A role is a set of named tasks. The first that ends ends the process; a signal drains it. The admin
//! server outlives the tasks, so that a drain can be watched. Nothing here knows what a role does.
//!
//! INVARIANT: every task is owned by [`tasks::Tasks`] or by the future that started it, and is joined.

pub mod admin;
pub mod crypto;
pub mod drain;
pub mod leader;
pub mod metrics;
pub mod readiness;
pub mod role;
pub mod tasks;
pub mod telemetry;
