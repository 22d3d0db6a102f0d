//! The counters of searches. Each of the first threads has its own line, and counts without a locked instruction.
//! All further threads share the last line.

use std::sync::atomic::{AtomicU64, Ordering};

use super::CacheStats;

const LINE_COUNT: usize = 32;

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
