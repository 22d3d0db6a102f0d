//! The clock that decides which keys have expired.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use items::Expiry;

/// The remaining lifetime of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ttl {
    /// The key does not expire.
    Unlimited,
    /// The key expires after this time.
    Left(Duration),
}

/// The clock that decides which keys have expired. It never runs backwards and never stops.
///
/// It follows the system clock while that runs forward. If the system clock is set back, or was ahead and is corrected,
/// this clock continues from the latest time that it returned, at normal speed. Keys that are put from then on live as
/// long as requested. A caller that passes a point in time instead of a duration uses the system clock, which is then
/// behind: [`Clock::lead_ms`] is the difference.
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

impl PartialEq for Clock {
    /// Returns true if one clock is a clone of the other.
    fn eq(&self, other: &Clock) -> bool {
        match (&self.0, &other.0) {
            (Source::Manual(manual), Source::Manual(other)) => Arc::ptr_eq(manual, other),
            (Source::System, Source::System) => true,
            _ => false,
        }
    }
}

impl Eq for Clock {}

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    Manual(Arc<Manual>),
}

#[derive(Debug)]
struct Manual {
    now_ms: AtomicU64,
    /// Added to the time by each reading.
    step_ms: u64,
}

impl Manual {
    /// Advances the time by `by_ms`, and returns the time before.
    fn go_on(&self, by_ms: u64) -> u64 {
        let next = |now_ms: u64| Some(now_ms.saturating_add(by_ms));
        self.now_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).unwrap_or_else(|now_ms| now_ms)
    }
}

/// The largest lead of the system clock over the time since [`STARTED`] that any store of this process has read. The
/// time is this lead plus the time since `STARTED`; both only grow.
static AHEAD_MS: AtomicU64 = AtomicU64::new(0);
/// A smaller difference does not mean that the system clock was set back: both times are cut to milliseconds, and a
/// thread may pause between the two readings.
const LEAD_MIN_MS: u64 = 1000;
/// The first reading of the time in this process.
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Clock {
    /// Returns a clock for tests that stays at `now_ms` after the Unix epoch until it is advanced. Clones share its
    /// time.
    #[must_use]
    pub fn manual(now_ms: u64) -> Clock {
        Clock(Source::Manual(Arc::new(Manual { now_ms: now_ms.into(), step_ms: 0 })))
    }

    /// As [`Clock::manual`], but every reading advances the clock by one millisecond, so that any moment can fall
    /// between two readings.
    #[must_use]
    pub fn ticking(now_ms: u64) -> Clock {
        Clock(Source::Manual(Arc::new(Manual { now_ms: now_ms.into(), step_ms: 1 })))
    }

    /// Advances a manual clock and its clones. The time ends at `u64::MAX` milliseconds.
    ///
    /// # Panics
    /// If this is the system clock.
    pub fn advance(&self, by: Duration) {
        match &self.0 {
            Source::Manual(manual) => _ = manual.go_on(ms_of(by)),
            Source::System => panic!("the system clock cannot be advanced"),
        }
    }

    /// Returns the present time in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match &self.0 {
            Source::Manual(manual) if manual.step_ms == 0 => manual.now_ms.load(Ordering::Acquire),
            Source::Manual(manual) => manual.go_on(manual.step_ms),
            Source::System => time_ms(&AHEAD_MS, system_ms(), ms_of(STARTED.elapsed())),
        }
    }

    /// Returns the lead of this clock over a system clock that was set back. It is 0 if the lead is less than a second,
    /// because the two clocks are read one after the other.
    #[must_use]
    pub fn lead_ms(&self) -> u64 {
        match &self.0 {
            Source::Manual(_) => 0,
            Source::System => lead_ms(self.now_ms(), system_ms()),
        }
    }

    /// Returns the expiry that is `time` from now.
    #[must_use]
    pub fn after(&self, time: Duration) -> Expiry {
        Expiry::at_ms(self.now_ms().saturating_add(ms_of(time)))
    }

    /// Returns true if the expiry has passed.
    #[inline(always)]
    #[must_use]
    pub fn is_past(&self, expiry: Expiry) -> bool {
        !expiry.is_never() && self.has_come(expiry)
    }

    #[cold]
    fn has_come(&self, expiry: Expiry) -> bool {
        expiry.ms() <= self.now_ms()
    }

    /// Returns the expiry at which the system clock shows `time`. It is later by [`Clock::lead_ms`].
    #[must_use]
    pub fn at(&self, time: SystemTime) -> Expiry {
        Expiry::at_ms(Expiry::at(time).ms().saturating_add(self.lead_ms()))
    }

    /// Returns the time left until the expiry.
    #[must_use]
    pub fn left(&self, expiry: Expiry) -> Ttl {
        if expiry.is_never() {
            return Ttl::Unlimited;
        }
        Ttl::Left(Duration::from_millis(expiry.ms().saturating_sub(self.now_ms())))
    }
}

