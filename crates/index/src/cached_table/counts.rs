//! What searches are counted by: threads have lines of their own.

use std::sync::atomic::{AtomicU64, Ordering};

use super::CacheStats;

const LINE_COUNT: usize = 32;

/// What is counted.
#[derive(Clone, Copy)]
pub(super) enum Counted {
    Hit,
    Absent,
    Miss,
    Evicted,
}

#[derive(Default)]
#[repr(align(64))]
struct OfThread([AtomicU64; 4]);

#[derive(Default)]
pub(super) struct Counts([OfThread; LINE_COUNT]);

impl Counts {
    #[inline(always)]
    pub(super) fn count(&self, counted: Counted) {
        self.0[epoch::thread_index() % LINE_COUNT].0[counted as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sum(&self) -> CacheStats {
        let of = |counted: Counted| self.0.iter().map(|line| line.0[counted as usize].load(Ordering::Relaxed)).sum();
        CacheStats {
            hit_count: of(Counted::Hit),
            absent_count: of(Counted::Absent),
            miss_count: of(Counted::Miss),
            evicted_count: of(Counted::Evicted),
            ..CacheStats::default()
        }
    }
}
