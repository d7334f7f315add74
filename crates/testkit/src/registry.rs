//! A registry that does what a test tells it, and a client that pulls as containerd does.
//!
//! [`Upstream`] speaks the distribution API on a port of its own over plain TCP, so that it can also do what no HTTP
//! library lets one do: stop in the middle, send other bytes, say one length and send another. It records each
//! request. [`Http`] is the other end of the same: it sees how a body ended. [`Containerd`] replays the requests of a
//! pull and hashes what it gets.

mod answer;
mod connection;
pub mod containerd;
pub mod content;
pub mod fault;
pub mod http;
mod record;
mod repository;
mod runnable;
mod upstream;

pub use containerd::{Containerd, PullError, Pulled};
pub use content::{Blob, Flavour, Image, Layer};
pub use fault::{Fault, On};
pub use http::{Answer, BodyEnd, Http};
pub use record::Seen;
pub use upstream::{Auth, Upstream};
