//! The clock that says which keys have expired.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use items::Expiry;

/// What is left of a key's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ttl {
    /// It does not expire.
    Unlimited,
    /// It expires after this time.
    Left(Duration),
}

/// The clock that decides what has expired: it never runs backwards, and never stands still.
///
/// It is the system's, as long as that does what clocks do. Where that was set back, by whomever, or had been set forward and
/// was put right, this one goes on from the latest time that it told, as fast as time goes by: keys that are put from then on
/// live as long as they are to. A caller that says at which time a key expires, and not after how long, goes by the system's clock,
/// which is behind then: [`Clock::lead_ms`] is the difference.
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

impl PartialEq for Clock {
    /// True if one is the other's clone.
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
    /// It goes on by so much with each look at it.
    step_ms: u64,
}

impl Manual {
    /// Goes on by so much, and never back; the time before.
    fn go_on(&self, by_ms: u64) -> u64 {
        let next = |now_ms: u64| Some(now_ms.saturating_add(by_ms));
        self.now_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).unwrap_or_else(|now_ms| now_ms)
    }
}

/// How far the system's clock was, at most, ahead of [`STARTED`]'s time, as any store of this process was told. So the time is
/// what has gone by since, and this; each may grow and neither shrinks.
static AHEAD_MS: AtomicU64 = AtomicU64::new(0);
/// A system's clock that is less behind was not set back: both are cut to milliseconds, and a thread may wait between them.
const LEAD_MIN_MS: u64 = 1000;
/// When this process first asked for the time.
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Clock {
    /// A clock that stands still at `now_ms` after the Unix epoch until it is advanced, for tests; so do its clones.
    #[must_use]
    pub fn manual(now_ms: u64) -> Clock {
        Clock(Source::Manual(Arc::new(Manual { now_ms: now_ms.into(), step_ms: 0 })))
    }

    /// As [`Clock::manual`], of a clock that goes on by a millisecond with each look at it: so that any moment comes between two looks.
    #[must_use]
    pub fn ticking(now_ms: u64) -> Clock {
        Clock(Source::Manual(Arc::new(Manual { now_ms: now_ms.into(), step_ms: 1 })))
    }

    /// Advances a manual clock, and its clones. At the last moment that a `u64` of milliseconds counts, the clock stands still.
    ///
    /// # Panics
    /// If the clock is the system's.
    pub fn advance(&self, by: Duration) {
        match &self.0 {
            Source::Manual(manual) => _ = manual.go_on(ms_of(by)),
            Source::System => panic!("the system's clock goes by itself"),
        }
    }

    /// The present, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match &self.0 {
            Source::Manual(manual) if manual.step_ms == 0 => manual.now_ms.load(Ordering::Acquire),
            Source::Manual(manual) => manual.go_on(manual.step_ms),
            Source::System => time_ms(&AHEAD_MS, system_ms(), ms_of(STARTED.elapsed())),
        }
    }

    /// How far this clock is ahead of the system's, which was set back; 0 if that is less than a second, as it is where both are
    /// read one after the other.
    #[must_use]
    pub fn lead_ms(&self) -> u64 {
        match &self.0 {
            Source::Manual(_) => 0,
            Source::System => lead_ms(self.now_ms(), system_ms()),
        }
    }

    /// The moment that comes after this time.
    #[must_use]
    pub fn after(&self, time: Duration) -> Expiry {
        Expiry::at_ms(self.now_ms().saturating_add(ms_of(time)))
    }

    /// True once the moment has come.
    #[inline(always)]
    #[must_use]
    pub fn is_past(&self, expiry: Expiry) -> bool {
        !expiry.is_never() && self.has_come(expiry)
    }

    #[cold]
    fn has_come(&self, expiry: Expiry) -> bool {
        expiry.ms() <= self.now_ms()
    }

    /// The moment at which the system's clock tells this time, which is as much later as this one is ahead of it
    /// ([`Clock::lead_ms`]).
    #[must_use]
    pub fn at(&self, time: SystemTime) -> Expiry {
        Expiry::at_ms(Expiry::at(time).ms().saturating_add(self.lead_ms()))
    }

    /// What is left until then.
    #[must_use]
    pub fn left(&self, expiry: Expiry) -> Ttl {
        if expiry.is_never() {
            return Ttl::Unlimited;
        }
        Ttl::Left(Duration::from_millis(expiry.ms().saturating_sub(self.now_ms())))
    }
}

/// The time when the system tells `system_ms`, and `gone_ms` have gone by. The line is written only where the system's clock has
/// gained on the other.
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

    /// A year forward, and put right again: what is put then, to live for a second, does so.
    #[test]
    fn time_goes_on_when_the_systems_clock_was_set_back() {
        const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;
        let ahead_ms = AtomicU64::new(0);
        let time = |told_ms, gone_ms| time_ms(&ahead_ms, told_ms, gone_ms);
        assert_eq!((time(1_000_000, 0), time(1_000_010, 10)), (1_000_000, 1_000_010));
        assert_eq!(time(1_000_020 + YEAR_MS, 20), 1_000_020 + YEAR_MS);
        assert_eq!(time(1_000_030, 30), 1_000_030 + YEAR_MS);
        assert_eq!(time(1_001_030, 1_030), 1_001_030 + YEAR_MS);
        // Set back before all times; and right, and as far ahead, after a year.
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
