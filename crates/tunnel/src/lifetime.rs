//! How long a certificate lives, when the next one is fetched, and whose clock is wrong.

use std::time::Duration;

use crate::directory::Seconds;

/// A stolen key alone is worth this much at most.
pub const LIFETIME: Duration = Duration::from_secs(3600);
/// Certificates say that they begin this much before they were issued, for clocks that are behind.
pub const BACKDATED: Duration = Duration::from_secs(300);
/// From here on a clock that is off is told.
pub const SKEW_TOLD: Duration = Duration::from_secs(60);
/// From here on certificates are not valid yet, or not any more, and it is the clock's fault.
pub const SKEW_MAX: Duration = BACKDATED;

/// When the next certificate is fetched, from when this one came: half its life, spread by a tenth.
///
/// `random` is uniform in [0, 1). It is counted by a clock that nobody sets.
pub fn renew_after(life: Duration, random: f64) -> Duration {
    life.mul_f64(0.5 - 0.05 + 0.1 * random.clamp(0.0, 1.0))
}

/// From when on it is worth an alert that no next one came.
pub fn alert_after(life: Duration) -> Duration {
    life.mul_f64(0.8)
}

/// How far a clock is off against that of the management cluster, which is the one that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Near enough.
    Right,
    /// Off by so many seconds, ahead if positive; everything still works.
    Off(i64),
    /// Off by so many seconds, ahead if positive; certificates seem not valid.
    Wrong(i64),
}

impl Clock {
    /// Compares two clocks.
    pub fn compare(ours: Seconds, management: Seconds) -> Self {
        let off = i64::try_from(ours).unwrap_or(i64::MAX) - i64::try_from(management).unwrap_or(i64::MAX);
        match Duration::from_secs(off.unsigned_abs()) {
            off_by if off_by >= SKEW_MAX => Self::Wrong(off),
            off_by if off_by >= SKEW_TOLD => Self::Off(off),
            _ => Self::Right,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_around_half_its_life_and_well_before_the_alert() {
        for random in [0.0, 0.5, 1.0] {
            let after = renew_after(LIFETIME, random);
            assert!(after >= LIFETIME.mul_f64(0.45) && after <= LIFETIME.mul_f64(0.56));
            assert!(after < alert_after(LIFETIME));
        }
    }

    #[test]
    fn four_minutes_work_and_twenty_say_so() {
        let now = 1_000_000;
        assert_eq!(Clock::compare(now + 30, now), Clock::Right);
        assert_eq!(Clock::compare(now + 240, now), Clock::Off(240));
        assert_eq!(Clock::compare(now - 240, now), Clock::Off(-240));
        assert_eq!(Clock::compare(now + 1200, now), Clock::Wrong(1200));
        assert_eq!(Clock::compare(now - 1200, now), Clock::Wrong(-1200));
    }
}
