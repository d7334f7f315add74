//! Whether to ask an upstream at all: after outages it is left alone for a while, then asked once.
//!
//! Pure: time comes as an argument. What counts as an outage is decided where answers are read.
//!
//! INVARIANT: while an upstream is away, at most one request at a time finds out whether it is back.

use std::time::Duration;

use tokio::time::Instant;

/// So many outages in a row open the breaker.
const OUTAGES_MAX: u32 = 3;
/// The first and the longest pause.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// However long the upstream asks to be left alone.
const ASKED_MAX: Duration = Duration::from_secs(3600);

/// The breaker of one upstream.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    outages: u32,
    since: Option<Instant>,
    closed_until: Option<Instant>,
    probing: bool,
}

/// Whether a request may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Go,
    /// Go, and say how it went: others wait for it.
    Probe,
    /// Do not ask before this time has passed.
    Wait(Duration),
}

impl Breaker {
    pub fn admit(&mut self, now: Instant) -> Admission {
        let Some(until) = self.closed_until else { return Admission::Go };
        if now < until {
            return Admission::Wait(until - now);
        }
        if self.probing {
            return Admission::Wait(PAUSE_MIN);
        }
        self.probing = true;
        Admission::Probe
    }

    /// The upstream answered, whatever it said.
    pub fn answered(&mut self) {
        *self = Self::default();
    }

    /// The upstream did not answer, or said that it cannot. `asked` is how long it wants to be left alone.
    pub fn failed(&mut self, now: Instant, asked: Option<Duration>) {
        self.probing = false;
        self.outages = self.outages.saturating_add(1);
        self.since.get_or_insert(now);
        let over = self.outages.saturating_sub(OUTAGES_MAX);
        let pause =
            (self.outages >= OUTAGES_MAX).then(|| PAUSE_MIN.saturating_mul(1 << over.min(8)).min(PAUSE_MAX));
        let asked = asked.map(|asked| asked.clamp(PAUSE_MIN, ASKED_MAX));
        if let Some(pause) = asked.max(pause) {
            self.closed_until = Some(now + pause);
        }
    }

    /// A probe that was given up told nothing.
    pub fn forgone(&mut self) {
        self.probing = false;
    }

    /// Since when the upstream does not answer; None while it does.
    pub fn away_since(&self) -> Option<Instant> {
        self.closed_until.and(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(base: Instant, seconds: u64) -> Instant {
        base + Duration::from_secs(seconds)
    }

    #[test]
    fn single_outages_stop_nobody() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..10 {
            breaker.failed(now, None);
            breaker.failed(now, None);
            assert_eq!(breaker.admit(now), Admission::Go);
            breaker.answered();
        }
        assert_eq!(breaker.away_since(), None);
    }

    #[test]
    fn after_some_outages_one_probe_at_a_time_goes() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..OUTAGES_MAX {
            breaker.failed(now, None);
        }
        assert_eq!(breaker.admit(now), Admission::Wait(PAUSE_MIN));
        assert_eq!(breaker.away_since(), Some(now));
        let later = second(now, 1);
        assert_eq!(breaker.admit(later), Admission::Probe);
        assert_eq!(breaker.admit(later), Admission::Wait(PAUSE_MIN));
        breaker.failed(later, None);
        assert_eq!(breaker.admit(later), Admission::Wait(Duration::from_secs(2)));
        assert_eq!(breaker.admit(second(now, 3)), Admission::Probe);
        breaker.answered();
        assert_eq!(breaker.admit(later), Admission::Go);
    }

    #[test]
    fn a_probe_that_was_given_up_lets_the_next_go() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        breaker.failed(now, Some(Duration::ZERO));
        let later = second(now, 1);
        assert_eq!(breaker.admit(later), Admission::Probe);
        breaker.forgone();
        assert_eq!(breaker.admit(later), Admission::Probe);
    }

    #[test]
    fn pauses_grow_and_are_bounded_and_what_the_upstream_asks_counts_at_once() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..40 {
            breaker.failed(now, None);
        }
        assert_eq!(breaker.admit(now), Admission::Wait(PAUSE_MAX));
        let mut breaker = Breaker::default();
        breaker.failed(now, Some(Duration::from_secs(60)));
        assert_eq!(breaker.admit(now), Admission::Wait(Duration::from_secs(60)));
        breaker.failed(now, Some(Duration::from_secs(1 << 40)));
        assert_eq!(breaker.admit(now), Admission::Wait(ASKED_MAX));
    }
}
