//! The attack catalogue: what a tenant of a management cluster may try, one file per attack.
//!
//! An attack is data: requests, who sends them, and what counts as success *seen from the attacker's
//! side*. The same entries are executed for real in tests and sent as dry runs on a live cluster.
//! This crate names no client: it renders requests and judges answers, whoever carried them.
//!
//! The file schema is [`Definition`]; strings may hold the placeholders of [`Bindings`]. Two variants:
//! `steps` changes the cluster and is followed by `cleanup`; `verify` changes nothing.
//! INVARIANT: a judgement quotes only `Status` messages, never another part of an answer.

mod attack;
mod bindings;
mod catalogue;
mod encoding;
mod error;
mod judge;
mod rail;

pub use attack::{
    AccountName, Actor, Attack, Check, Definition, Holds, Identity, Method, RenderedAttack, Request,
    Requirement, Review, Step, Success, Until, Verify,
};
pub use bindings::Bindings;
pub use catalogue::catalogue;
pub use error::{Error, Result};
pub use judge::{Judgement, Outcome, Response};
pub use rail::Rail;
