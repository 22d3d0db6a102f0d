//! Figures of `INFO` that need their own state.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::totals::Totals;
use acl::random_hex;

/// As in Redis; all are hexadecimal digits.
const ID_DIGIT_COUNT: usize = 40;
/// Minimum interval of rates, as in Redis.
const RATE_MIN: Duration = Duration::from_millis(100);

pub(crate) struct Figures {
    /// Different for each start.
    pub(crate) run_id: String,
    pub(crate) replication_id: String,
    peak_bytes: AtomicU64,
    /// Number of changes when the last save began.
    saved_count: AtomicU64,
    rates: Mutex<Rates>,
}

/// Totals at one moment, and their rates before it.
struct Rates {
    at: Instant,
    counted: [u64; 3],
    each_second: [f64; 3],
}

impl Figures {
    pub(crate) fn new() -> Figures {
        let id = || random_hex(ID_DIGIT_COUNT).unwrap_or_else(|| "0".repeat(ID_DIGIT_COUNT));
        let rates = Rates { at: Instant::now(), counted: [0; 3], each_second: [0.0; 3] };
        Figures {
            run_id: id(),
            replication_id: id(),
            peak_bytes: AtomicU64::new(0),
            saved_count: AtomicU64::new(0),
            rates: Mutex::new(rates),
        }
    }

    /// Returns the maximum of all values passed so far, including this one.
    pub(crate) fn peak_with(&self, now_bytes: u64) -> u64 {
        self.peak_bytes.fetch_max(now_bytes, Ordering::Relaxed).max(now_bytes)
    }

    /// Returns commands, received bytes and sent bytes per second since the previous call.
    pub(super) fn rates(&self, totals: impl FnOnce() -> Totals) -> [f64; 3] {
        let mut rates = self.rates.lock();
        let elapsed = rates.at.elapsed();
        if elapsed >= RATE_MIN {
            let totals = totals();
            let counted = [totals.event_counts.commands, totals.input_bytes, totals.output_bytes];
            let grown = |index: usize| counted[index].saturating_sub(rates.counted[index]) as f64;
            let each_second = [0, 1, 2].map(|index| grown(index) / elapsed.as_secs_f64());
            *rates = Rates { at: rates.at + elapsed, counted, each_second };
        }
        rates.each_second
    }

    /// Records that a save has begun after `change_count` changes.
    pub(crate) fn note_save(&self, change_count: u64) {
        self.saved_count.store(change_count, Ordering::Relaxed);
    }

    /// Of `change_count` changes since the start, returns those since the last successful save began.
    pub(crate) fn unsaved_count(&self, change_count: u64, has_failed: bool) -> u64 {
        let saved_count = if has_failed { 0 } else { self.saved_count.load(Ordering::Relaxed) };
        change_count.saturating_sub(saved_count)
    }
}
