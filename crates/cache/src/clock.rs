//! The wall clock, in whole seconds: what access times and check times are kept in.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970; 0 on a clock that is set before.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}
