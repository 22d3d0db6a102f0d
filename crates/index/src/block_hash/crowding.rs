//! The moves of items that were done, and whether there may be more to do ahead of inserts (`moves`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::layout::FILLED_MAX;

/// The number of items up to which a bucket is light: with one more, it is still less full than the bucket from
/// which the item came.
pub(super) const LIGHT_FILLED_MAX: u32 = FILLED_MAX - 2;

/// The moves of items since the store was opened, and whether a walk ahead of inserts may find work.
pub(super) struct Moves {
    /// See [`super::BlockHash::take_crowding`].
    is_crowding: AtomicBool,
    count: AtomicU64,
}

impl Default for Moves {
    fn default() -> Moves {
        Moves { is_crowding: AtomicBool::new(true), count: AtomicU64::new(0) }
    }
}

impl Moves {
    /// Counts moved items.
    pub(super) fn note_moves(&self, count: u64) {
        self.count.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn take_crowding(&self) -> bool {
        self.is_crowding.load(Ordering::Relaxed) && self.is_crowding.swap(false, Ordering::Acquire)
    }

    /// Records that a walk ahead of inserts may find work. The change that causes it has been published.
    #[inline(always)]
    pub(super) fn note_crowding(&self) {
        if !self.is_crowding.load(Ordering::Relaxed) {
            self.is_crowding.store(true, Ordering::Release);
        }
    }
}
