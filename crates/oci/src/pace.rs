//! How fast an upstream wants to be asked: `Retry-After` and the rate-limit headers of Docker Hub.

use std::time::{Duration, SystemTime};

/// No wait is longer; what an upstream says beyond is asked again after this.
pub const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// Reads `Retry-After`, seconds or a date (RFC 9110, 10.2.3), as how long to wait from `now`.
///
/// A date that is past means not to wait; None when the value is neither.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        let seconds = value.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(WAIT_MAX));
    }
    // RFC 9110 dates are ASCII and at most some thirty characters long.
    let date = (value.len() <= 64 && value.is_ascii()).then(|| httpdate::parse_http_date(value).ok())??;
    Some(date.duration_since(now).unwrap_or_default().min(WAIT_MAX))
}

/// What is left of a limit, as in `100;w=21600`: so many in a window of so many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub count: u64,
    pub window: Option<Duration>,
}

/// Reads `ratelimit-limit` or `ratelimit-remaining`.
pub fn quota(value: &str) -> Option<Quota> {
    let mut parts = value.split(';').map(str::trim);
    let count = number(parts.next()?)?;
    let window = parts.find_map(|part| part.strip_prefix("w=")).and_then(number).map(Duration::from_secs);
    Some(Quota { count, window })
}

fn number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests;