/// Returns the time at which the system clock shows `system_ms` and `gone_ms` have passed since the start. Writes to
/// `ahead_ms` only if the system clock has gained on the elapsed time.
fn time_ms(ahead_ms: &AtomicU64, system_ms: u64, gone_ms: u64) -> u64 {
    let (now_ahead_ms, seen_ms) = (system_ms.saturating_sub(gone_ms), ahead_ms.load(Ordering::Relaxed));
    if now_ahead_ms > seen_ms {
        ahead_ms.fetch_max(now_ahead_ms, Ordering::Relaxed);
    }
    gone_ms.saturating_add(now_ahead_ms.max(seen_ms))
}

fn lead_ms(now_ms: u64, system_ms: u64) -> u64 {
    Some(now_ms.saturating_sub(system_ms)).filter(|&lead_ms| lead_ms >= LEAD_MIN_MS).unwrap_or(0)
}

fn system_ms() -> u64 {
    ms_of(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn ms_of(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_run_backwards() {
        let clock = Clock::default();
        let times: Vec<_> = (0..1_000).map(|_| clock.now_ms()).collect();
        assert!(times.is_sorted() && times[0] > 1_700_000_000_000, "{times:?}");
    }

    /// The system clock is set a year ahead and then corrected: a key that is put then with a second to live lives a
    /// second.
    #[test]
    fn time_advances_after_clock_set_back() {
        const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;
        let ahead_ms = AtomicU64::new(0);
        let time = |system_ms, gone_ms| time_ms(&ahead_ms, system_ms, gone_ms);
        assert_eq!((time(1_000_000, 0), time(1_000_010, 10)), (1_000_000, 1_000_010));
        assert_eq!(time(1_000_020 + YEAR_MS, 20), 1_000_020 + YEAR_MS);
        assert_eq!(time(1_000_030, 30), 1_000_030 + YEAR_MS);
        assert_eq!(time(1_001_030, 1_030), 1_001_030 + YEAR_MS);
        // Set back before every earlier time; then correct, and as far ahead as before, after a year.
        assert_eq!(time(0, 2_000), 1_002_000 + YEAR_MS);
        assert_eq!(time(2_000_000 + YEAR_MS, YEAR_MS), 1_000_000 + 2 * YEAR_MS);
    }

    #[test]
    fn clock_set_back_is_led() {
        assert_eq!([lead_ms(5_000, 5_000), lead_ms(5_000, 5_001), lead_ms(5_999, 5_000)], [0; 3]);
        assert_eq!((lead_ms(6_000, 5_000), lead_ms(9_000, 0)), (1_000, 9_000));
        assert_eq!(Clock::manual(9_000).lead_ms(), 0);
    }

    #[test]
    fn moment_is_past_once_it_has_come() {
        let clock = Clock::manual(1000);
        let expiry = clock.after(Duration::from_millis(5));
        assert_eq!((expiry.ms(), clock.left(expiry)), (1005, Ttl::Left(Duration::from_millis(5))));
        clock.advance(Duration::from_millis(4));
        assert!(!clock.is_past(expiry));
        clock.advance(Duration::from_millis(1));
        assert!(clock.is_past(expiry));
        assert!(!clock.is_past(Expiry::NEVER));
        assert_eq!(clock.left(Expiry::NEVER), Ttl::Unlimited);
    }

    #[test]
    fn manual_clock_never_goes_back() {
        for clock in [Clock::manual(1_000), Clock::ticking(1_000)] {
            for by in [Duration::MAX, Duration::from_secs(1), Duration::MAX] {
                clock.advance(by);
                assert_eq!([clock.now_ms(), clock.now_ms()], [u64::MAX; 2]);
            }
        }
    }

    #[test]
    fn moments_beyond_all_counting_are_none() {
        assert!(Clock::manual(1000).after(Duration::MAX).is_never());
        assert_eq!(Expiry::at(UNIX_EPOCH - Duration::from_secs(1)), Expiry::at_ms(0));
    }
}
