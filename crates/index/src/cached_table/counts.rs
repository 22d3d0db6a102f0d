//! The counters of searches. Each of the first threads has its own line, and counts without a locked instruction.
//! All further threads share the last line.

use std::sync::atomic::{AtomicU64, Ordering};

const LINE_COUNT: usize = 32;

/// The results of searches, and the memory use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Searches that found the key.
    pub hit_count: u64,
    /// Searches that proved the key to be absent.
    pub absent_count: u64,
    /// Searches that had to read the store.
    pub miss_count: u64,
    /// Copies that were evicted.
    pub evicted_count: u64,
    /// Copies that were handed over, and written by a serving thread.
    pub served_count: u64,
    /// Copies that were handed over, and that their writers took back because no thread had taken them.
    pub taken_back_count: u64,
    /// The DRAM used, in bytes.
    pub dram_bytes: u64,
    /// The bytes of copies that searches can find.
    pub live_bytes: u64,
}

impl CacheStats {
    /// Returns the fraction of searches that did not need the store, 0 to 1.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let answered = self.hit_count + self.absent_count;
        answered as f64 / (answered + self.miss_count).max(1) as f64
    }
}

/// The counted events.
#[derive(Clone, Copy)]
pub(super) enum Counted {
    Hit,
    Absent,
    Miss,
    Evicted,
    /// A copy that was handed over, and written.
    Served,
    /// A copy that was handed over, and that its writer took back.
    TakenBack,
}

#[derive(Default)]
#[repr(align(64))]
struct OfThread([AtomicU64; 6]);

#[derive(Default)]
pub(super) struct Counts([OfThread; LINE_COUNT]);

impl Counts {
    #[inline(always)]
    pub(super) fn count(&self, counted: Counted) {
        let thread = epoch::thread_index();
        match self.0[..LINE_COUNT - 1].get(thread) {
            Some(own) => {
                let own = &own.0[counted as usize];
                own.store(own.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            None => _ = self.0[LINE_COUNT - 1].0[counted as usize].fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(super) fn sum(&self) -> CacheStats {
        let of = |counted: Counted| self.0.iter().map(|line| line.0[counted as usize].load(Ordering::Relaxed)).sum();
        CacheStats {
            hit_count: of(Counted::Hit),
            absent_count: of(Counted::Absent),
            miss_count: of(Counted::Miss),
            evicted_count: of(Counted::Evicted),
            served_count: of(Counted::Served),
            taken_back_count: of(Counted::TakenBack),
            ..CacheStats::default()
        }
    }
}
