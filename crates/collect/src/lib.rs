//! Reads from a cluster what the analyser needs: once in lists, or for as long as somebody watches.
//!
//! `live` speaks to the API server; `kinds` says what is wanted of what it serves; `lists` reads everything once; `watch`
//! keeps it; `redact` drops what may be a credential before anything is kept.
//!
//! INVARIANT: no value of a Secret is kept, and none is asked for unless somebody opens Secrets.

mod kinds;
mod lists;
pub mod live;
mod redact;
mod watch;

pub use lists::{Collected, Opener, Sink, collect, snapshot};
pub use watch::{Kinds, Watch};
