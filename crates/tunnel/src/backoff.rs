//! How long to wait before the next try.
//!
//! Full jitter (Brooker, "Exponential Backoff And Jitter", 2015): a gateway that comes back is met by its agents
//! spread evenly, not in waves.

use std::time::Duration;

/// The waits of one kind of try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest first wait.
    pub first: Duration,
    /// The longest wait of all.
    pub cap: Duration,
}

impl Backoff {
    /// What agents use: all of 500 are back well within half a minute.
    pub const DIAL: Self = Self { first: Duration::from_millis(500), cap: Duration::from_secs(15) };
    /// For what asks a person's patience or a certificate authority's.
    pub const ENROL: Self = Self { first: Duration::from_millis(500), cap: Duration::from_secs(150) };

    /// Gives the wait after so many failures in a row (0 for none yet).
    ///
    /// `random` is uniform in [0, 1). What the other side asked for is the least that is waited, and then spread
    /// over as much again, since it told others the same.
    pub fn wait(&self, failures: u32, random: f64, asked: Option<Duration>) -> Duration {
        let random = random.clamp(0.0, 1.0);
        match asked {
            Some(asked) => asked.min(self.cap).mul_f64(1.0 + random),
            None => {
                let longest = self.first.saturating_mul(2_u32.saturating_pow(failures.min(20)));
                longest.min(self.cap).mul_f64(random)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_are_spread_from_zero() {
        let backoff = Backoff::DIAL;
        assert_eq!(backoff.wait(0, 0.0, None), Duration::ZERO);
        assert_eq!(backoff.wait(0, 1.0, None), backoff.first);
        assert_eq!(backoff.wait(3, 1.0, None), backoff.first * 8);
        assert_eq!(backoff.wait(u32::MAX, 1.0, None), backoff.cap);
        assert_eq!(backoff.wait(u32::MAX, 0.5, None), backoff.cap / 2);
    }

    #[test]
    fn what_was_asked_for_is_the_least_and_never_beyond_reason() {
        let asked = Some(Duration::from_secs(4));
        assert_eq!(Backoff::DIAL.wait(0, 0.0, asked), Duration::from_secs(4));
        assert_eq!(Backoff::DIAL.wait(0, 0.5, asked), Duration::from_secs(6));
        let forever = Some(Duration::from_secs(1 << 40));
        assert!(Backoff::DIAL.wait(0, 1.0, forever) <= Backoff::DIAL.cap * 2);
    }
}
