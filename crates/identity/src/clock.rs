//! The clock of this machine, and chance.

use std::time::{SystemTime, UNIX_EPOCH};

use bailey_tunnel::directory::Seconds;

/// Seconds since 1970.
pub fn now() -> Seconds {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// A number in [0, 1), for what must not happen everywhere at once.
pub fn random() -> f64 {
    // Without randomness things happen at once, which is the worst that can come of it.
    getrandom::u32().map_or(0.0, |bits| f64::from(bits) / (f64::from(u32::MAX) + 1.0))
}
